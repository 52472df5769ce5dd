// The local link between this process and one process on the same host (or itself), which carries the packets of
// connections between the two. The transport is the same as over UDP, but packets have no UDP header and no ICRC, and
// segments are larger. Payload in memory that the peer has mapped is sent by reference, so that the owner of the
// destination copies it only once, out of that mapping.
//
// All functions require the engine's lock. Data written by the peer is read once and checked. An invalid entry breaks
// only this pair.
#pragma once
#include <memory>

#include "base/host_counters.h"
#include "base/ip.h"
#include "base/packet_link.h"
#include "base/packet_headers.h"
#include "local/direct_peer.h"
#include "local/local_maps.h"
#include "local/local_ring.h"
#include "platform/mapping.h"
#include "platform/os.h"

namespace nd {

// The shared memory of a pair of processes. One process creates and seals it, and sends its descriptor. The other
// checks it.
class LocalMapping {
 public:
  // Creates a segment for two processes; `fd` is for the other process. Returns false if resources are exhausted.
  bool create(UniqueFd* fd);
  // Creates private memory of the same layout, for queue pairs within one process.
  bool createPrivate() { return mapping_.createPrivate(sizeof(LocalSegment)); }
  // Maps the segment of another process. Returns false if it is not a segment, or might not stay mapped.
  bool open(Descriptor fd);
  void unmap() { mapping_.unmap(); }
  LocalSegment* get() const { return static_cast<LocalSegment*>(mapping_.get()); }

 private:
  Mapping mapping_;
};

// How a packet's payload travels.
enum class LocalKind : uint8_t {
  kInline = 1,     // behind the header, in the entry's slots
  kBulk = 2,       // in the bulk area
  kReference = 3,  // the entry lists pieces of the sender's memory (payload by reference)
  kUnpulled = 4,   // not a packet: a payload by reference could not be copied, from this PSN on
};

// A piece of a peer's memory.
struct LocalPiece {
  uint64_t address, length;
  uint32_t number;  // of its offer (local_maps.h); 0: none
};

struct LocalEntry {
  // Word 0: payload length in 20 bits, kind in 4, flags in 8. Word 1: source QPN in 24, traffic class in 8. Word 2:
  // with kAcknowledges, the newest PSN that the packet acknowledges in addition to its own meaning; otherwise 0.
  static constexpr uint32_t kHeadBytes = 12, kLengthBits = 20, kKindBits = 4;
  static constexpr uint32_t kAcknowledges = 1u << 24;
  static constexpr uint32_t kInRing = 1;   // flag: the response's payload must not be a reference
  static constexpr uint32_t kLasting = 2;  // flag of kUnpulled: another attempt would fail as well
  static uint32_t word(uint32_t length, LocalKind kind, uint32_t flags) {
    return length | uint32_t(kind) << kLengthBits | flags << (kLengthBits + kKindBits);
  }
};

enum class Pull : uint8_t { kDone, kChanged, kFailed };

// A received packet. Header and pieces are private copies; the payload may be in memory that the peer can write.
struct LocalPacket {
  uint32_t sourceQpn = 0, flags = 0;
  uint32_t acknowledged = 0;  // as in the entry
  const uint8_t* bth = nullptr;
  uint32_t headerLength = 0;
  const uint8_t* payload = nullptr;  // null: must be pulled
  uint32_t length = 0;
  uint64_t epoch = 0;
  uint32_t pieceCount = 0;
  const LocalPiece* pieces = nullptr;
};

// A small message carried by the ring. Its words were read once from the entry. Its payload is after the header or in
// the bulk area, where the peer may still change it.
struct LocalSmall : SmallMessage {
  static constexpr uint32_t kMostInEntry = LocalRing::kEntryBytes / 2;
  static constexpr uint32_t kMostBytes = (64u << 10) - 1;
  // The small message as it appears in the entry.
  struct Header {
    uint32_t head[3];  // LocalEntry's
    uint32_t bth[3];
  };
  struct WriteHeader {
    Header header;
    uint32_t reth[4];
  };
  static constexpr uint32_t kMostSlots = LocalRing::slotsFor(sizeof(WriteHeader) + kMostInEntry);
  Header header;
  const uint8_t* bulk;  // null: the payload is in the entry
  const LocalRing::Slot* slots[kMostSlots];
  wire::Bth bth() const { return wire::parseBth(reinterpret_cast<const uint8_t*>(header.bth)); }
  uint32_t sourceQpn() const { return header.head[1] & wire::kQpnMask; }
  uint32_t acknowledged() const { return header.head[2]; }
  uint32_t packetBytes() const { return wire::kBthBytes + (writes ? wire::kRethBytes : 0) + length; }
  uint32_t bulkBytes() const { return bulk ? length : 0; }
  uint32_t entryBytes() const { return headerBytes() + length - bulkBytes(); }
  uint32_t headerBytes() const { return writes ? sizeof(WriteHeader) : sizeof(Header); }
  void copyFromEntry(uint8_t* to) const {
    const uint32_t before = headerBytes(), beside = LocalRing::kSlotBody - before;
    copySmall(to, slots[0]->body + before, std::min(length, beside));
    for (uint32_t at = beside, i = 1; at < length; at += LocalRing::kSlotBody, i++)
      copySmall(to + at, slots[i]->body, std::min(length - at, LocalRing::kSlotBody));
  }
};

class LocalPair {
 public:
  static constexpr uint32_t kMtu = 64u << 10;       // the path MTU of connections on it
  static constexpr uint32_t kReferencePackets = 8;  // maximum number of packets sent by one reference
  static constexpr uint32_t kReferenceFrom =
      4u << 10;  // bytes; for shorter payloads, two copies by both processes at the same time are faster
  static_assert(LocalSmall::kMostBytes < kMtu, "one packet");
  static constexpr uint32_t kStepBytes = 512u << 10;  // copied per step, so that the lock is released in between
  static constexpr uint32_t kPieceBytes = 16;         // size of a piece in an entry
  static constexpr uint32_t kMaxPieces = 11;
  static_assert(LocalEntry::kHeadBytes + 32 + 8 + kMaxPieces * kPieceBytes <= LocalRing::kEntryBytes,
                "head, the longest header of a payload by reference, epoch, pieces");

