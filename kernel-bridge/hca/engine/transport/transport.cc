#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

uint32_t transportOf(uint32_t flags) {
  return flags & wire::kDatagram ? kQptUd : flags & wire::kUnreliable ? kQptUc : kQptRc;
}

}  // namespace

Role::Role(Transport& transport) : t_(transport), c_(transport.context), s_(transport.scheduler) {}

Transport::Transport(Link& link, const Clock& clock, const EngineOptions& options) : context(link, clock, options) {}

Transport::~Transport() {
  for (KernelId k = 1; k < Context::kKernels; k++)
    if (context.kernels[k]) kernelEnd.detach(k);
}

// ── Steps ───────────────────────────────────────────────────────────────────────────────────────

bool Transport::step(uint64_t time, Stepper stepper) {
  // Another thread may have read a later time, and held the lock before this one.
  context.now = std::max(context.now, time);
  context.received = 0;
  bool moved = false;
  scheduler.deferring = stepper != Stepper::kEngine;
  scheduler.exceptAwaited = stepper == Stepper::kWoken;
  scheduler.makeDeferredDue();
  const bool mayHaveMore = context.link.poll(*this, kReceiveBudget);
  if (stepper == Stepper::kPoller && context.received == 0 && !mayHaveMore && scheduler.idle() &&
      context.timers.earliest() > context.now && busyPoll.waitsOn(context.now)) {
    context.link.pollBusiest(*this, kReceiveBudget, commandsWaiting);
    context.now = std::max(context.now, context.clock.recent());  // time has passed in which the thread did nothing
                                                                  // else
  }
  moved |= context.received > 0 || mayHaveMore;

  // A response unread in the socket is not a reason to retransmit; but timers must not wait forever either.
  if (!mayHaveMore || ++stepsWithoutTimers_ >= kMostWithoutTimers) {
    stepsWithoutTimers_ = 0;
    for (uint32_t i = 0; i < kTimersPerStep && context.timers.earliest() <= context.now; i++) {
      Qp& qp = *context.timers.top();
      context.timers.clear(qp);
      onTimer(qp);
      lifecycle.settle();
      moved = true;
    }
  }

  moved |= runScheduled();
  lifecycle.settle();
  context.link.flush();
  scheduler.deferring = scheduler.exceptAwaited = false;
  if (!scheduler.deferred.empty()) scheduler.wakeThread(context.now + Context::kDeferredAckNs);
  return moved;
}

bool Transport::stepLocal(bool waits) {
  context.received = 0;
  scheduler.deferring = true;
  context.link.pollLocal(*this, kReceiveBudget, waits ? &commandsWaiting : nullptr);
  if (!scheduler.idle()) {
    runScheduled();
    lifecycle.settle();
    context.link.flush();
  }
  scheduler.deferring = false;
  if (!scheduler.deferred.empty()) scheduler.wakeThread(context.now + Context::kDeferredAckNs);
  return context.received > 0;
}

// This is one round. Queue pairs that are re-queued during it wait for the next step.
bool Transport::runScheduled() {
  bool moved = false;
  const uint32_t sentBefore = uint32_t(context.counters.sentPackets);
  Qp* const end = scheduler.running.last();
  while (Qp* const qp = scheduler.running.pop()) {
    moved = true;
    if (run(*qp, kShare)) scheduler.schedule(*qp);
    if (qp == end || uint32_t(context.counters.sentPackets) - sentBefore >= kStepShare) break;
  }
  return moved;
}

bool Transport::run(Qp& qp, uint32_t share) {
  // Responses come first, because the peer's window waits for them. Half of the share is left for this side's requests.
  uint32_t forResponses = share / 2, forRequests = share / 2;
  bool more = responses.respond(qp, forResponses);
  more |= requester.request(qp, forRequests);
  if (stateRules(qp.state()).receivesRequests) responses.sendCongestionNotification(qp);
  responses.acknowledge(qp);  // after longer packets, so that it can be sent with them
  lifecycle.checkDrained(qp);
  return more;
}

void Transport::onTimer(Qp& qp) {
  if (qp.goneAt) {
    if (context.now >= qp.goneAt) return lifecycle.peerGone(qp);
    scheduler.setTimer(qp, qp.goneAt);
  }
  if (qp.has(kNakFatal)) scheduler.schedule(qp);  // it waited (Responses::mayBeCopying)
  if (!stateRules(qp.state()).continuesWork) return;
  const uint64_t next = requester.onTimer(qp);
  if (next != UINT64_MAX) scheduler.setTimer(qp, next);
}

// ── Packets ─────────────────────────────────────────────────────────────────────────────────────

void Transport::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  context.countReceived(length);
  if (length >= wire::kBthBytes && bth[0] == wire::kOpFragment) {
    bth = fragments.receive(meta, wire::parseBth(bth), bth, length, &length);
    if (!bth) return;
  }
  onWhole(meta, bth, length);
}

