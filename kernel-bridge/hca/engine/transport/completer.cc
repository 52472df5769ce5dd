#include "transport/completer.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

void Completer::completeHead(Qp& qp) {
  SendState& rq = qp.rq;
  const SendEntry& e = qp.entry(rq.head);
  if (qp.signalAll || (e.flags & kSendFlagSignaled)) {
    Completion c;
    c.token = qp.token;
    c.wqe = rq.head;
    c.opcode = e.opcode;
    c.length = e.isReadOrAtomic() ? e.length : 0;
    c_.write(*qp.sendCq, c);
  }
  rq.head++;
  rq.scatter = {};
}

void Completer::retireLocal(Qp& qp) {
  SendState& rq = qp.rq;
  while (rq.head != rq.begun) {
    const SendEntry& e = qp.entry(rq.head);
    if (!e.isLocal() || !e.done) return;
    completeHead(qp);
  }
}

bool Completer::advance(Qp& qp, uint32_t limit) {
  SendState& rq = qp.rq;
  const uint32_t before = rq.una;
  bool free = true;
  while (rq.una != limit) {
    if (qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn) {
      qp.clear(kKeepAlive);
      rq.una = wire::psnAdd(rq.una, 1);
      continue;
    }
    const SendEntry& e = qp.entry(rq.head);
    if (e.isReadOrAtomic()) {
      free = false;
      break;
    }
    const uint32_t end = wire::psnAdd(e.firstPsn, e.packets);
    if (wire::psnDiff(limit, end) < 0) {
      rq.una = limit;
      break;
    }
    rq.una = end;
    completeHead(qp);
    retireLocal(qp);
  }
  if (rq.una != before) progressed(qp, (rq.una - before) & wire::kPsnMask);
  return free;
}

void Completer::progressed(Qp& qp, uint32_t acknowledged) {
  SendState& rq = qp.rq;
  const bool probed = rq.probes != 0;
  rq.retries = rq.probes = 0;
  // Responses to packets before a refused message say nothing about that message.
  if (wire::psnDiff(rq.una, rq.refused) > 0) rq.rnrRetries = 0;
  rq.fastRetried = false;
  qp.clear(kProbing);
  if (qp.has(kRecovering)) {
    acknowledged -= t_.selectiveAck.onProgress(qp, wire::psnAdd(rq.una, wire::kPsnMask + 1 - acknowledged));
    if (probed) t_.selectiveAck.onProbed(qp);
  }
  if (qp.has(kResponseGap) && rq.responses->delivering) acknowledged = 0;  // they enlarged the window when they arrived
  if (qp.has(kRingOnly) && !rq.ringOnlyAlways && wire::psnDiff(rq.una, rq.ringOnlyEnd) >= 0) qp.clear(kRingOnly);
  const bool unknown = rq.roundTrip == 0;
  t_.congestion.sampleRoundTrip(rq);
  t_.congestion.openWindow(qp, acknowledged);
  rq.ackStart = c_.now;
  if (unknown && rq.roundTrip != 0 && rq.outstanding())
    t_.requester.startAckTimer(qp);  // a probe may be due long before the timeout
  if (qp.has(kRequestingAck)) {
    qp.clear(kRequestingAck);
    if (!qp.has(kRnrWait) && wire::psnDiff(rq.una, rq.ackRequestLimit) < 0) {  // the rest has not arrived
      if (SelectiveAck::agreed(qp)) t_.selectiveAck.giveUp(qp, rq.ackRequestLimit);
      else t_.requester.goBack(qp);
    }
  }
  if (qp.has(kRnrWait) && rq.rnrRetries == 0) {
    // The peer has moved on, since it has accepted the message that it had refused.
    qp.clear(kRnrWait);
    t_.requester.goBack(qp);
  }
  // While going back, the response to the first transmission may arrive first.
  const bool behind = wire::psnDiff(rq.psn, rq.una) < 0;
  if (behind) rq.psn = rq.una;
  if (behind || int32_t(rq.head - rq.next) > 0) {
    rq.next = rq.head;
    rq.packet = 0;
    rq.gather.offset = UINT32_MAX;
    if (rq.head != rq.begun && !(qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn)) {
      const SendEntry& e = qp.entry(rq.head);
      if (!e.isLocal()) rq.packet = (rq.una - e.firstPsn) & wire::kPsnMask;
    }
  }
  qp.settleRequester();
  // On the local link, everything that can be sent has already been sent. A doorbell announces the rest.
  if (!qp.local || rq.next != rq.producer || qp.has(kKeepAlive) || qp.state() != kQpsRts) s_.schedule(qp);
}

