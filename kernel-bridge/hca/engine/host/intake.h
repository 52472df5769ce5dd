// Every received packet passes through here, whichever link it used. The intake checks its length, counts and captures
// it, and passes it to the transport. The UDP receivers, the local delivery and the local link call it in a step of the
// host, with the engine's lock held.
#pragma once
#include "base/host_counters.h"
#include "host/packet_tap.h"

namespace nd {

class Intake final : public PacketSink {
 public:
  Intake(HostCounters& counters, PacketTap& tap) : counters_(counters), tap_(tap) {}

  // The transport accepts packets while this object exists.
  class Step {
   public:
    Step(Intake& intake, PacketSink& sink) : intake_(intake) { intake_.sink_ = &sink; }
    ~Step() { intake_.sink_ = nullptr; }

   private:
    Intake& intake_;
  };
  PacketSink& sink() { return *sink_; }

  // Returns whether a packet may have this length from BTH to pad, and counts it in `counter` if not.
  bool checkLength(uint32_t length, HostCounter counter) {
    if (isPacketLength(length)) return true;
    counters_.add(counter);
    return false;
  }
  // Counts a packet from the wire, including its ICRC. Returns whether its length is valid.
  bool cameByWire(uint32_t whole) {
    counters_.bump(HostCounter::kWireRxPackets);
    return checkLength(whole - kIcrcBytes, HostCounter::kWireRxShort);
  }

  // Accepts a packet followed by its ICRC, which has been verified.
  void takeChecked(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
    tap_.received(meta, headers, bth, length, true);
    sink_->onPacket(meta, bth, length);
  }
  // Does the same for a small packet on the single-packet fast path, while there is no capture. Returns false if it was
  // neither handled nor counted.
  bool takeSingle(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
    return sink_->onSinglePacket(meta, bth, length) && cameByWire(length + kIcrcBytes);
  }

  // Packets of processes on this host that bypass the wire have no ICRC.
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override {
    tap_.received(meta, {meta.source, meta.destination}, bth, length, false);
    sink_->onPacket(meta, bth, length);
  }
  void onPeerProcessGone(uint32_t, bool) override {}  // not reported here

 private:
  HostCounters& counters_;
  PacketTap& tap_;
  PacketSink* sink_ = nullptr;
};

}  // namespace nd
