// Packets that do not go by the wire: of this process to itself, of and to other processes of this host by the
// connections between their slots; and the end of such a process. Owns the queue to itself, and the messages that wait
// for the sockets to be empty. Host::send() gives it what leaves; frames of other processes and poll() what comes; with
// the engine's lock held.
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
  bool valid() const { return wake_.valid(); }  // false: the system has refused a descriptor
  void start(bool localLink) { localLink_ = localLink; }
  void stop();

  // ── Out
  // Whether a packet that the wire could carry goes this way.
  bool prefers(const Path& path, const OutPacket& packet);
  // `length`: as checkedLength(). False: no such address here.
  bool send(const Path& path, const OutPacket& packet, uint32_t length);
  void carry(const Path& path, const uint8_t* bytes, uint32_t length) override;
  // What is sent between these two is delivered at once, without waking the engine's thread, if nothing was queued
  // before.
  void beginNow() { now_ = queue_.empty(); }
  void endNow(Engine& engine);

  // ── In; all in a step of the intake.
  // A packet that another process hands over.
  void onFrame(const Frame& frame, FrameOrigin& origin);
  // Something happened on the connection to this slot.
  void onOutbound(uint32_t slot, uint32_t kinds);
  bool queued() const { return !queue_.empty(); }
  uint32_t deliverQueue(uint32_t budget);
  uint32_t receivePairs(uint32_t budget) { return pairs_.receive(parts_.intake.sink(), budget); }
  bool hasDeferred() const { return !deferred_.empty(); }
  uint32_t deliverDeferred();

 private:
  static constexpr uint32_t kMostQueued = 4096;  // packets
  // A handed-over message or a departure. It came past the wire and may end connections, and packets that were sent
  // before it can still lie in the sockets: those go first. Never kept from one poll to the next.
  struct Deferred {
    std::vector<uint8_t> frame;  // empty: a departure
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
  UniqueFd wake_;                           // readable: the queue is to be delivered
  bool rung_ = false;                       // it is
  bool now_ = false;                        // between beginNow() and endNow()
  bool localLink_ = false;                  // option: MADs for this host do not go by the wire
  std::deque<std::vector<uint8_t>> queue_;  // frames
  std::deque<Deferred> deferred_;
};

}  // namespace nd
