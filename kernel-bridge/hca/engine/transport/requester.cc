#include "transport/requester.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// READ requests are split so that several fit into the window. The size in PSNs is a power of two.
uint32_t readChunk(uint32_t window, uint32_t depth) {
  const uint32_t share = window >> (depth >= 4 ? 2 : depth >= 2 ? 1 : 0);
  return share ? 1u << (31 - __builtin_clz(share)) : 1;
}

}  // namespace

// Parses the next WQE into its entry.
void Requester::parse(Qp& qp) {
  const uint32_t* const w = qp.sendWqe(qp.rq.next);
  SendEntry& e = qp.entry(qp.rq.next);
  // The entry is initialized field by field, because for a whole entry the compiler uses a string instruction, which is
  // slower.
  e.firstPsn = e.chunk = 0;
  e.packets = 1;
  e.done = false;
  e.status = e.parse(w, qp.sendLimits());
  qp.rq.parsed++;
  if (e.status || e.isLocal()) return;
  if (e.isReadOrAtomic() && !responseFits(qp, e.sges(w))) {
    e.status = kWcLocalProtection;
    return;
  }
  if (e.opcode <= kOpRead && !qp.datagram()) e.packets = qp.packetsFor(e.length);
  if (e.opcode == kOpRead) e.chunk = readChunk(std::max(c_.options.window, qp.rq.window), qp.attributes.initiatorDepth);
}

// Returns whether there is memory for the response, which must exist before the request is sent.
bool Requester::responseFits(Qp& qp, SgeList sges) {
  for (uint32_t i = 0; i < sges.count; i++) {
    const uint32_t length = sges.length(i);
    if (length && !c_.memory.local(qp.scatterCache, qp.pd, sges.lkey(i), sges.address(i), length, true)) return false;
  }
  return true;
}

void Requester::executeLocal(Qp& qp, SendEntry& e) {
  bool ok;
  if (e.opcode == kOpBindWindow) {
    Memory::BindRequest r;
    r.presentRkey = e.presentKey();
    r.nextRkey = e.nextKey();
    r.lkey = e.rkey;
    r.access = e.access;
    r.address = e.remote;
    r.length = e.compare;
    ok = c_.memory.bind(qp, r);
  } else if (e.opcode == kOpFastRegister) {
    Memory::FastRegisterRequest r;
    r.nextKey = e.nextKey();
    r.lkey = e.rkey;
    r.access = e.access;
    r.address = e.remote;
    r.length = e.compare;
    ok = c_.memory.fastRegister(qp, r);
  } else {
    ok = c_.memory.invalidate(qp, e.rkey, Memory::By::kOwner);
  }
  e.done = ok;
  if (!ok) e.status = kWcMwBind;
}

// Returns whether the next request may begin. It may not if an earlier one has to end first, or if the queue pair is
// draining.
bool Requester::begin(Qp& qp, SendEntry& e) {
  SendState& rq = qp.rq;
  if (!stateRules(qp.state()).beginsWork) return false;
  // Invalidation is ordered after everything before it, because no response may still use the key on either side.
  if ((e.flags & (kSendFlagFence | kSendFlagInvalidate)) && rq.reads > 0) return false;
  // A window is only for the peer, so no earlier request uses its key. Its end need not wait for earlier requests, and
  // delays no later one.
  if (e.opcode == kOpLocalInvalidate && rq.next != rq.head && !c_.memory.isWindow(e.rkey)) {
    qp.set(kAwaited);
    return false;
  }
  e.firstPsn = rq.psn;
  rq.begun++;
  rq.packet = 0;
  rq.gather = {};
  return true;
}

// Finds room for the next packet on the local link, and the number of PSNs that it takes there. Returns false if there
// is none.
inline bool Requester::roomOnLocalLink(Qp& qp, SendEntry& e, uint32_t* span) {
  OutPacket& out = t_.links.out;
  const SendState& rq = qp.rq;
  const bool data = e.opcode <= kOpWrite;
  const uint32_t left = data ? e.length - rq.packet * qp.mtu : 0;
  out.byReference = data && refersToSource(qp, e, left);
  if (!t_.links.hasRoom(qp, std::min(qp.mtu, left), out.byReference)) return false;
  // Retransmission goes packet by packet, because the peer may have accepted a part of the message.
  if (out.byReference && rq.psn == rq.maxPsn) {
    *span = std::min(LocalPair::kReferencePackets, e.packets - rq.packet);
    const uint32_t inFlight = (rq.psn - rq.una) & wire::kPsnMask;
    if (inFlight + *span > rq.window) *span = inFlight < rq.window ? rq.window - inFlight : 1;
  }
  return true;
}