  enum class State : uint8_t { kRequested, kUp, kRefused, kClosed };

  LocalPair(uint32_t number, HostCounters& counters) : slot(number), counters_(counters) {}

  // ── Set-up (local_pairs.cc)
  bool startSelf();
  void attach(uint32_t side, ProcessId process, bool publishes = false);  // call after `mapping` is set
  void close();

  // ── Out
  bool up() const { return state == State::kUp; }
  // Returns whether an entry with this much payload fits now. If not, call wantSpace() and retry at onLocalSpace().
  bool ready(uint32_t payload, bool reference);
  // Sends a packet, after ready(). A payload by reference has at most kMaxPieces pieces.
  void put(const OutPacket& packet, uint32_t sourceQpn, uint8_t trafficClass, uint32_t flags);
  // Does the same for a LocalSmall.
  void putSend(const wire::Bth& bth, uint32_t sourceQpn, uint8_t trafficClass, uint32_t acknowledges,
               const uint8_t* payload, uint32_t length) {
    putSmall(smallHeader(bth, sourceQpn, trafficClass, acknowledges, length), payload, length);
  }
  void putWrite(const wire::Bth& bth, const wire::Reth& reth, uint32_t sourceQpn, uint8_t trafficClass,
                uint32_t acknowledges, const uint8_t* payload, uint32_t length) {
    LocalSmall::WriteHeader header;
    header.header = smallHeader(bth, sourceQpn, trafficClass, acknowledges, length);
    wire::emitReth(reinterpret_cast<uint8_t*>(header.reth), reth);
    putSmall(header, payload, length);
  }
  void putReference(const OutPacket& packet, uint32_t sourceQpn, uint8_t trafficClass, uint64_t epoch);
  // Returns whether the peer has all of this memory mapped. Unknown memory is offered to the peer.
  bool isMapped(const SharedRange* range) { return range != nullptr && (self || offers.numberOf(*range) != 0); }
  void putUnpulled(uint32_t sourceQpn, uint32_t destinationQpn, uint32_t psn, bool lasting);
  uint32_t position() const { return producer_.position(); }
  void prepare() { producer_.prepare(); }
  bool consumed(uint32_t at) { return up() && producer_.consumed(at); }
  void wantSpace();
  void resume();  // no queue pair waits for space any more
  bool hasSpace() { return ready(kMtu, false); }
  // Returns whether a queue pair should leave the remaining space to others.
  bool crowded() { return !up() || producer_.crowded(); }
  // Must be called after a step. Wakes the peer if it sleeps and there are new entries. Publishes consumed space
  // immediately if the peer waits for room, otherwise only in large amounts. `all`: publishes it in any case, because
  // this side has nothing else to do.
  void flush(bool all = true);
  void setEpoch(uint64_t epoch);

