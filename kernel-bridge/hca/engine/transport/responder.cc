// The responder: executes request packets and answers them (IBA 1 §9.7.4–9.7.5; roce-wire §3).
//
// Answers leave in request order. READ and ATOMIC answers stand in a queue; acknowledgements and NAKs wait until it
// is empty. Acknowledgements are coalesced: one for all packets of a poll.
#include "transport/core.h"

namespace nd {

using namespace abi;

namespace {

bool sizeFits(const Core::Packet& p, uint32_t mtu) {
  const uint32_t most = mtu * p.span;
  if (((p.length + p.bth.pad) & 3) != 0) return false;
  if (!(p.flags & wire::kCarriesData)) return p.length == 0 && p.bth.pad == 0;
  if (!(p.flags & wire::kLast)) return p.length == most && p.bth.pad == 0;
  return p.length <= most && (p.length > 0 || (p.flags & wire::kFirst) != 0);
}

// A WRITE of nothing without immediate data touches nothing: peers send it to see whether we are alive, and without
// a right to write they may ask that, too.
bool isProbe(const Core::Packet& p) {
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

// UC: a gap ends the message that was coming in; the next one that begins is taken, whatever its PSN (IBA 1 §9.8.2).
bool Core::inSequence(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  const bool gap = p.bth.psn != rs.expected, first = (p.flags & wire::kFirst) != 0;
  const uint32_t kind = p.flags & (wire::kSend | wire::kWrite);
  if (gap && (first || rs.open)) counters.outOfSequence++;
  if (rs.open && (gap || first || rs.open != kind)) {
    counters.droppedMessages++;
    rs.open = 0;
  }
  if (first) rs.expected = p.bth.psn;
  return first || rs.open != 0;
}

void Core::onRequest(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  if (!qp.reliable() && !inSequence(qp, p)) return;
  if (rs.nakFatal) return;  // refused already; only the answer is still under way
  const int32_t distance = wire::psnDiff(p.bth.psn, rs.expected);
  if (distance < 0) {
    counters.duplicateRequests++;
    onDuplicate(qp, p);
    return;
  }
  if (distance > 0) {
    counters.outOfSequence++;
    if (!rs.nakSent) {
      rs.nakSent = rs.nakPending = true;
      rs.nakSyndrome = wire::kNakSequence;
      rs.nakPsn = rs.expected;
      schedule(qp);
    }
    return;
  }
  rs.nakSent = rs.nakPending = rs.unpulled = false;

  const uint32_t kind = p.flags & (wire::kSend | wire::kWrite);
  if (p.flags & wire::kFirst ? rs.open != 0 : rs.open != kind) {
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  }
  const uint32_t right = qpRight(p.flags);
  if (right && !(qp.attributes.access & right) && !isProbe(p))
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if (p.flags & (wire::kRead | wire::kAtomic)) {
    const auto full = [&] { return rs.jobs.size() >= qp.attributes.responderResources; };
    // A requester that asks anew has what it asked before, even if a repetition of that is still to be answered.
    while (rs.jobs.size() && full() && rs.jobs[0].replay) rs.jobs.pop();
    // None allowed, or more at a time than agreed.
    if (full()) return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  }
  const bool takes = (p.flags & wire::kSend) ? (p.flags & wire::kFirst) != 0 : (p.flags & wire::kConsumes) != 0;
  if (takes && !takeReceive(qp, p)) return;
  if (rs.rnrNaks != 0) endWait(qp);
  if (!sizeFits(p, qp.mtu))
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
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

// A receive WQE for this packet, or an RNR NAK. False: the packet is done with.
bool Core::takeReceive(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  const bool good = qp.srq ? qp.shared.held || refreshShared(*qp.srq) : refreshReceive(qp);
  if (!good) {
    refuse(qp, wire::kNakRemoteOperation, p.bth.psn, 0, kWcLocalOp);
    return false;
  }
  const auto take = [&] { return qp.srq ? takeShared(qp) : rs.producer != rs.head; };
  if (take()) return true;
  if (!qp.reliable()) {
    rs.open = 0;
    counters.droppedMessages++;
    return false;
  }
  if (awaitReceive(qp) && take()) {
    endAwaiting(qp);
    return true;
  }
  counters.sentRnrNaks++;
  // What follows in flight is refused silently until this PSN comes again.
  rs.nakSent = rs.nakPending = true;
  rs.nakSyndrome = uint8_t(wire::kClassRnr | rnrCode(qp));
  rs.nakPsn = rs.expected;
  rs.rnrNaks++;
  schedule(qp);
  return false;
}

void Core::accepted(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  rs.expected = wire::psnAdd(rs.expected, p.span);
  rs.ackPsn = wire::psnAdd(p.bth.psn, p.span - 1);
  rs.ackable = rs.unanswered = true;
  rs.open = p.flags & wire::kLast ? 0 : p.flags & (wire::kSend | wire::kWrite);
  if (p.flags & wire::kLast) rs.msn = (rs.msn + 1) & wire::kPsnMask;
  // On the local link every message is acknowledged (core_straight.cc).
  if (qp.reliable() && (p.bth.ackRequest || (qp.local && (p.flags & wire::kLast)))) oweAnswer(qp, p.bth.ackRequest);
}

void Core::oweAnswer(Qp& qp, bool awaited) {
  Responder& rs = qp.rs;
  if (rs.ackPending) counters.acksCoalesced++;
  rs.ackPending = true;
  rs.ackDue |= awaited && unlessAwaited;
  if (puttingOff && !rs.ackDue) {
    owe(qp);
  } else {
    schedule(qp);
  }
}

void Core::completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length) {
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
  write(*qp.receiveCq, c);
}

bool Core::beginReceive(Qp& qp) {
  Responder& rs = qp.rs;
  rs.sgeCount = qp.receiveSgeCount();
  rs.received = rs.room = 0;
  rs.scatter = {};
  if (rs.sgeCount > qp.receiveSgeLimit()) return false;
  const uint32_t* sge = qp.receiveSges();
  for (uint32_t i = 0; i < rs.sgeCount; i++) rs.room += peekWord(sge + i * (kSgeBytes / 4) + kSgeLength);
  return true;
}

// Bytes at a message offset of the receive. 0 or a WV_WC_STATUS.
uint32_t Core::scatterToReceive(Qp& qp, uint32_t offset, const Packet& p) {
  Responder& rs = qp.rs;
  Piece places[OutPacket::kMaxPieces];
  uint32_t count = 0;
  const uint32_t status = pieces(qp.receivePd(), qp.scatterCache, qp.receiveSges(), rs.sgeCount, rs.scatter, offset,
                                 p.length, true, places, &count);
  return status ? status : moveTo(p, places, count);
}

void Core::onSend(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  if ((p.flags & wire::kFirst) && !beginReceive(qp))
    return refuse(qp, wire::kNakRemoteOperation, p.bth.psn, kWcLocalOp, kWcLocalOp);
  if (rs.received + p.length > rs.room || rs.received + p.length > wire::kMaxMessage)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, kWcLocalLength, kWcLocalLength);
  if (p.length) {
    const uint32_t status = scatterToReceive(qp, uint32_t(rs.received), p);
    if (status == kUnpulled) {
      rs.scatter.offset = UINT32_MAX;
      return refuseUnpulled(qp);
    }
    if (status) return refuse(qp, wire::kNakRemoteOperation, p.bth.psn, status, status);
    rs.received += p.length;
  }
  // The key is made useless before anybody learns that the message came.
  if ((p.flags & wire::kInvalidate) && !memory.invalidate(qp, wire::load32(p.extension)))
    return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, kWcLocalAccess, kWcLocalAccess);
  accepted(qp, p);
  if (p.flags & wire::kLast) completeReceive(qp, p, kOpReceive, uint32_t(rs.received));
}

void Core::onWrite(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  uint64_t address;
  uint64_t length;  // to be checked: the whole message at its start, the packet afterwards
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
    target = memory.remote(qp.remoteCache, qp, rs.writeRkey, address, length, kAccessRemoteWriteBit);
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
    if (moveTo(p, places, 2) != kWcSuccess) return refuseUnpulled(qp);
    __atomic_store_n(target + p.length - 1, last, __ATOMIC_RELEASE);
  }
  rs.received = total;
  accepted(qp, p);
  if (p.flags & wire::kConsumes) completeReceive(qp, p, kOpReceiveRdmaWrite, rs.writeLength);
}

