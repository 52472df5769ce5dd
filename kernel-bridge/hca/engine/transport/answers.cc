// What the responder sends (IBA 1 §9.7.5; roce-wire §3).
//
// Answers leave in request order. READ and ATOMIC answers stand in a queue; acknowledgements and NAKs wait until it
// is empty. Acknowledgements are coalesced: one for all packets of a poll.
#include "transport/core.h"

namespace nd {

using namespace abi;

bool Core::respond(Qp& qp, uint32_t& budget) {
  Responder& rs = qp.rs;
  if (!stateRules(qp.state()).receivesRequests || qp.has(kFailing | kPairPending)) return false;
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
  if (qp.local && qp.has(kPullFailed | kNakPending) && (!hasRoomToAnswer(qp) || mayBeCopying(qp))) return false;
  if (qp.has(kPullFailed)) {
    qp.clear(kPullFailed);
    rs.ackPending = false;  // it acknowledges what came before it
    qp.local->putUnpulled(qp.qpn, qp.attributes.destinationQpn, rs.expected, rs.unpulledLasting);
    return false;
  }
  if (qp.has(kNakPending)) {
    qp.clear(kNakPending);
    rs.ackPending = false;  // a NAK acknowledges what came before it
    sendAcknowledge(qp, rs.nakSyndrome, rs.nakPsn);
    if (qp.has(kNakFatal)) {
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
  if (!rs.ackPending || qp.has(kNakPending | kFailing) || rs.jobs.size() || !stateRules(qp.state()).receivesRequests)
    return;
  if (qp.has(kPairPending) || (qp.local && !hasRoomToAnswer(qp))) return;
  if (puttingOff && !rs.ackDue) return owe(qp);
  if (qp.local && !hasRoomToAnswer(qp)) return;  // the requests before it may have taken it
  rs.ackPending = rs.ackDue = false;
  sendAcknowledge(qp, wire::kSyndromeAck, rs.ackPsn);
}

// Before a queue pair ends: the peer is not to repeat, nor to think lost, what has been taken.
void Core::acknowledgeLast(Qp& qp) {
  Responder& rs = qp.rs;
  if (!rs.unanswered || qp.has(kNakPending | kNakSent | kPairPending) || rs.jobs.size() || !qp.reliable() ||
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
  if (!rs.ackPending || qp.has(kNakPending | kPullFailed) || rs.jobs.size()) return 0;
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
