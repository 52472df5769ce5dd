// Offsets of the IP and UDP header fields before a RoCEv2 packet's BTH (RFC 791, 8200 and 768). The fields are
// big-endian. IPv4 headers have no options, and IPv6 headers no extension headers.
#pragma once
#include <cstdint>

namespace nd {

constexpr uint16_t kRocePort = 4791;
constexpr uint32_t kIp4Bytes = 20, kIp6Bytes = 40, kUdpBytes = 8;
// The longest UDP payload: BTH and extension headers, extensions::kPacketBytesLongest, ICRC; the rest is slack.
constexpr uint32_t kMaxDatagram = 16384 + 256;
constexpr uint32_t kFlowLabelMask = 0xfffff;

namespace ip {

constexpr uint8_t kUdpProtocol = 17;

// Offsets in the IPv4 header, the value of its first byte, and flags.
constexpr uint32_t kTrafficClassAt = 1, kLengthAt = 2, kIdAt = 4, kFlagsAt = 6, kHopLimitAt = 8, kProtocolAt = 9,
                   kChecksumAt = 10, kSourceAt = 12, kDestinationAt = 16;
constexpr uint8_t kVersionAndLength = 0x45;
constexpr uint32_t kDontFragment = 0x4000;

// Offsets in the IPv6 header. Its first word consists of version, traffic class and flow label.
constexpr uint32_t kPayloadLengthAt6 = 4, kNextHeaderAt6 = 6, kHopLimitAt6 = 7, kSourceAt6 = 8, kDestinationAt6 = 24;

// Offsets in the UDP header.
constexpr uint32_t kSourcePortAt = 0, kDestinationPortAt = 2, kUdpLengthAt = 4, kUdpChecksumAt = 6;

}  // namespace ip
}  // namespace nd