void Core::remember(Qp& qp, const Resource& resource, bool inRing) {
  Responder& rs = qp.rs;
  if (rs.resources.full()) rs.resources.pop();
  rs.resources.push(resource);
  rs.expected = wire::psnAdd(rs.expected, resource.packets);
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
  rs.ackPending = rs.unanswered = false;  // the response acknowledges what came before it
  rs.jobs.push({resource.atomic, false, resource.psn, resource.address, resource.rkey, resource.length, rs.msn,
                resource.result, false, inRing});
  schedule(qp);
}

void Core::onReadRequest(Qp& qp, const Packet& p) {
  const wire::Reth reth = wire::parseReth(p.extension);
  if (reth.length > wire::kMaxMessage)
    return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  if (reth.length && !memory.remote(qp.remoteCache, qp, reth.rkey, reth.address, reth.length, kAccessRemoteRead))
    return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, 0, kWcLocalAccess);
  Resource r;
  r.psn = p.bth.psn;
  r.packets = qp.packetsFor(reth.length);
  r.address = reth.address;
  r.rkey = reth.rkey;
  r.length = reth.length;
  remember(qp, r, p.inRing());
}

void Core::onAtomic(Qp& qp, const Packet& p) {
  const wire::AtomicEth a = wire::parseAtomicEth(p.extension);
  uint8_t* target = memory.remote(qp.remoteCache, qp, a.rkey, a.address, 8, kAccessRemoteAtomic);
  if (!target) return refuse(qp, wire::kNakRemoteAccess, p.bth.psn, 0, kWcLocalAccess);
  if (a.address & 7) return refuse(qp, wire::kNakInvalidRequest, p.bth.psn, 0, kWcRemoteInvalidRequest);
  // Atomic towards the program's own threads as well.
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
  remember(qp, r, false);
}

