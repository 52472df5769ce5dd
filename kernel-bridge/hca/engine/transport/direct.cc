#include "transport/direct.h"

#include "local/direct_board.h"
#include "platform/os.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kRemoteRights = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic;
constexpr uint32_t kAtomicBytes = 8;

// The right that each request needs; 0: it is not one for direct access.
constexpr uint32_t kRights[] = {
    /* SEND */ 0, /* WRITE */ kAccessRemoteWriteBit, /* READ */ kAccessRemoteRead, /* COMPARE_EXCHANGE */ kAccessRemoteAtomic,
    /* FETCH_ADD */ kAccessRemoteAtomic, /* BIND_WINDOW */ 0, /* LOCAL_INVALIDATE */ 0,
};

uint64_t wideWord(const uint32_t* words, uint32_t lo) { return uint64_t(peekWord(words + lo + 1)) << 32 | peekWord(words + lo); }

}  // namespace

// A request of the send queue, read once.
struct Direct::Request {
  uint32_t opcode, flags, count, length, rkey;
  uint64_t remote;
  const uint32_t* wqe;
  const uint32_t* body() const { return wqe + kSendWqeHeaderBytes / 4; }
  bool isAtomic() const { return opcode >= kOpCompareExchange; }
  bool isInline() const { return (flags & kSendFlagInline) != 0; }
};

// ── The peer's side ─────────────────────────────────────────────────────────────────────────────

void Direct::publish(Qp& qp) {
  DirectBoard* const board = c_.link.directBoard();
  if (!board) return;
  const bool open = qp.reliable() && stateRules(qp.state()).receivesRequests && qp.local && qp.local->direct();
  const DirectBoard::Qp now = {qp.qpn, qp.attributes.destinationQpn, qp.attributes.access & kRemoteRights, qp.pd->handle, qp.pkey()};
  if (qp.has(kPublished) && (!open || !board->says(now))) withdraw(qp);
  if (!open || qp.has(kPublished)) return;
  board->publish(now);
  qp.set(kPublished);
}

void Direct::withdraw(Qp& qp) {
  if (!qp.has(kPublished)) return;
  c_.link.directBoard()->withdrawQp(qp.qpn);
  qp.clear(kPublished);
  c_.link.settleDirect();
}

void Direct::retire(Qp& qp, bool windows) {
  if (qp.has(kPublished)) c_.link.directBoard()->withdrawQp(qp.qpn);
  if (windows) c_.memory.retireWindowsOf(qp);
}

void Direct::retireKernel(KernelId kernel) {
  c_.qps.forEach([&](Qp& qp) {
    if (qp.kernel == kernel) retire(qp, false);
  });
  c_.memory.retireKernel(kernel);
}

bool Direct::mayInvalidate(Qp& qp, uint32_t key) {
  DirectBoard* const board = c_.link.directBoard();
  if (!board) return true;
  const std::vector<DirectWithdrawn> others = board->takeWithdrawn();
  c_.memory.retireKey(qp, key);
  const bool inside = c_.link.directOccupied(board->takeWithdrawn());
  board->giveBack(others);
  uint64_t& until = qp.rq.leaveUntil;
  if (inside && until == 0) {
    board->countWait();
    until = monotonicNs() + board->patience();
  }
  if (inside && monotonicNs() < until) return false;
  until = 0;
  return true;
}

void Direct::settle(Qp& qp) {
  qp.put(kNotDirect, !qp.reliable() || !qp.local || !qp.local->direct() || !qp.local->peer.ready());
}

// ── Ours ────────────────────────────────────────────────────────────────────────────────────────

bool Direct::run(Qp& qp) {
  SendState& rq = qp.rq;
  if (!qp.local->peer.ready()) return settle(qp), false;  // the pair is closed; its connections end next
  uint32_t budget = LocalPair::kStepBytes;
  while (!qp.has(kBlocksDirect) && rq.head == rq.next && rq.next == rq.parsed && rq.next != rq.producer) {
    Request r;
    if (!read(qp, &r)) break;
    const Outcome outcome = execute(qp, r, &budget);
    if (outcome == Outcome::kMore) return true;
    rq.directDone = 0;  // what is refused begins anew
    if (outcome == Outcome::kRefused) break;
    complete(qp, r);
    if (budget == 0) return rq.next != rq.producer;
  }
  return false;
}

// The next request, if it is one for direct access. What is wrong in it is for the long way to say.
inline bool Direct::read(Qp& qp, Request* r) {
  const uint32_t* const w = r->wqe = qp.sendWqe(qp.rq.next);
  r->opcode = peekWord(w + kSwOpcode);
  r->flags = peekWord(w + kSwFlags);
  if (r->opcode > kOpFetchAdd || kRights[r->opcode] == 0) return false;
  const uint32_t may = kSendFlagSignaled | kSendFlagSolicited | kSendFlagFence | (r->opcode == kOpWrite ? kSendFlagInline : 0u);
  if ((r->flags & ~may) != 0) return false;
  if (r->opcode != kOpWrite && qp.attributes.initiatorDepth == 0) return false;
  r->count = peekWord(w + kSwSgeCount);
  uint64_t total = r->count;
  if (!r->isInline()) {
    if (r->count > qp.sendSge) return false;
    total = 0;
    for (uint32_t i = 0; i < r->count; i++) total += peekWord(r->body() + i * (kSgeBytes / 4) + kSgeLength);
  } else if (total > qp.maxInline) {
    return false;
  }
  if (total == 0 || total > wire::kMaxMessage || (r->isAtomic() && total != kAtomicBytes)) return false;
  r->length = uint32_t(total);
  r->remote = wideWord(w, kSwRemoteLo);
  r->rkey = peekWord(w + kSwRkey);
  return true;
}