void Transport::onWhole(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (length < wire::kBthBytes) {
    context.counters.malformed++;
    return;
  }
  Packet p;
  p.bth = wire::parseBth(bth);
  if (p.bth.destinationQpn == wire::kGsiQpn) {
    if (gsi) gsi(gsiArgument, meta, bth, length);
    return;
  }
  if (p.bth.version != 0) {
    context.counters.malformed++;
    return;
  }
  if (p.bth.opcode == wire::kOpCnp) return onNotification(meta, p, length);
  const wire::OpInfo& op = wire::kOpcodes[p.bth.opcode];
  if (!op.flags) {
    context.counters.unknownOpcode++;
    return;
  }
  if (length < uint32_t(op.headerBytes) + p.bth.pad) {
    context.counters.malformed++;
    return;
  }
  p.flags = op.flags;
  p.extension = bth + wire::kBthBytes;
  p.payload = bth + op.headerBytes;
  p.length = length - op.headerBytes - p.bth.pad;
  if (p.bth.destinationQpn == wire::kMulticastQpn) {
    datagrams.receiveMulticast(meta, p);
    return lifecycle.settle();
  }
  Qp* qp = context.byQpn(p.bth.destinationQpn);
  if (!qp) {
    context.counters.unknownQp++;
    return;
  }
  if (!accepts(*qp, p)) return;
  if (qp->datagram()) {
    datagrams.receive(*qp, meta, p);
    return lifecycle.settle();
  }
  // While the pair is pending here, the peer may already know that it is refused, and send over UDP.
  if (!Context::comesFromPeer(*qp, meta) || (qp->local && !qp->has(kPairPending))) {
    context.counters.wrongAddress++;
    return;
  }
  if ((meta.trafficClass & wire::kEcnMask) == wire::kCongestionExperienced) congestion.onMarked(*qp);
  take(*qp, p);
}

void Transport::onNotification(const PacketMeta& meta, const Packet& p, uint32_t length) {
  Qp* const qp = length == wire::kBthBytes + wire::kCnpReservedBytes ? context.byQpn(p.bth.destinationQpn) : nullptr;
  if (!qp) {
    context.counters.unknownQp++;
  } else if (qp->datagram() || !Context::comesFromPeer(*qp, meta)) {
    context.counters.wrongAddress++;
  } else if (context.pkeyFits(*qp, p)) {
    congestion.onNotification(*qp);
  }
}

void Transport::onLocalPacket(LocalPair& pair, const LocalPacket& local) {
  context.countReceived(local.headerLength + local.length);
  Packet p;
  p.bth = wire::parseBth(local.bth);
  p.flags = wire::kOpcodes[p.bth.opcode].flags;
  p.extension = local.bth + wire::kBthBytes;
  p.payload = local.payload;
  p.length = local.length;
  p.pair = &pair;
  p.local = &local;
  Qp* qp = context.byQpn(p.bth.destinationQpn);
  if (!qp) {
    context.counters.unknownQp++;
    return;
  }
  if (!accepts(*qp, p)) return;
  if (qp->local.get() != &pair || local.sourceQpn != qp->attributes.destinationQpn) {
    context.counters.wrongAddress++;
    return;
  }
  if (!p.payload) p.span = qp->packetsFor(p.length);
  take(*qp, p);
}

// Returns whether the queue pair accepts such packets now.
bool Transport::accepts(Qp& qp, const Packet& p) {
  if (transportOf(p.flags) != qp.attributes.type) {
    context.counters.wrongTransport++;
    return false;
  }
  const StateRules& rules = stateRules(qp.state());
  const bool isRequest = (p.flags & wire::kRequest) != 0;
  if (qp.has(kFailing) || !(isRequest ? rules.receivesRequests : rules.receivesResponses)) {
    context.counters.wrongState++;
    return false;
  }
  return true;
}

// Handles a packet of the connection, received on either link.
void Transport::take(Qp& qp, const Packet& p) {
  if (!context.pkeyFits(qp, p)) return;
  qp.lastActivity = context.now;
  if (p.local && p.local->acknowledged && stateRules(qp.state()).receivesResponses && qp.reliable()) {
    completer.onAcknowledged(qp, p.local->acknowledged & wire::kPsnMask);
    if (qp.has(kFailing) || !accepts(qp, p)) return lifecycle.settle();
  }
  // This also applies in RTS, because a passive side is in RTS before it sends its REP, and this packet replaces the
  // RTU.
  if (qp.has(kUnheard) && (qp.state() == kQpsRtr || qp.state() == kQpsRts)) {
    qp.clear(kUnheard);
    context.report(qp, QpEvent::kCommunicationEstablished, 0);
  }
  if (p.flags & wire::kRequest) {
    responder.onRequest(qp, p);
  } else {
    completer.onResponse(qp, p);
  }
  lifecycle.settle();
}

void Transport::onLocalPair(LocalPair& pair) {
  context.received++;
  context.qps.forEach([&](Qp& qp) {
    if (qp.local.get() == &pair) links.settle(qp);
  });
}

void Transport::onPeerProcessGone(uint32_t peer, bool orderly) {
  context.received++;
  context.qps.forEach([&](Qp& qp) {
    if (!qp.peerLocal || qp.attributes.destinationQpn >> 16 != peer || !stateRules(qp.state()).receivesRequests) return;
    if (!orderly) return lifecycle.peerGone(qp);
    if (!qp.goneAt) qp.goneAt = context.now + Context::kGoodbyeNs;
    scheduler.setTimer(qp, qp.goneAt);
  });
}

void Transport::report(const HcaEvent& event) {
  for (KernelPort* port : context.kernels)
    if (port != nullptr) port->onEvent(event);
}

}  // namespace nd