// The requester went back, and will repeat everything after this as well.
void Core::onDuplicate(Qp& qp, const Packet& p) {
  Responder& rs = qp.rs;
  if (!(p.flags & (wire::kRead | wire::kAtomic))) {
    if (!rs.ackable || wire::psnDiff(p.bth.psn, rs.ackPsn) > 0) return;
    rs.ackPending = true;
    schedule(qp);
    return;
  }
  if (p.length || p.bth.pad) {
    counters.malformed++;
    return;
  }
  ResponseJob job;
  bool found = false;
  for (uint32_t i = 0; i < rs.resources.size() && !found; i++) {
    const Resource& r = rs.resources[i];
    const uint32_t offset = (p.bth.psn - r.psn) & wire::kPsnMask;
    if (r.atomic != ((p.flags & wire::kAtomic) != 0) || offset >= r.packets) continue;
    if (r.atomic) {
      job = {true, false, r.psn, 0, 0, 0, rs.msn, r.result, true};
      found = true;
      break;
    }
    const wire::Reth reth = wire::parseReth(p.extension);
    const uint64_t skipped = uint64_t(offset) << qp.mtuShift;
    found = reth.rkey == r.rkey && reth.address == r.address + skipped && reth.length + skipped <= r.length;
    job = {false, false, p.bth.psn, reth.address, reth.rkey, reth.length, rs.msn, 0, true, p.inRing()};
  }
  if (!found) return;
  while (rs.jobs.size() && wire::psnDiff(rs.jobs[rs.jobs.size() - 1].psn, job.psn) >= 0) rs.jobs.popBack();
  // One that is half answered may begin before this PSN and reach beyond it.
  if (rs.jobs.full()) return;
  if (rs.jobs.size()) {
    ResponseJob& before = rs.jobs[rs.jobs.size() - 1];
    const uint64_t gap = uint64_t((job.psn - before.psn) & wire::kPsnMask) << qp.mtuShift;
    if (!before.atomic && before.length > gap) before.length = uint32_t(gap);
  }
  rs.jobs.push(job);
  rs.ackPending = false;
  schedule(qp);
}

