// Sees every packet that comes or leaves: writes it to the capture, and injects faults into what leaves. Owns both, and
// the packet that faults hold back. The intake shows it what has come; the wire senders and the local delivery let it
// pass on what leaves. The engine's lock is held in every call.
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
  // Carries the packets that the tap lets pass.
  class Carrier {
   public:
    // The bytes, BTH to pad or, with `hasIcrc`, to ICRC, stay as they are.
    virtual void carry(const Path& path, const uint8_t* bytes, uint32_t length) = 0;
    const bool hasIcrc;

   protected:
    explicit Carrier(bool withIcrc) : hasIcrc(withIcrc) {}
    ~Carrier() = default;
  };

  PacketTap(const Clock& clock, HostCounters& counters) : clock_(clock), counters_(counters) {}

  // Host::configure() and Host::join().
  void configure(const HostOptions& options);
  void join(const HostOptions& options);
  void close();

  // Whether nothing is to be done for a packet but its ICRC: one word, which whatever switches capture or faults keeps
  // right.
  bool idle() const { return uses_ == 0; }
  bool captures() const { return (uses_ & kCaptures) != 0; }
  bool injects() const { return (uses_ & kInjects) != 0; }

  // A packet has come, or leaves without faults: BTH to pad, `length` bytes. `hasIcrc`: its ICRC lies behind; otherwise
  // it is computed for the capture.
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
  // A packet leaves: it is dropped, changed, doubled or held back where the faults say so, captured, and carried. The
  // bytes are the carrier's: to ICRC if it has one. They may be changed.
  void pass(Carrier& carrier, const Path& path, uint8_t* bytes, uint32_t length);

  // When onTime() has something to do, UINT64_MAX if never.
  uint64_t deadline() const { return std::min(held_.due, capture_.flushDue()); }
  void onTime(uint64_t now, PacketSink& sink);

 private:
  enum Use : uint32_t { kCaptures = 1, kInjects = 2 };
  // A packet that others overtake.
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
