// The parts of CM messages on QP1 that the host side parses to find the kernel of a MAD (IBA 1 §13.4.2 MAD header,
// §12.6 CM messages; the RDMA IP CM service of annex A11 for service ids).
#pragma once
#include "base/packet_headers.h"

namespace nd::mad {

constexpr uint32_t kPacketMadOffset = wire::kBthBytes + wire::kDethBytes;  // the MAD's offset from the packet's BTH
constexpr uint32_t kPacketBytes = kPacketMadOffset + wire::kMadBytes;

// Offsets in the MAD.
constexpr uint32_t kBaseVersion = 0, kClass = 1, kClassVersion = 2, kMethod = 3, kAttribute = 16, kMessage = 24;
constexpr uint8_t kCmClass = 0x07, kCmClassVersion = 2, kMethodSend = 0x03;

// Attribute ids.
constexpr uint32_t kFirstAttribute = 0x10;
constexpr uint32_t kReq = 0x10, kMra = 0x11, kRej = 0x12, kRep = 0x13, kRtu = 0x14, kDreq = 0x15, kDrep = 0x16,
                   kSidrReq = 0x17, kSidrRep = 0x18, kLap = 0x19, kApr = 0x1A;
constexpr uint32_t kRejReasonTimeout = 4;

// Offsets in the message.
constexpr uint32_t kServiceId = 8;     // REQ, SIDR_REQ
constexpr uint32_t kRemoteCommId = 4;  // messages with two ids
constexpr uint32_t kRequestId = 0;     // SIDR_REP: the id of the request that it answers
constexpr uint32_t kRejReason = 10;

inline uint32_t attribute(const uint8_t* mad) { return wire::load16(mad + kAttribute); }

// Returns whether a packet has the form of a QP1 packet; its MAD is not checked.
inline bool isMadPacket(const uint8_t* bth, uint32_t length) {
  return length >= kPacketBytes && bth[0] == wire::kOpUdSendOnly && wire::destinationQpn(bth) == wire::kGsiQpn;
}

}  // namespace nd::mad
