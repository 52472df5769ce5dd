// Delivers packets that bypass the wire: those of this process to itself, and those from and to other processes of this
// host over the connections between their slots. It also reports when such a process ends. It owns the queue of packets
// from this process to itself, and the messages that wait until the sockets are empty. Outgoing packets come from
// Host::send(), incoming ones from poll() and the frames of other processes. Requires the engine's lock.
#pragma once
#include <deque>
#include <vector>

#include "host/gsi.h"
#include "host/wire_receiver.h"
#include "local/local_pairs.h"

namespace nd {

class LocalDelivery final : public PacketTap::Carrier {
 public:
  LocalDelivery(const HostParts& parts, LocalPairs& pairs, Gsi& gsi, RawReceiver& raw, WireReceiver& receiver4,
                WireReceiver& receiver6);
  bool valid() const { return wake_.valid(); }  // false: no descriptor was available
  void start(bool localLink) { localLink_ = localLink; }
  void stop();

  // ── Out
  // Returns whether a packet that the wire could carry is delivered locally.
  bool prefers(const Path& path, const OutPacket& packet);
  // `length`: as from checkedLength(). Returns false if this host has no such address.
  bool send(const Path& path, const OutPacket& packet, uint32_t length);
  void carry(const Path& path, const uint8_t* bytes, uint32_t length) override;
  // Packets sent between these two calls are delivered immediately, without waking the engine's thread, if nothing was
  // queued before.
  void beginNow() { now_ = queue_.empty(); }
  void endNow(Engine& engine);

  // ── In; all within a step of the intake.
  // Handles a packet forwarded by another process.
  void onFrame(const Frame& frame, FrameOrigin& origin);
  // Handles an event on the connection to this slot.
  void onOutbound(uint32_t slot, uint32_t kinds);
  bool queued() const { return !queue_.empty(); }
  uint32_t deliverQueue(uint32_t budget);
  uint32_t receivePairs(uint32_t budget) { return pairs_.receive(parts_.intake.sink(), budget); }
  bool hasDeferred() const { return !deferred_.empty(); }
  uint32_t deliverDeferred();

 private:
  static constexpr uint32_t kMostQueued = 4096;  // packets
  // A message forwarded by another process, or a departure. It bypassed the wire and may end connections. Packets sent
  // before it may still be in the sockets, and are delivered first. It is never kept from one poll to the next.
  struct Deferred {
    std::vector<uint8_t> frame;  // empty for a departure
    uint32_t slot = 0;
    bool orderly = false;
  };
  static bool endsConnection(const Deferred& what);
  void queue(const Frame& frame);
  void ring();
  void silence();
  void drainPairs();

  const HostParts parts_;
  LocalPairs& pairs_;
  Gsi& gsi_;
  RawReceiver& raw_;
  WireReceiver& receiver4_;
  WireReceiver& receiver6_;
  UniqueFd wake_;                           // readable while the queue must be delivered
  bool rung_ = false;                       // whether wake_ is readable
  bool now_ = false;                        // between beginNow() and endNow()
  bool localLink_ = false;                  // an option: MADs for this host bypass the wire
  std::deque<std::vector<uint8_t>> queue_;  // frames
  std::deque<Deferred> deferred_;
};

}  // namespace nd
