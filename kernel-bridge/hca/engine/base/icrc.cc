#include "base/icrc.h"

#include <utility>
#include <vector>

#include "base/crc32.h"
#include "base/crc_math.h"

namespace nd {
namespace {

using crc::multiply;
using crc::powerOfX;
using wire::kBthCongestionByte;
using wire::store16;

// x^(−8n) for the distances from the IPv4 ID word to the end of a packet, indexed by the packet's number of words.
constexpr uint32_t kMaxSolveWords = kMaxDatagram / 4;

const std::vector<uint32_t>& retreatTable() {
  static const std::vector<uint32_t>* table = [] {
    auto* t = new std::vector<uint32_t>(kMaxSolveWords);
    constexpr uint64_t kOrder = 0xFFFFFFFF;  // the order of x: the polynomial is primitive
    constexpr uint32_t kBackOneWord = powerOfX(kOrder - 32);
    // 4 bytes of the word itself, 12 of the IP header after it, 8 of UDP
    (*t)[0] = powerOfX(kOrder - 8 * (4 + 12 + kUdpBytes));
    for (uint32_t i = 1; i < kMaxSolveWords; i++) (*t)[i] = multiply((*t)[i - 1], kBackOneWord);
    return t;
  }();
  return *table;
}

uint32_t ipv4Checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kIp4Bytes; i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace

size_t buildHeaders(uint8_t out[48], const IcrcHeaders& h, uint32_t udpPayload, bool masked, const IpVariant& variant) {
  const uint32_t udpLength = kUdpBytes + udpPayload;
  uint8_t* udp;
  if (h.destination.isV4()) {
    out[0] = ip::kVersionAndLength;
    out[ip::kTrafficClassAt] = masked ? 0xff : variant.trafficClass;
    store16(out + ip::kLengthAt, kIp4Bytes + udpLength);
    store16(out + ip::kIdAt, h.ipv4Id);
    store16(out + ip::kFlagsAt, h.dontFragment ? ip::kDontFragment : 0);
    out[ip::kHopLimitAt] = masked ? 0xff : variant.hopLimit;
    out[ip::kProtocolAt] = ip::kUdpProtocol;
    store16(out + ip::kChecksumAt, masked ? 0xffff : 0);
    std::memcpy(out + ip::kSourceAt, h.source.raw.data() + 12, 4);
    std::memcpy(out + ip::kDestinationAt, h.destination.raw.data() + 12, 4);
    if (!masked) store16(out + ip::kChecksumAt, ipv4Checksum(out));
    udp = out + kIp4Bytes;
  } else {
    const uint32_t label = variant.flowLabel & kFlowLabelMask;
    store16(out, masked ? 0x6fff : 0x6000u | static_cast<uint32_t>(variant.trafficClass) << 4 | label >> 16);
    store16(out + 2, masked ? 0xffff : label);
    store16(out + ip::kPayloadLengthAt6, udpLength);
    out[ip::kNextHeaderAt6] = ip::kUdpProtocol;
    out[ip::kHopLimitAt6] = masked ? 0xff : variant.hopLimit;
    std::memcpy(out + ip::kSourceAt6, h.source.raw.data(), 16);
    std::memcpy(out + ip::kDestinationAt6, h.destination.raw.data(), 16);
    udp = out + kIp6Bytes;
  }
  store16(udp + ip::kSourcePortAt, h.sourcePort);
  store16(udp + ip::kDestinationPortAt, h.destinationPort);
  store16(udp + ip::kUdpLengthAt, udpLength);
  store16(udp + ip::kUdpChecksumAt, masked ? 0xffff : 0);
  return static_cast<size_t>(udp + kUdpBytes - out);
}

namespace {

constexpr uint32_t kFewBytes = 128;  // bytes of a packet that are copied behind its headers
static_assert(kFewBytes >= OutPacket::kMaxHeader && kFewBytes >= kBthBytes + 16);

// Returns the register after the packet's headers and its first `few` bytes; `length` counts the bytes from BTH to pad.
uint32_t registerAfter(const IcrcHeaders& headers, const uint8_t* bth, uint32_t few, uint32_t length) {
  alignas(16) uint8_t bytes[kCrc32Room + 48 + kFewBytes];
  uint8_t* const masked = bytes + kCrc32Room;
  const size_t n = buildHeaders(masked, headers, length + kIcrcBytes, true);
  std::memcpy(masked + n, bth, few);
  masked[n + kBthCongestionByte] = 0xff;  // FECN, BECN, reserved
  return crc32Short(kIcrcSeed, masked, n + few);
}

// Prepares the first 16 bytes after the headers of a longer packet for crc32Behind: zeros, the register, and the masked
// BTH.
struct MaskedBth {
  uint64_t low, high;
  MaskedBth(uint32_t state, const uint8_t* bth) {
    static_assert(kBthBytes == 12);
    low = static_cast<uint64_t>(loadWord(bth) ^ state) << 32;
    high = static_cast<uint64_t>(loadWord(bth + 8)) << 32 | loadWord(bth + 4) | 0xff;  // FECN, BECN, reserved
  }
  static uint32_t loadWord(const uint8_t* p) { return loadIcrc(p); }
};

}  // namespace

uint32_t IcrcStart::next(const IcrcHeaders& headers, uint32_t length) {
  headers_ = headers;
  length_ = length;
  alignas(16) uint8_t bytes[kCrc32Room + 48];
  uint8_t* const masked = bytes + kCrc32Room;
  const size_t n = buildHeaders(masked, headers, length + kIcrcBytes, true);
  return register_ = crc32Short(kIcrcSeed, masked, n);
}

uint32_t icrcOf(IcrcStart& start, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
  if (length <= kFewBytes || (length - kBthBytes) % 16 != 0) return icrcOf(headers, bth, length);
  const MaskedBth first(start.of(headers, length), bth);
  return ~crc32Behind(first.low, first.high, nullptr, bth + kBthBytes, length - kBthBytes);
}

uint32_t icrcOf(const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
  if (length <= kFewBytes) return ~registerAfter(headers, bth, length, length);
  const uint32_t few = kBthBytes + (length - kBthBytes) % 16;  // the rest is in whole blocks
  return ~crc32Register(registerAfter(headers, bth, few, length), bth + few, length - few);
}

static_assert(FlowIcrc::kRoom >= kCrc32Room + kIp6Bytes + kUdpBytes);

FlowIcrc::FlowIcrc(const IcrcHeaders& headers) {
  uint8_t masked[kMostHeaders];
  headerBytes_ = static_cast<uint32_t>(buildHeaders(masked, headers, 0, true));
  std::memset(masked_, 0, sizeof masked_);
  std::memcpy(masked_ + kMostHeaders - headerBytes_, masked, headerBytes_);
}

uint32_t FlowIcrc::of(uint8_t* bth, uint32_t length, uint16_t ipv4Id) const {
  const uint32_t udpLength = kUdpBytes + length + kIcrcBytes;
  uint8_t* const header = bth - headerBytes_;
  std::memcpy(bth - kMostHeaders, masked_, kMostHeaders);
  store16(bth - kUdpBytes + ip::kUdpLengthAt, udpLength);
  if (headerBytes_ == kIp4Bytes + kUdpBytes) {
    store16(header + ip::kLengthAt, kIp4Bytes + udpLength);
    store16(header + ip::kIdAt, ipv4Id);
  } else {
    store16(header + ip::kPayloadLengthAt6, udpLength);
  }
  const uint8_t congestion = std::exchange(bth[kBthCongestionByte], uint8_t(0xff));  // FECN, BECN, reserved
  const uint32_t icrc = ~crc32Short(kIcrcSeed, header, headerBytes_ + length);
  bth[kBthCongestionByte] = congestion;
  return icrc;
}

uint32_t gatherWithIcrc(IcrcStart& start, uint8_t* out, const IcrcHeaders& headers, const OutPacket& packet) {
  const uint32_t length = packet.headerLength + packet.payloadLength + packet.padLength;
  std::memcpy(out, packet.header, packet.headerLength);
  uint8_t* at = out + packet.headerLength;
  if (length <= kFewBytes) {
    for (uint32_t i = 0; i < packet.pieceCount; i++) {
      const Piece& piece = packet.pieces[i];
      if (piece.length == 0) continue;  // may have no address
      std::memcpy(at, piece.data, piece.length);
      at += piece.length;
    }
    std::memset(at, 0, packet.padLength);
    storeIcrc(at + packet.padLength, icrcOf(headers, out, length));
    return length + kIcrcBytes;
  }
  uint32_t state, i = 0;
  if (packet.headerLength == kBthBytes && packet.pieceCount != 0) {
    const MaskedBth first(start.of(headers, length), packet.header);
    const Piece& piece = packet.pieces[i++];
    state = crc32Behind(first.low, first.high, at, static_cast<const uint8_t*>(piece.data), piece.length);
    at += piece.length;
  } else {
    state = registerAfter(headers, packet.header, packet.headerLength, length);
  }
  for (; i < packet.pieceCount; i++) {
    const Piece& piece = packet.pieces[i];
    state = crc32Copy(state, at, static_cast<const uint8_t*>(piece.data), piece.length);
    at += piece.length;
  }
  std::memset(at, 0, packet.padLength);
  storeIcrc(at + packet.padLength, ~crc32RegisterPortable(state, at, packet.padLength));
  return length + kIcrcBytes;
}

uint32_t icrcOfPacket(const uint8_t* packet, size_t length) {
  if (length == 0) return 0;
  const bool v4 = packet[0] == ip::kVersionAndLength, v6 = packet[0] >> 4 == 6;
  const size_t ipBytes = v4 ? kIp4Bytes : kIp6Bytes;
  if (!(v4 || v6) || length < ipBytes + kUdpBytes + kBthBytes + kIcrcBytes) return 0;
  uint8_t head[kIp6Bytes + kUdpBytes + kBthBytes];
  const size_t n = ipBytes + kUdpBytes + kBthBytes;
  std::memcpy(head, packet, n);
  if (v4) {
    head[ip::kTrafficClassAt] = head[ip::kHopLimitAt] = head[ip::kChecksumAt] = head[ip::kChecksumAt + 1] = 0xff;
  } else {
    head[0] |= 0x0f;
    head[1] = head[2] = head[3] = head[ip::kHopLimitAt6] = 0xff;
  }
  uint8_t* const udp = head + ipBytes;
  udp[ip::kUdpChecksumAt] = udp[ip::kUdpChecksumAt + 1] = udp[kUdpBytes + kBthCongestionByte] = 0xff;
  const uint32_t state = crc32RegisterPortable(kIcrcSeed, head, n);
  return ~crc32Register(state, packet + n, length - n - kIcrcBytes);
}

bool solveIpv4Id(uint32_t computed, uint32_t received, uint32_t length, IcrcHeaders* headers) {
  if (length % 4 != 0 || length / 4 >= kMaxSolveWords) return false;
  // The difference of the registers at the end, moved back over all bytes from the ID word on, is the difference of
  // that word. It has the ID in the low half (first byte lowest), and flags and offset above.
  const uint32_t word = multiply(computed ^ received, retreatTable()[length / 4]);
  const uint32_t flags = word >> 16;
  if (flags != 0 && flags != 0x40) return false;
  headers->ipv4Id ^= static_cast<uint16_t>((word & 0xff) << 8 | (word >> 8 & 0xff));
  headers->dontFragment = flags == 0;
  return true;
}

}  // namespace nd
