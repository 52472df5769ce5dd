// Frames that processes on one host exchange over the sockets of their slots and ports: a short header and a body.
// Numbers are in host byte order, since both ends are on the same host.
#pragma once
#include "schema/numbers.h"
#include "base/ip.h"
#include "base/types.h"
#include "platform/local_socket.h"

namespace nd {

static_assert(kDialect <= 0xff, "frames, vendor ids and hellos have a byte for it");

enum class FrameKind : uint8_t {
  kPacket = 1,      // body: a RoCE packet from BTH to pad, for a QP of the receiver
  kMad = 2,         // as kPacket, but for QP1: for a kernel of the receiver, which does not forward it
  kProbeReply = 3,  // body: ProbeReply (steering.h)
  kGoodbye = 4,     // no body; the last frame of a process that ends in order, on its accepted connections
  // Set-up of the local link; body: LocalHello (local_pairs.h).
  kPairRequest = 5,  // sent by the higher slot: requests an offer
  kPairOffer = 6,    // sent by the lower slot, with the segment and two events
  kPairReply = 7,    // yes or no
  // allocate() memory for a pair that is up; body: LocalMemory (local_maps.h).
  kMemoryOffer = 8,  // offers memory, with its file
  kMemoryReply = 9,
  kMemoryGone = 10,  // it was freed and must be unmapped
  kStray = 11,       // as kPacket, but received from the wire on another process's socket
  // On a connection to a block's name (rdma_port_blocks.h); body: PortRequest, PortReply.
  kPortRequest = 12,
  kPortReply = 13,
  // For a pair whose sides both publish their keys; body: LocalMemory.
  kDirectTable = 14,    // passes the table (direct_table.h)
  kMemoryRequest = 15,  // requests an offer of this file
  // From any process of this user, on a separate connection (observing.h).
  kObserve = 16,   // no body
  kObserved = 17,  // body: ObservedText, followed by the text if it has one
  // On a connection to the name of the port's owner (udp_port_claim.h); no body. The sender has joined or left the
  // group `destination` on the interface `scopeId`. When the connection is closed, it has left all groups.
  kGroupJoined = 18,
  kGroupLeft = 19,
  // Sent to all other processes when a process of another dialect has joined UDP 4791 (udp_port_claim.h). No body.
  kPortLost = 20,
};

struct Frame {
  static constexpr uint32_t kHeaderBytes = 48;
  static constexpr uint32_t kMaxBytes = kHeaderBytes + kMaxDatagram;

  FrameKind kind = FrameKind::kPacket;
  PacketMeta meta;
  const uint8_t* body = nullptr;
  uint32_t bodyLength = 0;

  void encodeHeader(uint8_t out[kHeaderBytes]) const {
    out[0] = kDialect;
    out[1] = static_cast<uint8_t>(kind);
    out[2] = meta.trafficClass;
    out[3] = meta.hopLimit;
    std::memcpy(out + 4, &meta.scopeId, 4);
    std::memcpy(out + 8, meta.source.raw.data(), 16);
    std::memcpy(out + 24, meta.destination.raw.data(), 16);
    std::memcpy(out + 40, &meta.flowLabel, 4);
    std::memcpy(out + 44, &meta.sender, 4);
  }
  // Returns false if it is not a frame of this dialect.
  bool decode(const uint8_t* in, uint32_t length) {
    if (length < kHeaderBytes || length > kMaxBytes || in[0] != kDialect) return false;
    if (in[1] < static_cast<uint8_t>(FrameKind::kPacket) || in[1] > static_cast<uint8_t>(FrameKind::kPortLost))
      return false;
    kind = static_cast<FrameKind>(in[1]);
    meta.trafficClass = in[2];
    meta.hopLimit = in[3];
    std::memcpy(&meta.scopeId, in + 4, 4);
    std::memcpy(meta.source.raw.data(), in + 8, 16);
    std::memcpy(meta.destination.raw.data(), in + 24, 16);
    std::memcpy(&meta.flowLabel, in + 40, 4);
    std::memcpy(&meta.sender, in + 44, 4);
    body = in + kHeaderBytes;
    bodyLength = length - kHeaderBytes;
    return true;
  }
};

// Returns the same as sendLocal().
inline int sendFrame(Descriptor connection, const Frame& frame, const Descriptor* passed = nullptr,
                     uint32_t passedCount = 0) {
  uint8_t header[Frame::kHeaderBytes];
  frame.encodeHeader(header);
  const Piece pieces[] = {{header, sizeof header}, {const_cast<uint8_t*>(frame.body), frame.bodyLength}};
  return sendLocal(connection, pieces, 2, passed, passedCount);
}

}  // namespace nd