  // ── Direct access (direct_owner.h)
  // Returns whether both sides publish their keys, which is known once the pair is up.
  bool direct() const { return up() && !self && publishes_ && __atomic_load_n(&peer_->direct, __ATOMIC_ACQUIRE) == 1; }
  // Returns the peer's current access to this side's memory, or null.
  DirectAccessRecord* remoteAccess() { return up() ? &peer_->remoteAccess : nullptr; }
  ProcessId process() const { return process_; }

  // ── In
  bool pending() const { return up() && consumer_.ready(); }
  bool broken() const { return broken_ || producer_.broken(); }
  // Takes entries until `budget` or the bytes per step are used up, and returns their number.
  uint32_t receive(PacketSink& sink, uint32_t budget);
  // Copies a packet's payload to destinations of the same total length.
  Pull pull(const LocalPacket& packet, const Piece* places, uint32_t count);
  void sleeping(bool asleep);

  const uint32_t slot;
  State state = State::kRequested;
  bool self = false;
  bool fast = true;                // whether small messages take the fast path; the tests compare both paths
  bool stalled = false;            // queue pairs wait for space
  uint64_t deadline = UINT64_MAX;  // deadline of the set-up
  LocalMapping mapping;
  LocalOffers offers;
  LocalMaps maps;
  DirectPeer peer;              // ready: its memory can be accessed directly
  UniqueFd wakeFd, peerWakeFd;  // this side's, in the host's set, and the peer's

 private:
  static LocalSmall::Header smallHeader(const wire::Bth& bth, uint32_t sourceQpn, uint8_t trafficClass,
                                        uint32_t acknowledges, uint32_t length) {
    const LocalKind kind = length > LocalSmall::kMostInEntry ? LocalKind::kBulk : LocalKind::kInline;
    LocalSmall::Header header = {
        {LocalEntry::word(length, kind, 0), sourceQpn | uint32_t(trafficClass) << 24, acknowledges}, {}};
    wire::emitBth(reinterpret_cast<uint8_t*>(header.bth), bth);
    return header;
  }
  template <typename Header>
  void putSmall(const Header& header, const uint8_t* payload, uint32_t length) {
    dirty_ = true;
    counters_.bump(HostCounter::kLocalTx);
    if (length > LocalSmall::kMostInEntry) {
      copyBytes(producer_.bulk(length), payload, length);
      length = 0;
    }
    producer_.write(header, payload, length);
  }
  bool takeOne(PacketSink& sink);
  bool takeReference(PacketSink& sink, LocalPacket& packet, const uint8_t* at);
  bool takeSmall(PacketSink& sink);
  // If the response to a READ would queue behind this many unread entries, the peer need not be woken yet. This side
  // returns for these entries, and wakes the peer when few are left.
  static constexpr uint32_t kBacklog = 4;
  bool owesWake() const { return dirty_ || (readsAdded_ && consumer_.peek(kBacklog) == nullptr); }
  void wakePeer();
  Pull copyReferenced(const LocalPacket& packet, const Piece* places, uint32_t count);
  void fill(uint8_t* to, const OutPacket& packet);

  HostCounters& counters_;
  ProcessId process_ = 0;
  bool broken_ = false, publishes_ = false;
  bool dirty_ = false;       // entries were written that the peer may not have noticed
  bool readsAdded_ = false;  // some of these are READ requests
  LocalProducer producer_;
  LocalConsumer consumer_;
  LocalSide *own_ = nullptr, *peer_ = nullptr;
  uint32_t taken_ = 0;  // bytes copied in this step
};

}  // namespace nd