inline Direct::Outcome Direct::execute(Qp& qp, const Request& r, uint32_t* budget) {
  if (r.isAtomic()) return change(qp, r);
  uint32_t& done = qp.rq.directDone;
  SgeCursor cursor;
  if (qp.rq.directWqe != qp.rq.next) done = 0;  // the long way has taken that one
  qp.rq.directWqe = qp.rq.next;
  if (done != 0) cursor.offset = UINT32_MAX;
  while (done < r.length) {
    if (*budget == 0) return Outcome::kMore;
    const uint32_t length = std::min({r.length - done, DirectVisit::kMostBytes, *budget});
    if (!copy(qp, r, done, length, &cursor)) return Outcome::kRefused;
    done += length;
    *budget -= length;
  }
  (r.opcode == kOpRead ? c_.counters.directReads : c_.counters.directWrites)++;
  return Outcome::kDone;
}

// Our memory for a part of the request, in pieces_.
inline bool Direct::places(Qp& qp, const Request& r, uint32_t offset, uint32_t length, SgeCursor* cursor) {
  const bool write = r.opcode != kOpWrite;
  pieceCount_ = 0;
  if (r.isInline()) {
    pieces_[pieceCount_++] = {reinterpret_cast<uint8_t*>(const_cast<uint32_t*>(r.body())) + offset, length};
    return true;
  }
  KeyCache& cache = write ? qp.scatterCache : qp.gatherCache;
  if (r.count != 1) return c_.pieces(qp.pd, cache, r.body(), r.count, *cursor, offset, length, write, pieces_, &pieceCount_) == 0;
  const uint64_t address = wideWord(r.body(), kSgeAddressLo) + offset;
  uint8_t* const data = c_.memory.local(cache, qp.pd, peekWord(r.body() + kSgeLkey), address, length, write);
  pieces_[pieceCount_++] = {data, length};
  return data != nullptr;
}

inline uint8_t* Direct::enter(Qp& qp, const Request& r, uint32_t offset, uint32_t length, uint32_t touched) {
  DirectPeer::Refusal why;
  const DirectPeer::Request request = {qp.qpn, qp.attributes.destinationQpn, r.rkey, kRights[r.opcode], qp.pkey(), r.remote + offset, length, touched};
  uint8_t* const place = qp.local->peer.enter(request, qp.local->maps, &why);
  if (!place) (why == DirectPeer::Refusal::kUnmapped ? c_.counters.directUnmapped : c_.counters.directRefused)++;
  return place;
}

inline bool Direct::leave(Qp& qp) {
  if (qp.local->peer.leave()) return true;
  c_.counters.directEvicted++;
  return false;
}

inline bool Direct::copy(Qp& qp, const Request& r, uint32_t offset, uint32_t length, SgeCursor* cursor) {
  if (!places(qp, r, offset, length, cursor)) return false;
  // As the responder would, all of the message is checked before its first byte is moved.
  uint8_t* at = enter(qp, r, offset, offset == 0 ? r.length : length, length);
  if (!at) return false;
  for (uint32_t i = 0; i < pieceCount_; i++) {
    auto* const own = static_cast<uint8_t*>(pieces_[i].data);
    const auto bytes = static_cast<uint32_t>(pieces_[i].length);
    if (r.opcode == kOpWrite) {
      copyInOrder(at, own, bytes);
    } else if (bytes <= 64) {
      copySmall(own, at, bytes);
    } else {
      std::memcpy(own, at, bytes);
    }
    at += bytes;
  }
  return leave(qp);
}

// An ATOMIC, as the responder executes it: atomic towards that and the peer's threads.
inline Direct::Outcome Direct::change(Qp& qp, const Request& r) {
  SgeCursor cursor;
  if ((r.remote & (kAtomicBytes - 1)) != 0 || !places(qp, r, 0, kAtomicBytes, &cursor)) return Outcome::kRefused;
  auto* const word = reinterpret_cast<uint64_t*>(enter(qp, r, 0, kAtomicBytes, kAtomicBytes));
  if (!word) return Outcome::kRefused;
  if ((reinterpret_cast<uint64_t>(word) & (kAtomicBytes - 1)) != 0) {  // a zero-based region may begin anywhere
    static_cast<void>(leave(qp));
    return Outcome::kRefused;
  }
  uint64_t result = wideWord(r.wqe, kSwCompareLo);
  if (r.opcode == kOpFetchAdd) {
    result = __atomic_fetch_add(word, result, __ATOMIC_SEQ_CST);
  } else {
    __atomic_compare_exchange_n(word, &result, wideWord(r.wqe, kSwSwapLo), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  if (!leave(qp)) {
    // Nobody knows whether it was executed before the memory was taken away, so it cannot be repeated.
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

inline void Direct::complete(Qp& qp, const Request& r) {
  SendState& rq = qp.rq;
  SendEntry& e = qp.entry(rq.next);
  e.opcode = r.opcode;
  e.flags = r.flags;
  e.length = r.length;
  rq.begun = rq.parsed = ++rq.next;
  t_.completer.completeHead(qp);
}

}  // namespace nd
