#include "transport/core.h"

#include <utility>

#include "platform/os.h"

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
  if (qp.has(kScheduled)) return;
  qp.set(kScheduled);
  qp.nextScheduled = nullptr;
  (lastScheduled ? lastScheduled->nextScheduled : firstScheduled) = &qp;
  lastScheduled = &qp;
}

void Core::scheduleFirst(Qp& qp) {
  unschedule(qp);
  qp.set(kScheduled);
  qp.nextScheduled = firstScheduled;
  firstScheduled = &qp;
  if (!lastScheduled) lastScheduled = &qp;
}

void Core::unschedule(Qp& qp) {
  if (!qp.has(kScheduled)) return;
  qp.clear(kScheduled);
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

bool Core::step(uint64_t time, bool returns, bool slept) {
  now = std::max(now, time);  // another thread may have looked at the clock before and got the lock after us
  received = 0;
  bool moved = false;
  puttingOff = returns || slept;
  unlessAwaited = slept;
  payDebts();
  const bool mayHaveMore = link.poll(*this, kReceiveBudget);
  if (returns && received == 0 && !mayHaveMore && !firstScheduled && timers.earliest() > now && stillWaits()) {
    link.lookOut(*this, kReceiveBudget, commandsWaiting);
    now = std::max(now, clock.recent());  // it takes time, in which the thread did nothing else
  }
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
  puttingOff = unlessAwaited = false;
  if (firstOwing) rouse(now + kOwedNs);
  return moved;
}

bool Core::stepLocal(bool waits) {
  received = 0;
  puttingOff = true;
  link.pollLocal(*this, kReceiveBudget, waits ? &commandsWaiting : nullptr);
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
    qp->clear(kScheduled);
    const bool isEnd = qp == end;
    if (run(*qp, kShare)) schedule(*qp);
    if (isEnd || uint32_t(counters.sentPackets) - sentBefore >= kStepShare) break;
  }
  return moved;
}

bool Core::losesPatience(bool moved, uint64_t began) {
  if (moved || began > lastPoll.load(std::memory_order_relaxed) + kPatienceGapNs) waitingSince = now;
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

bool Core::isProbed(const Qp& qp) { return !qp.local || !qp.local->up() || qp.local->plain; }

void Core::onTimer(Qp& qp) {
  if (qp.goneAt) {
    if (now >= qp.goneAt) return peerGone(qp);
    setTimer(qp, qp.goneAt);
  }
  if (qp.has(kNakFatal)) schedule(qp);  // it waited (mayBeCopying)
  if (!stateRules(qp.state()).continuesWork) return;
  Requester& rq = qp.rq;
  uint64_t next = UINT64_MAX;
  const uint64_t patience = answerPatience(qp);
  if (qp.has(kRnrWait)) {
    if (now >= rq.rnrUntil) {
      repeatRefused(qp);
    } else {
      next = rq.rnrUntil;
    }
  }
  if (!qp.has(kRnrWait) && rq.outstanding()) {
    if (std::exchange(rq.undated, false)) rq.ackStart = now;
    if (patience) {
      uint64_t due = rq.ackStart + patience;
      if (now >= due) {
        onAckTimeout(qp);
        if (qp.state() == kQpsError) return;
        due = rq.ackStart + patience;
      }
      if (now >= probeDue(qp)) probe(qp);
      next = std::min(next, std::min(due, probeDue(qp)));
    } else if (options.keepAliveNs) {
      next = std::min(next, now + options.keepAliveNs);
    }
  } else if (!qp.has(kRnrWait) && options.keepAliveNs && qp.state() == kQpsRts && qp.reliable() && isProbed(qp)) {
    uint64_t due = qp.lastActivity + options.keepAliveNs;
    if (now >= due) {
      if (qp.connected() && rq.head == rq.begun && !qp.has(kKeepAlive)) {
        qp.set(kKeepAlive);
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
    qp->clear(kFailing);
    Failure failure;
    failure.reason = kWcError;
    fail(*qp, failure);
  }
  settling = false;
}

// ── Memory of requests ──────────────────────────────────────────────────────────────────────────

uint32_t Core::pieces(const Pd* pd, KeyCache& cache, const uint32_t* sges, uint32_t count, SgeCursor& cursor,
                      uint32_t offset, uint32_t length, bool write, Piece* list, uint32_t* outCount,
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
      qp.rq.referred = true;
      qp.local->putReference(out, qp.qpn, path.trafficClass, memory.revocations());
    } else {
      qp.local->put(out, qp.qpn, path.trafficClass, out.localFlags);
    }
  }
  out.byReference = false;
  out.localFlags = out.localAck = 0;
}

namespace {

uint32_t transportOf(uint32_t flags) {
  return flags & wire::kDatagram ? kQptUd : flags & wire::kUnreliable ? kQptUc : kQptRc;
}

}  // namespace

// ── Packets ─────────────────────────────────────────────────────────────────────────────────────

Qp* Core::byQpn(uint32_t qpn) const {
  if (qpn >> 16 != slot) return nullptr;
  const uint32_t index = qpn & 0xFFFF;
  if (index < kFirstQpIndex) return nullptr;
  const uint32_t place = index - kFirstQpIndex;
  return qps.at(place >= qpBase ? place - qpBase : place + kQpIndexes - qpBase);
}

void Core::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  countReceived(length);
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
      (carrier || !qp->has(kPairPending) ? qp->local.get() != carrier : false)) {
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
  if (qp.has(kFailing) || !(isRequest ? rules.receivesRequests : rules.receivesResponses)) {
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
    if (qp.has(kFailing) || !accepts(qp, p)) return settle();
  }
  // Also in RTS: a passive side is there before its REP leaves, and it is the RTU that this packet stands in for.
  if (qp.has(kUnheard) && (qp.state() == kQpsRtr || qp.state() == kQpsRts)) {
    qp.clear(kUnheard);
    report(qp, QpEvent::kCommunicationEstablished, 0);
  }
  if (p.flags & wire::kRequest) {
    onRequest(qp, p);
  } else {
    onResponse(qp, p);
  }
  settle();
}

void Core::onCaptureFailed(int error) {
  for (KernelPort* port : kernels)
    if (port != nullptr) port->onCaptureFailed(error);
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