// The peer's responses show a loss. This acts only once for each oldest PSN, because packets still in flight would show
// the same loss again and again. The timer handles whatever this misses.
void Completer::retryNow(Qp& qp) {
  SendState& rq = qp.rq;
  if (rq.fastRetried || qp.has(kRnrWait)) return;
  if (rq.retries >= qp.attributes.retryCount) {
    c_.counters.retriesExceeded++;
    failSend(qp, kWcTimeoutRetry, 0, QpEvent::kPeerLost);
    return;
  }
  rq.retries++;
  rq.fastRetried = true;
  t_.congestion.onLoss(qp, 1);
  t_.requester.goBack(qp);
}

void Completer::failSend(Qp& qp, uint32_t status, uint32_t vendor, QpEvent event) {
  if (!qp.reliable()) {
    if (status == kWcLocalProtection) c_.counters.localProtectionErrors++;
    return t_.lifecycle.toSendQueueError(qp, status);
  }
  Failure failure;
  failure.sendStatus = status;
  failure.vendor = vendor;
  failure.event = event;
  failure.reason = status;
  if (status == kWcLocalProtection) c_.counters.localProtectionErrors++;
  t_.lifecycle.fail(qp, failure);
}

void Completer::onAcknowledged(Qp& qp, uint32_t psn) {
  const SendState& rq = qp.rq;
  if (wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0) {
    c_.counters.staleResponses++;
  } else if (!advance(qp, wire::psnAdd(psn, 1))) {
    c_.counters.responseGaps++;
    retryNow(qp);
  }
}

void Completer::onResponse(Qp& qp, const Packet& p) {
  SendState& rq = qp.rq;
  const uint32_t psn = p.bth.psn;
  if (wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0) {
    c_.counters.staleResponses++;
    return;
  }
  if (p.flags & (wire::kRead | wire::kAtomic)) {
    if ((p.flags & wire::kAeth) && (p.extension[0] & wire::kSyndromeClass) != wire::kClassAck) {
      c_.counters.malformed++;
      return;
    }
    if (!advance(qp, psn)) {
      if (LostResponses::agreed(qp)) return t_.lostResponses.keep(qp, p);
      c_.counters.responseGaps++;
      retryNow(qp);
      return;
    }
    if (qp.has(kFailing)) return;
    takeResponse(qp, p);
    if (qp.has(kResponseGap)) t_.lostResponses.onNext(qp, p);
    return;
  }

  const uint8_t syndrome = p.extension[0];
  if (p.length != 0 && !SelectiveAck::agreed(qp)) {
    c_.counters.malformed++;
    return;
  }
  if ((syndrome & wire::kSyndromeClass) == wire::kClassAck) {
    if (!advance(qp, wire::psnAdd(psn, 1))) {
      if (!LostResponses::agreed(qp)) {
        c_.counters.responseGaps++;
        return retryNow(qp);
      }
      t_.lostResponses.onExecuted(qp, wire::psnAdd(psn, 1));
    } else if (qp.has(kResponseGap)) {
      t_.lostResponses.deliver(qp);
    }
    if (p.length != 0 && !qp.has(kFailing)) t_.selectiveAck.onReport(qp, p);
    return;
  }
  const uint8_t kind = syndrome & wire::kSyndromeClass;
  if (kind != wire::kClassRnr && kind != wire::kClassNak) {
    c_.counters.malformed++;
    return;
  }
  if (!advance(qp, psn)) {
    if (!LostResponses::agreed(qp) || (kind != wire::kClassRnr && (p.length == 0 || syndrome != wire::kNakSequence))) {
      c_.counters.responseGaps++;
      return retryNow(qp);
    }
    if (wire::psnDiff(psn, LostResponses::executed(qp)) < 0) {
      c_.counters.staleResponses++;
      return;
    }
    t_.lostResponses.onExecuted(qp, psn);
  }
  if (qp.has(kFailing)) return;
  if (p.length != 0 && syndrome == wire::kNakSequence) t_.selectiveAck.onReport(qp, p);
  else onNak(qp, syndrome, psn);
}

