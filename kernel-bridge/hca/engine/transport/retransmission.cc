#include "transport/requester.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// ACKs may wait for a polling program or for the engine's thread, which does not indicate a loss.
constexpr uint64_t kShortestProbeNs = 3'000'000;
constexpr uint32_t kMostProbes = 4;  // within 15 intervals

}  // namespace

// Returns the timeout plus 25% for clock skew. It is at least 2 · kDeferredAckNs, because a peer may defer an ACK for
// kDeferredAckNs, and its engine's thread may be late by the same amount.
uint64_t Requester::ackTimeout(const Qp& qp) {
  const uint64_t timeout = wire::ackNanoseconds(qp.attributes.ackTimeout);
  return timeout == 0 ? 0 : std::max(timeout + timeout / 4, 2 * Context::kDeferredAckNs);
}

void Requester::startAckTimer(Qp& qp) {
  const uint64_t late = ackTimeout(qp);
  if (late == 0) return;
  qp.rq.ackStart =
      qp.local ? c_.now : c_.clock.now();  // on the wire, the timer must not start before the packet is sent
  qp.rq.ackStartStale = false;
  s_.setTimer(qp, qp.rq.ackStart + (qp.local ? late : std::min(late, kShortestProbeNs)));
}

uint64_t Requester::onTimer(Qp& qp) {
  SendState& rq = qp.rq;
  if (rq.model && std::exchange(rq.model->waits, false)) {
    rq.model->woken = true;
    s_.schedule(qp);
  }
  if (qp.has(kRnrWait)) {
    if (c_.now < rq.rnrUntil) return rq.rnrUntil;
    repeatRefused(qp);
  }
  const uint64_t keepAlive = c_.options.keepAliveNs;
  if (rq.outstanding()) {
    if (std::exchange(rq.ackStartStale, false)) rq.ackStart = c_.now;
    const uint64_t timeout = ackTimeout(qp);
    if (!timeout) return keepAlive ? c_.now + keepAlive : UINT64_MAX;
    if (c_.now >= rq.ackStart + timeout) {
      onAckTimeout(qp);
      if (qp.state() == kQpsError) return UINT64_MAX;
    }
    const uint64_t due = rq.ackStart + timeout;
    if (c_.now >= probeDue(qp)) probe(qp);
    return std::min(due, probeDue(qp));
  }
  return onIdle(qp);
}

// Goes back to `from`, after the oldest packet if everything between has been executed and only responses are missing.
void Requester::goBack(Qp& qp, uint32_t from) {
  SendState& rq = qp.rq;
  uint32_t wqe = rq.head, packet = 0;
  if (from != rq.una && !SelectiveAck::find(qp, from, &wqe, &packet)) {  // the refused packet has since been executed,
                                                                         // or was a keep-alive
    from = rq.una;
    wqe = rq.head;
    packet = 0;
  }
  qp.clear(kProbing | kRequestingAck);
  t_.selectiveAck.forget(qp);
  rq.reads = t_.lostResponses.startOver(qp, from);
  rq.timing = false;  // a response does not show to which transmission it belongs
  rq.psn = from;
  rq.next = wqe;
  rq.packet = packet;
  rq.sinceAck = rq.messagesSinceAck = 0;
  rq.ackRequestEnd = from;
  rq.gather.offset = UINT32_MAX;
  rq.ackStart = c_.now;
  if (from == rq.una && rq.head != rq.begun && !(qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn)) {
    const SendEntry& e = qp.entry(rq.head);
    if (!e.isLocal()) rq.packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  }
  qp.settleRequester();
  s_.schedule(qp);
}

void Requester::onAckTimeout(Qp& qp) {
  SendState& rq = qp.rq;
  c_.counters.timeouts++;
  if (rq.retries >= qp.attributes.retryCount) {
    c_.counters.retriesExceeded++;
    t_.completer.failSend(qp, kWcTimeoutRetry, 0, QpEvent::kPeerLost);
    return;
  }
  rq.retries++;
  if (qp.local && !qp.local->consumed(rq.lastPosition)) {
    rq.ackStart = c_.now;  // nothing is lost: the peer has not processed it yet
    return;
  }
  t_.fragments.suspect(qp);
  t_.congestion.reduceWindow(qp, Congestion::kSmallestWindow);
  goBack(qp);
}

