// The invariant CRC of RoCEv2 (IBA 1 annex A17 §17.9.3): the CRC-32 of Ethernet over everything that routers do not
// change, and the IP and UDP headers that it covers.
#pragma once
#include <cstddef>
#include "base/ip.h"
#include "base/packet_link.h"
#include "base/types.h"
#include "base/packet_headers.h"

namespace nd {

using wire::kBthBytes;
constexpr uint32_t kIcrcBytes = 4;
// Returns whether a packet may have this many bytes from its BTH to its last pad byte.
constexpr bool isPacketLength(uint32_t length) {
  return length >= kBthBytes && length <= kMaxDatagram - kIcrcBytes && length % 4 == 0;
}

// The register after the eight 0xFF bytes that replace the missing LRH.
constexpr uint32_t kIcrcSeed = 0xDEBB20E3;

// The fields of the IP and UDP headers that the ICRC covers and that vary between packets.
struct IcrcHeaders {
  Gid source, destination;  // both IPv4-mapped: an IPv4 packet, otherwise IPv6
  uint16_t sourcePort = kRocePort, destinationPort = kRocePort;
  uint16_t ipv4Id = 0;
  bool dontFragment = true;

  bool operator==(const IcrcHeaders& other) const {
    return source == other.source && destination == other.destination && sourcePort == other.sourcePort &&
           destinationPort == other.destinationPort && ipv4Id == other.ipv4Id && dontFragment == other.dontFragment;
  }
};

// Writes the headers of a RoCEv2 packet with a UDP payload (BTH to ICRC) of `udpPayload` bytes. With `masked`, the
// fields that routers may change are ones, as for the ICRC; otherwise they hold traffic class, hop limit and a valid
// IPv4 checksum. Returns the number of bytes, at most 48.
struct IpVariant {
  uint8_t trafficClass = 0, hopLimit = 64;
  uint32_t flowLabel = 0;
};
size_t buildHeaders(uint8_t out[48], const IcrcHeaders& headers, uint32_t udpPayload, bool masked,
                    const IpVariant& variant = {});

// The CRC register after the IP and UDP headers, cached for a run of packets with the same headers.
class IcrcStart {
 public:
  // `length`: from BTH to pad.
  uint32_t of(const IcrcHeaders& headers, uint32_t length) {
    return length == length_ && headers == headers_ ? register_ : next(headers, length);
  }

 private:
  uint32_t next(const IcrcHeaders& headers, uint32_t length);
  IcrcHeaders headers_;
  uint32_t length_ = 0, register_ = 0;  // 0: nothing cached
};

// Returns the ICRC of a packet, given its headers and its `length` bytes from the BTH to the last pad byte (without the
// ICRC field). It is stored least significant byte first.
uint32_t icrcOf(const IcrcHeaders& headers, const uint8_t* bth, uint32_t length);
uint32_t icrcOf(IcrcStart& start, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length);

// Writes a packet from its BTH to its ICRC, in one pass over the payload. The ICRC covers the bytes written, even if
// the source changes meanwhile. Returns the number of bytes.
uint32_t gatherWithIcrc(IcrcStart& start, uint8_t* out, const IcrcHeaders& headers, const OutPacket& packet);

// Computes the ICRCs of the packets of one flow, which differ only in length, IPv4 ID and the bytes after their IP and
// UDP headers.
class FlowIcrc {
 public:
  static constexpr uint32_t kRoom = 64;        // bytes before the BTH that are overwritten
  static constexpr uint32_t kMostBytes = 128;  // maximum length of a packet, from BTH to pad
  explicit FlowIcrc(const IcrcHeaders& headers = {});
  // `bth` must be preceded by kRoom writable bytes.
  uint32_t of(uint8_t* bth, uint32_t length, uint16_t ipv4Id) const;

 private:
  static constexpr uint32_t kMostHeaders = kIp6Bytes + kUdpBytes;
  uint8_t masked_[kMostHeaders];  // at the end of this array
  uint32_t headerBytes_;
};

// Returns the ICRC of a whole packet that starts with its IP header. `length` includes the ICRC field, which is not
// read. Returns 0 if the packet is too short to have an ICRC, or is neither IPv4 without options nor IPv6 without
// extension headers.
uint32_t icrcOfPacket(const uint8_t* packet, size_t length);

// The ICRC covers the IPv4 ID and flags of a received packet, which a UDP socket hides. The CRC is affine, so the
// difference between the received ICRC and the one computed for a guess (`headers`, DF set) yields the only header word
// that can explain it. Returns true if that word is an ID with offset 0 and MF clear, and stores ID and DF in
// `headers`. False means that the packet is corrupt; a corrupt packet passes with probability 2^-15.
bool solveIpv4Id(uint32_t computed, uint32_t received, uint32_t length, IcrcHeaders* headers);

inline void storeIcrc(uint8_t* out, uint32_t icrc) {
  out[0] = static_cast<uint8_t>(icrc);
  out[1] = static_cast<uint8_t>(icrc >> 8);
  out[2] = static_cast<uint8_t>(icrc >> 16);
  out[3] = static_cast<uint8_t>(icrc >> 24);
}
inline uint32_t loadIcrc(const uint8_t* in) {
  return in[0] | in[1] << 8 | in[2] << 16 | static_cast<uint32_t>(in[3]) << 24;
}

}  // namespace nd
