// The requester: turns send WQEs into request packets (IBA 1 §9.7.2–9.7.3, §9.7.7; roce-wire §2.1–2.3, §2.5).
#include "transport/core.h"

namespace nd {

using namespace abi;

namespace {

// What each kind of send WQE may carry. FENCE and SIGNALED are for all.
struct WqeRule {
  uint32_t flags;
  bool local;
};
constexpr uint32_t kEvery = kSendFlagFence | kSendFlagSignaled | kSendFlagSolicited;
constexpr WqeRule kWqeRules[] = {
    /* SEND             */ {kEvery | kSendFlagImmediate | kSendFlagInline | kSendFlagInvalidate, false},
    /* WRITE            */ {kEvery | kSendFlagImmediate | kSendFlagInline, false},
    /* READ             */ {kEvery, false},
    /* COMPARE_EXCHANGE */ {kEvery, false},
    /* FETCH_ADD        */ {kEvery, false},
    /* BIND_WINDOW      */ {kEvery, true},
    /* LOCAL_INVALIDATE */ {kEvery, true},
};

uint64_t pair(const uint32_t* w, uint32_t lo) { return uint64_t(peekWord(w + lo + 1)) << 32 | peekWord(w + lo); }

// READ requests are cut so that several fit into the window together; a power of two, in PSNs.
uint32_t readChunk(uint32_t window, uint32_t depth) {
  const uint32_t share = window >> (depth >= 4 ? 2 : depth >= 2 ? 1 : 0);
  return share ? 1u << (31 - __builtin_clz(share)) : 1;
}

}  // namespace

void Core::parse(Qp& qp, uint32_t wqe) {
  SendEntry& e = qp.entry(wqe);
  const uint32_t* w = qp.sendWqe(wqe);
  e.opcode = peekWord(w + kSwOpcode);
  e.flags = peekWord(w + kSwFlags);
  e.count = peekWord(w + kSwSgeCount);
  e.immediate = peekWord(w + kSwImmediate);
  e.remote = pair(w, kSwRemoteLo);
  e.rkey = peekWord(w + kSwRkey);
  e.access = peekWord(w + kSwAccess);
  e.compare = pair(w, kSwCompareLo);
  e.swap = pair(w, kSwSwapLo);
  e.ah = peekWord(w + kSwAh);
  e.remoteQpn = peekWord(w + kSwRemoteQpn) & wire::kQpnMask;
  e.remoteQkey = peekWord(w + kSwRemoteQkey);
  // Each field by itself: for a whole entry the compiler takes a string instruction, slower than all of this.
  e.length = e.firstPsn = e.chunk = e.status = 0;
  e.packets = 1;
  e.local = e.done = false;

  if (e.opcode > kOpLocalInvalidate || (e.flags & ~kWqeRules[e.opcode].flags) != 0 ||
      (e.flags & (kSendFlagImmediate | kSendFlagInvalidate)) == (kSendFlagImmediate | kSendFlagInvalidate)) {
    e.status = kWcLocalOp;
    return;
  }
  // An unreliable connection carries SEND and WRITE: nothing reaches a window through it, so it binds none.
  if (!qp.reliable() && (e.isReadOrAtomic() || kWqeRules[e.opcode].local || (e.flags & kSendFlagInvalidate))) {
    e.status = kWcLocalOp;
    return;
  }
  if (qp.datagram() && e.opcode != kOpSend) {
    e.status = kWcLocalOp;
    return;
  }
  e.local = kWqeRules[e.opcode].local;
  if (e.local) return;

  if (e.flags & kSendFlagInline) {
    e.length = e.count;
    if (e.count > qp.maxInline) e.status = kWcLocalLength;
  } else if (e.count > qp.sendSge) {
    e.status = kWcLocalOp;
  } else {
    uint64_t total = 0;
    const uint32_t* sge = w + kSendWqeHeaderBytes / 4;
    for (uint32_t i = 0; i < e.count; i++) total += peekWord(sge + i * (kSgeBytes / 4) + kSgeLength);
    if (total > wire::kMaxMessage) e.status = kWcLocalLength;
    e.length = uint32_t(total);
  }
  if (e.status) return;

  if (e.isReadOrAtomic()) {
    if (qp.attributes.initiatorDepth == 0) {
      e.status = kWcLocalOp;  // the peer takes none: nothing could ever come back
      return;
    }
    if (e.opcode != kOpRead && e.length != 8) {
      e.status = kWcLocalLength;
      return;
    }
    // The answer must have a place before the question is asked.
    const uint32_t* sge = w + kSendWqeHeaderBytes / 4;
    for (uint32_t i = 0; i < e.count; i++, sge += kSgeBytes / 4) {
      const uint32_t length = peekWord(sge + kSgeLength);
      if (length && !memory.local(qp.scatterCache, qp.pd, peekWord(sge + kSgeLkey), pair(sge, kSgeAddressLo), length,
                                  true)) {
        e.status = kWcLocalProtection;
        return;
      }
    }
  }
  if (e.opcode <= kOpRead && !qp.datagram()) e.packets = qp.packetsFor(e.length);
  if (e.opcode == kOpRead) e.chunk = readChunk(options.window, qp.attributes.initiatorDepth);
}

void Core::executeLocal(Qp& qp, SendEntry& e) {
  bool ok;
  if (e.opcode == kOpBindWindow) {
    Memory::BindRequest r;
    r.presentRkey = uint32_t(e.swap);
    r.nextRkey = uint32_t(e.swap >> 32);
    r.lkey = e.rkey;
    r.access = e.access;
    r.address = e.remote;
    r.length = e.compare;
    ok = memory.bind(qp, r);
  } else {
    ok = memory.invalidate(qp, e.rkey);
  }
  e.done = ok;
  if (!ok) e.status = kWcMwBind;
}

// Whether the next request, which no packet has been sent of, may begin. False: what is before it has to end first.
inline bool Core::begin(Qp& qp, SendEntry& e) {
  Requester& rq = qp.rq;
  // Invalidating is ordered after everything before it: no answer may still use the key, here or at the peer.
  if ((e.flags & (kSendFlagFence | kSendFlagInvalidate)) && rq.reads > 0) return false;
  if (e.opcode == kOpLocalInvalidate && rq.next != rq.head) {
    qp.set(kAwaited);
    return false;
  }
  e.firstPsn = rq.psn;
  rq.begun++;
  rq.packet = 0;
  rq.gather = {};
  return true;
}

// A request that no packet is sent of: bind, local invalidate.
inline void Core::doLocally(Qp& qp, SendEntry& e) {
  Requester& rq = qp.rq;
  if (!e.done) executeLocal(qp, e);
  if (e.status) return;
  rq.next++;
  rq.packet = 0;
  rq.gather = {};
  retireLocal(qp);
  if (rq.head != rq.next && (qp.signalAll || (e.flags & kSendFlagSignaled))) qp.set(kAwaited);
}

// Room for the next packet on the local link, and how many PSNs it takes there. False: none.
inline bool Core::roomOnLocalLink(Qp& qp, SendEntry& e, uint32_t* span) {
  const Requester& rq = qp.rq;
  const bool data = e.opcode <= kOpWrite;
  const uint32_t left = data ? e.length - (rq.packet << qp.mtuShift) : 0;
  out.byReference = data && refersToSource(qp, e, left);
  if (!hasRoom(qp, std::min(qp.mtu, left), out.byReference)) return false;
  // What is repeated goes packet by packet, for the peer may have taken some of it.
  if (out.byReference && rq.psn == rq.maxPsn) {
    *span = std::min(LocalPair::kNamedPackets, e.packets - rq.packet);
    const uint32_t inFlight = (rq.psn - rq.una) & wire::kPsnMask;
    if (inFlight + *span > rq.window) *span = inFlight < rq.window ? rq.window - inFlight : 1;
  }
  return true;
}

// Sends the next packet of a request. False: the request has failed before it.
inline bool Core::sendPacketOf(Qp& qp, SendEntry& e, uint32_t span) {
  if (e.opcode == kOpRead) {
    sendRead(qp, e, span);
  } else if (e.isReadOrAtomic()) {
    sendAtomic(qp, e);
  } else {
    if (qp.datagram()) {
      sendDatagram(qp, e);
    } else {
      sendData(qp, e, span);
    }
    if (e.status) return false;
  }
  Requester& rq = qp.rq;
  if (rq.packet == e.packets) {
    rq.next++;
    rq.packet = 0;
    rq.gather = {};
    if (!qp.reliable()) completeHead(qp);  // nobody will answer, and the link has copied it
  }
  return true;
}

bool Core::request(Qp& qp, uint32_t& budget) {
  Requester& rq = qp.rq;
  const StateRules& rules = stateRules(qp.state());
  if (!rules.continuesWork || qp.has(kRnrWait | kFailing | kPairPending)) return false;
  if (!refreshSend(qp)) {
    Failure failure;
    failure.reason = kWcLocalOp;
    fail(qp, failure);
    return false;
  }
  const bool wasOutstanding = rq.outstanding();
  uint32_t fast = 0;
  bool any = false, more = false;
  while (!qp.has(kFailing) && !more) {
    if (qp.has(kKeepAlive) && rq.psn == rq.keepAlivePsn) {
      if (qp.local && !hasRoom(qp, 0, false)) break;
      if (budget == 0) {
        more = true;
        break;
      }
      budget--;
      sendKeepAlive(qp);
      any = true;
      continue;
    }
    if (rq.next == rq.producer) break;
    SendEntry& e = qp.entry(rq.next);
    if (rq.next == rq.parsed) {
      if (!rules.beginsWork) break;
      qp.settleRequester();
      if (const uint32_t n = qp.local ? sendFast(qp) : 0) {
        any = true;
        more = rq.next != rq.producer && (fast += n) >= kShare;
        continue;
      }
      if (!windowTakes(qp, 1, peekWord(qp.sendWqe(rq.next) + kSwOpcode) == kOpRead)) break;
      parse(qp, rq.next);
      rq.parsed++;
    }
    if (e.status) {
      // Everything before it completes first; then it fails.
      qp.set(kAwaited);
      if (rq.next != rq.head) break;
      failSend(qp, e.status, 0, QpEvent::kFatal);
      return false;
    }
    if (rq.next == rq.begun && (!rules.beginsWork || !begin(qp, e))) break;
    if (e.local) {
      doLocally(qp, e);
      continue;
    }
    uint32_t span = 1;
    if (e.isReadOrAtomic()) {
      if (rq.reads >= qp.attributes.initiatorDepth) break;
      if (e.opcode == kOpRead) span = std::min(e.chunk - (rq.packet & (e.chunk - 1)), e.packets - rq.packet);
    }
    if (qp.has(kProbing) && rq.psn != rq.una) break;
    if (!windowTakes(qp, span, e.opcode == kOpRead)) break;
    if (budget == 0) {
      more = true;
      break;
    }
    if (qp.local && !roomOnLocalLink(qp, e, &span)) break;
    budget--;
    any |= sendPacketOf(qp, e, span);
  }
  qp.settleRequester();
  // On the local link everything is acknowledged without being requested.
  if (rq.una == rq.psn || qp.local) qp.clear(kAwaited);
  if (qp.has(kAwaited) && rq.unasked() && !qp.has(kFailing)) ask(qp);
  if (any) {
    qp.lastActivity = now;
    if (!wasOutstanding) startAckTimer(qp);
  }
  return more;
}

// How long an answer may take; 0: for ever. A quarter late: what the clock missed between reading it and sending must not
// make the timer early. And never less than a peer may put off its acknowledgement, with its engine's thread as late again.
uint64_t Core::answerPatience(const Qp& qp) {
  const uint64_t timeout = wire::ackNanoseconds(qp.attributes.ackTimeout);
  return timeout == 0 ? 0 : std::max(timeout + timeout / 4, 2 * kOwedNs);
}

void Core::startAckTimer(Qp& qp) {
  const uint64_t late = answerPatience(qp);
  if (late == 0) return;
  qp.rq.ackStart = qp.local ? now : clock.now();  // not `now`: the timer must not run before the packet does
  qp.rq.undated = false;
  setTimer(qp, qp.rq.ackStart + (qp.local ? late : std::min(late, kShortestProbeNs)));
}

// ── Packets ─────────────────────────────────────────────────────────────────────────────────────

void Core::sent(Qp& qp, uint32_t span, const Path& path) {
  Requester& rq = qp.rq;
  const uint32_t psn = rq.psn;
  rq.psn = wire::psnAdd(psn, span);
  if (wire::psnDiff(rq.psn, rq.maxPsn) > 0) {
    rq.maxPsn = rq.psn;
    if (!rq.timing && rq.sinceAck == 0 && !qp.local) {  // AckReq is set
      rq.timing = true;
      rq.timedPsn = psn;
      rq.timedAt = now;
    }
  } else {
    counters.retransmitted++;
  }
  if (rq.sinceAck == 0) rq.askedEnd = rq.psn;
  if (!qp.reliable()) rq.una = rq.psn;
  transmit(qp, path);
  if (qp.local) rq.lastPosition = qp.local->position();
}

void Core::sendData(Qp& qp, SendEntry& e, uint32_t span) {
  Requester& rq = qp.rq;
  const uint32_t offset = rq.packet << qp.mtuShift;
  const uint32_t length = std::min(span << qp.mtuShift, e.length - offset);
  out.pieceCount = 0;
  if (length == 0) {
    // nothing to gather
  } else if (e.flags & kSendFlagInline) {
    uint8_t* data = reinterpret_cast<uint8_t*>(const_cast<uint32_t*>(qp.sendWqe(rq.next))) + kSendWqeHeaderBytes;
    out.pieces[out.pieceCount++] = {data + offset, length};
  } else {
    e.status = pieces(qp.pd, qp.gatherCache, qp.sendWqe(rq.next) + kSendWqeHeaderBytes / 4, e.count, rq.gather, offset,
                      length, false, out.pieces, &out.pieceCount, out.byReference ? out.shared : nullptr);
    if (e.status) return;
  }
  uint32_t flags = e.opcode == kOpWrite ? wire::kWrite : wire::kSend;
  if (rq.packet == 0) flags |= wire::kFirst;
  const bool last = rq.packet + span == e.packets;
  if (last) {
    flags |= wire::kLast;
    if (e.flags & kSendFlagImmediate) flags |= wire::kImmediate;
    if (e.flags & kSendFlagInvalidate) flags |= wire::kInvalidate;
  }
  wire::Bth bth;
  bth.opcode = wire::kSelectors[wire::selector(flags)];
  if (!qp.reliable()) bth.opcode |= wire::kUcOpcodes;
  bth.solicited = last && (e.flags & kSendFlagSolicited) && (wire::kOpcodes[bth.opcode].flags & wire::kConsumes);
  bth.pad = uint8_t(-length & 3);
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = rq.psn;
  bth.ackRequest = asksForAnswer(qp, e, last, span);
  wire::emitBth(out.header, bth);
  uint8_t* p = out.header + wire::kBthBytes;
  if ((flags & (wire::kWrite | wire::kFirst)) == (wire::kWrite | wire::kFirst)) {
    wire::emitReth(p, {e.remote, e.rkey, e.length});
    p += wire::kRethBytes;
  }
  if (flags & (wire::kImmediate | wire::kInvalidate)) {
    wire::store32(p, e.immediate);
    p += wire::kImmediateBytes;
  }
  out.headerLength = uint32_t(p - out.header);
  out.payloadLength = length;
  out.padLength = bth.pad;
  rq.packet += span;
  sent(qp, span, qp.route);
}

void Core::sendRead(Qp& qp, SendEntry& e, uint32_t span) {
  Requester& rq = qp.rq;
  const uint32_t offset = rq.packet << qp.mtuShift;
  wire::Bth bth;
  bth.opcode = wire::kOpReadRequest;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.ackRequest = true;
  bth.psn = rq.psn;
  wire::emitBth(out.header, bth);
  const uint64_t room = uint64_t(span) << qp.mtuShift;
  wire::emitReth(out.header + wire::kBthBytes,
                 {e.remote + offset, e.rkey, uint32_t(std::min<uint64_t>(room, e.length - offset))});
  out.headerLength = wire::kBthBytes + wire::kRethBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  if (qp.has(kRingOnly)) out.localFlags = LocalEntry::kInRing;
  rq.sinceAck = 0;
  rq.packet += span;
  rq.reads++;
  sent(qp, span, qp.route);
}

void Core::sendAtomic(Qp& qp, SendEntry& e) {
  Requester& rq = qp.rq;
  const bool add = e.opcode == kOpFetchAdd;
  wire::Bth bth;
  bth.opcode = add ? wire::kOpFetchAdd : wire::kOpCompareSwap;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.ackRequest = true;
  bth.psn = rq.psn;
  wire::emitBth(out.header, bth);
  wire::emitAtomicEth(out.header + wire::kBthBytes,
                      {e.remote, e.rkey, add ? e.compare : e.swap, add ? uint64_t(0) : e.compare});
  out.headerLength = wire::kBthBytes + wire::kAtomicEthBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  rq.sinceAck = 0;
  rq.packet++;
  rq.reads++;
  sent(qp, 1, qp.route);
}

void Core::sendKeepAlive(Qp& qp) {
  wire::Bth bth;
  bth.opcode = wire::kSelectors[wire::selector(wire::kFirst | wire::kLast | wire::kWrite)];
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.ackRequest = true;
  bth.psn = qp.rq.psn;
  wire::emitBth(out.header, bth);
  wire::emitReth(out.header + wire::kBthBytes, {});
  out.headerLength = wire::kBthBytes + wire::kRethBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  qp.rq.sinceAck = 0;
  counters.keepAlives++;
  sent(qp, 1, qp.route);
}

// ── Retransmission ──────────────────────────────────────────────────────────────────────────────

void Core::goBack(Qp& qp) {
  Requester& rq = qp.rq;
  qp.clear(kProbing | kAsking);
  rq.timing = false;  // of what is repeated nobody knows which one was answered
  rq.psn = rq.una;
  rq.next = rq.head;
  rq.packet = 0;
  rq.reads = 0;
  rq.sinceAck = rq.messagesSinceAck = 0;
  rq.askedEnd = rq.una;
  rq.gather.offset = UINT32_MAX;
  rq.ackStart = now;
  if (rq.head != rq.begun && !(qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn)) {
    const SendEntry& e = qp.entry(rq.head);
    if (!e.local) rq.packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  }
  qp.settleRequester();
  schedule(qp);
}

void Core::onAckTimeout(Qp& qp) {
  Requester& rq = qp.rq;
  counters.timeouts++;
  if (rq.retries >= qp.attributes.retryCount) {
    counters.retriesExceeded++;
    failSend(qp, kWcTimeoutRetry, 0, QpEvent::kPeerLost);
    return;
  }
  rq.retries++;
  if (qp.local && !qp.local->consumed(rq.lastPosition)) {
    rq.ackStart = now;  // nothing is lost: the peer has not looked at it yet
    return;
  }
  reduceWindow(qp, kSmallestWindow);
  goBack(qp);
}

}  // namespace nd