// Returns when silence means that the newest packets or their ACK are lost (UINT64_MAX: unknown). Later packets show a
// loss in the middle. A loss at the end would cost the whole ACK timeout (as in TCP, RFC 8985 §7). Without retries
// nothing is retransmitted.
uint64_t Requester::probeDue(const Qp& qp) const {
  const SendState& rq = qp.rq;
  if (qp.local || rq.probes >= kMostProbes || qp.attributes.retryCount == 0 || qp.attributes.ackTimeout == 0)
    return UINT64_MAX;
  const uint64_t interval = std::max(2 * rq.roundTrip + 4 * rq.variation, kShortestProbeNs);
  if (rq.withoutAckRequest() && !qp.has(kKeepAlive)) return rq.ackStart + interval;  // no indication of a loss yet
  if (rq.roundTrip == 0) return UINT64_MAX;
  return rq.ackStart + interval * ((2ull << rq.probes) - 1);
}

// Retransmits only the oldest packet, with AckReq. The response shows what else must be retransmitted.
void Requester::probe(Qp& qp) {
  SendState& rq = qp.rq;
  const uint64_t ackStart = rq.ackStart;
  rq.probes++;
  if (rq.withoutAckRequest() && !qp.has(kKeepAlive)) return requestAck(qp);
  c_.counters.tailProbes++;
  if (rq.probes == kMostProbes) t_.fragments.suspect(qp);
  if (SelectiveAck::agreed(qp) && (t_.selectiveAck.probe(qp) || t_.lostResponses.probe(qp))) return;
  goBack(qp);
  rq.ackStart = ackStart;  // a probe does not extend the timeout
  qp.set(kProbing);
}

// Requests the ACK of packets that were sent without AckReq, by retransmitting the oldest of them. Other traffic of the
// queue pair continues. On the local link everything is acknowledged without this.
void Requester::requestAck(Qp& qp) {
  if (qp.local) return;
  SendState& rq = qp.rq;
  SendEntry& e = qp.entry(rq.head);
  if (rq.head == rq.begun || e.isLocal() || e.isReadOrAtomic() || qp.has(kRnrWait)) return;
  c_.counters.lateAckRequests++;
  const uint32_t psn = rq.psn, next = rq.next, packet = rq.packet;
  qp.set(kRequestingAck);
  rq.ackRequestLimit = psn;
  rq.psn = rq.una;
  rq.next = rq.head;
  rq.packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  rq.gather.offset = UINT32_MAX;
  sendData(qp, e, 1);
  rq.psn = psn;
  rq.next = next;
  rq.packet = packet;
  rq.gather.offset = UINT32_MAX;
  if (!e.status) return;
  // The packet's memory is no longer registered, which matters only if the packet was lost. An empty WRITE requests the
  // ACK instead. In the middle of a message, or during retransmission, no PSN is available for it; the packets
  // themselves then soon request an ACK.
  e.status = 0;
  qp.clear(kRequestingAck);
  if (qp.has(kKeepAlive)) return;
  if (packet != 0 || psn != rq.maxPsn) {
    rq.ackStart = c_.now;
    return;
  }
  qp.set(kKeepAlive);
  rq.keepAlivePsn = rq.psn;
  s_.schedule(qp);
}

// Only the oldest packet that was not executed is sent, because later ones would be dropped until a receive is posted.
void Requester::repeatRefused(Qp& qp) {
  const uint32_t executed = LostResponses::executed(qp);
  qp.clear(kRnrWait);
  goBack(qp, wire::psnDiff(qp.rq.psn, executed) < 0 ? qp.rq.una : executed);
  qp.set(kProbing);
}

void Requester::carryInRing(Qp& qp, bool lasting) {
  SendState& rq = qp.rq;
  qp.set(kRingOnly);
  rq.ringOnlyAlways |= lasting;
  rq.ringOnlyEnd = rq.maxPsn;
  rq.fastRetried = true;  // responses to packets in flight show gaps that do not exist
  goBack(qp);
}

}  // namespace nd