// Sends the next packet of a request. Returns false if the request has already failed.
inline bool Requester::sendPacketOf(Qp& qp, SendEntry& e, uint32_t span) {
  if (e.opcode == kOpRead) {
    sendRead(qp, e, span);
  } else if (e.isReadOrAtomic()) {
    sendAtomic(qp, e);
  } else {
    if (qp.datagram()) {
      t_.datagrams.send(qp, e);
    } else {
      sendData(qp, e, span);
    }
    if (e.status) return false;
  }
  SendState& rq = qp.rq;
  if (rq.packet == e.packets) {
    rq.next++;
    rq.packet = 0;
    rq.gather = {};
    if (!qp.reliable()) t_.completer.completeHead(qp);  // no response will come, and the link has copied it
  }
  return true;
}

// Returns whether the window has room for this many packets and pacing allows them now.
inline bool Requester::mayLeave(Qp& qp, uint32_t span, bool mayTakeMore) {
  if (t_.congestion.windowTakes(qp, span, mayTakeMore)) return !qp.rq.model || t_.longWindow.mayLeave(qp);
  t_.longWindow.onFull(qp);
  return false;
}

// ── The states of a round

// Sends the keep-alive if it has this PSN, otherwise a request.
inline Requester::State Requester::next(Qp& qp) {
  const SendState& rq = qp.rq;
  if (qp.has(kFailing)) return State::kIdle;
  if (qp.has(kKeepAlive) && rq.psn == rq.keepAlivePsn) return State::kKeepAlive;
  if (rq.next == rq.producer) return State::kIdle;
  return rq.next == rq.parsed ? State::kUnread : parsed(qp);
}

// Handles a parsed WQE, which may have begun.
inline Requester::State Requester::parsed(Qp& qp) {
  SendEntry& e = qp.entry(qp.rq.next);
  if (e.status) return State::kInvalid;
  if (qp.rq.next == qp.rq.begun && !begin(qp, e)) return State::kIdle;
  return e.isLocal() ? State::kLocal : State::kPacket;
}

inline Requester::State Requester::keepAlive(Qp& qp, Round& round) {
  if (qp.local && !t_.links.hasRoom(qp, 0, false)) return State::kIdle;
  if (round.budget == 0) return State::kMore;
  round.budget--;
  round.sent = true;
  sendKeepAlive(qp);
  return next(qp);
}

// Handles a WQE that has not been read. Direct access and the fast path may execute it and later ones; otherwise it is
// parsed.
inline Requester::State Requester::unread(Qp& qp, Round& round) {
  SendState& rq = qp.rq;
  if (!stateRules(qp.state()).beginsWork) return State::kIdle;
  qp.settleRequester();
  if (!qp.has(kBlocksDirect)) {
    if (t_.direct.run(qp)) return State::kMore;
    if (qp.has(kFailing) || rq.next == rq.producer) return next(qp);
  }
  if (const uint32_t n = qp.local ? t_.fastPath.send(qp) : 0) {
    round.sent = true;
    round.fast += n;
    return rq.next != rq.producer && round.fast >= Transport::kShare ? State::kMore : next(qp);
  }
  // Checks whether parsing is worthwhile. The opcode then decides in packets().
  if (!mayLeave(qp, 1, peekWord(qp.sendWqe(rq.next) + kSwOpcode) == kOpRead)) return State::kIdle;
  parse(qp);
  return parsed(qp);
}

// Handles a WQE that cannot be executed. Everything before it completes first; then it fails.
inline Requester::State Requester::invalid(Qp& qp) {
  SendState& rq = qp.rq;
  qp.set(kAwaited);
  if (rq.next != rq.head) return State::kIdle;
  t_.completer.failSend(qp, qp.entry(rq.next).status, 0, QpEvent::kFatal);
  return State::kFailed;
}

