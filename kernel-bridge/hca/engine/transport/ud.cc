#include "transport/ud.h"

#include <algorithm>

#include "base/icrc.h"
#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint8_t kProtocolUdp = 17;

void store16(uint8_t* p, uint32_t v) {
  p[0] = uint8_t(v >> 8);
  p[1] = uint8_t(v);
}

// The header as received; the IPv4 ID, which the socket does not report, is 0.
void writeGrh(uint8_t grh[kGrhBytes], const PacketMeta& meta, uint32_t roceBytes) {
  const uint32_t udpBytes = kUdpBytes + roceBytes + kIcrcBytes;
  std::memset(grh, 0, kGrhBytes);
  if (!meta.source.isV4()) {
    grh[0] = uint8_t(0x60 | meta.trafficClass >> 4);
    grh[1] = uint8_t(meta.trafficClass << 4 | (meta.flowLabel >> 16 & 0xf));
    store16(grh + 2, meta.flowLabel);
    store16(grh + 4, udpBytes);
    grh[6] = kProtocolUdp;
    grh[7] = meta.hopLimit;
    std::memcpy(grh + 8, meta.source.raw.data(), 16);
    std::memcpy(grh + 24, meta.destination.raw.data(), 16);
    return;
  }
  uint8_t* ip = grh + kGrhBytes - kIp4Bytes;
  ip[0] = 0x45;
  ip[1] = meta.trafficClass;
  store16(ip + 2, kIp4Bytes + udpBytes);
  ip[6] = 0x40;  // DF
  ip[8] = meta.hopLimit;
  ip[9] = kProtocolUdp;
  std::memcpy(ip + 12, meta.source.raw.data() + 12, 4);
  std::memcpy(ip + 16, meta.destination.raw.data() + 12, 4);
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kIp4Bytes; i += 2) sum += wire::load16(ip + i);
  sum = (sum & 0xFFFF) + (sum >> 16);
  store16(ip + 10, ~(sum + (sum >> 16)));
}

}  // namespace

void Datagrams::send(Qp& qp, SendEntry& e) {
  OutPacket& out = t_.links.out;
  SendState& rq = qp.rq;
  const AddressHandle* ah = c_.ahs.find(e.ah);
  if (!ah || ah->pd != qp.pd) {
    e.status = kWcLocalOp;
    return;
  }
  if (e.length > ah->pathMtu) {
    e.status = kWcLocalLength;
    return;
  }
  if (!t_.requester.gather(qp, e, 0, e.length)) return;
  const bool immediate = (e.flags & kSendFlagImmediate) != 0;
  wire::Bth bth;
  bth.opcode = immediate ? wire::kOpUdSendOnlyImmediate : wire::kOpUdSendOnly;
  bth.solicited = (e.flags & kSendFlagSolicited) != 0;
  bth.pad = uint8_t(-e.length & 3);
  bth.destinationQpn = e.remoteQpn;
  bth.psn = rq.psn;
  wire::emitBth(out.header, bth);
  // A controlled Q_Key is replaced by the QP's own (IBA 1 §10.2.5).
  const uint32_t qkey = e.remoteQkey & 0x80000000u ? qp.attributes.qkey : e.remoteQkey;
  wire::emitDeth(out.header + wire::kBthBytes, {qkey, qp.qpn});
  if (immediate) wire::store32(out.header + wire::kBthBytes + wire::kDethBytes, e.immediate);
  out.headerLength = wire::kOpcodes[bth.opcode].headerBytes;
  out.payloadLength = e.length;
  out.padLength = bth.pad;
  rq.packet++;
  t_.requester.sent(qp, 1, ah->path);
}

// A datagram that does not fit, or for which no receive is posted, is dropped, so that no other host can end a QP.
void Datagrams::receive(Qp& qp, const PacketMeta& meta, const Packet& p) {
  if (!c_.pkeyFits(qp, p)) return;
  if (wire::parseDeth(p.extension).qkey != qp.attributes.qkey) {
    c_.counters.wrongQkey++;
    qp.pkeyTable->violations.badQkeys++;
    return;
  }
  if (((p.length + p.bth.pad) & 3) != 0 || p.length > wire::kLargestMtu) {
    c_.counters.malformed++;
    return;
  }
  if (!t_.responder.takeReceive(qp, p)) return;
  if (!t_.responder.beginReceive(qp)) return t_.responder.refuse(qp, 0, p.bth.psn, kWcLocalOp, kWcLocalOp);
  const uint32_t total = kGrhBytes + p.length;
  if (total > qp.rs.room) {
    c_.counters.droppedMessages++;
    return;
  }
  uint8_t grh[kGrhBytes];
  writeGrh(grh, meta, uint32_t(p.payload - p.extension) + wire::kBthBytes + p.length + p.bth.pad);
  Packet before;
  before.payload = grh;
  before.length = kGrhBytes;
  uint32_t status = t_.responder.scatterToReceive(qp, 0, before);
  if (!status) status = t_.responder.scatterToReceive(qp, kGrhBytes, p);
  if (status) return t_.responder.refuse(qp, 0, p.bth.psn, status, status);
  t_.responder.completeReceive(qp, p, kOpReceive, total);
}

void Datagrams::receiveMulticast(const PacketMeta& meta, const Packet& p) {
  if (!(p.flags & wire::kDatagram)) {
    c_.counters.wrongTransport++;
    return;
  }
  const auto found = groups.find({meta.destination, meta.scopeId});
  if (found == groups.end()) {
    c_.counters.unknownQp++;
    return;
  }
  for (Qp* qp : found->second)
    if (!qp->has(kFailing) && stateRules(qp->state()).receivesRequests) receive(*qp, meta, p);
}

bool Datagrams::detachFrom(Qp& qp, const Group& group) {
  const auto found = groups.find(group);
  if (found == groups.end()) return false;
  std::vector<Qp*>& members = found->second;
  const auto member = std::find(members.begin(), members.end(), &qp);
  if (member == members.end()) return false;
  members.erase(member);
  qp.groups--;
  attached--;
  if (members.empty()) {
    groups.erase(found);
    c_.link.leaveGroup(group.gid, group.interface);
  }
  return true;
}

void Datagrams::detachFromAll(Qp& qp) {
  for (auto next = groups.begin(); qp.groups && next != groups.end();) {
    const Group group = (next++)->first;
    detachFrom(qp, group);
  }
}

}  // namespace nd
