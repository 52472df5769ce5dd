#include "transport/responder.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

bool Responses::respond(Qp& qp, uint32_t& budget) {
  OutPacket& out = t_.links.out;
  ReceiveState& rs = qp.rs;
  if (!stateRules(qp.state()).receivesRequests || qp.has(kFailing | kPairPending)) return false;
  if (qp.has(kAwaitsReceive) && t_.rnr.hasReceive(qp)) t_.rnr.offer(qp);
  if (rs.repeats && !repeat(qp, budget)) return true;
  while (rs.jobs.size()) {
    if (budget == 0) return true;
    ResponseJob& job = rs.jobs[0];
    uint32_t span = 1;
    if (qp.local) {
      out.byReference = refersToTarget(qp, job);
      if (!t_.links.hasRoom(qp, std::min(job.length, qp.mtu), out.byReference)) return false;
      // As for requests, retransmission goes packet by packet.
      if (out.byReference && !job.replay) span = std::min(LocalPair::kReferencePackets, qp.packetsFor(job.length));
    }
    budget--;
    if (job.atomic) {
      sendAtomicResponse(qp, job);
      rs.jobs.pop();
    } else if (!sendReadResponse(qp, job, span)) {
      // The region has been invalidated during the READ.
      if (job.replay) {
        refuseRepetition(qp, job);
        rs.jobs.pop();
        continue;
      }
      t_.responder.refuse(qp, wire::kNakRemoteAccess, job.psn, 0, kWcLocalAccess);
      while (rs.jobs.size()) rs.jobs.pop();
    } else if (job.length == 0) {
      rs.jobs.pop();
    }
  }
  if (qp.local && qp.has(kPullFailed | kNakPending) && (!t_.links.hasRoomToRespond(qp) || mayBeCopying(qp)))
    return false;
  if (qp.has(kPullFailed)) {
    qp.clear(kPullFailed);
    rs.ackPending = false;  // it acknowledges everything before it
    qp.local->putUnpulled(qp.qpn, qp.attributes.destinationQpn, rs.expected, rs.unpulledLasting);
    return false;
  }
  if (qp.has(kNakPending)) {
    qp.clear(kNakPending);
    rs.ackPending = false;  // a NAK acknowledges everything before it
    sendAcknowledge(qp, rs.nakSyndrome, rs.nakPsn);
    if (qp.has(kNakFatal)) {
      Failure failure;
      failure.receiveStatus = rs.failStatus;
      failure.vendor = rs.nakSyndrome;
      failure.reason = rs.failReason;
      t_.lifecycle.fail(qp, failure);
      return false;
    }
  }
  return false;
}

// Sends re-requested parts of responses. Returns false if there are more.
bool Responses::repeat(Qp& qp, uint32_t& budget) {
  std::deque<ResponseJob>& repeats = *qp.rs.repeats;
  for (; !repeats.empty(); budget--) {
    if (budget == 0) return false;
    ResponseJob& job = repeats.front();
    bool done = true;
    if (job.atomic) sendAtomicResponse(qp, job);
    else if (!sendReadResponse(qp, job, 1)) refuseRepetition(qp, job);
    else done = job.length == 0;
    if (done) repeats.pop_front();
  }
  qp.rs.repeats.reset();
  return true;
}

// A repeated READ may be a late duplicate of one whose response has arrived. The requester then ignores this NAK;
// otherwise it fails. Nothing ends on this side.
void Responses::refuseRepetition(Qp& qp, const ResponseJob& job) {
  c_.counters.sentFatalNaks++;
  sendAcknowledge(qp, wire::kNakRemoteAccess, job.psn);
}

bool Responses::refersToTarget(Qp& qp, const ResponseJob& job) {
  return !job.atomic && Links::usesReference(qp, job.length, job.inRing, [&] {
    return qp.local->isMapped(c_.memory.sharedOf(qp.remoteCache, job.rkey));
  });
}

// A NAK that ends the queue pair also invalidates memory to which its responses refer. It therefore waits until the
// peer, if still alive, has copied that memory.
bool Responses::mayBeCopying(Qp& qp) {
  ReceiveState& rs = qp.rs;
  if (!qp.has(kNakFatal) || !rs.referenced || !qp.local->up() || qp.local->consumed(rs.referencedEnd)) return false;
  if (!rs.nakLatest) rs.nakLatest = c_.now + Context::kGoodbyeNs;
  if (c_.now >= rs.nakLatest) return false;
  const uint64_t due = c_.now + Context::kDeferredAckNs;
  if (!c_.timers.has(qp) || qp.timerDue > due) s_.setTimer(qp, due);
  return true;
}

void Responses::scheduleAck(Qp& qp, bool awaited) {
  ReceiveState& rs = qp.rs;
  if (rs.ackPending) c_.counters.acksCoalesced++;
  rs.ackPending = true;
  rs.ackDue |= awaited && s_.exceptAwaited;
  if (s_.deferring && !rs.ackDue) {
    s_.deferAck(qp);
  } else {
    s_.schedule(qp);
  }
}

