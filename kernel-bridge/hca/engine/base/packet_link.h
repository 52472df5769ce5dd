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

// A packet from the transport: BTH and extension headers in one piece, the payload to be gathered from registered
// memory, and 0..3 pad bytes. The link adds the IP and UDP headers and the ICRC.
struct OutPacket {
  static constexpr uint32_t kMaxHeader = 64;
  static constexpr uint32_t kMaxPieces = 34;
  uint8_t header[kMaxHeader];
  uint32_t headerLength = 0;
  Piece pieces[kMaxPieces];
  uint32_t pieceCount = 0;
  uint32_t payloadLength = 0;  // without pad
  uint32_t padLength = 0;
  // On the local link, the packet refers to its payload instead of carrying it (LocalEntry's flags).
  bool byReference = false;
  const SharedRange* shared[kMaxPieces];  // with byReference: the allocate() memory of each piece, or null
  uint32_t localFlags = 0;
  uint32_t localAck = 0;  // LocalEntry's third word
};

// A SEND or RDMA WRITE of one packet without immediate data, received over either link. Most messages are of this kind
// and take the fast path (fast_path.h).
struct SmallMessage {
  uint32_t length;  // length of the payload
  bool writes;      // an RDMA WRITE, with this RETH:
  uint32_t rkey;
  uint64_t address;
  // Returns false if the length differs from that of the payload.
  bool parseReth(const uint8_t* p) {
    const wire::Reth reth = wire::parseReth(p);
    rkey = reth.rkey;
    address = reth.address;
    return reth.length == length;
  }
};

// Receives packets whose length and ICRC the link has checked, from the BTH to the last pad byte. The bytes belong to
// the link and may be overwritten after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) = 0;
  // The process that owned `slot` on this host has ended, and its queue pairs with it. `orderly`: it sent a goodbye,
  // and its last packets may still be under way.
  virtual void onPeerProcessGone(uint32_t slot, bool orderly) = 0;
  // Packet capture has ended with this errno.
  virtual void onCaptureFailed(int /*error*/) {}
  // UDP port 4791 could not be opened, or was released.
  virtual void onWireLost() {}

  // Receives a single small packet of a reliable connection, with the bytes of onPacket(). If it returns false, the
  // packet was not handled and onPacket() is called next.
  virtual bool onSinglePacket(const PacketMeta&, const uint8_t* /*bth*/, uint32_t /*length*/) { return false; }

  // ── For the local link (local_pair.h)
  virtual void onLocalPacket(LocalPair&, const LocalPacket&) {}
  // If it returns false, the packet was not handled and onLocalPacket() is called next.
  virtual bool onLocalSmall(LocalPair&, const LocalSmall&) { return false; }
  // The peer could not copy the payload of this side's packets from this PSN on. `lasting`: another attempt would fail
  // as well.
  virtual void onUnpulled(LocalPair&, uint32_t /*sourceQpn*/, uint32_t /*qpn*/, uint32_t /*psn*/, bool /*lasting*/) {}
  // The pair is up or has been refused, so connections that wait for it can choose their link.
  virtual void onLocalPair(LocalPair&) {}
  // A full pair has room again. Call resume() once no queue pair waits any more.
  virtual void onLocalSpace(LocalPair&) {}
};

class Link {
 public:
  virtual ~Link() = default;
  // Queues a packet, and sends the queued packets when the batch is full. The packet is copied, so its memory may
  // change as soon as this returns. Returns false if the packet cannot be sent (no route, no socket); the transport
  // treats that as a loss.
  virtual bool send(const Path& path, const OutPacket& packet) = 0;
  // Sends a small packet of a reliable connection immediately, provided that nothing is queued and nothing unusual is
  // due. `bth` points to `length` bytes up to the last pad byte, at most kSingleMostBytes. The kSingleRoom bytes before
  // them and the 4 bytes after them are overwritten. If it returns false, nothing was done; use send().
  static constexpr uint32_t kSingleRoom = 64, kSingleMostBytes = 128;
  virtual bool sendSingle(const Path& /*path*/, uint8_t* /*bth*/, uint32_t /*length*/) { return false; }
  // Sends the queued packets. Called by the transport at the end of each step.
  virtual void flush() = 0;
  // Delivers at most `budget` received packets, without blocking. Returns true if there may be more.
  virtual bool poll(PacketSink& sink, uint32_t budget) = 0;
  // Called after an empty poll by a waiting thread: polls the last active socket again until `wanted` ≠ 0.
  virtual void pollBusiest(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>& /*wanted*/) {}
  // Returns whether poll() has nothing to do except on the local link, as far as is known without a system call.
  virtual bool quiet(uint64_t /*now*/) const { return false; }
  // Delivers packets of the local link only. With `wanted`, polls for a moment if there are none, until `wanted` ≠ 0.
  virtual void pollLocal(PacketSink& /*sink*/, uint32_t /*budget*/, const std::atomic<uint32_t>* /*wanted*/) {}
  // Returns whether packets to this address need the wire and it has not been opened yet. If so, call openWire()
  // without the engine's lock. openWire() opens the wire once, and may wait a second for another process that is doing
  // the same. It succeeds even if another program holds the port, since processes on this host are reachable without
  // it. It fails with kNotSupported under LinkChoice::kLocal.
  virtual bool lacksWire(const Gid& /*destination*/) { return false; }
  virtual Status openWire() { return Status::kSuccess; }
  // Returns whether the address belongs to this host.
  virtual bool isLocal(const Gid& address) = 0;
  // If the process that owned `slot` has ended and this has not been reported yet, reports it now, after the packets
  // that the process sent. The report thus precedes any connection to the slot's next owner.
  virtual void reportEnd(uint32_t /*slot*/, PacketSink& /*sink*/) {}
  // Starts watching the process that owns `slot` on this host; onPeerProcessGone reports its end. Fails with
  // kHostUnreachable if no such process exists now, and with kTooManyOpenedFiles without a free descriptor.
  virtual Status watchPeer(uint32_t slot) = 0;
  // Returns the local link to the process that owns `slot`, which is up or being set up (onLocalPair follows). Null
  // means that the wire must be used.
  virtual std::shared_ptr<LocalPair> localPair(uint32_t /*slot*/) { return nullptr; }
  // Called before memory that peers may be copying from is freed. Their copies are valid only if they were made under
  // an older epoch.
  virtual void revoke(uint64_t /*epoch*/) {}
  // Returns the table of keys and queue pairs that peers may access directly, or null if there is none. A record
  // withdrawn from it may still be in use. settleDirect() or revoke() ends that use without waiting (direct_owner.h).
  virtual DirectOwner* directOwner() { return nullptr; }
  virtual void settleDirect() {}
  // Returns whether a peer is accessing memory through a withdrawn record (DirectOwner::takeWithdrawn()).
  virtual bool directOccupied(const std::vector<DirectWithdrawn>&) { return false; }
  // Returns whether packets that this process sent to itself over the local link are still undelivered.
  virtual bool selfPending() const { return false; }
  // Returns the index of the interface that has this address, or 0 if none has it.
  virtual uint32_t interfaceOf(const Gid& address) = 0;
  // Joins or leaves a multicast group on an interface. Fails with kNetworkUnreachable if there is no such interface,
  // and with kInsufficientResources if the OS limit on groups is reached.
  virtual Status joinGroup(const Gid& group, uint32_t interface) = 0;
  virtual void leaveGroup(const Gid& group, uint32_t interface) = 0;
};

}  // namespace nd
