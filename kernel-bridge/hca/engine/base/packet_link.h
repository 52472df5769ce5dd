// The interface between the transport (queue pairs) and the links that carry its packets.
#pragma once
#include <atomic>
#include <vector>

#include "base/piece.h"
#include "base/types.h"
#include "base/packet_headers.h"

namespace nd {

class DirectOwner;
struct DirectWithdrawn;
class LocalPair;
struct LocalPacket;
struct LocalSmall;
struct SharedRange;

// A packet from the transport: BTH and extension headers in one piece, the payload gathered from registered memory,
// 0..3 pad bytes. The link adds IP, UDP and ICRC.
struct OutPacket {
  static constexpr uint32_t kMaxHeader = 64;
  static constexpr uint32_t kMaxPieces = 34;
  uint8_t header[kMaxHeader];
  uint32_t headerLength = 0;
  Piece pieces[kMaxPieces];
  uint32_t pieceCount = 0;
  uint32_t payloadLength = 0;  // without pad
  uint32_t padLength = 0;
  // For the local link: names the payload instead of carrying it; LocalEntry's flags.
  bool byReference = false;
  const SharedRange* shared[kMaxPieces];  // with byReference: the memory of allocate() of each piece, or null
  uint32_t localFlags = 0;
  uint32_t localAck = 0;  // LocalEntry's third word
};

// A SEND or RDMA WRITE of one packet, without immediate data, as it has come by either link: most messages are like
// that, and take the fast path (fast_path.h).
struct SmallMessage {
  uint32_t length;  // of the payload
  bool writes;      // its RETH:
  uint32_t rkey;
  uint64_t address;
  // False: another length than that of the payload.
  bool parseReth(const uint8_t* p) {
    const wire::Reth reth = wire::parseReth(p);
    rkey = reth.rkey;
    address = reth.address;
    return reth.length == length;
  }
};

// Receives packets that the link has checked (length, ICRC): BTH to end of payload and pad, without the ICRC. The bytes
// belong to the link and may be overwritten after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) = 0;
  // The process that owned `slot` on this host has ended, and its queue pairs with it. `orderly`: it said goodbye, and
  // its last packets may still be under way.
  virtual void onPeerProcessGone(uint32_t slot, bool orderly) = 0;
  // Packet capture has ended with this errno.
  virtual void onCaptureFailed(int /*error*/) {}
  // UDP 4791 could not be opened, or was given up.
  virtual void onWireLost() {}

  // A small packet of a reliable connection that arrived by itself. The bytes are as for onPacket(). False: nothing was
  // done; onPacket() gets it next.
  virtual bool onSinglePacket(const PacketMeta&, const uint8_t* /*bth*/, uint32_t /*length*/) { return false; }

  // ── For the local link (local_pair.h)
  virtual void onLocalPacket(LocalPair&, const LocalPacket&) {}
  // False: nothing was done; onLocalPacket() gets it next.
  virtual bool onLocalSmall(LocalPair&, const LocalSmall&) { return false; }
  // The peer could not copy the payload of our packets from this PSN on; `lasting`: it could not do so again either.
  virtual void onUnpulled(LocalPair&, uint32_t /*sourceQpn*/, uint32_t /*qpn*/, uint32_t /*psn*/, bool /*lasting*/) {}
  // The pair is up, or refused: connections that wait for it now know their link.
  virtual void onLocalPair(LocalPair&) {}
  // A pair that was full has room again: call resume() when no queue pair waits any more.
  virtual void onLocalSpace(LocalPair&) {}
};

class Link {
 public:
  virtual ~Link() = default;
  // Queues a packet; sends the queued ones when the batch is full. The packet is copied: its memory may change as soon
  // as this returns. False: it cannot be carried (no route, no socket); transports treat that as loss.
  virtual bool send(const Path& path, const OutPacket& packet) = 0;
  // Sends a small packet of a reliable connection at once, if nothing is queued and nothing unusual is due. `bth` has
  // kSingleRoom bytes before it, `length` bytes to its last pad byte, at most kSingleMostBytes, and 4 more behind them;
  // the bytes around the packet are overwritten. False: nothing was done; use send().
  static constexpr uint32_t kSingleRoom = 64, kSingleMostBytes = 128;
  virtual bool sendSingle(const Path& /*path*/, uint8_t* /*bth*/, uint32_t /*length*/) { return false; }
  // Sends the queued packets. The transport calls it once at the end of each step.
  virtual void flush() = 0;
  // Delivers received packets, without blocking, at most `budget` of them. True if there may be more.
  virtual bool poll(PacketSink& sink, uint32_t budget) = 0;
  // After an empty poll of a waiting thread: polls the last active socket again; ends when `wanted` ≠ 0.
  virtual void pollBusiest(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>& /*wanted*/) {}
  // Whether poll() would find nothing except on the local link. It makes no system call, so it answers only what it
  // knows without one.
  virtual bool quiet(uint64_t /*now*/) const { return false; }
  // Delivers packets of the local link only. With `wanted` it polls for a moment if there are none; stops when `wanted`
  // ≠ 0.
  virtual void pollLocal(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>* /*wanted*/) {}
  // Whether packets to this address need the wire, and nothing has opened it yet. Then, without the engine's lock:
  // openWire(), which opens it, once, and may wait a second for another process that does the same. It succeeds where
  // the port is held, since processes of this host are reached without it. kNotSupported: LinkChoice::kLocal.
  virtual bool lacksWire(const Gid& /*destination*/) { return false; }
  virtual Status openWire() { return Status::kSuccess; }
  // Whether the address is one of this host's.
  virtual bool isLocal(const Gid& address) = 0;
  // If the process that owned `slot` has ended unreported, reports the end now, after the packets that it has sent:
  // before a connection to the slot's next owner begins.
  virtual void reportEnd(uint32_t /*slot*/, PacketSink& /*sink*/) {}
  // Starts watching the process that owns `slot` on this host; onPeerProcessGone reports its end. kHostUnreachable:
  // there is no such process now; kTooManyOpenedFiles: there is no descriptor for it.
  virtual Status watchPeer(uint32_t slot) = 0;
  // The local link to the process that owns `slot`: up, or being set up (onLocalPair follows). Null: use the wire.
  virtual std::shared_ptr<LocalPair> localPair(uint32_t /*slot*/) { return nullptr; }
  // Memory is about to be freed that peers may be copying from: their copies count only under an older epoch.
  virtual void revoke(uint64_t /*epoch*/) {}
  // The table of keys and queue pairs that peers may access directly; null: there is none. A record that was withdrawn
  // from it may still be in use: settleDirect() or revoke() then ends that, without waiting (direct_owner.h).
  virtual DirectOwner* directOwner() { return nullptr; }
  virtual void settleDirect() {}
  // Whether a peer is in the memory by some of what was withdrawn (DirectOwner::takeWithdrawn()).
  virtual bool directOccupied(const std::vector<DirectWithdrawn>&) { return false; }
  // Whether this process has sent packets to itself by the local link that are not delivered yet.
  virtual bool selfPending() const { return false; }
  // Index of the interface that has this address, 0 if there is none.
  virtual uint32_t interfaceOf(const Gid& address) = 0;
  // An interface joins or leaves a multicast group. kNetworkUnreachable: no such interface; kInsufficientResources: the
  // system allows no more groups.
  virtual Status joinGroup(const Gid& group, uint32_t interface) = 0;
  virtual void leaveGroup(const Gid& group, uint32_t interface) = 0;
};

}  // namespace nd
