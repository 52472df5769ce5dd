#include "local/local_pair.h"

#include "base/fence.h"
#include "base/ring_words.h"
#include "base/packet_headers.h"
#include "platform/event.h"
#include "platform/os.h"

namespace nd {
namespace {

// The bytes before the BTH in a single-slot entry.
constexpr uint32_t kHead = LocalEntry::kHeadBytes;

void storeWords(uint8_t* to, uint32_t first, uint32_t second, uint32_t third = 0) {
  const uint32_t words[] = {first, second, third};
  static_assert(sizeof words == kHead, "the head of an entry");
  std::memcpy(to, words, sizeof words);
}

// Copies pieces to destinations of the same total length.
void scatter(const uint8_t* const* sources, const LocalPiece* pieces, const Piece* places, uint32_t count) {
  uint32_t piece = 0;
  uint64_t within = 0;
  for (uint32_t i = 0; i < count; i++) {
    auto* to = static_cast<uint8_t*>(places[i].data);
    uint64_t left = places[i].length;
    while (left != 0) {
      if (within == pieces[piece].length) {
        piece++;
        within = 0;
        continue;
      }
      const uint64_t n = std::min(left, pieces[piece].length - within);
      copyBytes(to, sources[piece] + within, n);
      to += n;
      within += n;
      left -= n;
    }
  }
}

uint32_t bulkOf(LocalKind kind, uint32_t length) { return kind == LocalKind::kBulk ? length : 0; }

}  // namespace

bool LocalMapping::create(UniqueFd* fd) {
  if (!mapping_.create(sizeof(LocalSegment), fd)) return false;
  get()->magic = LocalSegment::kMagic;
  return true;
}

bool LocalMapping::open(Descriptor fd) {
  if (!mapping_.open(fd, sizeof(LocalSegment))) return false;
  if (__atomic_load_n(&get()->magic, __ATOMIC_ACQUIRE) == LocalSegment::kMagic) return true;
  unmap();
  return false;
}

// ── Set-up ────────────────────────────────────────────────────────────────────────────────────────

bool LocalPair::startSelf() {
  if (!mapping.createPrivate()) return false;
  self = true;
  attach(0, 0);
  state = State::kUp;
  return true;
}

void LocalPair::attach(uint32_t side, ProcessId process, bool publishes) {
  LocalSegment* segment = mapping.get();
  const uint32_t other = self ? side : 1 - side;
  own_ = &segment->sides[side];
  peer_ = &segment->sides[other];
  producer_.attach(&segment->rings[side], &peer_->consumed);
  consumer_.attach(&segment->rings[other], &own_->consumed);
  process_ = process;
  publishes_ = publishes;
  peer.attach(&own_->remoteAccess);
  if (publishes) __atomic_store_n(&own_->direct, 1u, __ATOMIC_RELEASE);
}

void LocalPair::close() {
  state = State::kClosed;
  own_ = peer_ = nullptr;
  mapping.unmap();
  offers.clear();
  maps.clear();
  peer.close();
  wakeFd.reset();
  peerWakeFd.reset();
}

// ── Out ───────────────────────────────────────────────────────────────────────────────────────────

bool LocalPair::ready(uint32_t payload, bool reference) {
  if (!up()) return false;
  const uint32_t bulk = reference || payload <= LocalSmall::kMostInEntry ? 0 : payload;
  return producer_.room(LocalRing::kEntrySlots, LocalRing::unitsFor(bulk));
}

void LocalPair::fill(uint8_t* to, const OutPacket& packet) {
  for (uint32_t i = 0; i < packet.pieceCount; i++) {
    copyBytes(to, packet.pieces[i].data, packet.pieces[i].length);
    to += packet.pieces[i].length;
  }
}

void LocalPair::put(const OutPacket& packet, uint32_t sourceQpn, uint8_t trafficClass, uint32_t flags) {
  (packet.header[0] == wire::kOpReadRequest ? readsAdded_ : dirty_) = true;
  counters_.bump(HostCounter::kLocalTx);
  const uint32_t second = sourceQpn | uint32_t(trafficClass) << 24, length = packet.payloadLength;
  const uint32_t whole = kHead + packet.headerLength + length;
  if (whole <= LocalRing::kSlotBody) {
    uint8_t* body = producer_.body();
    storeWords(body, LocalEntry::word(length, LocalKind::kInline, flags), second, packet.localAck);
    std::memcpy(body + kHead, packet.header, packet.headerLength);
    if (length) fill(body + kHead + packet.headerLength, packet);
    return producer_.publish();
  }
  uint8_t entry[LocalRing::kEntryBytes];
  const bool isInline = length <= LocalSmall::kMostInEntry;
  storeWords(entry, LocalEntry::word(length, isInline ? LocalKind::kInline : LocalKind::kBulk, flags), second,
             packet.localAck);
  std::memcpy(entry + kHead, packet.header, packet.headerLength);
  if (isInline) {
    fill(entry + kHead + packet.headerLength, packet);
    return producer_.write(entry, whole);
  }
  fill(producer_.bulk(length), packet);
  producer_.write(entry, kHead + packet.headerLength);
}

void LocalPair::putReference(const OutPacket& packet, uint32_t sourceQpn, uint8_t trafficClass, uint64_t epoch) {
  dirty_ = true;
  counters_.bump(HostCounter::kLocalTx);
  uint8_t entry[LocalRing::kEntryBytes];
  storeWords(entry, LocalEntry::word(packet.payloadLength, LocalKind::kReference, packet.pieceCount),
             sourceQpn | uint32_t(trafficClass) << 24, packet.localAck);
  uint32_t at = kHead;
  std::memcpy(entry + at, packet.header, packet.headerLength);
  at += packet.headerLength;
  std::memcpy(entry + at, &epoch, 8);
  at += 8;
  for (uint32_t i = 0; i < packet.pieceCount; i++, at += kPieceBytes) {
    const auto address = reinterpret_cast<uint64_t>(packet.pieces[i].data);
    const auto length = static_cast<uint32_t>(packet.pieces[i].length);
    const uint32_t number = packet.shared[i] != nullptr && !self ? offers.numberOf(*packet.shared[i]) : 0;
    std::memcpy(entry + at, &address, 8);
    std::memcpy(entry + at + 8, &length, 4);
    std::memcpy(entry + at + 12, &number, 4);
  }
  producer_.write(entry, at);
}

void LocalPair::putUnpulled(uint32_t sourceQpn, uint32_t destinationQpn, uint32_t psn, bool lasting) {
  dirty_ = true;
  uint8_t* body = producer_.body();
  storeWords(body, LocalEntry::word(0, LocalKind::kUnpulled, lasting ? LocalEntry::kLasting : 0), sourceQpn);
  wire::Bth bth;
  bth.destinationQpn = destinationQpn;
  bth.psn = psn;
  wire::emitBth(body + kHead, bth);
  producer_.publish();
}

void LocalPair::wantSpace() {
  if (!stalled) counters_.bump(HostCounter::kLocalStalls);
  stalled = true;
  if (up()) __atomic_store_n(&own_->wantsSpace, 1u, __ATOMIC_SEQ_CST);
}

void LocalPair::resume() {
  stalled = false;
  if (up()) __atomic_store_n(&own_->wantsSpace, 0u, __ATOMIC_RELAXED);
}

void LocalPair::flush(bool all) {
  if (!up()) return;
  const bool due = all || consumer_.publishDue() || __atomic_load_n(&peer_->wantsSpace, __ATOMIC_RELAXED) != 0;
  const bool took = due && consumer_.publish();
  if (!took && !dirty_ && !readsAdded_) return;
  if (!self) {
    // Either the peer, about to sleep, sees the new entries, or this side sees that it sleeps.
    fullFence();
    if (__atomic_load_n(&peer_->asleep, __ATOMIC_RELAXED) != 0) {
      if (!owesWake() && !(took && __atomic_load_n(&peer_->wantsSpace, __ATOMIC_RELAXED) != 0)) return;
      wakePeer();
    }
  }
  dirty_ = readsAdded_ = false;
}

void LocalPair::wakePeer() {
  if (__atomic_exchange_n(&peer_->asleep, 0u, __ATOMIC_ACQ_REL) == 0) return;
  counters_.bump(HostCounter::kLocalWakes);
  raiseEvent(peerWakeFd.get());
}

void LocalPair::setEpoch(uint64_t epoch) {
  if (up()) __atomic_store_n(&own_->epoch, epoch, __ATOMIC_SEQ_CST);
}

// ── In ────────────────────────────────────────────────────────────────────────────────────────────

void LocalPair::sleeping(bool asleep) {
  if (!up() || self) return;
  __atomic_store_n(&own_->asleep, asleep ? 1u : 0u, __ATOMIC_SEQ_CST);
}

uint32_t LocalPair::receive(PacketSink& sink, uint32_t budget) {
  uint32_t n = 0;
  taken_ = 0;
  while (n < budget && taken_ < kStepBytes && pending()) {
    if (!takeSmall(sink) && !takeOne(sink)) {
      broken_ = true;
      break;
    }
    if (++n > 1) consumer_.fetch();
    if (consumer_.publishDue()) flush(false);
  }
  if (n == 0) return 0;
  counters_.bump(HostCounter::kLocalRx, n);
  if (up() && (readsAdded_ || __atomic_load_n(&peer_->wantsSpace, __ATOMIC_RELAXED) != 0)) flush(false);
  return n;
}

// Returns false if the entry is of another kind or unusual; use takeOne().
bool LocalPair::takeSmall(PacketSink& sink) {
  LocalSmall small;
  small.slots[0] = consumer_.peek(0);
  if (!fast || small.slots[0] == nullptr) return false;
  const auto read = [at = reinterpret_cast<const uint32_t*>(small.slots[0]->body)](uint32_t word) {
    return peekWord(at + word);
  };
  for (uint32_t i = 0; i < 3; i++) small.header.head[i] = read(i);
  for (uint32_t i = 0; i < 3; i++) small.header.bth[i] = read(3 + i);
  const uint32_t first = small.header.head[0];
  small.length = first & ((1u << LocalEntry::kLengthBits) - 1);
  const auto opcode = uint8_t(small.header.bth[0]);
  small.writes = opcode == wire::kOpWriteOnly;
  const bool inBulk = first == LocalEntry::word(small.length, LocalKind::kBulk, 0);
  if ((!inBulk && first != LocalEntry::word(small.length, LocalKind::kInline, 0)) ||
      (opcode != wire::kOpSendOnly && !small.writes) ||
      small.length > (inBulk ? LocalSmall::kMostBytes : LocalSmall::kMostInEntry))
    return false;
  if (small.writes) {
    const uint32_t reth[] = {read(6), read(7), read(8), read(9)};
    if (!small.parseReth(reinterpret_cast<const uint8_t*>(reth))) return false;
  }
  small.bulk = inBulk ? consumer_.bulk(small.length) : nullptr;
  const uint32_t slots = LocalRing::slotsFor(small.entryBytes());
  for (uint32_t i = 1; i < slots; i++)
    if ((small.slots[i] = consumer_.peek(i)) == nullptr) return false;
  if (!sink.onLocalSmall(*this, small)) return false;
  taken_ += small.length;
  consumer_.take(slots, small.bulkBytes());
  return true;
}

// Reads a payload by reference: its epoch, and then its pieces.
inline bool LocalPair::takeReference(PacketSink& sink, LocalPacket& p, const uint8_t* at) {
  LocalPiece pieces[kMaxPieces];
  std::memcpy(&p.epoch, at, 8);
  at += 8;
  uint64_t total = 0;
  for (uint32_t i = 0; i < p.pieceCount; i++, at += kPieceBytes) {
    uint32_t n;
    std::memcpy(&pieces[i].address, at, 8);
    std::memcpy(&n, at + 8, 4);
    std::memcpy(&pieces[i].number, at + 12, 4);
    pieces[i].length = n;
    total += n;
  }
  if (total != p.length) return false;
  p.pieces = pieces;
  taken_ += p.length;
  sink.onLocalPacket(*this, p);
  return true;
}

// Returns false if the entry is invalid.
bool LocalPair::takeOne(PacketSink& sink) {
  uint8_t entry[LocalRing::kEntryBytes];
  if (!consumer_.copy(0, entry)) return false;
  uint32_t first, second, third;
  std::memcpy(&first, entry, 4);
  std::memcpy(&second, entry + 4, 4);
  std::memcpy(&third, entry + 8, 4);
  const uint32_t length = first & ((1u << LocalEntry::kLengthBits) - 1);
  const auto kind = static_cast<LocalKind>(first >> LocalEntry::kLengthBits & ((1u << LocalEntry::kKindBits) - 1));
  const uint32_t flags = first >> (LocalEntry::kLengthBits + LocalEntry::kKindBits);
  if (length > (kind == LocalKind::kReference ? kMtu * kReferencePackets : kMtu)) return false;

  LocalPacket p;
  p.sourceQpn = second & wire::kQpnMask;
  p.flags = flags;
  p.acknowledged = third;
  p.length = length;
  p.bth = entry + kHead;
  uint32_t bytes;
  if (kind == LocalKind::kUnpulled) {
    bytes = kHead + wire::kBthBytes;
  } else {
    const wire::OpInfo& op = wire::kOpcodes[entry[kHead]];
    if (op.flags == 0) return false;
    p.headerLength = op.headerBytes;
    bytes = kHead + op.headerBytes;
    if (kind == LocalKind::kInline) {
      bytes += length;
    } else if (kind == LocalKind::kReference) {
      if (flags == 0 || flags > kMaxPieces) return false;
      p.pieceCount = flags;
      p.flags = 0;
      bytes += 8 + flags * kPieceBytes;
    } else if (kind != LocalKind::kBulk) {
      return false;
    }
  }
  const uint32_t slots = LocalRing::slotsFor(bytes);
  if (slots > LocalRing::kEntrySlots) return false;
  for (uint32_t i = 1; i < slots; i++)
    if (!consumer_.copy(i, entry + i * LocalRing::kSlotBody)) return false;

  const uint32_t bulk = bulkOf(kind, length);
  switch (kind) {
    case LocalKind::kUnpulled: {
      const wire::Bth bth = wire::parseBth(p.bth);
      sink.onUnpulled(*this, p.sourceQpn, bth.destinationQpn, bth.psn, (flags & LocalEntry::kLasting) != 0);
      break;
    }
    case LocalKind::kReference:
      if (!takeReference(sink, p, entry + kHead + p.headerLength)) return false;
      break;
    default:
      p.payload = kind == LocalKind::kInline ? entry + kHead + p.headerLength : consumer_.bulk(length);
      taken_ += length;
      sink.onLocalPacket(*this, p);
      break;
  }
  consumer_.take(slots, bulk);
  return true;
}

Pull LocalPair::pull(const LocalPacket& packet, const Piece* places, uint32_t count) {
  const Pull outcome = copyReferenced(packet, places, count);
  if (outcome == Pull::kDone) {
    counters_.bump(HostCounter::kLocalPulled, packet.length);
    if (!self) counters_.bump(HostCounter::kLocalMappedBytes, packet.length);
  } else {
    counters_.add(outcome == Pull::kChanged ? HostCounter::kLocalPullChanged : HostCounter::kLocalPullFailed);
  }
  return outcome;
}

// Freed memory may already be unmapped, and the payload has then changed. A second attempt would fail only for a
// reference that was sent under the present epoch and is not mapped in this process. Within one process, one lock
// covers both sides, so the memory exists under the same epoch.
Pull LocalPair::copyReferenced(const LocalPacket& packet, const Piece* places, uint32_t count) {
  if (!up()) return Pull::kFailed;
  const auto changed = [&] {
    fullFence();
    return __atomic_load_n(&peer_->epoch, __ATOMIC_ACQUIRE) != packet.epoch;
  };
  if (changed()) return Pull::kChanged;
  const uint8_t* sources[kMaxPieces];
  for (uint32_t i = 0; i < packet.pieceCount; i++) {
    const LocalPiece& piece = packet.pieces[i];
    if (self) sources[i] = reinterpret_cast<const uint8_t*>(piece.address);
    else sources[i] = piece.number != 0 ? maps.find(piece.number, piece.address, piece.length) : nullptr;
    if (sources[i] == nullptr) return Pull::kFailed;
  }
  scatter(sources, packet.pieces, places, count);
  return changed() ? Pull::kChanged : Pull::kDone;
}

}  // namespace nd
