#include "host/packet_tap.h"

#include <cstring>
#include <utility>

namespace nd {

void PacketTap::openCapture(const std::string& path) {
  if (capture_.open(path) != 0) counters_.add(HostCounter::kCaptureErrors);
}

void PacketTap::configure(const HostOptions& options) {
  faults_.configure(options.faults);
  openCapture(options.capture);
  note();
}

void PacketTap::join(const HostOptions& options) {
  if (requestsFaults(options.faults)) faults_.configure(options.faults);
  if (!options.capture.empty()) openCapture(options.capture);
  note();
}

void PacketTap::close() {
  held_ = {};
  capture_.close();
  note();
}

void PacketTap::record(Capture::Direction direction, const IcrcHeaders& headers, const IpVariant& variant,
                       const uint8_t* bth, uint32_t length, bool hasIcrc) {
  uint8_t whole[kMaxDatagram];
  if (!hasIcrc) {
    std::memcpy(whole, bth, length);
    storeIcrc(whole + length, icrcOf(headers, bth, length));
    bth = whole;
  }
  capture_.write(direction, headers, variant, bth, length + kIcrcBytes);
  capture_.scheduleFlush(clock_.now());
  note();  // writing may have failed
}

void PacketTap::carry(Carrier& carrier, const Path& path, const uint8_t* bytes, uint32_t length) {
  sent(path, {path.source, path.destination}, bytes, length - (carrier.hasIcrc ? kIcrcBytes : 0), carrier.hasIcrc);
  carrier.carry(path, bytes, length);
}

void PacketTap::pass(Carrier& carrier, const Path& path, uint8_t* bytes, uint32_t length) {
  if (!injects()) return carry(carrier, path, bytes, length);
  const Faults::Fate fate = faults_.decide(bytes, length - (carrier.hasIcrc ? kIcrcBytes : 0));
  if (fate.drop) return counters_.add(fate.dropMad ? HostCounter::kFaultMadsDropped : HostCounter::kFaultDropped);
  if (fate.corrupt) {
    counters_.add(HostCounter::kFaultCorrupted);
    if (!carrier.hasIcrc) return;  // an ICRC would detect it, so it is lost
    uint64_t bit = fate.bit % (length * 8ull);
    if (bit / 8 == wire::kBthCongestionByte) bit += 8;  // the byte that the ICRC does not cover
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1u << bit % 8);
  }
  if (fate.reorder && hold(carrier, path, bytes, length, fate.holdFor)) return;
  carry(carrier, path, bytes, length);
  if (fate.duplicate) {
    counters_.add(HostCounter::kFaultDuplicated);
    carry(carrier, path, bytes, length);
  }
  if (held_.packetsToGo != 0 && --held_.packetsToGo == 0) releaseHeld();
}

bool PacketTap::hold(Carrier& carrier, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets) {
  if (held_.packetsToGo != 0) return false;  // one held packet at a time is enough
  held_.packetsToGo = packets;
  held_.due = clock_.now() + Faults::kMaxHoldNs;
  held_.carrier = &carrier;
  held_.path = path;
  held_.bytes.assign(bytes, bytes + length);
  counters_.add(HostCounter::kFaultReordered);
  return true;
}

void PacketTap::releaseHeld() {
  held_.packetsToGo = 0;
  held_.due = UINT64_MAX;
  carry(*held_.carrier, held_.path, held_.bytes.data(), static_cast<uint32_t>(held_.bytes.size()));
}

void PacketTap::onTime(uint64_t now, PacketSink& sink) {
  if (held_.due <= now) releaseHeld();
  if (capture_.flushDue() > now) return;
  capture_.flush();
  if (capture_.active()) return;
  counters_.add(HostCounter::kCaptureErrors);
  note();
  sink.onCaptureFailed(capture_.error());
}

}  // namespace nd
