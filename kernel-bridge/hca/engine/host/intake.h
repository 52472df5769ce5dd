// Every received packet passes here, whichever way it came: its length is checked, it is counted and shown to the
// capture, and the transport takes it. The wire receivers, the local delivery and the local link call it, in a step of
// the host and with the engine's lock held.
#pragma once
#include "base/host_counters.h"
#include "host/packet_tap.h"

namespace nd {

class Intake final : public PacketSink {
 public:
  Intake(HostCounters& counters, PacketTap& tap) : counters_(counters), tap_(tap) {}

  // The transport takes packets until this ends.
  class Step {
   public:
    Step(Intake& intake, PacketSink& sink) : intake_(intake) { intake_.sink_ = &sink; }
    ~Step() { intake_.sink_ = nullptr; }

   private:
    Intake& intake_;
  };
  PacketSink& sink() { return *sink_; }

  // Whether a packet may have this length, BTH to pad. If not, `counter` counts it.
  bool checkLength(uint32_t length, HostCounter counter) {
    if (isPacketLength(length)) return true;
    counters_.add(counter);
    return false;
  }
  // A packet has come by the wire, with its ICRC: counted. Whether its length is right.
  bool cameByWire(uint32_t whole) {
    counters_.bump(HostCounter::kWireRxPackets);
    return checkLength(whole - kIcrcBytes, HostCounter::kWireRxShort);
  }

  // A packet with its ICRC behind it, which is right.
  void takeChecked(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
    tap_.received(meta, headers, bth, length, true);
    sink_->onPacket(meta, bth, length);
  }
  // The same of a small one, on the single packet fast path, without a capture. False: nothing was done, and it is not
  // counted.
  bool takeSingle(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
    return sink_->onSinglePacket(meta, bth, length) && cameByWire(length + kIcrcBytes);
  }

  // Packets that came past the wire have no ICRC: one of another process or of this one.
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