void Core::refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason) {
  Responder& rs = qp.rs;
  if (reason == kWcLocalProtection) counters.localProtectionErrors++;
  if (!qp.reliable()) {
    // What the peer did wrong costs it the message; what is wrong with our own queue, or too short there, is fatal.
    rs.open = 0;
    counters.droppedMessages++;
    if (receiveStatus == 0 && reason != kWcLocalOp) return;
    Failure failure;
    failure.receiveStatus = receiveStatus;
    failure.reason = reason;
    return fail(qp, failure);
  }
  counters.sentFatalNaks++;
  rs.nakPending = rs.nakFatal = true;
  rs.nakSyndrome = syndrome;
  rs.nakPsn = psn;
  rs.failStatus = receiveStatus;
  rs.failReason = reason;
  schedule(qp);
}

// ── Answers ─────────────────────────────────────────────────────────────────────────────────────

bool Core::respond(Qp& qp, uint32_t& budget) {
  Responder& rs = qp.rs;
  if (!stateRules(qp.state()).receivesRequests || qp.doomed || qp.waiting) return false;
  if (rs.awaitsReceive && hasReceive(qp)) offerReceives(qp);
  while (rs.jobs.size()) {
    if (budget == 0) return true;
    ResponseJob& job = rs.jobs[0];
    uint32_t span = 1;
    if (qp.local) {
      out.byReference = refersToTarget(qp, job);
      if (!hasRoom(qp, std::min(job.length, qp.mtu), out.byReference)) return false;
      // As requests do: what is repeated goes packet by packet.
      if (out.byReference && !job.replay) span = std::min(LocalPair::kNamedPackets, qp.packetsFor(job.length));
    }
    budget--;
    if (job.atomic) {
      sendAtomicResponse(qp, job);
      rs.jobs.pop();
    } else if (!sendReadResponse(qp, job, span)) {
      // The region went away under the READ.
      refuse(qp, wire::kNakRemoteAccess, job.psn, 0, kWcLocalAccess);
      while (rs.jobs.size()) rs.jobs.pop();
    } else if (job.length == 0) {
      rs.jobs.pop();
    }
  }
  if (qp.local && (rs.unpulled || rs.nakPending) && (!hasRoomToAnswer(qp) || mayBeCopying(qp))) return false;
  if (rs.unpulled) {
    rs.unpulled = rs.ackPending = false;  // it acknowledges what came before it
    qp.local->putUnpulled(qp.qpn, qp.attributes.destinationQpn, rs.expected, rs.unpulledLasting);
    return false;
  }
  if (rs.nakPending) {
    rs.nakPending = rs.ackPending = false;  // a NAK acknowledges what came before it
    sendAcknowledge(qp, rs.nakSyndrome, rs.nakPsn);
    if (rs.nakFatal) {
      Failure failure;
      failure.receiveStatus = rs.failStatus;
      failure.vendor = rs.nakSyndrome;
      failure.reason = rs.failReason;
      fail(qp, failure);
      return false;
    }
  }
  return false;
}

void Core::acknowledge(Qp& qp) {
  Responder& rs = qp.rs;
  if (!rs.ackPending || rs.nakPending || rs.jobs.size() || qp.doomed || !stateRules(qp.state()).receivesRequests)
    return;
  if (qp.waiting || (qp.local && !hasRoomToAnswer(qp))) return;
  if (puttingOff && !rs.ackDue) return owe(qp);
  if (qp.local && !hasRoomToAnswer(qp)) return;  // the requests before it may have taken it
  rs.ackPending = rs.ackDue = false;
  sendAcknowledge(qp, wire::kSyndromeAck, rs.ackPsn);
}

// Before a queue pair ends: the peer is not to repeat, nor to think lost, what has been taken.
void Core::acknowledgeLast(Qp& qp) {
  Responder& rs = qp.rs;
  if (!rs.unanswered || rs.nakPending || rs.nakSent || rs.jobs.size() || qp.waiting || !qp.reliable() ||
      (qp.local && !qp.local->ready(0, false)) || !stateRules(qp.state()).receivesRequests)
    return;
  sendAcknowledge(qp, wire::kSyndromeAck, rs.ackPsn);
  link.flush();
}

void Core::owe(Qp& qp) {
  if (qp.owing) return;
  qp.owing = true;
  qp.nextOwing = firstOwing;
  firstOwing = &qp;
}

// On the local link an acknowledgement needs no packet of its own where another leaves.
uint32_t Core::owedWord(Qp& qp) {
  Responder& rs = qp.rs;
  if (!rs.ackPending || rs.nakPending || rs.unpulled || rs.jobs.size()) return 0;
  rs.ackPending = rs.ackDue = rs.unanswered = false;
  forgive(qp);
  counters.acksCarried++;
  return rs.ackPsn | LocalEntry::kAcknowledges;
}

