#include "transport/qp_lifecycle.h"

#include "base/fence.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

Status Lifecycle::modify(Qp& qp, uint32_t mask, const QpAttributes& a) {
  const uint32_t from = qp.state();
  uint32_t to;
  const Status status = checkModify(c_.options, qp.attributes.type, from, mask, a, &to);
  if (status != Status::kSuccess) return status;
  if ((mask & qpmask::kPkeyIndex) && a.pkeyIndex >= qp.pkeyTable->entries.size()) return Status::kInvalidParameter;
  c_.now = c_.clock.now();
  if (to == kQpsReset) {
    toReset(qp);
    return Status::kSuccess;
  }
  if (to == kQpsError) {
    qp.dreqOnExit.reset();  // a disconnecting program has sent its own DREQ
    Failure quiet;
    quiet.report = false;
    fail(qp, quiet);
    return Status::kSuccess;
  }
  const Status now = mayModify(qp, mask, a, from, to);
  if (now != Status::kSuccess) return now;
  applyAttributes(qp.attributes, mask, a);
  if (from == kQpsSqd && to == kQpsSqd) {
    qp.rq.parsed = qp.rq.begun;  // waiting WQEs are read again, with these attributes
    qp.settleRequester();
  }
  if (mask & qpmask::kPath) {
    qp.route = qp.attributes.path;
    // The ECN bits do not belong to the application.
    const uint8_t dscp = qp.route.trafficClass & wire::kDscpMask;
    if (!qp.datagram()) qp.route.trafficClass = uint8_t(dscp | (c_.options.ecn ? wire::kEct0 : 0));
  }
  if (!qp.rq.window) qp.rq.window = c_.options.window;
  qp.setState(to);
  qp.lastActivity = c_.now;
  if (mask & (qpmask::kPath | qpmask::kPathMtu)) t_.links.setMtu(qp);
  if (mask & qpmask::kResponderResources) t_.responder.resizeResources(qp);
  enter(qp, mask, a, from, to);
  if (mask & qpmask::kPath) meetPeer(qp);
  t_.direct.publish(qp);
  return Status::kSuccess;
}

// Checks whether the current state allows the change. checkModify() has checked the masks.
Status Lifecycle::mayModify(Qp& qp, uint32_t mask, const QpAttributes& a, uint32_t from, uint32_t to) {
  if ((mask & qpmask::kPath) && c_.link.isLocal(a.path.destination)) {
    const QpAttributes& whose = (mask & qpmask::kDestinationQpn) ? a : qp.attributes;
    const uint32_t peer = whose.destinationQpn >> 16;
    c_.link.reportEnd(peer, t_);
    if (qp.state() != from) return Status::kInvalidDeviceState;  // it was connected to that very process
    // A peer that cannot be watched has not necessarily ended.
    if (peer != c_.slot && c_.link.watchPeer(peer) == Status::kTooManyOpenedFiles) return Status::kTooManyOpenedFiles;
  }
  // Packets in flight were sent with the old attributes.
  const bool may =
      from != kQpsSqd || to != kQpsSqd || !(mask & ~(qpmask::kState | qpmask::kCurrentState)) || qp.drained;
  return may ? Status::kSuccess : Status::kInvalidDeviceState;
}

void Lifecycle::enter(Qp& qp, uint32_t mask, const QpAttributes& a, uint32_t from, uint32_t to) {
  if (to == kQpsRtr && from == kQpsInit) qp.rs.expected = a.receivePsn;
  if (to == kQpsRts && from == kQpsRtr) qp.rq.una = qp.rq.psn = qp.rq.maxPsn = qp.rq.ackRequestEnd = a.sendPsn;
  if (to == kQpsSqd && from == kQpsRts) {
    qp.drained = false;
    qp.drainNotify = (mask & qpmask::kDrainNotify) != 0;
    qp.set(kAwaited);
    s_.schedule(qp);
    checkDrained(qp);
  }
  if (to == kQpsRts) {
    const uint64_t keepAlive = c_.options.keepAliveNs;
    if (keepAlive && qp.reliable() && Requester::isProbed(qp)) s_.setTimer(qp, c_.now + keepAlive);
    s_.schedule(qp);
  }
}

void Lifecycle::meetPeer(Qp& qp) {
  qp.peerLocal = c_.link.isLocal(qp.attributes.path.destination);
  const uint32_t peer = qp.attributes.destinationQpn >> 16;
  if (qp.peerLocal && peer != c_.slot && c_.link.watchPeer(peer) != Status::kSuccess) {
    peerGone(qp);
  } else {
    t_.links.choose(qp);
  }
}

void Lifecycle::toReset(Qp& qp) {
  t_.direct.withdraw(qp);
  t_.responses.acknowledgeLast(qp);
  c_.timers.clear(qp);
  qp.goneAt = 0;
  s_.running.remove(qp);
  s_.cancelDeferred(qp);
  t_.links.leave(qp);
  t_.rnr.leave(qp);
  qp.local.reset();
  c_.memory.unbindAll(qp);
  // Counters run on; posted requests are discarded without completions.
  const uint32_t send = loadWord(qp.header + kQpSendProducer), receive = loadWord(qp.header + kQpReceiveProducer);
  std::vector<SendEntry> entries = std::move(qp.rq.entries);
  qp.rq = SendState{};
  qp.rq.entries = std::move(entries);
  qp.rq.head = qp.rq.next = qp.rq.begun = qp.rq.parsed = qp.rq.producer = send;
  qp.rs = ReceiveState{};
  qp.fragments.reset();
  qp.assemblies.reset();
  qp.clear(~uint32_t(kFailing));
  qp.set(kUnheard | kNotDirect);
  qp.cnpSentAt = 0;
  qp.shared.held = false;
  qp.rs.head = qp.rs.producer = receive;
  qp.drainNotify = qp.drained = qp.peerLocal = false;
  qp.dreqOnExit.reset();
  const uint32_t type = qp.attributes.type, qpn = qp.attributes.qpn;
  qp.attributes = QpAttributes{};
  qp.attributes.type = type;
  qp.attributes.qpn = qpn;
  qp.setState(kQpsReset);
}

