// The straight way of small messages on the wire: one SEND or RDMA WRITE of one packet that leaves, or comes, by itself, and
// the acknowledgement of such. As core_straight.cc has it for the local link: all is checked first and changes nothing, and
// whatever does not fit is left to the requester, the responder and the completer.
#include "transport/core_small.h"

namespace nd {

using namespace abi;

namespace {

void copyFew(uint8_t* to, const uint8_t* from, uint32_t length) {
  if (length <= 64) copySmall(to, from, length);
  else std::memcpy(to, from, length);
}

}  // namespace

// A doorbell of which no more is wanted than one message that goes straight. False: nothing was done.
bool Core::ringAlone(Qp& qp) {
  const Responder& rs = qp.rs;
  Requester& rq = qp.rq;
  const uint16_t pkey = qp.pkey();
  if (qp.state() != kQpsRts || qp.scheduled || qp.doomed || qp.waiting || qp.cnpPending || !qp.reliable() ||
      rs.jobs.size() || rs.nakPending || !isPkey(pkey) || !refreshSend(qp))
    return false;
  // Nothing is being repeated, and no message is half sent.
  if (rq.producer - rq.next != 1 || rq.next != rq.begun || rq.next != rq.parsed || rq.psn != rq.maxPsn || rq.keepAlive ||
      rq.asking || rq.probing || rq.awaited || rq.rnrUntil)
    return false;
  constexpr uint32_t kMost = Link::kAloneMostBytes - wire::kBthBytes;
  SmallRequest r;
  if (!readSmall(qp, std::min(kMost, qp.mtu), std::min(kMost - wire::kRethBytes, qp.mtu), &r)) return false;

  now = std::max(now, clock.recent());
  SendEntry& e = enterSmall(qp, r);
  const uint32_t sinceAck = rq.sinceAck, messagesSinceAck = rq.messagesSinceAck;
  const bool asks = asksForAnswer(qp, e, true, 1);

  const bool writes = r.opcode == kOpWrite;
  const uint32_t header = wire::kBthBytes + (writes ? wire::kRethBytes : 0);
  const uint32_t pad = -r.length & 3, total = header + r.length + pad;
  const uint32_t solicited = !writes && (r.flags & kSendFlagSolicited) ? 0x80 : 0;
  const uint32_t partition = uint32_t(__builtin_bswap16(pkey)) << 16;
  const uint32_t bth[] = {(writes ? wire::kOpWriteOnly : wire::kOpSendOnly) | (solicited | pad << 4) << 8 | partition,
                          __builtin_bswap32(qp.attributes.destinationQpn),
                          __builtin_bswap32(rq.psn | (asks ? wire::kAckRequest : 0))};
  uint8_t* const packet = alone + Link::kAloneRoom;
  std::memcpy(packet, bth, sizeof bth);
  if (writes) wire::emitReth(packet + wire::kBthBytes, {r.remote, r.rkey, r.length});
  if (pad) std::memset(packet + total - 4, 0, 4);
  copyFew(packet + header, r.data, r.length);
  if (!link.sendAlone(qp.route, packet, total)) {
    rq.sinceAck = sinceAck;
    rq.messagesSinceAck = messagesSinceAck;
    return false;
  }

  // It is on its way; what the books say of it can follow.
  const bool wasOutstanding = rq.outstanding();
  if (asks && !rq.timing) {
    rq.timing = true;
    rq.timedPsn = rq.psn;
    rq.timedAt = now;
  }
  leftSmall(rq);
  if (asks) rq.askedEnd = rq.psn;
  counters.sentPackets++;
  counters.sentStraight++;
  counters.sentBytes += header + r.length;
  qp.lastActivity = now;
  if (!wasOutstanding) startAckTimer(qp);
  // The acknowledgement that is owed follows while the peer takes the message.
  if (rs.ackPending) {
    acknowledge(qp);
    link.flush();
  }
  return true;
}

bool Core::onAlone(const PacketMeta& meta, const uint8_t* bytes, uint32_t size) {
  uint32_t bth[3];
  std::memcpy(bth, bytes, sizeof bth);
  const uint32_t opcode = bth[0] & 0xFF, second = bth[0] >> 8 & 0xFF, pad = second >> 4 & 3;
  const uint32_t order = __builtin_bswap32(bth[2]), psn = order & wire::kPsnMask;
  Qp* const found = byQpn(__builtin_bswap32(bth[1]) & wire::kQpnMask);
  if (!found || (second & 0xF) != 0) return false;
  Qp& qp = *found;
  Responder& rs = qp.rs;
  const StateRules& rules = stateRules(qp.state());
  if (qp.local || qp.waiting || !qp.reliable() || !rules.receivesRequests || qp.doomed || !qp.established ||
      meta.source != qp.attributes.path.destination || meta.destination != qp.attributes.path.source ||
      (meta.trafficClass & wire::kEcnMask) == wire::kCongestionExperienced ||
      !pkeysFit(__builtin_bswap16(uint16_t(bth[0] >> 16)), qp.pkey()))
    return false;
  const auto count = [&] {
    received++;
    counters.receivedPackets++;
    counters.receivedAlone++;
    counters.receivedBytes += size;
    qp.lastActivity = now;
    settle();
  };
  if (opcode == wire::kOpAcknowledge) {
    if (size != wire::kBthBytes + wire::kAethBytes || pad || !rules.receivesResponses ||
        (bytes[wire::kBthBytes] & wire::kSyndromeClass) != wire::kClassAck || !onSmallAnswer(qp, psn))
      return false;
    sampleRoundTrip(qp.rq);
    count();
    return true;
  }
  const bool writes = opcode == wire::kOpWriteOnly;
  const uint32_t header = wire::kBthBytes + (writes ? wire::kRethBytes : 0);
  if ((!writes && opcode != wire::kOpSendOnly) || size < header + pad || psn != rs.expected || rs.nakSent || rs.nakPending ||
      rs.nakFatal || rs.open)
    return false;
  SmallMessage m(writes, size - header - pad);
  if (m.length > qp.mtu) return false;
  if (writes) {
    const wire::Reth reth = wire::parseReth(bytes + wire::kBthBytes);
    if (reth.length != m.length) return false;
    m.rkey = reth.rkey;
    m.address = reth.address;
  }
  uint8_t* to;
  if (!findPlace(qp, m, &to)) return false;

  if (writes) {
    copyInOrder(to, bytes + header, m.length);
  } else if (m.length != 0) {
    copyFew(to, bytes + header, m.length);
  }
  if (order & wire::kAckRequest) oweAnswer(qp, true);
  tookSmall(qp, m, psn, (second & 0x80) != 0);
  count();
  return true;
}

}  // namespace nd
