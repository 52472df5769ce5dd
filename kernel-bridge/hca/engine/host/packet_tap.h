// Writes every incoming and outgoing packet to the capture, and injects faults into outgoing ones. It owns the capture,
// the faults, and the packet that a fault holds back. Incoming packets come from the intake, outgoing ones from the
// wire senders and the local delivery. Requires the engine's lock.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "base/host_counters.h"
#include "host/capture.h"
#include "host/faults.h"

namespace nd {

class PacketTap {
 public:
  // Sends the packets that the tap lets pass.
  class Carrier {
   public:
    // The bytes extend from BTH to pad, or to the ICRC with `hasIcrc`. They must not be changed.
    virtual void carry(const Path& path, const uint8_t* bytes, uint32_t length) = 0;
    const bool hasIcrc;

   protected:
    explicit Carrier(bool withIcrc) : hasIcrc(withIcrc) {}
    ~Carrier() = default;
  };

  PacketTap(const Clock& clock, HostCounters& counters) : clock_(clock), counters_(counters) {}

  // See Host::configure() and Host::join().
  void configure(const HostOptions& options);
  void join(const HostOptions& options);
  void close();

  // Returns whether packets need nothing but their ICRC. The answer is one word, kept up to date by whatever switches
  // capture or faults.
  bool idle() const { return uses_ == 0; }
  bool captures() const { return (uses_ & kCaptures) != 0; }
  bool injects() const { return (uses_ & kInjects) != 0; }

  // Captures a packet that was received, or is sent without faults: `length` bytes from BTH to pad. `hasIcrc`: its ICRC
  // follows; otherwise it is computed.
  void received(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length, bool hasIcrc) {
    if (captures())
      record(Capture::Direction::kInbound, headers, {meta.trafficClass, meta.hopLimit, meta.flowLabel}, bth, length,
             hasIcrc);
  }
  void sent(const Path& path, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length, bool hasIcrc) {
    if (captures())
      record(Capture::Direction::kOutbound, headers, {path.trafficClass, path.hopLimit, path.flowLabel}, bth, length,
             hasIcrc);
  }
  // Drops, changes, duplicates or holds back an outgoing packet as the faults decide, captures it, and sends it. The
  // bytes, up to the ICRC if the carrier has one, belong to the carrier and may be changed.
  void pass(Carrier& carrier, const Path& path, uint8_t* bytes, uint32_t length);

  // Returns when onTime() is due, or UINT64_MAX if never.
  uint64_t deadline() const { return std::min(held_.due, capture_.flushDue()); }
  void onTime(uint64_t now, PacketSink& sink);

 private:
  enum Use : uint32_t { kCaptures = 1, kInjects = 2 };
  // A packet that is held back so that others overtake it.
  struct Held {
    uint32_t packetsToGo = 0;  // 0: none is held
    uint64_t due = UINT64_MAX;
    Carrier* carrier = nullptr;
    Path path;
    std::vector<uint8_t> bytes;
  };
  void openCapture(const std::string& path);
  void note() { uses_ = (capture_.active() ? kCaptures : 0u) | (faults_.active() ? kInjects : 0u); }
  void record(Capture::Direction direction, const IcrcHeaders& headers, const IpVariant& variant, const uint8_t* bth,
              uint32_t length, bool hasIcrc);
  void carry(Carrier& carrier, const Path& path, const uint8_t* bytes, uint32_t length);
  bool hold(Carrier& carrier, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets);
  void releaseHeld();

  const Clock& clock_;
  HostCounters& counters_;
  Capture capture_;
  Faults faults_;
  Held held_;
  uint32_t uses_ = 0;
};

}  // namespace nd
