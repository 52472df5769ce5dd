#include "transport/responder.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

bool sizeFits(const Packet& p, uint32_t mtu) {
  const uint32_t most = mtu * p.span;
  if (((p.length + p.bth.pad) & 3) != 0) return false;
  if (!(p.flags & wire::kCarriesData)) return p.length == 0 && p.bth.pad == 0;
  if (!(p.flags & wire::kLast)) return p.length == most && p.bth.pad == 0;
  return p.length <= most && (p.length > 0 || (p.flags & wire::kFirst) != 0);
}

// Returns whether it is a WRITE of 0 bytes without immediate data, which peers send as a keep-alive. It accesses no
// memory and needs no right.
bool isProbe(const Packet& p) {
  constexpr uint32_t only = wire::kFirst | wire::kLast;
  return (p.flags & (wire::kWrite | only | wire::kConsumes)) == (wire::kWrite | only) && p.length == 0 &&
         wire::parseReth(p.extension).length == 0;
}

uint32_t qpRight(uint32_t flags) {
  if (flags & wire::kWrite) return kAccessRemoteWriteBit;
  if (flags & wire::kRead) return kAccessRemoteRead;
  if (flags & wire::kAtomic) return kAccessRemoteAtomic;
  return 0;
}

}  // namespace

void Responder::onRequest(Qp& qp, const Packet& p) {
  take(qp, p);
  if (qp.has(kKeeps)) t_.selectiveAck.deliver(qp);
}

void Responder::take(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  if (!qp.reliable() && !inSequence(qp, p)) return;
  if (qp.has(kNakFatal)) return;  // already refused; only the response is still under way
  const int32_t distance = wire::psnDiff(p.bth.psn, rs.expected);
  if (distance < 0) {
    c_.counters.duplicateRequests++;
    onDuplicate(qp, p);
    return;
  }
  if (distance > 0) {
    c_.counters.outOfSequence++;
    if (!t_.selectiveAck.keep(qp, p) && !qp.has(kNakSent)) {
      qp.set(kNakSent | kNakPending);
      rs.nakSyndrome = wire::kNakSequence;
      rs.nakPsn = rs.expected;
      s_.schedule(qp);
    }
    return;
  }
  qp.clear(kNakSent | kNakPending | kPullFailed);

  const uint32_t kind = p.flags & (wire::kSend | wire::kWrite);
  if (p.flags & wire::kFirst ? qp.openKind() != 0 : qp.openKind() != kind) {
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  }
  const uint32_t right = qpRight(p.flags);
  if (right && !(qp.attributes.access & right) && !isProbe(p))
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if ((p.flags & (wire::kRead | wire::kAtomic)) && !hasResource(qp))
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  const bool takes = (p.flags & wire::kSend) ? (p.flags & wire::kFirst) != 0 : (p.flags & wire::kConsumes) != 0;
  if (takes && !takeReceive(qp, p)) return;
  if (rs.rnrNaks != 0) t_.rnr.endWait(qp);
  if (!sizeFits(p, qp.mtu)) return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if (p.flags & wire::kSend) {
    onSend(qp, p);
  } else if (p.flags & wire::kWrite) {
    onWrite(qp, p);
  } else if (p.flags & wire::kRead) {
    onReadRequest(qp, p);
  } else {
    onAtomic(qp, p);
  }
}

// On UC, a gap ends the message being received. The next message that begins is accepted, whatever its PSN (IBA 1
// §9.8.2).
bool Responder::inSequence(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  const bool gap = p.bth.psn != rs.expected, first = (p.flags & wire::kFirst) != 0;
  const uint32_t kind = p.flags & (wire::kSend | wire::kWrite);
  if (gap && (first || qp.openKind())) c_.counters.outOfSequence++;
  if (qp.openKind() && (gap || first || qp.openKind() != kind)) {
    c_.counters.droppedMessages++;
    qp.openMessage(0);
  }
  if (first) rs.expected = p.bth.psn;
  return first || qp.openKind() != 0;
}

