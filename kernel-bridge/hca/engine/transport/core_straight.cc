// The straight way of small messages on the local link: a SEND or RDMA WRITE of one packet, from its WQE into the ring,
// and from the ring to its place, without the structures that packets of all kinds need. Only where nothing is out of
// the ordinary: all is checked first, and whatever does not fit is left, untouched, to the requester and the responder.
#include "transport/core_small.h"

namespace nd {

using namespace abi;

// A doorbell of which nothing more is wanted than messages that go straight. False: there is more to do, perhaps after
// some of them.
bool Core::ringStraight(Qp& qp) {
  const Responder& rs = qp.rs;
  Requester& rq = qp.rq;
  if (!qp.local->up()) return false;
  qp.local->prepare();
  if (qp.state() != kQpsRts || qp.scheduled || qp.doomed || qp.waiting || rq.rnrUntil || rs.jobs.size() ||
      rs.nakPending || rs.unpulled || qp.local->self || !refreshSend(qp))
    return false;
  const bool wasOutstanding = rq.outstanding();
  const uint32_t n = sendStraight(qp);
  if (n != 0 && !wasOutstanding) {
    // Where a timer comes in time already, the clock can wait until then.
    if (timers.has(qp) && qp.timerDue <= now + answerPatience(qp)) {
      rq.undated = true;
    } else {
      now = std::max(now, clock.recent());
      startAckTimer(qp);
    }
  }
  if (n == 0 || rq.next != rq.producer) return false;
  qp.local->flush(false);
  return true;
}

// Sends what stands next in the queue, as far as it goes straight. The number of messages.
uint32_t Core::sendStraight(Qp& qp) {
  Requester& rq = qp.rq;
  LocalPair& pair = *qp.local;
  const uint16_t pkey = qp.pkey();
  // Nothing is being repeated, and no message is half sent.
  if (rq.next == rq.producer || rq.next != rq.begun || rq.next != rq.parsed || rq.psn != rq.maxPsn || rq.keepAlive ||
      rq.asking || rq.probing || qp.stalled || !pair.straight || !qp.reliable() || !isPkey(pkey))
    return 0;
  const uint32_t partition = uint32_t(__builtin_bswap16(pkey)) << 16;
  const uint32_t peer = __builtin_bswap32(qp.attributes.destinationQpn);
  const uint32_t most = std::min(LocalSmall::kMostBytes, qp.mtu);
  uint32_t acknowledges = 0, n = 0;
  uint64_t bytes = 0;
  for (; n < kStraightShare && rq.next != rq.producer; n++) {
    SmallRequest r;
    if (!readSmall(qp, most, most, &r) || (r.length >= LocalPair::kMappedFrom && namesSource(qp)) ||
        !pair.ready(r.length, false))
      break;
    enterSmall(qp, r);
    if (n == 0) acknowledges = owedWord(qp);
    // All is acknowledged on this link: who asks, waits for that.
    const bool waits = (r.flags & kSendFlagSignaled) != 0 || qp.signalAll ||
                       4 * ((rq.psn - rq.una) & wire::kPsnMask) >= rq.window;
    const uint32_t pad = (-r.length & 3) << 4, order = __builtin_bswap32(rq.psn | (waits ? wire::kAckRequest : 0));
    if (r.opcode == kOpSend) {
      const uint32_t solicited = r.flags & kSendFlagSolicited ? 0x80 : 0;
      const uint32_t bth[] = {wire::kOpSendOnly | (solicited | pad) << 8 | partition, peer, order};
      pair.putSend(bth, qp.qpn, qp.route.trafficClass, acknowledges, r.data, r.length);
    } else {
      const uint32_t bth[] = {wire::kOpWriteOnly | pad << 8 | partition, peer, order};
      const uint32_t reth[] = {__builtin_bswap32(uint32_t(r.remote >> 32)), __builtin_bswap32(uint32_t(r.remote)),
                               __builtin_bswap32(r.rkey), __builtin_bswap32(r.length)};
      pair.putWrite(bth, reth, qp.qpn, qp.route.trafficClass, acknowledges, r.data, r.length);
      bytes += wire::kRethBytes;
    }
    acknowledges = 0;
    bytes += wire::kBthBytes + r.length;
    leftSmall(rq);
  }
  if (n == 0) return 0;
  counters.sentPackets += n;
  counters.sentStraight += n;
  counters.sentBytes += bytes;
  rq.sinceAck = rq.messagesSinceAck = 0;
  rq.askedEnd = rq.psn;
  rq.lastPosition = pair.position();
  qp.lastActivity = now;
  return n;
}

// False: it is for onAcknowledged().
bool Core::onStraightAnswer(Qp& qp, uint32_t psn) {
  return !qp.rq.timing && !qp.rq.ringOnly && onSmallAnswer(qp, psn);
}

bool Core::onLocalSmall(LocalPair& pair, const LocalSmall& small) {
  const uint32_t first = small.header.bth[0], last = __builtin_bswap32(small.header.bth[2]);
  const uint32_t psn = last & wire::kPsnMask, pad = first >> 12 & 3, length = small.length;
  Qp* const found = byQpn(__builtin_bswap32(small.header.bth[1]) & wire::kQpnMask);
  if (!found) return false;
  Qp& qp = *found;
  Responder& rs = qp.rs;
  const StateRules& rules = stateRules(qp.state());
  if (qp.local.get() != &pair || (small.header.head[1] & wire::kQpnMask) != qp.attributes.destinationQpn ||
      !qp.reliable() || !rules.receivesRequests || qp.doomed || !qp.established)
    return false;
  if (psn != rs.expected || rs.nakSent || rs.nakPending || rs.nakFatal || rs.unpulled || rs.open ||
      ((length + pad) & 3) != 0 || length > qp.mtu || !pkeysFit(__builtin_bswap16(uint16_t(first >> 16)), qp.pkey()))
    return false;
  SmallMessage m(small.write, length);
  if (m.write) {
    if (__builtin_bswap32(small.reth[3]) != length) return false;
    m.rkey = __builtin_bswap32(small.reth[2]);
    m.address = uint64_t(__builtin_bswap32(small.reth[0])) << 32 | __builtin_bswap32(small.reth[1]);
  }
  uint8_t* to;
  if (!findPlace(qp, m, &to)) return false;

  received++;
  counters.receivedPackets++;
  counters.receivedBytes += wire::kBthBytes + (small.write ? wire::kRethBytes : 0) + length;
  qp.lastActivity = now;
  if (small.header.head[2] && rules.receivesResponses) {
    const uint32_t answered = small.header.head[2] & wire::kPsnMask;
    if (!onStraightAnswer(qp, answered)) onAcknowledged(qp, answered);
    if (qp.doomed || !stateRules(qp.state()).receivesRequests) {
      counters.wrongState++;
      settle();
      return true;
    }
  }
  if (small.bulk) {
    copyInOrder(to, small.bulk, length);
  } else if (small.write) {
    uint8_t bytes[LocalSmall::kMostInEntry];
    small.copyFromEntry(bytes);
    copyInOrder(to, bytes, length);
  } else if (length != 0) {
    small.copyFromEntry(to);
  }
  oweAnswer(qp, (last & wire::kAckRequest) != 0);
  tookSmall(qp, m, psn, (first & 0x8000) != 0);
  settle();
  return true;
}

}  // namespace nd