void Lifecycle::fail(Qp& qp, const Failure& failure) {
  if (qp.state() == kQpsError) return;
  if (failure.event != QpEvent::kPeerLost) t_.responses.acknowledgeLast(qp);
  const bool wasConnected = qp.state() != kQpsReset && qp.state() != kQpsInit;
  t_.rnr.leave(qp);
  qp.setState(kQpsError);
  t_.direct.withdraw(qp);
  // A receive that is being posted is either seen below, or its poster sees that a doorbell is requested.
  if (c_.barrier) c_.barrier();
  else fullFence();
  c_.timers.clear(qp);
  qp.goneAt = 0;
  c_.memory.unbindAll(qp);
  while (qp.rs.jobs.size()) qp.rs.jobs.pop();
  qp.rs.ackPending = false;
  qp.clear(kNakPending | kKeepAlive | kRnrWait | kKeeps | kRecovering | kResponseGap);
  qp.rs.kept.reset();
  qp.rs.repeats.reset();
  qp.rq.board.reset();
  qp.rq.responses.reset();
  qp.fragments.reset();
  qp.rq.reads = 0;
  t_.links.leave(qp);
  flushSends(qp, failure.sendStatus, failure.vendor);
  flushReceives(qp, failure.receiveStatus, failure.vendor);
  if (qp.srq) c_.report(qp, QpEvent::kLastWqe, 0);
  if (failure.report && wasConnected) {
    (failure.event == QpEvent::kPeerLost ? c_.counters.peersLost : c_.counters.qpErrors)++;
    c_.report(qp, failure.event, failure.reason);
  }
}

void Lifecycle::flushSends(Qp& qp, uint32_t status, uint32_t vendor) {
  c_.refreshSend(qp);
  SendState& rq = qp.rq;
  for (; rq.head != rq.producer; rq.head++) {
    Completion c;
    c.token = qp.token;
    c.wqe = rq.head;
    c.opcode = int32_t(rq.parsed - rq.head) > 0 ? qp.entry(rq.head).opcode : peekWord(qp.sendWqe(rq.head) + kSwOpcode);
    c.status = status ? status : kWcFlushed;
    if (status) c.vendor = vendor;
    if (!status) c_.counters.flushed++;
    status = 0;
    c_.write(*qp.sendCq, c);
  }
  rq.next = rq.begun = rq.parsed = rq.head;
  qp.settleRequester();
}

void Lifecycle::flushReceives(Qp& qp, uint32_t status, uint32_t vendor) {
  ReceiveState& rs = qp.rs;
  const auto complete = [&](uint32_t wqe, uint32_t flags) {
    Completion c;
    c.token = qp.token;
    c.wqe = wqe;
    c.opcode = kOpReceive;
    c.flags = kCqeFlagReceiveQueue | flags;
    c.status = status ? status : kWcFlushed;
    if (status) c.vendor = vendor;
    if (!status) c_.counters.flushed++;
    status = 0;
    c_.write(*qp.receiveCq, c);
  };
  // Of a shared queue, only the receives that this QP has taken are flushed.
  if (qp.srq) {
    if (qp.shared.held) complete(qp.shared.wqe, kCqeFlagSharedReceive);
    qp.shared.held = false;
    return;
  }
  c_.refreshReceive(qp);
  for (; rs.head != rs.producer; rs.head++) complete(rs.head, 0);
}

void Lifecycle::toSendQueueError(Qp& qp, uint32_t status) {
  qp.setState(kQpsSqError);
  flushSends(qp, status, 0);
  qp.rq.packet = 0;
  qp.rq.gather = {};
}

void Lifecycle::peerGone(Qp& qp) {
  Failure failure;
  if (qp.rq.head != qp.rq.begun) failure.sendStatus = kWcTimeoutRetry;
  failure.event = QpEvent::kPeerLost;
  failure.reason = kWcTimeoutRetry;
  fail(qp, failure);
}

void Lifecycle::settleFailing() {
  settling_ = true;
  while (Qp* const qp = c_.failing.pop()) {
    Failure failure;
    failure.reason = kWcError;
    fail(*qp, failure);
  }
  settling_ = false;
}

void Lifecycle::checkDrained(Qp& qp) {
  if (qp.state() != kQpsSqd || qp.drained || qp.rq.head != qp.rq.begun || qp.has(kKeepAlive)) return;
  qp.drained = true;
  if (qp.drainNotify) c_.report(qp, QpEvent::kSendQueueDrained, 0);
}

void Lifecycle::destroy(Qp& qp) {
  t_.direct.withdraw(qp);
  t_.responses.acknowledgeLast(qp);
  c_.timers.clear(qp);
  s_.running.remove(qp);
  s_.cancelDeferred(qp);
  t_.links.leave(qp);
  t_.rnr.leave(qp);
  c_.memory.unbindAll(qp);
  t_.datagrams.detachFromAll(qp);
  qp.setState(kQpsReset);
  qp.sendCq->users--;
  qp.receiveCq->users--;
  if (qp.srq) qp.srq->users--;
  qp.pkeyTable->users--;
  qp.pd->users--;
  c_.qps.remove(qp.handle);
}

}  // namespace nd
