#include "transport/links.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

void Links::choose(Qp& qp) {
  leave(qp);
  // This is as if the packet had been lost, which the next one shows.
  if (qp.has(kPullFailed)) qp.clear(kPullFailed | kNakSent);
  qp.local.reset();
  qp.clear(kPairPending);
  setMtu(qp);
  if (qp.peerLocal && !qp.datagram()) qp.local = c_.link.localPair(qp.attributes.destinationQpn >> 16);
  if (qp.local) settle(qp);
  else DirectAccess::settle(qp);
}

void Links::settle(Qp& qp) {
  qp.put(kPairPending, qp.local->state == LocalPair::State::kRequested);
  if (qp.local->state == LocalPair::State::kRefused) qp.local.reset();
  setMtu(qp);
  DirectAccess::settle(qp);
  t_.direct.publish(qp);
  if (!qp.has(kPairPending)) s_.schedule(qp);
}

void Links::setMtu(Qp& qp) {
  const bool whole = qp.local && qp.local->up();
  const uint32_t agreed = extensions::packetBytes(qp.attributes.extensions);
  qp.mtu = whole ? LocalPair::kMtu : agreed ? agreed : qp.attributes.pathMtu;
}

void Links::leave(Qp& qp) {
  s_.stalled.remove(qp);
  if (qp.rq.referred) c_.memory.revoke();
  qp.rq.referred = false;
}

// A queue pair that waits in line sends no data before its turn. One whose packets are acknowledged runs repeatedly,
// and would take all the room from those that have sent nothing.
bool Links::hasRoom(Qp& qp, uint32_t payload, bool reference) {
  if (!qp.has(kStalled) && qp.local->ready(payload, reference)) return true;
  waitForRoom(qp);
  return false;
}

// An ACK does not wait for data of other queue pairs.
bool Links::hasRoomToRespond(Qp& qp) {
  if (qp.local->ready(0, false)) return true;
  waitForRoom(qp);
  return false;
}

void Links::waitForRoom(Qp& qp) {
  qp.local->wantSpace();
  s_.stalled.push(qp);
}

// Serves the queue pair that has waited longest, before all those in the run queue. Remaining room is for the next one,
// in the next step.
void Links::onSpace(LocalPair& pair) {
  c_.received++;
  const auto waiting = [&](Qp* qp) {
    while (qp && qp->local.get() != &pair) qp = s_.stalled.next(*qp);
    return qp;
  };
  Qp* const qp = waiting(s_.stalled.first());
  if (!qp || !waiting(s_.stalled.next(*qp))) pair.resume();
  if (!qp) return;
  s_.stalled.remove(*qp);
  s_.running.pushFront(*qp);
}

uint8_t* Links::begin(const wire::Bth& bth) {
  wire::emitBth(out.header, bth);
  out.headerLength = wire::kOpcodes[bth.opcode].headerBytes;
  out.pieceCount = out.payloadLength = out.padLength = 0;
  return out.header + wire::kBthBytes;
}

uint8_t* Links::begin(const Qp& qp, uint8_t opcode, uint32_t psn, bool ackRequest, bool solicited) {
  wire::Bth bth;
  bth.opcode = opcode;
  bth.destinationQpn = qp.attributes.destinationQpn;
  bth.psn = psn;
  bth.ackRequest = ackRequest;
  bth.solicited = solicited;
  return begin(bth);
}

void Links::transmit(Qp& qp, const Path& path) {
  const uint16_t pkey = qp.pkey();
  wire::storePkey(out.header, pkey);
  c_.counters.sentPackets++;
  c_.counters.sentBytes += out.headerLength + out.payloadLength;
  // Without a partition nothing may be sent. To the transport the packet is lost.
  if (!isPkey(pkey)) {
    c_.counters.sendFailures++;
  } else if (!qp.local) {
    const bool cut = qp.fragments && qp.fragments->size != 0;
    if (!(cut ? t_.fragments.send(qp, path, out) : c_.link.send(path, out))) c_.counters.sendFailures++;
  } else {
    out.localAck = t_.responses.carriedAck(qp);
    if (out.byReference && out.payloadLength) {
      qp.rq.referred = true;
      qp.local->putReference(out, qp.qpn, path.trafficClass, c_.memory.revocations());
    } else {
      qp.local->put(out, qp.qpn, path.trafficClass, out.localFlags);
    }
  }
  out.byReference = false;
  out.localFlags = out.localAck = 0;
}

uint32_t Links::copyPayload(const Packet& p, const Piece* places, uint32_t count) {
  if (p.payload) {
    const uint8_t* data = p.payload;
    for (uint32_t i = 0; i < count; i++) {
      copyBytes(places[i].data, data, places[i].length);
      data += places[i].length;
    }
    return kWcSuccess;
  }
  const Pull outcome = p.pair->pull(*p.local, places, count);
  if (outcome == Pull::kDone) return kWcSuccess;
  pullLasting = outcome == Pull::kFailed;
  return Context::kUnpulled;
}

}  // namespace nd
