// The border between the transport (queue pairs) and what carries its packets.
#pragma once
#include <sys/uio.h>
#include "types.h"

namespace nd {

// A packet as the transport builds it: BTH and extension headers in one piece, the payload gathered from
// registered memory, 0..3 pad bytes. The link adds IP, UDP and ICRC.
struct OutPacket {
  static constexpr uint32_t kMaxHeader = 64;
  static constexpr uint32_t kMaxPieces = 34;
  uint8_t header[kMaxHeader];
  uint32_t headerLength = 0;
  iovec pieces[kMaxPieces];
  uint32_t pieceCount = 0;
  uint32_t payloadLength = 0;  // without pad
  uint32_t padLength = 0;
};

// Receives what the link has checked (length, ICRC): BTH to end of payload and pad, without the ICRC.
// The bytes are the link's and may be overwritten after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) = 0;
  // The process that owned `slot` on this host has ended: its queue pairs are gone. `orderly`: it said goodbye, and
  // its last packets may still be on their way.
  virtual void onPeerProcessGone(uint32_t slot, bool orderly) = 0;
};

class Link {
 public:
  virtual ~Link() = default;
  // Queues a packet, sending what is queued when the batch is full. The packet is copied: the memory
  // it comes from may change as soon as this returns. False: it cannot be carried (no route, no socket); transports treat that as loss.
  virtual bool send(const Path& path, const OutPacket& packet) = 0;
  // Sends what is queued. The transport calls it once at the end of each step.
  virtual void flush() = 0;
  // Delivers received packets, without blocking, at most `budget` of them. True if there may be more.
  virtual bool poll(PacketSink& sink, uint32_t budget) = 0;
  // Whether the address is one of this host's.
  virtual bool isLocal(const Gid& address) = 0;
  // Starts watching the process that owns `slot` on this host; onPeerProcessGone reports its end.
  // False: there is no such process now.
  virtual bool watchPeer(uint32_t slot) = 0;
  // Index of the interface that has this address, 0 if there is none.
  virtual uint32_t interfaceOf(const Gid& address) = 0;
  // Lets an interface join or leave a multicast group. kNetworkUnreachable: no such interface;
  // kInsufficientResources: the system allows no more groups.
  virtual Status joinGroup(const Gid& group, uint32_t interface) = 0;
  virtual void leaveGroup(const Gid& group, uint32_t interface) = 0;
};

}  // namespace nd
