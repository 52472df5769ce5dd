// What messages of one packet have in common on their straight ways, by the local link (core_straight.cc) and by the wire
// (core_alone.cc): where one goes, what the books say of it when it is there, and what an answer to such means.
#pragma once
#include "core.h"

namespace nd {

// A SEND (of which only the length counts) or an RDMA WRITE of one packet.
struct SmallMessage {
  bool write;
  uint32_t length;
  uint32_t rkey;
  uint64_t address;
};

// False: it is for the responder, and nothing was done. `to` is null where there are no bytes.
inline bool Core::findPlace(Qp& qp, const SmallMessage& m, uint8_t** to) {
  *to = nullptr;
  if (m.write) {
    if (m.length == 0 || !(qp.attributes.access & abi::kAccessRemoteWriteBit)) return false;
    *to = memory.remote(qp.remoteCache, qp, m.rkey, m.address, m.length, abi::kAccessRemoteWriteBit);
    return *to != nullptr;
  }
  const Responder& rs = qp.rs;
  if (qp.srq || (rs.producer == rs.head && (!refreshReceive(qp) || rs.producer == rs.head))) return false;
  const uint32_t* w = qp.receiveWqe(rs.head);
  const uint32_t count = peekWord(w + abi::kRwSgeCount);
  if (m.length == 0) return count <= qp.receiveSge;
  if (count != 1 || qp.receiveSge == 0) return false;
  const uint32_t* sge = w + abi::kReceiveWqeHeaderBytes / 4;
  const uint64_t address = uint64_t(peekWord(sge + abi::kSgeAddressHi)) << 32 | peekWord(sge + abi::kSgeAddressLo);
  if (m.length > peekWord(sge + abi::kSgeLength)) return false;
  *to = memory.local(qp.scatterCache, qp.pd, peekWord(sge + abi::kSgeLkey), address, m.length, true);
  return *to != nullptr;
}

// Its bytes are in their place.
inline void Core::tookSmall(Qp& qp, const SmallMessage& m, uint32_t psn, bool asks, bool solicited) {
  Responder& rs = qp.rs;
  rs.received = m.length;
  rs.expected = wire::psnAdd(psn, 1);
  rs.ackPsn = psn;
  rs.ackable = rs.unanswered = true;
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
  if (asks) oweAnswer(qp);
  if (m.write) return;
  Completion c;
  c.token = qp.token;
  c.wqe = rs.head++;
  c.opcode = abi::kOpReceive;
  c.length = m.length;
  c.flags = abi::kCqeFlagReceiveQueue | (solicited ? abi::kCqeFlagSolicited : 0);
  c.pkeyIndex = qp.attributes.pkeyIndex;
  c.sourceQpn = qp.attributes.destinationQpn;
  write(*qp.receiveCq, c);
}

// An answer to messages of one packet, while nothing else goes on. False: there is more to it, and nothing was done.
inline bool Core::onSmallAnswer(Qp& qp, uint32_t psn) {
  Requester& rq = qp.rq;
  if (wire::psnDiff(psn, rq.una) < 0 || wire::psnDiff(psn, rq.maxPsn) >= 0 || rq.next != rq.producer ||
      rq.psn != rq.maxPsn || rq.keepAlive || rq.asking || rq.rnrUntil || rq.window < options.window ||
      qp.state() != abi::kQpsRts)
    return false;
  const uint32_t answered = static_cast<uint32_t>(wire::psnDiff(psn, rq.una)) + 1;
  for (uint32_t i = 0; i < answered; i++) {
    const SendEntry& e = qp.entry(rq.head + i);
    if (i == rq.next - rq.head || e.isReadOrAtomic() || e.packets != 1) return false;
  }
  for (uint32_t i = 0; i < answered; i++) {
    rq.una = wire::psnAdd(rq.una, 1);
    completeHead(qp);
    if (rq.head != rq.next) retireLocal(qp);
  }
  rq.retries = rq.rnrRetries = rq.probes = 0;
  rq.fastRetried = rq.probing = false;
  rq.ackStart = now;
  return true;
}

}  // namespace nd
