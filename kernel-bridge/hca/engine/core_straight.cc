// The straight way of small messages on the local link: a SEND of one packet, from its WQE into the ring, and from the
// ring to its receive, without the structures that packets of all kinds need. Only where nothing is out of the
// ordinary: all is checked first, and whatever does not fit is left, untouched, to the requester and the responder.
#include "core.h"

namespace nd {

using namespace abi;

// Sends what stands next in the queue, as far as it goes straight. The number of messages.
uint32_t Core::sendStraight(Qp& qp) {
  Requester& rq = qp.rq;
  LocalPair& pair = *qp.local;
  const uint16_t pkey = qp.pkey();
  // Nothing is being repeated, and no message is half sent.
  if (rq.next == rq.producer || rq.next != rq.begun || rq.next != rq.parsed || rq.psn != rq.maxPsn || rq.keepAlive ||
      rq.asking || rq.probing || pair.plain || !qp.reliable() || !isPkey(pkey))
    return 0;
  constexpr uint32_t kFlags = kSendFlagSignaled | kSendFlagSolicited | kSendFlagInline;
  const uint32_t first = wire::kOpSendOnly | uint32_t(__builtin_bswap16(pkey)) << 16;
  const uint32_t second = __builtin_bswap32(qp.attributes.destinationQpn);
  uint32_t acknowledges = 0, n = 0;
  uint64_t bytes = 0;
  for (; n < kStraightShare && rq.next != rq.producer; n++) {
    const uint32_t* w = qp.sendWqe(rq.next);
    const uint32_t flags = peekWord(w + kSwFlags), count = peekWord(w + kSwSgeCount);
    if (peekWord(w + kSwOpcode) != kOpSend || (flags & ~kFlags) != 0) break;
    const uint32_t* body = w + kSendWqeHeaderBytes / 4;
    const uint8_t* data = nullptr;
    uint32_t length = count;
    if (flags & kSendFlagInline) {
      if (count > qp.maxInline || count > LocalSend::kMostBytes) break;
      data = reinterpret_cast<const uint8_t*>(body);
    } else if (count != 0) {
      if (count != 1 || qp.sendSge == 0) break;
      length = peekWord(body + kSgeLength);
      if (length > LocalSend::kMostBytes) break;
      const uint64_t address = uint64_t(peekWord(body + kSgeAddressHi)) << 32 | peekWord(body + kSgeAddressLo);
      if (length) data = memory.local(qp.gatherCache, qp.pd, peekWord(body + kSgeLkey), address, length, false);
      if (length && !data) break;
    }
    const uint32_t inFlight = (rq.psn - rq.una) & wire::kPsnMask;
    if ((inFlight && inFlight >= rq.window) || !pair.ready(length, false)) break;

    SendEntry& e = qp.entry(rq.next);
    e.opcode = kOpSend;
    e.flags = flags;
    e.count = count;
    e.length = length;
    e.firstPsn = rq.psn;
    e.packets = 1;
    e.status = 0;
    e.local = e.done = false;
    if (n == 0) acknowledges = owedWord(qp);
    const uint32_t solicited = flags & kSendFlagSolicited ? 0x80 : 0;
    const uint32_t bth[] = {first | (solicited | (-length & 3) << 4) << 8, second,
                            __builtin_bswap32(rq.psn | wire::kAckRequest)};
    pair.putSend(bth, qp.qpn, qp.route.trafficClass, acknowledges, data, length);
    acknowledges = 0;
    bytes += wire::kBthBytes + length;
    rq.psn = rq.maxPsn = wire::psnAdd(rq.psn, 1);
    rq.next++;
    rq.begun = rq.parsed = rq.next;
  }
  if (n == 0) return 0;
  counters.sentPackets += n;
  counters.sentBytes += bytes;
  rq.sinceAck = rq.messagesSinceAck = 0;
  rq.askedEnd = rq.psn;
  rq.lastPosition = pair.position();
  return n;
}

bool Core::onLocalSend(LocalPair& pair, const LocalSend& send) {
  const uint32_t first = send.header.bth[0], last = __builtin_bswap32(send.header.bth[2]);
  const uint32_t psn = last & wire::kPsnMask, pad = first >> 12 & 3, length = send.length;
  Qp* const found = byQpn(__builtin_bswap32(send.header.bth[1]) & wire::kQpnMask);
  if (!found) return false;
  Qp& qp = *found;
  Responder& rs = qp.rs;
  const StateRules& rules = stateRules(qp.state());
  if (qp.local.get() != &pair || (send.header.head[1] & wire::kQpnMask) != qp.attributes.destinationQpn ||
      !qp.reliable() || !rules.receivesRequests || qp.doomed || !qp.established || qp.srq)
    return false;
  if (psn != rs.expected || rs.nakSent || rs.nakPending || rs.nakFatal || rs.unpulled || rs.open ||
      ((length + pad) & 3) != 0 || length > qp.mtu || !pkeysFit(__builtin_bswap16(uint16_t(first >> 16)), qp.pkey()))
    return false;
  if (rs.producer == rs.head && (!refreshReceive(qp) || rs.producer == rs.head)) return false;
  const uint32_t* w = qp.receiveWqe(rs.head);
  const uint32_t count = peekWord(w + kRwSgeCount);
  uint8_t* to = nullptr;
  if (length != 0) {
    if (count != 1 || qp.receiveSge == 0) return false;
    const uint32_t* sge = w + kReceiveWqeHeaderBytes / 4;
    const uint64_t address = uint64_t(peekWord(sge + kSgeAddressHi)) << 32 | peekWord(sge + kSgeAddressLo);
    if (length > peekWord(sge + kSgeLength)) return false;
    to = memory.local(qp.scatterCache, qp.pd, peekWord(sge + kSgeLkey), address, length, true);
    if (!to) return false;
  } else if (count > qp.receiveSge) {
    return false;
  }

  received++;
  counters.receivedPackets++;
  counters.receivedBytes += wire::kBthBytes + length;
  qp.lastActivity = now;
  if (send.header.head[2] && rules.receivesResponses) {
    onAcknowledged(qp, send.header.head[2] & wire::kPsnMask);
    if (qp.doomed || !stateRules(qp.state()).receivesRequests) {
      counters.wrongState++;
      settle();
      return true;
    }
  }
  if (length != 0) send.copyTo(to);
  rs.received = length;
  rs.expected = wire::psnAdd(psn, 1);
  rs.ackPsn = psn;
  rs.ackable = rs.unanswered = true;
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
  if (last & wire::kAckRequest) oweAnswer(qp);
  Completion c;
  c.token = qp.token;
  c.wqe = rs.head++;
  c.opcode = kOpReceive;
  c.length = length;
  c.flags = kCqeFlagReceiveQueue | (first & 0x8000 ? kCqeFlagSolicited : 0);
  c.pkeyIndex = qp.attributes.pkeyIndex;
  c.sourceQpn = qp.attributes.destinationQpn;
  write(*qp.receiveCq, c);
  settle();
  return true;
}

}  // namespace nd
