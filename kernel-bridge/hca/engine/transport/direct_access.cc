#include "transport/direct_access.h"

#include "local/direct_owner.h"
#include "platform/os.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kRemoteRights = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic;
constexpr uint32_t kAtomicBytes = 8;

// The right that each request needs; 0 means not eligible for direct access.
constexpr uint32_t kRights[] = {
    /* SEND */ 0,
    /* WRITE */ kAccessRemoteWriteBit,
    /* READ */ kAccessRemoteRead,
    /* COMPARE_EXCHANGE */ kAccessRemoteAtomic,
    /* FETCH_ADD */ kAccessRemoteAtomic,
    /* BIND_WINDOW */ 0,
    /* LOCAL_INVALIDATE */ 0,
};

// Both functions return the previous value.
inline uint64_t fetchAdd(uint64_t* word, uint64_t value) { return __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST); }

inline uint64_t compareExchange(uint64_t* word, uint64_t expected, uint64_t replacement) {
  __atomic_compare_exchange_n(word, &expected, replacement, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

inline DirectResult refusal(DirectPeer::Refusal why) {
  return why == DirectPeer::Refusal::kUnmapped ? DirectResult::kNotMapped : DirectResult::kRefused;
}

}  // namespace

// ── The peer's side ─────────────────────────────────────────────────────────────────────────────

void DirectAccess::publish(Qp& qp) {
  DirectOwner* const owner = c_.link.directOwner();
  if (!owner) return;
  const bool open = qp.reliable() && stateRules(qp.state()).receivesRequests && qp.local && qp.local->direct();
  const DirectOwner::Qp now = {qp.qpn, qp.attributes.destinationQpn, qp.attributes.access & kRemoteRights,
                               qp.pd->handle, qp.pkey()};
  if (qp.has(kPublished) && (!open || !owner->says(now))) withdraw(qp);
  if (!open || qp.has(kPublished)) return;
  owner->publish(now);
  qp.set(kPublished);
}

void DirectAccess::withdraw(Qp& qp) {
  if (!qp.has(kPublished)) return;
  c_.link.directOwner()->withdrawQp(qp.qpn);
  qp.clear(kPublished);
  c_.link.settleDirect();
}

void DirectAccess::retire(Qp& qp, bool windows) {
  if (qp.has(kPublished)) c_.link.directOwner()->withdrawQp(qp.qpn);
  if (windows) c_.memory.retireWindowsOf(qp);
}

void DirectAccess::retireKernel(KernelId kernel) {
  c_.qps.forEach([&](Qp& qp) {
    if (qp.kernel == kernel) retire(qp, false);
  });
  c_.memory.retireKernel(kernel);
}

bool DirectAccess::mayInvalidate(Qp& qp, uint32_t key) {
  DirectOwner* const owner = c_.link.directOwner();
  if (!owner) return true;
  const std::vector<DirectWithdrawn> others = owner->takeWithdrawn();
  c_.memory.retireKey(qp, key);
  const bool inside = c_.link.directOccupied(owner->takeWithdrawn());
  owner->giveBack(others);
  uint64_t& until = qp.rq.leaveUntil;
  if (inside && until == 0) {
    owner->countWait();
    until = monotonicNs() + owner->evictionTimeoutNs();
  }
  if (inside && monotonicNs() < until) return false;
  until = 0;
  return true;
}

void DirectAccess::settle(Qp& qp) {
  qp.put(kNotDirect, !qp.reliable() || !qp.local || !qp.local->direct() || !qp.local->peer.ready());
}

// ── Ours ────────────────────────────────────────────────────────────────────────────────────────

bool DirectAccess::run(Qp& qp) {
  SendState& rq = qp.rq;
  if (!qp.local->peer.ready()) return settle(qp), false;  // the pair is closed; its connections end next
  uint32_t budget = LocalPair::kStepBytes;
  while (!qp.has(kBlocksDirect) && rq.head == rq.next && rq.next == rq.parsed && rq.next != rq.producer) {
    SendEntry& e = qp.entry(rq.next);
    if (!read(qp, e)) break;
    const Outcome outcome = execute(qp, e, &budget);
    if (outcome == Outcome::kMore) return true;
    rq.directDone = 0;  // a refused request starts anew
    if (outcome == Outcome::kRefused) break;
    rq.begun = rq.parsed = ++rq.next;
    t_.completer.completeHead(qp);
    if (budget == 0) return rq.next != rq.producer;
  }
  return false;
}

// Parses the next request into its entry, if it is eligible for direct access. Errors in it are left to the requester.
inline bool DirectAccess::read(Qp& qp, SendEntry& e) {
  const uint32_t* const w = qp.sendWqe(qp.rq.next);
  e.readKind(w);
  if (e.opcode > kOpFetchAdd || kRights[e.opcode] == 0) return false;
  if ((e.flags & (~kWqeRules[e.opcode].flags | kSendFlagImmediate)) != 0) return false;
  if (e.opcode != kOpWrite && qp.attributes.initiatorDepth == 0) return false;
  if (e.readLength(w, qp.sendSge, qp.maxInline, wire::kMaxMessage) != 0) return false;
  if (e.length == 0 || (e.isAtomic() && e.length != kAtomicBytes)) return false;
  e.readTarget(w);
  if (e.isAtomic()) e.readOperands(w);
  return true;
}

inline DirectAccess::Outcome DirectAccess::execute(Qp& qp, const SendEntry& e, uint32_t* budget) {
  if (e.isAtomic()) return change(qp, e);
  uint32_t& done = qp.rq.directDone;
  SgeCursor cursor;
  if (qp.rq.directWqe != qp.rq.next) done = 0;  // the slow path has handled that one
  qp.rq.directWqe = qp.rq.next;
  if (done != 0) cursor.offset = UINT32_MAX;
  while (done < e.length) {
    if (*budget == 0) return Outcome::kMore;
    const uint32_t length = std::min({e.length - done, DirectAccessRecord::kMostBytes, *budget});
    if (!copy(qp, e, done, length, &cursor)) return Outcome::kRefused;
    done += length;
    *budget -= length;
  }
  (e.opcode == kOpRead ? c_.counters.directReads : c_.counters.directWrites)++;
  return Outcome::kDone;
}

// Stores the local memory for a part of the request in pieces_.
inline bool DirectAccess::places(Qp& qp, const SendEntry& e, uint32_t offset, uint32_t length, SgeCursor* cursor) {
  const bool write = e.opcode != kOpWrite;
  pieceCount_ = 0;
  const uint32_t* const w = qp.sendWqe(qp.rq.next);
  if (e.isInline()) {
    pieces_[pieceCount_++] = {const_cast<uint8_t*>(SendWqe::inlineBytes(w)) + offset, length};
    return true;
  }
  const SgeList sges = e.sges(w);
  KeyCache& cache = write ? qp.scatterCache : qp.gatherCache;
  if (sges.count != 1) return c_.pieces(qp.pd, cache, sges, *cursor, offset, length, write, pieces_, &pieceCount_) == 0;
  uint8_t* const data = c_.memory.local(cache, qp.pd, sges.lkey(0), sges.address(0) + offset, length, write);
  pieces_[pieceCount_++] = {data, length};
  return data != nullptr;
}

// Returns memory of a queue pair of this process, as its responder finds it.
inline uint8_t* DirectAccess::ownMemory(const Qp& qp, const Target& target) {
  Qp* const peer = c_.byQpn(qp.attributes.destinationQpn);
  if (!peer || !peer->reliable() || peer->attributes.destinationQpn != qp.qpn) return nullptr;
  const uint32_t right = DirectPeer::rightOfQp(target.right);
  if (!stateRules(peer->state()).receivesRequests || !(peer->attributes.access & right)) return nullptr;
  if (!pkeysFit(peer->pkey(), qp.pkey())) return nullptr;
  return c_.memory.remote(peer->remoteCache, *peer, target.rkey, target.remote, target.length, target.right);
}

inline FilePart DirectAccess::ownFile(const Qp& qp, const Target& target) {
  const uint8_t* const at = ownMemory(qp, target);
  if (!at) return {};
  const SharedRange* const range = c_.memory.sharedOf(c_.byQpn(qp.attributes.destinationQpn)->remoteCache, target.rkey);
  // If memory was reclaimed, the file no longer has all its pages.
  if (!range || range->reclaimed.load(std::memory_order_acquire)) return {};
  const auto offset = reinterpret_cast<uint64_t>(at) - range->base;
  return {duplicateDescriptor(range->fd.get()), range->length, offset, target.length};
}

inline uint8_t* DirectAccess::enter(Qp& qp, const Target& target, DirectPeer::Refusal* why) {
  uint8_t* place;
  if (qp.local->self) {
    *why = DirectPeer::Refusal::kUnpublished;
    place = ownMemory(qp, target);
  } else {
    place = qp.local->peer.enter(request(qp, target), qp.local->maps, why);
  }
  if (!place) count(*why);
  return place;
}

inline DirectPeer::Request DirectAccess::request(const Qp& qp, const Target& target) {
  return {
      qp.qpn,        qp.attributes.destinationQpn, target.rkey, target.right, qp.pkey(), target.remote, target.length,
      target.touched};
}

inline void DirectAccess::count(DirectPeer::Refusal why) {
  (why == DirectPeer::Refusal::kUnmapped ? c_.counters.directUnmapped : c_.counters.directRefused)++;
}

inline bool DirectAccess::leave(Qp& qp) {
  if (qp.local->self || qp.local->peer.leave()) return true;
  c_.counters.directEvicted++;
  return false;
}

inline bool DirectAccess::copy(Qp& qp, const SendEntry& e, uint32_t offset, uint32_t length, SgeCursor* cursor) {
  if (!places(qp, e, offset, length, cursor)) return false;
  // As in the responder, the whole message is checked before its first byte is moved.
  DirectPeer::Refusal why;
  uint8_t* at =
      enter(qp, {e.rkey, kRights[e.opcode], e.remote + offset, offset == 0 ? e.length : length, length}, &why);
  if (!at) return false;
  for (uint32_t i = 0; i < pieceCount_; i++) {
    auto* const own = static_cast<uint8_t*>(pieces_[i].data);
    const auto bytes = static_cast<uint32_t>(pieces_[i].length);
    if (e.opcode == kOpWrite) copyInOrder(at, own, bytes);
    else copyBytes(own, at, bytes);
    at += bytes;
  }
  return leave(qp);
}

// Returns the peer's word for an atomic operation, or null if it is refused or not aligned.
inline uint64_t* DirectAccess::enterWord(Qp& qp, uint64_t remote, uint32_t rkey, DirectPeer::Refusal* why) {
  *why = DirectPeer::Refusal::kUnpublished;
  if ((remote & (kAtomicBytes - 1)) != 0) return nullptr;
  auto* const word =
      reinterpret_cast<uint64_t*>(enter(qp, {rkey, kAccessRemoteAtomic, remote, kAtomicBytes, kAtomicBytes}, why));
  // A zero-based region may start anywhere.
  if (!word || (reinterpret_cast<uint64_t>(word) & (kAtomicBytes - 1)) == 0) return word;
  static_cast<void>(leave(qp));
  *why = DirectPeer::Refusal::kUnpublished;
  return nullptr;
}

// Executes an ATOMIC as the responder does, atomically with respect to the responder and to the peer's threads.
inline DirectAccess::Outcome DirectAccess::change(Qp& qp, const SendEntry& e) {
  SgeCursor cursor;
  if (!places(qp, e, 0, kAtomicBytes, &cursor)) return Outcome::kRefused;
  DirectPeer::Refusal why;
  uint64_t* const word = enterWord(qp, e.remote, e.rkey, &why);
  if (!word) return Outcome::kRefused;
  const uint64_t result =
      e.opcode == kOpFetchAdd ? fetchAdd(word, e.compare) : compareExchange(word, e.compare, e.swap);
  if (!leave(qp)) {
    // It is unknown whether it was executed before the memory was withdrawn, so it cannot be repeated.
    t_.completer.failSend(qp, kWcTimeoutRetry, 0, QpEvent::kPeerLost);
    return Outcome::kRefused;
  }
  const auto* from = reinterpret_cast<const uint8_t*>(&result);
  for (uint32_t i = 0; i < pieceCount_; i++) {
    std::memcpy(pieces_[i].data, from, pieces_[i].length);
    from += pieces_[i].length;
  }
  c_.counters.directAtomics++;
  return Outcome::kDone;
}

// Returns whether this side can access the peer's memory itself.
inline bool DirectAccess::reaches(Qp& qp) {
  if (qp.has(kNotRts)) return false;
  // Requests to a queue pair of this process are packets that are delivered immediately; `kNotDirect` refers to these.
  if (qp.reliable() && qp.local && qp.local->self) return c_.link.directOwner() != nullptr;
  if (qp.has(kNotDirect)) return false;
  if (!qp.local->peer.ready()) return settle(qp), false;
  return true;
}

DirectResult DirectAccess::access(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length, uint64_t whole,
                                  uint64_t remote, uint32_t rkey) {
  if (length > DirectAccessRecord::kMostBytes || !reaches(qp)) return DirectResult::kRefused;
  if (operation != DirectOperation::kWrite && qp.attributes.initiatorDepth == 0) return DirectResult::kRefused;
  if (length == 0) return operation > DirectOperation::kRead ? DirectResult::kRefused : DirectResult::kDone;
  if (operation > DirectOperation::kRead) return changeNow(qp, operation, bytes, length, remote, rkey);
  const bool write = operation == DirectOperation::kWrite;
  DirectPeer::Refusal why;
  uint8_t* const at = enter(qp, {rkey, kRights[write ? kOpWrite : kOpRead], remote, whole, length}, &why);
  if (!at) return refusal(why);
  if (write) copyBytes(at, bytes, length);
  else copyBytes(bytes, at, length);
  if (!leave(qp)) return DirectResult::kRefused;
  (write ? c_.counters.directWrites : c_.counters.directReads)++;
  return DirectResult::kDone;
}

DirectResult DirectAccess::view(Qp& qp, uint64_t remote, uint32_t rkey, uint64_t length, FilePart* part) {
  if (length == 0 || !reaches(qp)) return DirectResult::kRefused;
  const Target target = {rkey, kAccessRemoteView, remote, length, 0};
  DirectPeer::Refusal why = DirectPeer::Refusal::kUnpublished;
  if (qp.local->self) *part = ownFile(qp, target);
  else *part = qp.local->peer.view(request(qp, target), qp.local->maps, &why);
  if (part->length != 0) return DirectResult::kDone;
  count(why);
  return refusal(why);
}

DirectResult DirectAccess::changeNow(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length,
                                     uint64_t remote, uint32_t rkey) {
  const bool add = operation == DirectOperation::kFetchAdd;
  if (length != (add ? kAtomicBytes : 2 * kAtomicBytes)) return DirectResult::kRefused;
  uint64_t operand, swap = 0;
  std::memcpy(&operand, bytes, kAtomicBytes);
  if (!add) std::memcpy(&swap, bytes + kAtomicBytes, kAtomicBytes);
  DirectPeer::Refusal why;
  uint64_t* const word = enterWord(qp, remote, rkey, &why);
  if (!word) return refusal(why);
  const uint64_t before = add ? fetchAdd(word, operand) : compareExchange(word, operand, swap);
  if (!leave(qp)) return DirectResult::kUnknown;
  std::memcpy(bytes, &before, kAtomicBytes);
  c_.counters.directAtomics++;
  return DirectResult::kDone;
}

}  // namespace nd