// What the step before put off is due in this one.
void Core::payDebts() {
  while (Qp* qp = firstOwing) {
    firstOwing = qp->nextOwing;
    qp->owing = false;
    if (!qp->rs.ackPending) continue;
    qp->rs.ackDue = true;
    schedule(*qp);
  }
}

void Core::forgive(Qp& qp) {
  if (!qp.owing) return;
  qp.owing = false;
  Qp** place = &firstOwing;
  while (*place != &qp) place = &(*place)->nextOwing;
  *place = qp.nextOwing;
}

bool Core::sendReadResponse(Qp& qp, ResponseJob& job, uint32_t span) {
  Responder& rs = qp.rs;
  const uint32_t length = std::min(job.length, span << qp.mtuShift);
  out.pieceCount = 0;
  if (length) {
    uint8_t* data = memory.remote(qp.remoteCache, qp, job.rkey, job.address, length, kAccessRemoteRead);
    if (!data) return false;
    out.shared[0] = out.byReference ? memory.sharedOf(qp.remoteCache, job.rkey) : nullptr;
    out.pieces[out.pieceCount++] = {data, length};
  }
  const bool last = job.length == length;
  wire::Bth bth;
  bth.opcode = job.started ? (last ? wire::kOpReadLast : wire::kOpReadMiddle)
                           : (last ? wire::kOpReadOnly : wire::kOpReadFirst);
  bth.pad = uint8_t(-length & 3);
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = job.psn;
  wire::emitBth(out.header, bth);
  out.headerLength = wire::kOpcodes[bth.opcode].headerBytes;
  if (out.headerLength > wire::kBthBytes)
    wire::store32(out.header + wire::kBthBytes, uint32_t(wire::kSyndromeAck) << 24 | job.msn);
  out.payloadLength = length;
  out.padLength = bth.pad;
  job.started = true;
  job.psn = wire::psnAdd(job.psn, span);
  job.address += length;
  job.length -= length;
  const bool names = out.byReference && length != 0;
  transmit(qp, qp.route);
  if (names) {
    rs.named = true;
    rs.namedEnd = qp.local->position();
  }
  return true;
}

void Core::sendAtomicResponse(Qp& qp, const ResponseJob& job) {
  wire::Bth bth;
  bth.opcode = wire::kOpAtomicAcknowledge;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = job.psn;
  wire::emitBth(out.header, bth);
  wire::store32(out.header + wire::kBthBytes, uint32_t(wire::kSyndromeAck) << 24 | job.msn);
  wire::store64(out.header + wire::kBthBytes + wire::kAethBytes, job.result);
  out.headerLength = wire::kOpcodes[bth.opcode].headerBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  transmit(qp, qp.route);
}

void Core::sendAcknowledge(Qp& qp, uint8_t syndrome, uint32_t psn) {
  wire::Bth bth;
  bth.opcode = wire::kOpAcknowledge;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = psn;
  wire::emitBth(out.header, bth);
  wire::store32(out.header + wire::kBthBytes, uint32_t(syndrome) << 24 | qp.rs.msn);
  qp.rs.unanswered = false;
  out.headerLength = wire::kBthBytes + wire::kAethBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  transmit(qp, qp.route);
}

// What waits to be answered, and the newest that may have to be answered again, is kept.
void Core::resizeResources(Qp& qp) {
  Responder& rs = qp.rs;
  const uint32_t capacity = std::max(qp.attributes.responderResources, rs.jobs.size());
  if (capacity == rs.resources.capacity()) return;
  Fifo<Resource> kept;
  kept.reset(capacity);
  const uint32_t n = std::min(capacity, rs.resources.size());
  for (uint32_t i = rs.resources.size() - n; i < rs.resources.size(); i++) kept.push(rs.resources[i]);
  rs.resources = std::move(kept);
  Fifo<ResponseJob> jobs;
  jobs.reset(capacity);
  for (; rs.jobs.size(); rs.jobs.pop()) jobs.push(rs.jobs[0]);
  rs.jobs = std::move(jobs);
}

}  // namespace nd
