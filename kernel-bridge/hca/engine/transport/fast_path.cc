#include "transport/fast_path.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kMostInARow = 64;  // messages of one queue pair in a row

}  // namespace

// ── Requester ───────────────────────────────────────────────────────────────────────────────────

bool FastPath::ring(Qp& qp) {
  if (qp.local) {
    if (!qp.local->up()) return false;
    qp.local->prepare();
  }
  // Packets of a process to itself are delivered by steps of the slow path.
  if (qp.has(kBlocksDoorbell) || (qp.local && qp.local->self) || !c_.refreshSend(qp)) return false;
  return qp.local ? ringLocal(qp) : ringWire(qp);
}

inline bool FastPath::ringLocal(Qp& qp) {
  SendState& rq = qp.rq;
  if (!qp.has(kBlocksDirect) && rq.next != rq.producer) {
    if (t_.direct.run(qp)) return false;
    if (rq.next == rq.producer) return true;
  }  // without requests the doorbell was for a receive
  const bool wasOutstanding = rq.outstanding();
  const uint32_t n = send(qp);
  if (n != 0 && !wasOutstanding) {
    // If a timer already fires in time, reading the clock can wait until then.
    if (c_.timers.has(qp) && qp.timerDue <= c_.now + t_.requester.ackTimeout(qp)) {
      rq.ackStartStale = true;
    } else {
      c_.now = std::max(c_.now, c_.clock.recent());
      t_.requester.startAckTimer(qp);
    }
  }
  if (n == 0 || rq.next != rq.producer) return false;
  qp.local->flush(false);
  return true;
}

uint32_t FastPath::send(Qp& qp) {
  SendState& rq = qp.rq;
  LocalPair& pair = *qp.local;
  const uint16_t pkey = qp.pkey();
  if (qp.has(kBlocksSend) || !pair.fast || !isPkey(pkey)) return 0;
  const uint32_t most = std::min(LocalSmall::kMostBytes, qp.mtu);
  uint32_t acknowledges = 0, n = 0;
  uint64_t bytes = 0;
  for (; n < kMostInARow && rq.next != rq.producer; n++) {
    const uint8_t* data;
    const SendEntry* const e = readSmall(qp, most, most, &data);
    if (!e || (e->length >= LocalPair::kReferenceFrom && t_.requester.mayReferToSource(qp, *e)) ||
        !pair.ready(e->length, false))
      break;
    if (n == 0) acknowledges = t_.responses.carriedAck(qp);
    // Everything is acknowledged on this link. AckReq shows that the sender waits for the ACK.
    const bool ackRequest =
        (e->flags & kSendFlagSignaled) != 0 || qp.signalAll || 4 * ((rq.psn - rq.una) & wire::kPsnMask) >= rq.window;
    const wire::Bth bth = requestBth(qp, *e, pkey, ackRequest);
    const uint32_t length = e->length;
    if (e->opcode == kOpSend) {
      pair.putSend(bth, qp.qpn, qp.route.trafficClass, acknowledges, data, length);
    } else {
      pair.putWrite(bth, {e->remote, e->rkey, length}, qp.qpn, qp.route.trafficClass, acknowledges, data, length);
      bytes += wire::kRethBytes;
    }
    acknowledges = 0;
    bytes += wire::kBthBytes + length;
    leftSmall(rq);
  }
  if (n == 0) return 0;
  c_.counters.sentPackets += n;
  c_.counters.sentFast += n;
  c_.counters.sentBytes += bytes;
  rq.sinceAck = rq.messagesSinceAck = 0;
  rq.ackRequestEnd = rq.psn;
  rq.lastPosition = pair.position();
  qp.lastActivity = c_.now;
  return n;
}

