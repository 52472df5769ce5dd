// What messages of one packet have in common on their straight ways, by the local link (core_straight.cc) and by the wire
// (core_alone.cc): which request is one, where one goes, what the books say of both, and what an answer to such means.
#pragma once
#include "transport/core.h"

namespace nd {

// A SEND (of which only the length counts) or an RDMA WRITE of one packet.
struct SmallMessage {
  // Member by member: a list of initial values becomes a string instruction.
  SmallMessage(bool isWrite, uint32_t bytes) : write(isWrite), length(bytes) {}
  bool write;
  uint32_t length;
  uint32_t rkey = 0;
  uint64_t address = 0;
};

// The next request of a send queue, with its data where they stand; null: none.
struct SmallRequest {
  uint32_t opcode, flags, count, length;
  const uint8_t* data;
  uint64_t remote;  // of a WRITE
  uint32_t rkey;
};

// Whether that is a SEND or WRITE of at most so many bytes in one piece, and there is room in the window. `most` is of a
// SEND, `mostWritten` of a WRITE. False: it is for the requester.
inline bool Core::readSmall(Qp& qp, uint32_t most, uint32_t mostWritten, SmallRequest* r) {
  constexpr uint32_t kFlags = abi::kSendFlagSignaled | abi::kSendFlagSolicited | abi::kSendFlagInline;
  const Requester& rq = qp.rq;
  const uint32_t* w = qp.sendWqe(rq.next);
  r->opcode = peekWord(w + abi::kSwOpcode);
  r->flags = peekWord(w + abi::kSwFlags);
  r->length = r->count = peekWord(w + abi::kSwSgeCount);
  r->data = nullptr;
  r->remote = r->rkey = 0;
  if (r->opcode > abi::kOpWrite || (r->flags & ~kFlags) != 0) return false;
  const bool writes = r->opcode == abi::kOpWrite;
  if (writes) most = mostWritten;
  const uint32_t* body = w + abi::kSendWqeHeaderBytes / 4;
  if (r->flags & abi::kSendFlagInline) {
    if (r->count > qp.maxInline || r->count > most) return false;
    r->data = reinterpret_cast<const uint8_t*>(body);
  } else if (r->count != 0) {
    if (r->count != 1 || qp.sendSge == 0) return false;
    r->length = peekWord(body + abi::kSgeLength);
    if (r->length > most) return false;
    const uint64_t address =
        uint64_t(peekWord(body + abi::kSgeAddressHi)) << 32 | peekWord(body + abi::kSgeAddressLo);
    if (r->length) r->data = memory.local(qp.gatherCache, qp.pd, peekWord(body + abi::kSgeLkey), address, r->length, false);
    if (r->length && !r->data) return false;
  }
  if (writes) {
    if (r->length == 0) return false;  // no data, and so no key
    r->remote = uint64_t(peekWord(w + abi::kSwRemoteHi)) << 32 | peekWord(w + abi::kSwRemoteLo);
    r->rkey = peekWord(w + abi::kSwRkey);
  }
  return windowTakes(qp, 1, true);
}

// Its place in the books, should it have to be sent again. It has not left.
inline SendEntry& Core::enterSmall(Qp& qp, const SmallRequest& r) {
  SendEntry& e = qp.entry(qp.rq.next);
  e.opcode = r.opcode;
  e.flags = r.flags;
  e.count = r.count;
  e.length = r.length;
  e.firstPsn = qp.rq.psn;
  e.packets = 1;
  e.status = 0;
  e.local = e.done = false;
  if (r.opcode == abi::kOpWrite) {
    e.remote = r.remote;
    e.rkey = r.rkey;
  }
  return e;
}

// It has left.
inline void Core::leftSmall(Requester& rq) {
  rq.psn = rq.maxPsn = wire::psnAdd(rq.psn, 1);
  rq.next++;
  rq.begun = rq.parsed = rq.next;
}

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
inline void Core::tookSmall(Qp& qp, const SmallMessage& m, uint32_t psn, bool solicited) {
  Responder& rs = qp.rs;
  rs.received = m.length;
  rs.expected = wire::psnAdd(psn, 1);
  rs.ackPsn = psn;
  rs.ackable = rs.unanswered = true;
  rs.msn = (rs.msn + 1) & wire::kPsnMask;
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
    // Local work takes no PSN, and so what is answered would reach further than these.
    const SendEntry& e = qp.entry(rq.head + i);
    if (i == rq.next - rq.head || e.opcode > abi::kOpWrite || e.packets != 1) return false;
  }
  for (uint32_t i = 0; i < answered; i++) {
    rq.una = wire::psnAdd(rq.una, 1);
    completeHead(qp);
    if (rq.head != rq.next) retireLocal(qp);
  }
  rq.retries = rq.rnrRetries = rq.probes = 0;
  rq.fastRetried = rq.probing = false;
  rq.ackStart = now;
  if (rq.una == rq.psn) rq.awaited = false;
  else if (rq.awaited) schedule(qp);  // the rest may have to be asked for
  return true;
}

}  // namespace nd
