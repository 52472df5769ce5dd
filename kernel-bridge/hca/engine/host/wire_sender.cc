#include "host/wire_sender.h"

#include <cstring>

#include "base/packet_headers.h"

namespace nd {

uint32_t checkedLength(const OutPacket& packet) {
  if (packet.headerLength > OutPacket::kMaxHeader || packet.headerLength < kBthBytes || packet.padLength > 3 ||
      packet.pieceCount > OutPacket::kMaxPieces)
    return 0;
  uint64_t pieces = 0;
  for (uint32_t i = 0; i < packet.pieceCount; i++) pieces += packet.pieces[i].length;
  if (pieces != packet.payloadLength || pieces > kMaxDatagram) return 0;
  const uint32_t length = packet.headerLength + packet.payloadLength + packet.padLength;
  return isPacketLength(length) ? length : 0;
}

bool WireSender::staysHere(const Gid& destination) {
  if (lastDestinationUses_ != 0 && destination == lastDestination_) {
    lastDestinationUses_--;
    return lastDestinationLocal_;
  }
  lastDestination_ = destination;
  lastDestinationLocal_ = parts_.addresses.isOwn(destination);
  lastDestinationUses_ = kDestinationUses;
  return lastDestinationLocal_;
}

void WireSender::send(const Path& path, const OutPacket& packet, uint32_t length) {
  IcrcHeaders headers{path.source, path.destination, udp_.sourcePort()};
  if (parts_.tap.injects()) {  // through the socket without counted IDs, so that packets may be held back
    uint8_t* const bytes = udp_.stage();
    return parts_.tap.pass(*this, path, bytes, gatherWithIcrc(icrc_, bytes, headers, packet));
  }
  const bool stays = staysHere(path.destination);
  // A connection that retransmits may switch to another socket, at the cost of one delay.
  if (wire::isReliable(packet.header[0]) && (stays || !v4_)) {
    const UdpWire::Way way = udp_.prepare(path, packet.header, length + kIcrcBytes, stays);
    headers.sourcePort = way.sourcePort;
    headers.ipv4Id = way.ipv4Id;
  }
  uint8_t* const bytes = udp_.stage();
  const uint32_t total = gatherWithIcrc(icrc_, bytes, headers, packet);
  parts_.tap.sent(path, headers, bytes, length, true);
  udp_.commit(path, total, stays);
}

void WireSender::carry(const Path& path, const uint8_t* bytes, uint32_t length) {
  uint8_t* const room = udp_.stage();  // may send the batch; its bytes stay where they are
  if (room != bytes) std::memmove(room, bytes, length);
  udp_.commit(path, length, false);
}

bool WireSender::sendSingle(const Path& path, uint8_t* bth, uint32_t length) {
  static_assert(Link::kSingleRoom == FlowIcrc::kRoom && Link::kSingleMostBytes == FlowIcrc::kMostBytes);
  if (!udp_.isOpen() || !parts_.tap.idle()) return false;
  const bool stays = staysHere(path.destination);
  return (stays || !v4_) && udp_.sendSingle(path, bth, length, stays);
}

void WireSender::sendProbe(void* self, const SteeringProbe& probe) {
  UdpWire& udp = static_cast<WireSender*>(self)->udp_;
  Path path;
  path.source = path.destination = loopbackOf(static_cast<WireSender*>(self)->v4_ ? IpFamily::kV4 : IpFamily::kV6);
  uint8_t* bytes = udp.stage();
  const uint32_t length = kBthBytes + sizeof probe;
  wire::Bth bth;
  bth.opcode = SteeringProbe::kOpcode;
  bth.destinationQpn = SteeringProbe::kQpnMark | probe.index;
  wire::emitBth(bytes, bth);
  std::memcpy(bytes + kBthBytes, &probe, sizeof probe);
  storeIcrc(bytes + length, icrcOf(IcrcHeaders{path.source, path.destination}, bytes, length));
  udp.commit(path, length + kIcrcBytes, false);
}

}  // namespace nd