void Completer::onNak(Qp& qp, uint8_t syndrome, uint32_t psn) {
  SendState& rq = qp.rq;
  if ((syndrome & wire::kSyndromeClass) == wire::kClassRnr) {
    // The wait begins at the current time, not at the start of the step, because it may be longer than the peer
    // requested but not shorter.
    const uint64_t until = c_.clock.now() + wire::rnrNanoseconds(syndrome);
    if (psn != rq.refused) {  // the message refused before has been accepted
      qp.clear(kRnrWait);
      rq.rnrRetries = 0;
    }
    if (qp.has(kRnrWait)) {
      // This is a duplicate, or a receive is available now and the peer requests a shorter wait (rnr.h). The 10 µs
      // would be over before another thread had been woken for them, so the queue pair continues immediately.
      if (until >= rq.rnrUntil) return;
      c_.counters.shortenedRnrWaits++;
      if (wire::rnrNanoseconds(syndrome) == wire::rnrNanoseconds(wire::kRnrShortest))
        return t_.requester.repeatRefused(qp);
    } else {
      c_.counters.receivedRnrNaks++;
      if (rq.rnrRetries == 0) rq.rnrSince = c_.now;
      if (rnrLimitExceeded(qp)) {
        c_.counters.rnrExceeded++;
        failSend(qp, kWcRnrRetry, syndrome, QpEvent::kFatal);
        return;
      }
      rq.rnrRetries++;
      rq.refused = psn;
    }
    qp.set(kRnrWait);
    rq.rnrUntil = until;
    s_.setTimer(qp, until);
    return;
  }
  if (syndrome == wire::kNakSequence) {
    c_.counters.receivedSequenceNaks++;
    retryNow(qp);
    return;
  }
  c_.counters.receivedFatalNaks++;
  uint32_t status = kWcRemoteOp;
  if (syndrome == wire::kNakInvalidRequest) status = kWcRemoteInvalidRequest;
  if (syndrome == wire::kNakRemoteAccess) status = kWcRemoteAccess;
  if (status == kWcRemoteAccess) c_.counters.remoteAccessErrors++;
  if (status == kWcRemoteInvalidRequest) c_.counters.remoteInvalidRequests++;
  failSend(qp, status, syndrome, QpEvent::kFatal);
}

// Returns whether one more RNR NAK exceeds the limit.
bool Completer::rnrLimitExceeded(const Qp& qp) const {
  const uint32_t count = qp.attributes.rnrRetry;
  if (count == wire::kRnrForEver || qp.rq.rnrRetries < count) return false;
  const bool timed = count == wire::kMostRnrRetries && (qp.attributes.rnrTimeout & rnrtimeout::kRequester);
  return !timed || c_.now - qp.rq.rnrSince >= c_.options.rnrTimeoutNs;
}

