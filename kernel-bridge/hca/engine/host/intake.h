// Every received packet passes through here, whichever link it used: its length is checked, it is counted and shown to
// the capture, and it is passed to the transport. Called by the UDP receivers, the local delivery and the local link
// in a step of the host, with the engine's lock held.
#pragma once
#include "base/host_counters.h"
#include "host/packet_tap.h"

namespace nd {

class Intake final : public PacketSink {
 public:
  Intake(HostCounters& counters, PacketTap& tap) : counters_(counters), tap_(tap) {}

  // The transport accepts packets during its lifetime.
  class Step {
   public:
    Step(Intake& intake, PacketSink& sink) : intake_(intake) { intake_.sink_ = &sink; }
    ~Step() { intake_.sink_ = nullptr; }

   private:
    Intake& intake_;
  };
  PacketSink& sink() { return *sink_; }

  // Whether a packet may have this length, BTH to pad. If not, counts it in `counter`.
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

  // A packet followed by its ICRC, which has been verified.
  void takeChecked(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
    tap_.received(meta, headers, bth, length, true);
    sink_->onPacket(meta, bth, length);
  }
  // The same for a small packet on the single-packet fast path, without a capture. False: not handled and not counted.
  bool takeSingle(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
    return sink_->onSinglePacket(meta, bth, length) && cameByWire(length + kIcrcBytes);
  }

  // Packets that bypass the wire have no ICRC: those of this or another process of the host.
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