// Handles bind, local invalidate and fast registration, which send no packet.
inline Requester::State Requester::local(Qp& qp) {
  SendState& rq = qp.rq;
  SendEntry& e = qp.entry(rq.next);
  // Other queue pairs continue meanwhile. The condition is checked again in the next step.
  if (e.opcode == kOpLocalInvalidate && !e.done && !t_.direct.mayInvalidate(qp, e.rkey)) return State::kMore;
  if (!e.done) executeLocal(qp, e);
  if (e.status) return next(qp);
  rq.next++;
  rq.packet = 0;
  rq.gather = {};
  t_.completer.retireLocal(qp);
  const bool awaited = qp.signalAll || (e.flags & kSendFlagSignaled) || e.opcode == kOpLocalInvalidate;
  if (rq.head != rq.next && awaited) qp.set(kAwaited);
  return next(qp);
}

// Sends packets while the peer, the window, the budget and the local link have room for them.
inline Requester::State Requester::packets(Qp& qp, Round& round) {
  SendState& rq = qp.rq;
  State state;
  do {
    SendEntry& e = qp.entry(rq.next);
    const bool reads = e.opcode == kOpRead;
    if (e.isReadOrAtomic() && rq.reads >= qp.attributes.initiatorDepth) return State::kIdle;
    if (qp.has(kProbing) && rq.psn != rq.una && rq.psn != LostResponses::executed(qp)) return State::kIdle;
    uint32_t span = reads ? e.leftOfRequest(rq.packet) : 1;
    if (!mayLeave(qp, span, reads)) return State::kIdle;
    if (round.budget == 0) return State::kMore;
    if (qp.local && !roomOnLocalLink(qp, e, &span)) return State::kIdle;
    round.budget--;
    round.sent |= sendPacketOf(qp, e, span);
    state = next(qp);
  } while (state == State::kPacket);
  return state;
}

bool Requester::request(Qp& qp, uint32_t& budget) {
  SendState& rq = qp.rq;
  if (!stateRules(qp.state()).continuesWork || qp.has(kFailing | kPairPending)) return false;
  if (qp.has(kRnrWait)) return qp.has(kResponseGap) && !t_.lostResponses.reRequest(qp, budget);
  if (!c_.refreshSend(qp)) {
    Failure failure;
    failure.reason = kWcLocalOp;
    t_.lifecycle.fail(qp, failure);
    return false;
  }
  const bool wasOutstanding = rq.outstanding();
  Round round{budget};
  const bool repeats = (qp.has(kRecovering) && !t_.selectiveAck.resend(qp, budget)) ||
                       (qp.has(kResponseGap) && !t_.lostResponses.reRequest(qp, budget));
  State state = repeats ? State::kMore : next(qp);
  while (state < State::kIdle) {
    switch (state) {
      case State::kKeepAlive: state = keepAlive(qp, round); break;
      case State::kUnread: state = unread(qp, round); break;
      case State::kInvalid: state = invalid(qp); break;
      case State::kLocal: state = local(qp); break;
      default: state = packets(qp, round); break;
    }
  }
  if (state == State::kFailed) return false;
  qp.settleRequester();
  // On the local link everything is acknowledged without a request.
  if (rq.una == rq.psn || qp.local) qp.clear(kAwaited);
  if (qp.has(kAwaited) && rq.withoutAckRequest() && !qp.has(kFailing)) requestAck(qp);
  if (round.sent) {
    qp.lastActivity = c_.now;
    if (!wasOutstanding) startAckTimer(qp);
  }
  return state == State::kMore;
}

bool Requester::refersToSource(Qp& qp, const SendEntry& e, uint32_t length) {
  if (e.count > LocalPair::kMaxPieces || e.isInline()) return false;
  return Links::usesReference(qp, length, qp.has(kRingOnly), [&] {
    const SgeList sges = e.sges(qp.sendWqe(qp.rq.next));
    bool all = true;  // each unmapped piece is offered
    for (uint32_t i = 0; i < sges.count; i++)
      all &= qp.local->isMapped(c_.memory.sharedOf(qp.gatherCache, sges.lkey(i)));
    return all;
  });
}

