// The border between the transport (queue pairs) and what carries its packets.
#pragma once
#include <atomic>

#include "base/piece.h"
#include "base/types.h"

namespace nd {

class LocalPair;
struct LocalPacket;
struct LocalSmall;
struct SharedRange;

// A packet as the transport builds it: BTH and extension headers in one piece, the payload gathered from
// registered memory, 0..3 pad bytes. The link adds IP, UDP and ICRC.
struct OutPacket {
  static constexpr uint32_t kMaxHeader = 64;
  static constexpr uint32_t kMaxPieces = 34;
  uint8_t header[kMaxHeader];
  uint32_t headerLength = 0;
  Piece pieces[kMaxPieces];
  uint32_t pieceCount = 0;
  uint32_t payloadLength = 0;  // without pad
  uint32_t padLength = 0;
  // For the local link: name the payload instead of carrying it; LocalEntry's flags.
  bool byReference = false;
  const SharedRange* shared[kMaxPieces];  // then: the memory of allocate() that each piece lies in, or null
  uint32_t localFlags = 0;
  uint32_t localAck = 0;  // LocalEntry's third word
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
  // Packets are recorded no more, for this errno.
  virtual void onCaptureFailed(int /*error*/) {}

  // A small packet of a reliable connection that came by itself. The bytes are as for onPacket(). False: nothing was done;
  // it comes again by that.
  virtual bool onAlone(const PacketMeta&, const uint8_t* /*bth*/, uint32_t /*length*/) { return false; }

  // ── Of the local link (local_pair.h).
  virtual void onLocalPacket(LocalPair&, const LocalPacket&) {}
  // False: nothing was done; it comes again by onLocalPacket().
  virtual bool onLocalSmall(LocalPair&, const LocalSmall&) { return false; }
  // A whole packet, checked by nobody: of a pair where capture or faults want to see packets.
  virtual void onPlainPacket(LocalPair&, const PacketMeta&, const uint8_t* /*bth*/, uint32_t /*length*/) {}
  // The peer could not copy the payload of our packets from this PSN on; `lasting`: nor would it be able to again.
  virtual void onUnpulled(LocalPair&, uint32_t /*sourceQpn*/, uint32_t /*qpn*/, uint32_t /*psn*/, bool /*lasting*/) {}
  // The pair is up, or refused: connections that wait for it know now which way they go.
  virtual void onLocalPair(LocalPair&) {}
  // The pair has room again for those that found it full: resume() it when nobody waits any more.
  virtual void onLocalSpace(LocalPair&) {}
};

class Link {
 public:
  virtual ~Link() = default;
  // Queues a packet, sending what is queued when the batch is full. The packet is copied: the memory
  // it comes from may change as soon as this returns. False: it cannot be carried (no route, no socket); transports treat that as loss.
  virtual bool send(const Path& path, const OutPacket& packet) = 0;
  // Sends a small packet of a reliable connection at once, if nothing is queued and nothing else out of the ordinary. `bth` has
  // kAloneRoom bytes before it, `length` bytes to its last pad byte, kAloneMostBytes at most, and 4 more after that; those around
  // it are overwritten. False: nothing was done; send() it.
  static constexpr uint32_t kAloneRoom = 64, kAloneMostBytes = 128;
  virtual bool sendAlone(const Path& /*path*/, uint8_t* /*bth*/, uint32_t /*length*/) { return false; }
  // Sends what is queued. The transport calls it once at the end of each step.
  virtual void flush() = 0;
  // Delivers received packets, without blocking, at most `budget` of them. True if there may be more.
  virtual bool poll(PacketSink& sink, uint32_t budget) = 0;
  // After a poll that found nothing, for a thread that waits: what comes by where packets came last, looked at a few times more.
  // Ends when somebody wants the lock.
  virtual void lookOut(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>& /*wanted*/) {}
  // Whether poll() would find nothing but what comes by the local link: told without a system call, so only of what
  // needs none now.
  virtual bool quiet(uint64_t /*now*/) const { return false; }
  // Delivers what has come by the local link, and nothing else. `wanted` not null: if nothing has, looks for a moment
  // whether something comes; ends when somebody wants the lock.
  virtual void pollLocal(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>* /*wanted*/) {}
  // Whether the address is one of this host's.
  virtual bool isLocal(const Gid& address) = 0;
  // If the process that owned `slot` has ended and that was not reported yet, it is now, after what it has sent: before
  // anything begins with who owns the slot next.
  virtual void reportEnd(uint32_t /*slot*/, PacketSink& /*sink*/) {}
  // Starts watching the process that owns `slot` on this host; onPeerProcessGone reports its end.
  // False: there is no such process now.
  virtual bool watchPeer(uint32_t slot) = 0;
  // The local link to the process that owns `slot`: up, or being asked for (onLocalPair follows). Null: the wire.
  virtual std::shared_ptr<LocalPair> localPair(uint32_t /*slot*/) { return nullptr; }
  // Sends over a pair where capture or faults want to see whole packets.
  virtual void sendPlain(LocalPair&, const Path&, const OutPacket&) {}
  // Memory is about to be given back that peers may be copying from: what they took counts only under an older epoch.
  virtual void revoke(uint64_t /*epoch*/) {}
  // Whether this process has sent itself packets by the local link that are still to be delivered.
  virtual bool selfPending() const { return false; }
  // Index of the interface that has this address, 0 if there is none.
  virtual uint32_t interfaceOf(const Gid& address) = 0;
  // Lets an interface join or leave a multicast group. kNetworkUnreachable: no such interface;
  // kInsufficientResources: the system allows no more groups.
  virtual Status joinGroup(const Gid& group, uint32_t interface) = 0;
  virtual void leaveGroup(const Gid& group, uint32_t interface) = 0;
};

}  // namespace nd