// Over UDP, a single message is sent directly; several together take the slow path.
inline bool FastPath::ringWire(Qp& qp) {
  SendState& rq = qp.rq;
  const uint16_t pkey = qp.pkey();
  constexpr uint32_t kMost = Link::kSingleMostBytes - wire::kBthBytes;
  if (rq.producer - rq.next != 1 || !isPkey(pkey)) return false;
  const uint8_t* data;
  const SendEntry* const e = readSmall(qp, std::min(kMost, qp.mtu), std::min(kMost - wire::kRethBytes, qp.mtu), &data);
  if (!e) return false;

  c_.now = std::max(c_.now, c_.clock.recent());
  const uint32_t sinceAck = rq.sinceAck, messagesSinceAck = rq.messagesSinceAck;
  const bool ackRequest = t_.congestion.wantsAckRequest(qp, *e, true, 1), writes = e->opcode == kOpWrite;
  const wire::Bth bth = requestBth(qp, *e, pkey, ackRequest);
  const uint32_t length = e->length, header = wire::kBthBytes + (writes ? wire::kRethBytes : 0),
                 total = header + length + bth.pad;
  uint8_t* const packet = packet_ + Link::kSingleRoom;
  wire::emitBth(packet, bth);
  if (writes) wire::emitReth(packet + wire::kBthBytes, {e->remote, e->rkey, length});
  if (bth.pad) std::memset(packet + total - 4, 0, 4);
  copyBytes(packet + header, data, length);
  if (!c_.link.sendSingle(qp.route, packet, total)) {
    rq.sinceAck = sinceAck;
    rq.messagesSinceAck = messagesSinceAck;
    return false;
  }

  // The message has been sent; bookkeeping can follow.
  const bool wasOutstanding = rq.outstanding();
  if (ackRequest && !rq.timing) {
    rq.timing = true;
    rq.timedPsn = rq.psn;
    rq.timedAt = c_.now;
  }
  leftSmall(rq);
  if (ackRequest) rq.ackRequestEnd = rq.psn;
  c_.counters.sentPackets++;
  c_.counters.sentFast++;
  c_.counters.sentBytes += header + length;
  qp.lastActivity = c_.now;
  if (!wasOutstanding) t_.requester.startAckTimer(qp);
  // A deferred ACK follows while the peer processes the message.
  if (qp.rs.ackPending) {
    t_.responses.acknowledge(qp);
    c_.link.flush();
  }
  return true;
}

// Returns the BTH of a request that the requester would send as one packet.
inline wire::Bth FastPath::requestBth(const Qp& qp, const SendEntry& e, uint16_t pkey, bool ackRequest) {
  wire::Bth bth;
  bth.opcode = e.opcode == kOpWrite ? wire::kOpWriteOnly : wire::kOpSendOnly;
  bth.solicited = e.opcode == kOpSend && (e.flags & kSendFlagSolicited) != 0;
  bth.pad = uint8_t(-e.length & 3);
  bth.pkey = pkey;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.ackRequest = ackRequest;
  bth.psn = qp.rq.psn;
  return bth;
}

// Returns the next request, parsed into its entry, if it is a SEND or WRITE in one piece of at most the given number of
// bytes and the window has room; otherwise null. `most` applies to a SEND, `mostWritten` to a WRITE. `data`: its
// payload, or null if it has none. The entry is valid from leftSmall() on. It then equals that of the slow path, in
// case the request has to be retransmitted.
inline SendEntry* FastPath::readSmall(Qp& qp, uint32_t most, uint32_t mostWritten, const uint8_t** data) {
  constexpr uint32_t kFlags = kSendFlagSignaled | kSendFlagSolicited | kSendFlagInline;
  const SendState& rq = qp.rq;
  const uint32_t* const w = qp.sendWqe(rq.next);
  SendEntry& e = qp.entry(rq.next);
  e.readKind(w);
  if (e.opcode > kOpWrite || (e.flags & ~kFlags) != 0) return nullptr;
  const bool writes = e.opcode == kOpWrite;
  if (e.readLength(w, std::min(qp.sendSge, 1u), qp.maxInline, writes ? mostWritten : most) != 0) return nullptr;
  *data = nullptr;
  if (e.length != 0) {
    const SgeList sges = e.sges(w);
    *data = e.isInline() ? SendWqe::inlineBytes(w)
                         : c_.memory.local(qp.gatherCache, qp.pd, sges.lkey(0), sges.address(0), e.length, false);
    if (!*data) return nullptr;
  }
  if (writes) {
    if (e.length == 0) return nullptr;  // no data, and so no key
    e.readTarget(w);
  }
  e.firstPsn = rq.psn;
  e.packets = 1;
  e.status = 0;
  e.done = false;
  return t_.congestion.windowTakes(qp, 1, true) ? &e : nullptr;
}