// Takes a receive WQE for this packet, or sends an RNR NAK. Returns false if the packet has been handled.
bool Responder::takeReceive(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  const bool good = qp.srq ? qp.shared.held || t_.sharedReceives.refresh(*qp.srq) : c_.refreshReceive(qp);
  if (!good) {
    refuse(qp, wire::kNakRemoteOperation, p.bth.psn, 0, kWcLocalOp);
    return false;
  }
  const auto take = [&] { return qp.srq ? t_.sharedReceives.take(qp) : rs.producer != rs.head; };
  if (take()) return true;
  if (!qp.reliable()) {
    qp.openMessage(0);
    c_.counters.droppedMessages++;
    return false;
  }
  if (t_.rnr.awaitReceive(qp) && take()) {
    t_.rnr.endAwaiting(qp);
    return true;
  }
  c_.counters.sentRnrNaks++;
  // Later packets in flight are dropped silently until this PSN arrives again.
  qp.set(kNakSent | kNakPending);
  rs.nakSyndrome = uint8_t(wire::kClassRnr | t_.rnr.rnrCode(qp));
  rs.nakPsn = rs.expected;
  rs.rnrNaks++;
  s_.schedule(qp);
  return false;
}

void Responder::accepted(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  rs.expected = wire::psnAdd(rs.expected, p.span);
  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span - 1);
  rs.ackable = rs.unacknowledged = true;
  qp.openMessage(p.flags & wire::kLast ? 0 : p.flags);
  if (p.flags & wire::kLast) rs.msn = (rs.msn + 1) & wire::kPsnMask;
  // On the local link every message is acknowledged (fast_path.h).
  if (qp.reliable() && (p.bth.ackRequest || (qp.local && (p.flags & wire::kLast))))
    t_.responses.scheduleAck(qp, p.bth.ackRequest);
}

bool Responder::beginReceive(Qp& qp) {
  ReceiveState& rs = qp.rs;
  rs.sges = qp.nextReceive();
  rs.received = rs.room = 0;
  rs.scatter = {};
  if (rs.sges.count > qp.receiveSgeLimit()) return false;
  rs.room = rs.sges.bytes();
  return true;
}

// Stores bytes at a message offset of the receive. Returns 0 or a WV_WC_STATUS.
uint32_t Responder::scatterToReceive(Qp& qp, uint32_t offset, const Packet& p) {
  ReceiveState& rs = qp.rs;
  Piece places[OutPacket::kMaxPieces];
  uint32_t count = 0;
  const uint32_t status =
      c_.pieces(qp.receivePd(), qp.scatterCache, rs.sges, rs.scatter, offset, p.length, true, places, &count);
  return status ? status : t_.links.copyPayload(p, places, count);
}

void Responder::completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length) {
  Completion c;
  c.token = qp.token;
  c.wqe = qp.srq ? qp.shared.wqe : qp.rs.head++;
  c.opcode = opcode;
  c.length = length;
  c.flags = kCqeFlagReceiveQueue;
  if (qp.srq) c.flags |= kCqeFlagSharedReceive;
  qp.shared.held = false;
  const bool datagram = (p.flags & wire::kDatagram) != 0;
  if (datagram) c.flags |= kCqeFlagGrh;
  c.pkeyIndex = qp.attributes.pkeyIndex;
  c.sourceQpn = datagram ? wire::parseDeth(p.extension).sourceQpn : qp.attributes.destinationQpn;
  if (p.bth.solicited) c.flags |= kCqeFlagSolicited;
  if (p.flags & wire::kImmediate) c.flags |= kCqeFlagImmediate;
  if (p.flags & wire::kInvalidate) c.flags |= kCqeFlagInvalidated;
  const uint32_t before = p.flags & wire::kReth ? wire::kRethBytes : datagram ? wire::kDethBytes : 0;
  if (p.flags & (wire::kImmediate | wire::kInvalidate)) c.immediate = wire::load32(p.extension + before);
  c_.write(*qp.receiveCq, c);
}

void Responder::onSend(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  if ((p.flags & wire::kFirst) && !beginReceive(qp))
    return refuse(qp, wire::kNakRemoteOperation, p.bth.psn, kWcLocalOp, kWcLocalOp);
  if (rs.received + p.length > rs.room || rs.received + p.length > wire::kMaxMessage)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, kWcLocalLength, kWcLocalLength);
  if (p.length) {
    const uint32_t status = scatterToReceive(qp, uint32_t(rs.received), p);
    if (status == Context::kUnpulled) {
      rs.scatter.offset = UINT32_MAX;
      return refusePull(qp);
    }
    if (status) return refuse(qp, wire::kNakRemoteOperation, p.bth.psn, status, status);
    rs.received += p.length;
  }
  // The key is invalidated before the message's arrival is reported.
  if ((p.flags & wire::kInvalidate) && !c_.memory.invalidate(qp, wire::load32(p.extension), Memory::By::kPeer))
    return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, kWcLocalAccess, kWcLocalAccess);
  accepted(qp, p);
  if (p.flags & wire::kLast) completeReceive(qp, p, kOpReceive, uint32_t(rs.received));
}

