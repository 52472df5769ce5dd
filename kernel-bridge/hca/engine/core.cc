#include "core.h"

namespace nd {

using namespace abi;

Core::Core(Link& l, const Clock& c, const EngineOptions& o)
    : link(l), clock(c), options(o), pds(o.maxPd), cqs(o.maxCq), srqs(o.maxSrq), ahs(o.maxAh),
      qps(std::min(o.maxQp, kQpIndexes)), pkeyTables(o.maxPkeyTables), memory(options) {
  // QPNs begin anywhere, so that a process's late packets do not meet its successor's QPs.
  fillRandom(&qpBase, sizeof qpBase);
  qpBase %= kQpIndexes;
  memory.onRevoke([](void* self, uint64_t epoch) { static_cast<Core*>(self)->link.revoke(epoch); }, this);
}

Core::~Core() {
  for (KernelId k = 1; k < kKernels; k++)
    if (kernels[k]) detach(k);
}

// ── Scheduling ──────────────────────────────────────────────────────────────────────────────────

void Core::schedule(Qp& qp) {
  if (qp.scheduled) return;
  qp.scheduled = true;
  qp.nextScheduled = nullptr;
  (lastScheduled ? lastScheduled->nextScheduled : firstScheduled) = &qp;
  lastScheduled = &qp;
}

void Core::unschedule(Qp& qp) {
  if (!qp.scheduled) return;
  qp.scheduled = false;
  Qp* previous = nullptr;
  for (Qp* q = firstScheduled; q != &qp; q = q->nextScheduled) previous = q;
  (previous ? previous->nextScheduled : firstScheduled) = qp.nextScheduled;
  if (lastScheduled == &qp) lastScheduled = previous;
}

bool Core::run(Qp& qp, uint32_t share) {
  // Answers first: the peer's window waits for them. Half of the share is left for our own requests.
  uint32_t answers = share / 2, requests = share / 2;
  bool more = respond(qp, answers);
  more |= request(qp, requests);
  if (stateRules(qp.state()).receivesRequests) sendCongestionNotification(qp);
  acknowledge(qp);  // after longer packets, with which it can leave in one piece
  checkDrained(qp);
  return more;
}

bool Core::step(uint64_t time, bool returns) {
  now = std::max(now, time);  // another thread may have looked at the clock before and got the lock after us
  received = 0;
  bool moved = false;
  puttingOff = returns;
  payDebts();
  const bool mayHaveMore = link.poll(*this, kReceiveBudget);
  moved |= received > 0 || mayHaveMore;

  // An answer that lies unread in the socket is no reason to repeat; but timers may not wait for ever either.
  if (!mayHaveMore || ++stepsWithoutTimers >= 8) {
    stepsWithoutTimers = 0;
    for (uint32_t i = 0; i < kTimersPerStep && timers.earliest() <= now; i++) {
      Qp& qp = *timers.top();
      timers.clear(qp);
      onTimer(qp);
      settle();
      moved = true;
    }
  }

  moved |= runScheduled();
  settle();
  link.flush();
  puttingOff = false;
  if (firstOwing) rouse(now + kOwedNs);
  return moved;
}

bool Core::stepLocal() {
  received = 0;
  puttingOff = true;
  link.pollLocal(*this, kReceiveBudget);
  if (firstScheduled) {
    runScheduled();
    settle();
    link.flush();
  }
  puttingOff = false;
  if (firstOwing) rouse(now + kOwedNs);
  return received > 0;
}

// One round: QPs that come back in line while it lasts are for the next step.
bool Core::runScheduled() {
  bool moved = false;
  uint32_t sentBefore = uint32_t(counters.sentPackets);
  Qp* const end = lastScheduled;
  while (Qp* qp = firstScheduled) {
    moved = true;
    firstScheduled = qp->nextScheduled;
    if (!firstScheduled) lastScheduled = nullptr;
    qp->scheduled = false;
    const bool isEnd = qp == end;
    if (run(*qp, kShare)) schedule(*qp);
    if (isEnd || uint32_t(counters.sentPackets) - sentBefore >= kStepShare) break;
  }
  return moved;
}

bool Core::losesPatience(bool moved) {
  if (moved || now > lastPoll.load(std::memory_order_relaxed) + kPatienceGapNs) waitingSince = now;
  lastPoll.store(now, std::memory_order_relaxed);
  if (now < waitingSince + kPatienceNs) return false;
  counters.pollerYields++;
  return true;
}

void Core::rouse(uint64_t due) {
  if (due >= announced) return;
  announced = due;
  if (wake) wake(wakeArgument);
}

void Core::setTimer(Qp& qp, uint64_t due) {
  timers.set(qp, due);
  rouse(due);
}

// On the local link the system tells of a peer's end, and nothing is lost: except by the fault layer, on a plain pair.
static bool isProbed(const Qp& qp) { return !qp.local || !qp.local->up() || qp.local->plain; }

void Core::onTimer(Qp& qp) {
  if (qp.goneAt) {
    if (now >= qp.goneAt) return peerGone(qp);
    setTimer(qp, qp.goneAt);
  }
  if (!stateRules(qp.state()).continuesWork) return;
  Requester& rq = qp.rq;
  uint64_t next = UINT64_MAX;
  const uint64_t timeout = wire::ackNanoseconds(qp.attributes.ackTimeout);
  if (rq.rnrUntil) {
    if (now >= rq.rnrUntil) {
      rq.rnrUntil = 0;
      goBack(qp);
    } else {
      next = rq.rnrUntil;
    }
  }
  if (!rq.rnrUntil && rq.outstanding()) {
    if (timeout) {
      // A quarter late: what the clock missed between reading it and sending must not make the timer early.
      uint64_t due = rq.ackStart + timeout + timeout / 4;
      if (now >= due) {
        onAckTimeout(qp);
        if (qp.state() == kQpsError) return;
        due = rq.ackStart + timeout + timeout / 4;
      }
      if (now >= probeDue(qp)) probe(qp);
      next = std::min(next, std::min(due, probeDue(qp)));
    } else if (options.keepAliveNs) {
      next = std::min(next, now + options.keepAliveNs);
    }
  } else if (!rq.rnrUntil && options.keepAliveNs && qp.state() == kQpsRts && qp.reliable() && isProbed(qp)) {
    uint64_t due = qp.lastActivity + options.keepAliveNs;
    if (now >= due) {
      if (qp.connected() && rq.head == rq.begun && !rq.keepAlive) {
        rq.keepAlive = true;
        rq.keepAlivePsn = rq.psn;
        schedule(qp);  // request() sets the ACK timer
      }
      due = now + options.keepAliveNs;
    }
    next = std::min(next, due);
  }
  if (next != UINT64_MAX) setTimer(qp, next);
}

void Core::settleDoomed() {
  settling = true;
  while (Qp* qp = firstDoomed) {
    firstDoomed = qp->nextDoomed;
    qp->doomed = false;
    Failure failure;
    failure.reason = kWcError;
    fail(*qp, failure);
  }
  settling = false;
}

// ── Life of a QP ────────────────────────────────────────────────────────────────────────────────

Qp* Core::byQpn(uint32_t qpn) const {
  if (qpn >> 16 != slot) return nullptr;
  const uint32_t index = qpn & 0xFFFF;
  if (index < kFirstQpIndex) return nullptr;
  const uint32_t place = index - kFirstQpIndex;
  return qps.at(place >= qpBase ? place - qpBase : place + kQpIndexes - qpBase);
}

void Core::report(Qp& qp, QpEvent event, uint32_t reason) {
  if (KernelPort* port = kernels[qp.kernel]) port->onQpEvent(qp.handle, qp.token, event, reason);
}

void Core::write(Cq& cq, const Completion& completion) {
  if (!cq.dead && !cq.write(completion)) overrun(cq);
}

// The CQ is dead; its QPs follow as soon as what is going on now is finished.
void Core::overrun(Cq& cq) {
  counters.cqOverruns++;
  if (KernelPort* port = kernels[cq.kernel]) port->onCqError(cq.handle);
  qps.forEach([&](Qp& qp) {
    if ((qp.sendCq != &cq && qp.receiveCq != &cq) || qp.doomed || qp.state() == kQpsError) return;
    qp.doomed = true;
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
    qp.setState(kQpsError);
    if (barrier) barrier();  // a receive that is being posted is seen below, or its poster sees the state
    timers.clear(qp);
    qp.goneAt = 0;
    memory.unbindAll(qp);
    while (qp.rs.jobs.size()) qp.rs.jobs.pop();
    qp.rs.ackPending = qp.rs.nakPending = false;
    qp.rq.keepAlive = false;
    qp.rq.rnrUntil = 0;
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
  qp.local.reset();
  qp.waiting = false;
  memory.unbindAll(qp);
  // Counters run on; what is posted is forgotten without completions.
  const uint32_t send = loadWord(qp.header + kQpSendProducer), receive = loadWord(qp.header + kQpReceiveProducer);
  std::vector<SendEntry> entries = std::move(qp.rq.entries);
  qp.rq = Requester{};
  qp.rq.entries = std::move(entries);
  qp.rq.head = qp.rq.next = qp.rq.begun = qp.rq.parsed = qp.rq.producer = send;
  qp.rs = Responder{};
  qp.cnpPending = false;
  qp.cnpSentAt = 0;
  qp.shared.held = false;
  qp.rs.head = qp.rs.producer = receive;
  qp.established = qp.drainNotify = qp.drained = qp.peerLocal = false;
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
  // What is in flight was sent under the old attributes.
  if (from == kQpsSqd && to == kQpsSqd && (mask & ~(qpmask::kState | qpmask::kCurrentState)) && !qp.drained)
    return Status::kInvalidDeviceState;
  applyAttributes(qp.attributes, mask, a);
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
    qp.rq.awaited = true;
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
  if (qp.state() != kQpsSqd || qp.drained || qp.rq.head != qp.rq.begun || qp.rq.keepAlive) return;
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

// ── Memory of requests ──────────────────────────────────────────────────────────────────────────

uint32_t Core::pieces(const Pd* pd, KeyCache& cache, const uint32_t* sges, uint32_t count, SgeCursor& cursor,
                      uint32_t offset, uint32_t length, bool write, iovec* list, uint32_t* outCount,
                      const SharedRange** shared) {
  const auto lengthOf = [&](uint32_t i) { return peekWord(sges + i * (kSgeBytes / 4) + kSgeLength); };
  if (cursor.offset != offset) {
    cursor = {};
    uint32_t skip = offset;
    for (; cursor.index < count; cursor.index++) {
      const uint32_t all = lengthOf(cursor.index);
      if (skip < all) break;
      skip -= all;
    }
    cursor.offset = offset;
    cursor.within = skip;
  }
  uint32_t n = *outCount;
  while (length > 0) {
    if (cursor.index >= count || n >= OutPacket::kMaxPieces) return kWcLocalOp;  // the list changed under us
    const uint32_t* sge = sges + cursor.index * (kSgeBytes / 4);
    const uint32_t all = lengthOf(cursor.index);
    const uint32_t left = all > cursor.within ? all - cursor.within : 0;
    if (left == 0) {
      cursor.index++;
      cursor.within = 0;
      continue;
    }
    const uint32_t take = std::min(left, length);
    const uint64_t address = (uint64_t(peekWord(sge + kSgeAddressHi)) << 32 | peekWord(sge + kSgeAddressLo)) +
                             cursor.within;
    uint8_t* data = memory.local(cache, pd, peekWord(sge + kSgeLkey), address, take, write);
    if (!data) return kWcLocalProtection;
    if (shared) shared[n] = memory.sharedOf(cache, peekWord(sge + kSgeLkey));
    list[n++] = {data, take};
    length -= take;
    cursor.offset += take;
    cursor.within += take;
  }
  *outCount = n;
  return 0;
}

void Core::transmit(Qp& qp, const Path& path) {
  const uint16_t pkey = qp.pkey();
  wire::storePkey(out.header, pkey);
  counters.sentPackets++;
  counters.sentBytes += out.headerLength + out.payloadLength;
  // Without a partition nothing may leave; to the transport it is lost.
  if (!isPkey(pkey)) {
    counters.sendFailures++;
  } else if (!qp.local) {
    if (!link.send(path, out)) counters.sendFailures++;
  } else if (qp.local->plain) {
    link.sendPlain(*qp.local, path, out);
  } else {
    out.localAck = owedWord(qp);
    if (out.byReference && out.payloadLength) {
      qp.local->putReference(out, qp.qpn, path.trafficClass, memory.revocations());
    } else {
      qp.local->put(out, qp.qpn, path.trafficClass, out.localFlags);
    }
  }
  out.byReference = false;
  out.localFlags = out.localAck = 0;
}

namespace {

bool comesFromPeer(const Qp& qp, const PacketMeta& meta) {
  return meta.source == qp.attributes.path.destination && meta.destination == qp.attributes.path.source;
}

uint32_t transportOf(uint32_t flags) {
  return flags & wire::kDatagram ? kQptUd : flags & wire::kUnreliable ? kQptUc : kQptRc;
}

}  // namespace

// ── Packets ─────────────────────────────────────────────────────────────────────────────────────

void Core::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  received++;
  counters.receivedPackets++;
  counters.receivedBytes += length;
  if (length < wire::kBthBytes) {
    counters.malformed++;
    return;
  }
  Packet p;
  p.bth = wire::parseBth(bth);
  if (p.bth.destinationQpn == wire::kGsiQpn) {
    if (gsi) gsi(gsiArgument, meta, bth, length);
    return;
  }
  if (p.bth.version != 0) {
    counters.malformed++;
    return;
  }
  if (p.bth.opcode == wire::kOpCnp) {
    Qp* const qp = length == wire::kBthBytes + wire::kCnpReservedBytes ? byQpn(p.bth.destinationQpn) : nullptr;
    if (!qp) {
      counters.unknownQp++;
    } else if (qp->datagram() || !comesFromPeer(*qp, meta)) {
      counters.wrongAddress++;
    } else if (pkeyFits(*qp, p)) {
      onCongestion(*qp);
    }
    return;
  }
  const wire::OpInfo& op = wire::kOpcodes[p.bth.opcode];
  if (!op.flags) {
    counters.unknownOpcode++;
    return;
  }
  if (length < uint32_t(op.headerBytes) + p.bth.pad) {
    counters.malformed++;
    return;
  }
  p.flags = op.flags;
  p.extension = bth + wire::kBthBytes;
  p.payload = bth + op.headerBytes;
  p.length = length - op.headerBytes - p.bth.pad;
  if (p.bth.destinationQpn == wire::kMulticastQpn) {
    onMulticast(meta, p);
    return settle();
  }
  Qp* qp = byQpn(p.bth.destinationQpn);
  if (!qp) {
    counters.unknownQp++;
    return;
  }
  if (!accepts(*qp, p)) return;
  if (qp->datagram()) {
    onDatagram(*qp, meta, p);
    return settle();
  }
  // Who waits to hear of the pair may be sent to by the wire already: its peer has heard.
  if (!comesFromPeer(*qp, meta) ||
      (carrier || !qp->waiting ? qp->local.get() != carrier : false)) {
    counters.wrongAddress++;
    return;
  }
  if ((meta.trafficClass & wire::kEcnMask) == wire::kCongestionExperienced) onMarked(*qp);
  take(*qp, p);
}

// Whether the queue pair takes such packets now.
bool Core::accepts(Qp& qp, const Packet& p) {
  if (transportOf(p.flags) != qp.attributes.type) {
    counters.wrongTransport++;
    return false;
  }
  const StateRules& rules = stateRules(qp.state());
  const bool isRequest = (p.flags & wire::kRequest) != 0;
  if (qp.doomed || !(isRequest ? rules.receivesRequests : rules.receivesResponses)) {
    counters.wrongState++;
    return false;
  }
  return true;
}

// A packet of the connection, whichever link it came by.
void Core::take(Qp& qp, const Packet& p) {
  if (!pkeyFits(qp, p)) return;
  qp.lastActivity = now;
  if (p.local && p.local->acknowledged && stateRules(qp.state()).receivesResponses && qp.reliable()) {
    onAcknowledged(qp, p.local->acknowledged & wire::kPsnMask);
    if (qp.doomed || !accepts(qp, p)) return settle();
  }
  // Also in RTS: a passive side is there before its REP leaves, and it is the RTU that this packet stands in for.
  if (!qp.established && (qp.state() == kQpsRtr || qp.state() == kQpsRts)) {
    qp.established = true;
    report(qp, QpEvent::kCommunicationEstablished, 0);
  }
  if (p.flags & wire::kRequest) {
    onRequest(qp, p);
  } else {
    onResponse(qp, p);
  }
  settle();
}

void Core::onPeerProcessGone(uint32_t peer, bool orderly) {
  received++;
  qps.forEach([&](Qp& qp) {
    if (!qp.peerLocal || qp.attributes.destinationQpn >> 16 != peer || !stateRules(qp.state()).receivesRequests) return;
    if (!orderly) return peerGone(qp);
    if (!qp.goneAt) qp.goneAt = now + kGoodbyeNs;
    setTimer(qp, qp.goneAt);
  });
}

}  // namespace nd