inline void FastPath::leftSmall(SendState& rq) {
  rq.psn = rq.maxPsn = wire::psnAdd(rq.psn, 1);
  rq.next++;
  rq.begun = rq.parsed = rq.next;
}

// ── Completer ───────────────────────────────────────────────────────────────────────────────────

// Handles an ACK that completes whole requests, when everything posted has been sent.
inline bool FastPath::onAcknowledge(Qp& qp, uint32_t psn) {
  SendState& rq = qp.rq;
  if (qp.has(kBlocksAcknowledge) || wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0 ||
      rq.next != rq.producer)
    return false;
  const uint32_t answered = static_cast<uint32_t>(wire::psnDiff(psn, rq.una)) + 1;
  for (uint32_t i = 0; i < answered; i++) {
    // Local work has no PSN, so the acknowledged range can extend further than these entries.
    const SendEntry& e = qp.entry(rq.head + i);
    if (i == rq.next - rq.head || e.opcode > kOpWrite || e.packets != 1) return false;
  }
  for (uint32_t i = 0; i < answered; i++) {
    rq.una = wire::psnAdd(rq.una, 1);
    t_.completer.completeHead(qp);
    if (rq.head != rq.next) t_.completer.retireLocal(qp);
  }
  rq.retries = rq.rnrRetries = rq.probes = 0;
  rq.fastRetried = false;
  qp.clear(kProbing);
  rq.ackStart = c_.now;
  t_.congestion.sampleRoundTrip(rq);
  if (rq.una == rq.psn) qp.clear(kAwaited);
  else if (qp.has(kAwaited)) s_.schedule(qp);  // an ACK of the rest may have to be requested
  return true;
}

// ── Responder ───────────────────────────────────────────────────────────────────────────────────

// Returns whether the message may take the fast path, and the destination of its payload, or null if it has none.
inline bool FastPath::findPlace(Qp& qp, const wire::Bth& bth, const SmallMessage& m, uint8_t** to) {
  ReceiveState& rs = qp.rs;
  *to = nullptr;
  if (qp.has(kBlocksReceive) || bth.psn != rs.expected || m.length > qp.mtu) return false;
  if (m.writes) {
    if (m.length == 0 || !(qp.attributes.access & kAccessRemoteWriteBit)) return false;
    *to = c_.memory.remote(qp.remoteCache, qp, m.rkey, m.address, m.length, kAccessRemoteWriteBit);
    return *to != nullptr;
  }
  if (qp.srq || (rs.producer == rs.head && (!c_.refreshReceive(qp) || rs.producer == rs.head))) return false;
  const SgeList sges = parseReceive(qp.receiveWqe(rs.head));
  if (m.length == 0) return sges.count <= qp.receiveSge;
  if (sges.count != 1 || qp.receiveSge == 0 || m.length > sges.length(0)) return false;
  *to = c_.memory.local(qp.scatterCache, qp.pd, sges.lkey(0), sges.address(0), m.length, true);
  return *to != nullptr;
}