void Responder::onWrite(Qp& qp, const Packet& p) {
  ReceiveState& rs = qp.rs;
  uint64_t address;
  uint64_t length;  // length to be checked: the whole message at its start, afterwards the packet
  if (p.flags & wire::kFirst) {
    const wire::Reth reth = wire::parseReth(p.extension);
    if (reth.length > wire::kMaxMessage)
      return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
    rs.writeAddress = address = reth.address;
    rs.writeRkey = reth.rkey;
    rs.writeLength = reth.length;
    rs.received = 0;
    length = reth.length;
  } else {
    address = rs.writeAddress + rs.received;
    length = p.length;
  }
  uint8_t* target = nullptr;
  if (length) {
    target = c_.memory.remote(qp.remoteCache, qp, rs.writeRkey, address, length, kAccessRemoteWriteBit);
    if (!target) return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, 0, kWcLocalAccess);
  }
  const uint64_t total = rs.received + p.length;
  if (p.flags & wire::kLast ? total != rs.writeLength : total >= rs.writeLength)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if (p.payload) {
    copyInOrder(target, p.payload, p.length);
  } else if (p.length) {
    uint8_t last;
    const Piece places[] = {{target, p.length - 1}, {&last, 1}};
    if (t_.links.copyPayload(p, places, 2) != kWcSuccess) return refusePull(qp);
    __atomic_store_n(target + p.length - 1, last, __ATOMIC_RELEASE);
  }
  rs.received = total;
  accepted(qp, p);
  if (p.flags & wire::kConsumes) completeReceive(qp, p, kOpReceiveRdmaWrite, rs.writeLength);
}

void Responder::onReadRequest(Qp& qp, const Packet& p) {
  const wire::Reth reth = wire::parseReth(p.extension);
  if (reth.length > wire::kMaxMessage)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if (reth.length && !c_.memory.remote(qp.remoteCache, qp, reth.rkey, reth.address, reth.length, kAccessRemoteRead))
    return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, 0, kWcLocalAccess);
  Resource r;
  r.psn = p.bth.psn;
  r.packets = qp.packetsFor(reth.length);
  r.address = reth.address;
  r.rkey = reth.rkey;
  r.length = reth.length;
  remember(qp, r, p);
}

void Responder::onAtomic(Qp& qp, const Packet& p) {
  const wire::AtomicEth a = wire::parseAtomicEth(p.extension);
  uint8_t* target = c_.memory.remote(qp.remoteCache, qp, a.rkey, a.address, 8, kAccessRemoteAtomic);
  if (!target) return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, 0, kWcLocalAccess);
  if ((a.address & 7) != 0 || (reinterpret_cast<uint64_t>(target) & 7) != 0)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  // This is atomic with respect to the program's own threads as well.
  uint64_t* word = reinterpret_cast<uint64_t*>(target);
  Resource r;
  r.atomic = true;
  r.psn = p.bth.psn;
  r.packets = 1;
  if (p.bth.opcode == wire::kOpFetchAdd) {
    r.result = __atomic_fetch_add(word, a.swapOrAdd, __ATOMIC_SEQ_CST);
  } else {
    r.result = a.compare;
    __atomic_compare_exchange_n(word, &r.result, a.swapOrAdd, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  remember(qp, r, p);
}

void Responder::refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason) {
  ReceiveState& rs = qp.rs;
  if (reason == kWcLocalProtection) c_.counters.localProtectionErrors++;
  if (!qp.reliable()) {
    // A peer's error only loses the message. An error of this side's queue, or a receive that is too short, is fatal.
    qp.openMessage(0);
    c_.counters.droppedMessages++;
    if (receiveStatus == 0 && reason != kWcLocalOp) return;
    Failure failure;
    failure.receiveStatus = receiveStatus;
    failure.reason = reason;
    return t_.lifecycle.fail(qp, failure);
  }
  c_.counters.sentFatalNaks++;
  qp.set(kNakPending | kNakFatal);
  rs.nakSyndrome = syndrome;
  rs.nakPsn = psn;
  rs.failStatus = receiveStatus;
  rs.failReason = reason;
  s_.schedule(qp);
}

// This is as if the packet had been lost, but the peer is given the reason.
void Responder::refusePull(Qp& qp) {
  qp.set(kNakSent | kPullFailed);  // later packets in flight are refused silently until this PSN arrives again
  qp.rs.unpulledLasting = t_.links.pullLasting;
  s_.schedule(qp);
}

}  // namespace nd