void Responses::acknowledge(Qp& qp) {
  ReceiveState& rs = qp.rs;
  if (!rs.ackPending || qp.has(kNakPending | kFailing) || rs.responding() || !stateRules(qp.state()).receivesRequests)
    return;
  if (qp.has(kPairPending) || (qp.local && !t_.links.hasRoomToRespond(qp))) return;
  if (s_.deferring && !rs.ackDue) return s_.deferAck(qp);
  if (qp.local && !t_.links.hasRoomToRespond(qp)) return;  // the requests before it may have used it up
  rs.ackPending = rs.ackDue = false;
  sendAcknowledge(qp, wire::kSyndromeAck, rs.ackPsn);
}

void Responses::acknowledgeLast(Qp& qp) {
  ReceiveState& rs = qp.rs;
  if (!rs.unacknowledged || qp.has(kNakPending | kNakSent | kPairPending) || rs.responding() || !qp.reliable() ||
      (qp.local && !qp.local->ready(0, false)) || !stateRules(qp.state()).receivesRequests)
    return;
  sendAcknowledge(qp, wire::kSyndromeAck, rs.ackPsn);
  c_.link.flush();
}

uint32_t Responses::carriedAck(Qp& qp) {
  ReceiveState& rs = qp.rs;
  if (!rs.ackPending || qp.has(kNakPending | kPullFailed) || rs.responding()) return 0;
  rs.ackPending = rs.ackDue = rs.unacknowledged = false;
  s_.cancelDeferred(qp);
  c_.counters.acksCarried++;
  return rs.ackPsn | LocalEntry::kAcknowledges;
}

bool Responses::sendReadResponse(Qp& qp, ResponseJob& job, uint32_t span) {
  OutPacket& out = t_.links.out;
  ReceiveState& rs = qp.rs;
  const uint32_t length = std::min(job.length, span * qp.mtu);
  out.pieceCount = 0;
  if (length) {
    uint8_t* data = c_.memory.remote(qp.remoteCache, qp, job.rkey, job.address, length, kAccessRemoteRead);
    if (!data) return false;
    out.shared[0] = out.byReference ? c_.memory.sharedOf(qp.remoteCache, job.rkey) : nullptr;
    out.pieces[out.pieceCount++] = {data, length};
  }
  const bool last = job.length == length && !job.partial;
  wire::Bth bth;
  bth.opcode =
      job.started ? (last ? wire::kOpReadLast : wire::kOpReadMiddle) : (last ? wire::kOpReadOnly : wire::kOpReadFirst);
  bth.pad = uint8_t(-length & 3);
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = job.psn;
  bth.ackRequest = job.again;
  wire::emitBth(out.header, bth);
  out.headerLength = wire::kOpcodes[bth.opcode].headerBytes;
  if (out.headerLength > wire::kBthBytes) wire::emitAeth(out.header + wire::kBthBytes, wire::kSyndromeAck, job.msn);
  out.payloadLength = length;
  out.padLength = bth.pad;
  job.started = true;
  job.psn = wire::psnAdd(job.psn, span);
  job.address += length;
  job.length -= length;
  const bool byReference = out.byReference && length != 0;
  t_.links.transmit(qp, qp.route);
  if (byReference) {
    rs.referenced = true;
    rs.referencedEnd = qp.local->position();
  }
  return true;
}

void Responses::sendAtomicResponse(Qp& qp, const ResponseJob& job) {
  uint8_t* const aeth = t_.links.begin(qp, wire::kOpAtomicAcknowledge, job.psn, job.again);
  wire::emitAeth(aeth, wire::kSyndromeAck, job.msn);
  wire::store64(aeth + wire::kAethBytes, job.result);
  t_.links.transmit(qp, qp.route);
}

void Responses::sendAcknowledge(Qp& qp, uint8_t syndrome, uint32_t psn) {
  wire::emitAeth(t_.links.begin(qp, wire::kOpAcknowledge, psn), syndrome, qp.rs.msn);
  t_.selectiveAck.report(qp, &t_.links.out);
  qp.rs.unacknowledged = false;
  t_.links.transmit(qp, qp.route);
}

void Responses::sendCongestionNotification(Qp& qp) {
  OutPacket& out = t_.links.out;
  if (!qp.has(kCnpPending)) return;
  qp.clear(kCnpPending);
  if (qp.local) return;
  std::memset(t_.links.begin(qp, wire::kOpCnp, 0), 0, wire::kCnpReservedBytes);
  out.headerLength = wire::kBthBytes + wire::kCnpReservedBytes;
  out.header[wire::kBthCongestionByte] = wire::kBecn;
  c_.counters.congestionNotificationsSent++;
  // Must not be marked itself.
  Path path = qp.route;
  path.trafficClass &= wire::kDscpMask;
  t_.links.transmit(qp, path);
}

}  // namespace nd