// Called when the payload of the message has been stored.
inline void FastPath::tookSmall(Qp& qp, const wire::Bth& bth, const SmallMessage& m) {
  ReceiveState& rs = qp.rs;
  rs.received = m.length;
  rs.expected = wire::psnAdd(bth.psn, 1);
  rs.ackPsn = bth.psn;
  rs.ackable = rs.unacknowledged = true;
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
  if (m.writes) return;
  Completion c;
  c.token = qp.token;
  c.wqe = rs.head++;
  c.opcode = kOpReceive;
  c.length = m.length;
  c.flags = kCqeFlagReceiveQueue | (bth.solicited ? kCqeFlagSolicited : 0);
  c.pkeyIndex = qp.attributes.pkeyIndex;
  c.sourceQpn = qp.attributes.destinationQpn;
  c_.write(*qp.receiveCq, c);
}

bool FastPath::onSinglePacket(const PacketMeta& meta, const uint8_t* bytes, uint32_t size) {
  const wire::Bth bth = wire::parseBth(bytes);
  Qp* const found = c_.byQpn(bth.destinationQpn);
  if (!found || bth.version != 0) return false;
  Qp& qp = *found;
  if (qp.local || !Context::comesFromPeer(qp, meta) ||
      (meta.trafficClass & wire::kEcnMask) == wire::kCongestionExperienced || !pkeysFit(bth.pkey, qp.pkey()))
    return false;
  const auto done = [&] {
    c_.counters.receivedFast++;
    c_.countReceived(size);
    qp.lastActivity = c_.now;
    t_.lifecycle.settle();
    return true;
  };
  if (bth.opcode == wire::kOpAcknowledge) {
    if (size != wire::kBthBytes + wire::kAethBytes || bth.pad ||
        (bytes[wire::kBthBytes] & wire::kSyndromeClass) != wire::kClassAck || !onAcknowledge(qp, bth.psn))
      return false;
    return done();
  }
  const uint32_t header = wire::kOpcodes[bth.opcode].headerBytes;
  if ((bth.opcode != wire::kOpWriteOnly && bth.opcode != wire::kOpSendOnly) || size < header + bth.pad) return false;
  SmallMessage m;
  m.length = size - header - bth.pad;
  m.writes = bth.opcode == wire::kOpWriteOnly;
  if (m.writes && !m.parseReth(bytes + wire::kBthBytes)) return false;
  uint8_t* to;
  if (!findPlace(qp, bth, m, &to)) return false;

  if (m.writes) {
    copyInOrder(to, bytes + header, m.length);
  } else {
    copyBytes(to, bytes + header, m.length);
  }
  if (bth.ackRequest) t_.responses.scheduleAck(qp, true);
  tookSmall(qp, bth, m);
  return done();
}

bool FastPath::onLocalSmall(LocalPair& pair, const LocalSmall& m) {
  const wire::Bth bth = m.bth();
  Qp* const found = c_.byQpn(bth.destinationQpn);
  if (!found) return false;
  Qp& qp = *found;
  uint8_t* to;
  if (qp.local.get() != &pair || m.sourceQpn() != qp.attributes.destinationQpn || ((m.length + bth.pad) & 3) != 0 ||
      !pkeysFit(bth.pkey, qp.pkey()) || !findPlace(qp, bth, m, &to))
    return false;

  c_.countReceived(m.packetBytes());
  qp.lastActivity = c_.now;
  if (m.acknowledged() != 0 && stateRules(qp.state()).receivesResponses) {
    const uint32_t psn = m.acknowledged() & wire::kPsnMask;
    if (!onAcknowledge(qp, psn)) t_.completer.onAcknowledged(qp, psn);
    if (qp.has(kFailing | kClosed)) {
      c_.counters.wrongState++;
      t_.lifecycle.settle();
      return true;
    }
  }
  if (m.bulk) {
    copyInOrder(to, m.bulk, m.length);
  } else if (m.writes) {
    uint8_t bytes[LocalSmall::kMostInEntry];
    m.copyFromEntry(bytes);
    copyInOrder(to, bytes, m.length);
  } else if (m.length != 0) {
    m.copyFromEntry(to);
  }
  t_.responses.scheduleAck(qp, bth.ackRequest);
  tookSmall(qp, bth, m);
  t_.lifecycle.settle();
  return true;
}

}  // namespace nd
