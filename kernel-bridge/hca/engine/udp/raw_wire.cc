#include "udp/raw_wire.h"

#include <algorithm>
#include <cstring>

#include "base/crc32.h"
#include "base/joined_packets.h"
#include "base/packet_headers.h"
#include "platform/local_addresses.h"
#include "platform/raw_socket.h"
#include "udp/udp_wire.h"

namespace nd {
namespace {

constexpr uint32_t kCrcStart = 0xffffffff;

// The QPs whose packets every process may receive: those of management and of groups.
bool isShared(uint32_t qpn) { return qpn <= wire::kGsiQpn || qpn == wire::kMulticastQpn; }

uint32_t ipv4Of(const Gid& gid) {
  uint32_t address;
  std::memcpy(&address, gid.raw.data() + 12, 4);
  return address;
}

}  // namespace

int RawWire::open(uint32_t receiveBufferBytes) {
  if (const int error = openRawSocket(receiveBufferBytes, &fd_)) return error;
  if (!in_) in_.reset(new DatagramsIn(false));
  witnesses_.assign(kWitnesses, {});
  return 0;
}

RawWire::Piece RawWire::piece(uint32_t index) {
  Piece p;
  const uint8_t* header = in_->bytes(index);
  const uint32_t total = in_->length(index);
  const auto bad = [&](HostCounter counter) {
    counters_.add(counter);
    return Piece();
  };
  // The ICRC does not support options; fragments arrive reassembled.
  if (total < kIp4Bytes + kUdpBytes + kBthBytes + kIcrcBytes || header[0] != ip::kVersionAndLength)
    return bad(HostCounter::kWireRxShort);
  const uint8_t* udp = header + kIp4Bytes;
  const uint32_t udpBytes = total - kIp4Bytes;
  p.length = udpBytes - kUdpBytes;
  if (wire::load16(udp + ip::kUdpLengthAt) != udpBytes || p.length % 4 != 0) return bad(HostCounter::kWireRxShort);
  const uint32_t flags = wire::load16(header + ip::kFlagsAt);
  if ((flags & ~ip::kDontFragment) != 0) return bad(HostCounter::kIcrcErrors);
  uint32_t address;
  std::memcpy(&address, header + ip::kSourceAt, 4);
  p.meta.source = gidOfIpv4(address);
  std::memcpy(&address, header + ip::kDestinationAt, 4);
  p.meta.destination = gidOfIpv4(address);
  p.meta.trafficClass = header[ip::kTrafficClassAt];
  p.meta.hopLimit = header[ip::kHopLimitAt];
  p.headers.source = p.meta.source;
  p.headers.destination = p.meta.destination;
  p.headers.sourcePort = static_cast<uint16_t>(wire::load16(udp + ip::kSourcePortAt));
  p.headers.ipv4Id = static_cast<uint16_t>(wire::load16(header + ip::kIdAt));
  p.headers.dontFragment = flags != 0;
  p.bytes = udp + kUdpBytes;
  IcrcHeaders headers;
  if (p.length <= kMaxDatagram && right(p, p.bytes, p.length, 0, &headers)) {
    p.segment = p.length;  // one packet
    return p;
  }
  p.segment = findSegment(p, lastSegment_);
  if (p.segment == 0) return bad(p.length > kMaxDatagram ? HostCounter::kRawUnsegmented : HostCounter::kIcrcErrors);
  lastSegment_ = p.segment;
  return p;
}

// Returns whether packet number `index` of a piece has the right ICRC, and with which headers.
bool RawWire::right(const Piece& piece, const uint8_t* bth, uint32_t whole, uint32_t index, IcrcHeaders* headers) {
  *headers = piece.headers;
  const uint32_t length = whole - kIcrcBytes, received = loadIcrc(bth + length);
  if (icrcOf(*headers, bth, length) == received) return true;
  if (index == 0) return false;
  headers->ipv4Id = static_cast<uint16_t>(piece.headers.ipv4Id + index);  // the packet had its own header
  return icrcOf(*headers, bth, length) == received;
}

// Returns the length of the packets in a piece, or 0 if it is unknown. Where the first packet ends, another BTH to the
// same queue pair begins and the ICRC of the first is right.
uint32_t RawWire::findSegment(const Piece& piece, uint32_t likely) {
  const uint8_t* first = piece.bytes;
  IcrcHeaders headers;
  uint32_t guesses = 0;
  const auto found = [&](uint32_t segment) {
    return mayBeJoined(first, piece.length, segment) && guesses++ < kMostGuesses &&
           right(piece, first, segment, 0, &headers);
  };
  const uint32_t most = std::min(kMaxDatagram, piece.length - 4);  // the whole piece was tried
  if (likely != 0 && likely <= most && found(likely)) return likely;
  for (uint32_t segment = kBthBytes + kIcrcBytes; segment <= most; segment += 4)
    if (found(segment)) return segment;
  return 0;
}

bool RawWire::next(Piece* piece, Packet* out) {
  while (piece->at < piece->length) {
    const uint8_t* bth = piece->bytes + piece->at;
    const uint32_t whole = std::min(piece->segment, piece->length - piece->at), index = piece->index++;
    piece->at += whole;
    if (index != 0 && !right(*piece, bth, whole, index, &out->headers)) {
      counters_.add(HostCounter::kIcrcErrors);
      continue;
    }
    if (index == 0) out->headers = piece->headers;
    out->meta = piece->meta;
    out->bth = bth;
    out->length = whole - kIcrcBytes;
    if (!isShared(wire::destinationQpn(bth))) return true;
    const Witness witness = witnessOf(out->meta, bth, out->length);
    witnesses_[witness.crc & (kWitnesses - 1)] = witness;
  }
  return false;
}

RawWire::Witness RawWire::witnessOf(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  return {ipv4Of(meta.source), ipv4Of(meta.destination), length, crc32Register(kCrcStart, bth, length)};
}

bool RawWire::witnessed(const PacketMeta& meta, const uint8_t* bth, uint32_t length) const {
  const Witness w = witnessOf(meta, bth, length), &known = witnesses_[w.crc & (kWitnesses - 1)];
  return known.crc == w.crc && known.length == w.length && known.source == w.source &&
         known.destination == w.destination;
}

}  // namespace nd
