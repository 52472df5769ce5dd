#include "host/raw_receiver.h"

#include <algorithm>

#include "base/packet_headers.h"
#include "slots/host_events.h"

namespace nd {

int RawReceiver::divide(Descriptor udp) {
  const int error = raw_.divide(udp, parts_.slots.slot());
  if (error == 0)
    parts_.readiness.add(raw_.fd(), Readiness::kReadable,
                         eventTag(EventKind::kWire, static_cast<uint32_t>(IpFamily::kV4)));
  return error;
}

uint32_t RawReceiver::receive(uint32_t budget) {
  const uint32_t n = raw_.receive(budget);
  uint32_t packets = 0;
  for (uint32_t i = 0; i < n; i++) {
    RawWire::Piece piece = raw_.piece(i);
    const bool accepted =
        piece.length != 0 && !piece.meta.destination.isMulticast() && parts_.addresses.accepts(piece.meta);
    RawWire::Packet packet;
    uint32_t ours = 0;
    for (; raw_.next(&piece, &packet); ours++) {
      if (!parts_.intake.cameByWire(packet.length + kIcrcBytes)) continue;
      if (accepted) parts_.intake.takeChecked(packet.meta, packet.headers, packet.bth, packet.length);
      else parts_.counters.add(HostCounter::kRxNotLocal);
    }
    packets += std::max(ours, 1u);
  }
  return packets;
}

// Receives everything in the raw socket, so that a message that may end connections does not overtake their packets.
void RawReceiver::drain() {
  for (uint32_t n = 0, got = 1; got != 0 && n < kMostDrained; n += got) got = receive(RawWire::kBatch);
}

bool RawReceiver::vouchesFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (!raw_.isOpen() || !meta.source.isV4()) return true;
  if (wire::destinationQpn(bth) == wire::kGsiQpn) drain();
  if (parts_.addresses.isOwn(meta.source) || raw_.witnessed(meta, bth, length)) return true;
  drain();
  if (raw_.witnessed(meta, bth, length)) return true;
  parts_.counters.add(HostCounter::kRawUnwitnessed);
  return false;
}

bool RawReceiver::hasOwnCopy(const PacketMeta& meta, const uint8_t* bth, bool strayed) {
  if (!raw_.isOpen() || meta.destination.isMulticast() || wire::destinationQpn(bth) <= wire::kGsiQpn ||
      !meta.source.isV4())
    return false;
  return !parts_.addresses.isOwn(meta.source) || (strayed && wire::isReliable(bth[0]));
}

}  // namespace nd