bool Requester::mayReferToSource(Qp& qp, const SendEntry& e) {
  if (qp.has(kRingOnly) || e.isInline()) return false;
  const uint32_t lkey = e.sges(qp.sendWqe(qp.rq.next)).lkey(0);
  return qp.local->self || qp.local->isMapped(c_.memory.sharedOf(qp.gatherCache, lkey));
}

void Requester::sent(Qp& qp, uint32_t span, const Path& path) {
  SendState& rq = qp.rq;
  const uint32_t psn = rq.psn;
  rq.psn = wire::psnAdd(psn, span);
  if (wire::psnDiff(rq.psn, rq.maxPsn) > 0) {
    rq.maxPsn = rq.psn;
    if (!rq.timing && rq.sinceAck == 0 && !qp.local) {  // AckReq is set
      rq.timing = true;
      rq.timedPsn = psn;
      rq.timedAt = c_.now;
    }
  } else {
    c_.counters.retransmitted++;
  }
  if (rq.sinceAck == 0) rq.ackRequestEnd = rq.psn;
  if (rq.model) t_.longWindow.left(rq, span);
  if (!qp.reliable()) rq.una = rq.psn;
  t_.links.transmit(qp, path);
  if (qp.local) rq.lastPosition = qp.local->position();
}

bool Requester::gather(Qp& qp, SendEntry& e, uint32_t offset, uint32_t length) {
  OutPacket& out = t_.links.out;
  out.pieceCount = 0;
  const uint32_t* const w = qp.sendWqe(qp.rq.next);
  if (length == 0) return true;
  if (e.isInline()) {
    out.pieces[out.pieceCount++] = {const_cast<uint8_t*>(SendWqe::inlineBytes(w)) + offset, length};
    return true;
  }
  e.status = c_.pieces(qp.pd, qp.gatherCache, e.sges(w), qp.rq.gather, offset, length, false, out.pieces,
                       &out.pieceCount, out.byReference ? out.shared : nullptr);
  return e.status == 0;
}

void Requester::sendData(Qp& qp, SendEntry& e, uint32_t span) {
  OutPacket& out = t_.links.out;
  SendState& rq = qp.rq;
  const uint32_t offset = rq.packet * qp.mtu;
  const uint32_t length = std::min(span * qp.mtu, e.length - offset);
  if (!gather(qp, e, offset, length)) return;
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
  bth.ackRequest = t_.congestion.wantsAckRequest(qp, e, last, span);
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

void Requester::sendRead(Qp& qp, SendEntry& e, uint32_t span) {
  SendState& rq = qp.rq;
  const uint32_t offset = rq.packet * qp.mtu;
  const uint64_t room = uint64_t(span) * qp.mtu;
  const bool again = t_.lostResponses.isReRequest(qp, span);
  wire::emitReth(t_.links.begin(qp, wire::kOpReadRequest, rq.psn, true, again),
                 {e.remote + offset, e.rkey, uint32_t(std::min<uint64_t>(room, e.length - offset))});
  if (qp.has(kRingOnly)) t_.links.out.localFlags = LocalEntry::kInRing;
  rq.sinceAck = 0;
  rq.packet += span;
  rq.reads++;
  sent(qp, span, qp.route);
}

void Requester::sendAtomic(Qp& qp, SendEntry& e) {
  SendState& rq = qp.rq;
  const bool add = e.opcode == kOpFetchAdd;
  const bool again = t_.lostResponses.isReRequest(qp, 1);
  wire::emitAtomicEth(t_.links.begin(qp, add ? wire::kOpFetchAdd : wire::kOpCompareSwap, rq.psn, true, again),
                      {e.remote, e.rkey, add ? e.compare : e.swap, add ? uint64_t(0) : e.compare});
  rq.sinceAck = 0;
  rq.packet++;
  rq.reads++;
  sent(qp, 1, qp.route);
}

void Requester::sendOne(Qp& qp, SendEntry& e, uint32_t most) {
  if (e.opcode == kOpRead) {
    sendRead(qp, e, std::min(e.leftOfRequest(qp.rq.packet), most));
  } else if (e.isReadOrAtomic()) {
    sendAtomic(qp, e);
  } else {
    sendData(qp, e, 1);
  }
}

}  // namespace nd
