// Life of a QP: its completions and events, its states, and how it fails, is flushed and ends.
#include "base/fence.h"
#include "transport/core.h"

namespace nd {

using namespace abi;

void Core::report(Qp& qp, QpEvent event, uint32_t reason) {
  if (KernelPort* port = kernels[qp.kernel]) port->onQpEvent(qp.handle, qp.token, event, reason);
}

// The CQ is dead; its QPs follow as soon as what is going on now is finished.
void Core::overrun(Cq& cq) {
  counters.cqOverruns++;
  if (KernelPort* port = kernels[cq.kernel]) port->onCqError(cq.handle);
  qps.forEach([&](Qp& qp) {
    if ((qp.sendCq != &cq && qp.receiveCq != &cq) || qp.has(kFailing) || qp.state() == kQpsError) return;
    qp.set(kFailing);
    qp.nextDoomed = firstDoomed;
    firstDoomed = &qp;
  });
}

bool Core::refreshSend(Qp& qp) {
  Requester& rq = qp.rq;
  if (rq.ringFault) return false;
  const uint32_t producer = loadWord(qp.header + kQpSendProducer);
  const uint32_t filled = producer - rq.head;
  // More than a ring ahead, or backwards.
  if (filled > qp.sendEntries || filled < rq.producer - rq.head) {
    rq.ringFault = true;
    counters.ringFaults++;
    return false;
  }
  rq.producer = producer;
  return true;
}

bool Core::refreshReceive(Qp& qp) {
  Responder& rs = qp.rs;
  if (rs.ringFault) return false;
  const uint32_t producer = loadWord(qp.header + kQpReceiveProducer);
  const uint32_t filled = producer - rs.head;
  if (filled > qp.receiveEntries || filled < rs.producer - rs.head) {
    rs.ringFault = true;
    counters.ringFaults++;
    return false;
  }
  rs.producer = producer;
  return true;
}

void Core::flushSends(Qp& qp, uint32_t status, uint32_t vendor) {
  refreshSend(qp);
  Requester& rq = qp.rq;
  for (; rq.head != rq.producer; rq.head++) {
    Completion c;
    c.token = qp.token;
    c.wqe = rq.head;
    c.opcode = int32_t(rq.parsed - rq.head) > 0 ? qp.entry(rq.head).opcode : peekWord(qp.sendWqe(rq.head) + kSwOpcode);
    c.status = status ? status : kWcFlushed;
    if (status) c.vendor = vendor;
    if (!status) counters.flushed++;
    status = 0;
    write(*qp.sendCq, c);
  }
  rq.next = rq.begun = rq.parsed = rq.head;
  qp.settleRequester();
}

void Core::flushReceives(Qp& qp, uint32_t status, uint32_t vendor) {
  Responder& rs = qp.rs;
  const auto complete = [&](uint32_t wqe, uint32_t flags) {
    Completion c;
    c.token = qp.token;
    c.wqe = wqe;
    c.opcode = kOpReceive;
    c.flags = kCqeFlagReceiveQueue | flags;
    c.status = status ? status : kWcFlushed;
    if (status) c.vendor = vendor;
    if (!status) counters.flushed++;
    status = 0;
    write(*qp.receiveCq, c);
  };
  // Of a shared queue only what this QP has taken.
  if (qp.srq) {
    if (qp.shared.held) complete(qp.shared.wqe, kCqeFlagSharedReceive);
    qp.shared.held = false;
    return;
  }
  refreshReceive(qp);
  for (; rs.head != rs.producer; rs.head++) complete(rs.head, 0);
}

// UC and UD: sending ends with the WQE that cannot be sent, receiving goes on (IBA 1 §10.3.1.6).
void Core::toSendQueueError(Qp& qp, uint32_t status) {
  qp.setState(kQpsSqError);
  flushSends(qp, status, 0);
  qp.rq.packet = 0;
  qp.rq.gather = {};
}

void Core::fail(Qp& qp, const Failure& failure) {
  if (qp.state() != kQpsError) {
    if (failure.event != QpEvent::kPeerLost) acknowledgeLast(qp);
    const bool wasConnected = qp.state() != kQpsReset && qp.state() != kQpsInit;
    leaveReceives(qp);
    qp.setState(kQpsError);
    // A receive that is being posted is seen below, or its poster sees that it is to ring.
    if (barrier) barrier();
    else fullFence();
    timers.clear(qp);
    qp.goneAt = 0;
    memory.unbindAll(qp);
    while (qp.rs.jobs.size()) qp.rs.jobs.pop();
    qp.rs.ackPending = false;
    qp.clear(kNakPending | kKeepAlive | kRnrWait);
    qp.rq.reads = 0;
    leaveLink(qp);
    flushSends(qp, failure.sendStatus, failure.vendor);
    flushReceives(qp, failure.receiveStatus, failure.vendor);
    if (qp.srq) report(qp, QpEvent::kLastWqe, 0);
    if (failure.report && wasConnected) {
      (failure.event == QpEvent::kPeerLost ? counters.peersLost : counters.qpErrors)++;
      report(qp, failure.event, failure.reason);
    }
  }
}

void Core::peerGone(Qp& qp) {
  Failure failure;
  if (qp.rq.head != qp.rq.begun) failure.sendStatus = kWcTimeoutRetry;
  failure.event = QpEvent::kPeerLost;
  failure.reason = kWcTimeoutRetry;
  fail(qp, failure);
}

void Core::toReset(Qp& qp) {
  acknowledgeLast(qp);
  timers.clear(qp);
  qp.goneAt = 0;
  unschedule(qp);
  leaveLink(qp);
  leaveReceives(qp);
  qp.local.reset();
  memory.unbindAll(qp);
  // Counters run on; what is posted is forgotten without completions.
  const uint32_t send = loadWord(qp.header + kQpSendProducer), receive = loadWord(qp.header + kQpReceiveProducer);
  std::vector<SendEntry> entries = std::move(qp.rq.entries);
  qp.rq = Requester{};
  qp.rq.entries = std::move(entries);
  qp.rq.head = qp.rq.next = qp.rq.begun = qp.rq.parsed = qp.rq.producer = send;
  qp.rs = Responder{};
  qp.clear(~uint32_t(kFailing));
  qp.set(kUnheard);
  qp.cnpSentAt = 0;
  qp.shared.held = false;
  qp.rs.head = qp.rs.producer = receive;
  qp.drainNotify = qp.drained = qp.peerLocal = false;
  qp.will.reset();
  const uint32_t type = qp.attributes.type, qpn = qp.attributes.qpn;
  qp.attributes = QpAttributes{};
  qp.attributes.type = type;
  qp.attributes.qpn = qpn;
  qp.setState(kQpsReset);
}

Status Core::modify(Qp& qp, uint32_t mask, const QpAttributes& a) {
  const uint32_t from = qp.state();
  uint32_t to;
  const Status status = checkModify(options, qp.attributes.type, from, mask, a, &to);
  if (status != Status::kSuccess) return status;
  if ((mask & qpmask::kPkeyIndex) && a.pkeyIndex >= qp.pkeyTable->entries.size()) return Status::kInvalidParameter;
  now = clock.now();
  if (to == kQpsReset) {
    toReset(qp);
    return Status::kSuccess;
  }
  if (to == kQpsError) {
    qp.will.reset();  // who disconnects has said goodbye itself
    Failure quiet;
    quiet.report = false;
    fail(qp, quiet);
    return Status::kSuccess;
  }
  if ((mask & qpmask::kPath) && link.isLocal(a.path.destination)) {
    const QpAttributes& whose = (mask & qpmask::kDestinationQpn) ? a : qp.attributes;
    link.reportEnd(whose.destinationQpn >> 16, *this);
    if (qp.state() != from) return Status::kInvalidDeviceState;  // it was connected to that process itself
  }
  // What is in flight was sent under the old attributes.
  if (from == kQpsSqd && to == kQpsSqd && (mask & ~(qpmask::kState | qpmask::kCurrentState)) && !qp.drained)
    return Status::kInvalidDeviceState;
  applyAttributes(qp.attributes, mask, a);
  if (from == kQpsSqd && to == kQpsSqd) {
    qp.rq.parsed = qp.rq.begun;  // what waits is read anew, for these
    qp.settleRequester();
  }
  if (mask & qpmask::kPath) {
    qp.route = qp.attributes.path;
    // The ECN bits are not the application's.
    const uint8_t dscp = qp.route.trafficClass & wire::kDscpMask;
    if (!qp.datagram()) qp.route.trafficClass = uint8_t(dscp | (options.ecn ? wire::kEct0 : 0));
  }
  if (!qp.rq.window) qp.rq.window = options.window;
  qp.setState(to);
  qp.lastActivity = now;
  if (mask & (qpmask::kPath | qpmask::kPathMtu)) setMtu(qp);
  if (mask & qpmask::kResponderResources) resizeResources(qp);
  if (to == kQpsRtr && from == kQpsInit) qp.rs.expected = a.receivePsn;
  if (to == kQpsRts && from == kQpsRtr) qp.rq.una = qp.rq.psn = qp.rq.maxPsn = qp.rq.askedEnd = a.sendPsn;
  if (to == kQpsSqd && from == kQpsRts) {
    qp.drained = false;
    qp.drainNotify = (mask & qpmask::kDrainNotify) != 0;
    qp.set(kAwaited);
    schedule(qp);
    checkDrained(qp);
  }
  if (to == kQpsRts) {
    if (options.keepAliveNs && qp.reliable() && isProbed(qp)) setTimer(qp, now + options.keepAliveNs);
    schedule(qp);
  }
  if (mask & qpmask::kPath) {
    qp.peerLocal = link.isLocal(qp.attributes.path.destination);
    const uint32_t peer = qp.attributes.destinationQpn >> 16;
    if (qp.peerLocal && peer != slot && !link.watchPeer(peer)) {
      peerGone(qp);
    } else {
      chooseLink(qp);
    }
  }
  return Status::kSuccess;
}

void Core::checkDrained(Qp& qp) {
  if (qp.state() != kQpsSqd || qp.drained || qp.rq.head != qp.rq.begun || qp.has(kKeepAlive)) return;
  qp.drained = true;
  if (qp.drainNotify) report(qp, QpEvent::kSendQueueDrained, 0);
}

void Core::sendWill(Qp& qp) {
  acknowledgeLast(qp);
  if (!qp.will || qp.state() == kQpsReset || qp.state() == kQpsInit) return;
  if (!isPkey(qp.pkey())) return;
  wire::Bth bth;
  bth.pkey = qp.pkey();
  bth.opcode = wire::kOpUdSendOnly;
  bth.destinationQpn = wire::kGsiQpn;
  bth.psn = gsiPsn;
  gsiPsn = wire::psnAdd(gsiPsn, 1);
  wire::emitBth(out.header, bth);
  wire::emitDeth(out.header + wire::kBthBytes, {wire::kGsiQkey, wire::kGsiQpn});
  out.headerLength = wire::kBthBytes + wire::kDethBytes;
  out.pieces[0] = {qp.will->mad, wire::kMadBytes};
  out.pieceCount = 1;
  out.payloadLength = wire::kMadBytes;
  out.padLength = 0;
  counters.willsSent++;
  if (!link.send(qp.will->path, out)) counters.sendFailures++;
}

void Core::destroy(Qp& qp) {
  acknowledgeLast(qp);
  timers.clear(qp);
  unschedule(qp);
  forgive(qp);
  leaveLink(qp);
  leaveReceives(qp);
  memory.unbindAll(qp);
  detachFromAll(qp);
  qp.setState(kQpsReset);
  qp.sendCq->users--;
  qp.receiveCq->users--;
  if (qp.srq) qp.srq->users--;
  qp.pkeyTable->users--;
  qp.pd->users--;
  qps.remove(qp.handle);
}

void Core::detach(KernelId kernel) {
  settle();
  kernels[kernel] = nullptr;
  std::vector<Qp*> mine;
  qps.forEach([&](Qp& qp) {
    if (qp.kernel == kernel) mine.push_back(&qp);
  });
  for (Qp* qp : mine) sendWill(*qp);
  link.flush();  // the wills' bytes go away with their QPs
  for (Qp* qp : mine) {
    Failure quiet;
    quiet.report = false;
    fail(*qp, quiet);
  }
  settle();
  for (Qp* qp : mine) destroy(*qp);
  ahs.forEach([&](AddressHandle& ah) {
    if (ah.pd->kernel == kernel) ahs.remove(ah.handle);
  });
  srqs.forEach([&](Srq& srq) {
    if (srq.kernel == kernel) srqs.remove(srq.handle);
  });
  pkeyTables.forEach([&](PkeyTable& table) {
    if (table.kernel == kernel) pkeyTables.remove(table.handle);
  });
  memory.dropKernel(kernel);
  cqs.forEach([&](Cq& cq) {
    if (cq.kernel != kernel) return;
    cq.notifyAll(Status::kCancelled);
    cqs.remove(cq.handle);
  });
  pds.forEach([&](Pd& pd) {
    if (pd.kernel == kernel) pds.remove(pd.handle);
  });
}

}  // namespace nd