// Returns false if the packet has been handled.
bool Completer::scatterToHead(Qp& qp, uint32_t offset, const Packet& p) {
  if (p.length == 0) return true;
  SendState& rq = qp.rq;
  const SendEntry& e = qp.entry(rq.head);
  Piece places[OutPacket::kMaxPieces];
  uint32_t count = 0;
  const uint32_t status = c_.pieces(qp.pd, qp.scatterCache, e.sges(qp.sendWqe(rq.head)), rq.scatter, offset, p.length,
                                    true, places, &count);
  if (status) {
    failSend(qp, status, 0, QpEvent::kFatal);
    return false;
  }
  if (t_.links.copyPayload(p, places, count) == kWcSuccess) return true;
  rq.scatter.offset = UINT32_MAX;  // it will be retransmitted
  t_.requester.carryInRing(qp, t_.links.pullLasting);
  return false;
}

void Completer::takeResponse(Qp& qp, const Packet& p) {
  if (p.flags & wire::kRead) {
    onReadResponse(qp, p);
  } else {
    onAtomicAcknowledge(qp, p);
  }
}

void Completer::onReadResponse(Qp& qp, const Packet& p) {
  SendState& rq = qp.rq;
  // Now una == psn, and the packet is in flight, so it belongs to the head WQE or a keep-alive.
  const bool keepAlive = qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn;
  SendEntry& e = qp.entry(rq.head);
  if (keepAlive || e.opcode != kOpRead) {
    failSend(qp, kWcBadResponse, p.bth.opcode, QpEvent::kFatal);
    return;
  }
  const uint32_t packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  const uint32_t offset = packet * qp.mtu;
  const uint32_t left = e.leftOfRequest(packet);
  const uint32_t expected = std::min(p.span * qp.mtu, e.length - offset);
  const bool endsRequest = p.span == left;
  // A repeated request may be answered from a Middle packet on, so only the end is checked (roce-wire §2.5).
  if (p.span > left || p.length != expected || ((p.flags & wire::kLast) != 0) != endsRequest) {
    failSend(qp, kWcBadResponse, p.bth.opcode, QpEvent::kFatal);
    return;
  }
  if (!scatterToHead(qp, offset, p)) return;
  if (endsRequest && rq.reads > 0 && wire::psnDiff(rq.psn, rq.una) > 0) rq.reads--;
  rq.una = wire::psnAdd(rq.una, p.span);
  if (packet + p.span == e.packets) {
    completeHead(qp);
    retireLocal(qp);
  }
  progressed(qp, p.span);
}

void Completer::onAtomicAcknowledge(Qp& qp, const Packet& p) {
  SendState& rq = qp.rq;
  const bool keepAlive = qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn;
  SendEntry& e = qp.entry(rq.head);
  if (keepAlive || !e.isReadOrAtomic() || e.opcode == kOpRead || p.length != 0) {
    failSend(qp, kWcBadResponse, p.bth.opcode, QpEvent::kFatal);
    return;
  }
  // The value is big-endian in the packet, and a plain 64-bit number in memory.
  const uint64_t original = wire::load64(p.extension + wire::kAethBytes);
  Packet value;
  value.payload = reinterpret_cast<const uint8_t*>(&original);
  value.length = sizeof original;
  if (!scatterToHead(qp, 0, value)) return;
  if (rq.reads > 0 && wire::psnDiff(rq.psn, rq.una) > 0) rq.reads--;
  rq.una = wire::psnAdd(rq.una, 1);
  completeHead(qp);
  retireLocal(qp);
  progressed(qp, 1);
}

void Completer::onUnpulled(LocalPair& pair, uint32_t sourceQpn, uint32_t qpn, uint32_t psn, bool lasting) {
  c_.received++;
  Qp* qp = c_.byQpn(qpn);
  if (!qp || qp->local.get() != &pair || qp->attributes.destinationQpn != sourceQpn || qp->has(kFailing) ||
      !stateRules(qp->state()).receivesResponses)
    return;
  SendState& rq = qp->rq;
  if (wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0 || !advance(*qp, psn)) {
    c_.counters.staleResponses++;
  } else if (!qp->has(kFailing | kRnrWait)) {
    t_.requester.carryInRing(*qp, lasting);
  }
  t_.lifecycle.settle();
}

}  // namespace nd
