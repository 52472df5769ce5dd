#include "transport/extensions/fragments.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

namespace {

// From any length, the first step leads to a size that almost every path supports. From there, sizes change by a factor
// of kStep.
constexpr uint32_t kFirst = 1024, kSmallest = 256, kStep = 4;
constexpr uint32_t kMostProbes = 3;  // lost in a row; MAX_PROBES of RFC 8899 §5.1.2
constexpr uint64_t kFirstRetryNs = 5'000'000'000, kLastRetryNs = 600'000'000'000;  // RFC 8899 §5.1.1: PMTU_RAISE_TIMER

uint64_t nextRetry(uint64_t every) { return std::min(std::max(2 * every, kFirstRetryNs), kLastRetryNs); }

// Each peer numbers its own requests, and the responses to them use the requester's PSNs. Therefore requests, responses
// to READs and ATOMICs, and acknowledgements may have the same PSN at the same time, and even the same length.
uint8_t kindOf(uint8_t opcode) {
  const uint32_t flags = wire::kOpcodes[opcode].flags;
  return flags & wire::kRequest ? 0 : flags & (wire::kRead | wire::kAtomic) ? 1 : 2;
}

uint32_t lengthOf(const OutPacket& p) { return p.headerLength + p.payloadLength + p.padLength; }

// Makes `part` carry `length` bytes of a packet, from `offset` on. Returns false if there are too many pieces.
bool slice(OutPacket& whole, uint32_t offset, uint32_t length, OutPacket& part) {
  part.pieceCount = part.payloadLength = 0;
  const auto take = [&](void* data, uint64_t available) {
    if (offset >= available) {
      offset -= uint32_t(available);
      return true;
    }
    const uint32_t n = std::min(length, uint32_t(available) - offset);
    if (n == 0) return true;
    if (part.pieceCount == OutPacket::kMaxPieces) return false;
    part.pieces[part.pieceCount++] = {static_cast<uint8_t*>(data) + offset, n};
    part.payloadLength += n;
    length -= n;
    offset = 0;
    return true;
  };
  bool fits = take(whole.header, whole.headerLength);
  for (uint32_t i = 0; i < whole.pieceCount; i++) fits = fits && take(whole.pieces[i].data, whole.pieces[i].length);
  part.padLength = length;  // the rest is the packet's pad
  return fits;
}

}  // namespace

void Fragments::suspect(Qp& qp) {
  SendState& rq = qp.rq;
  if (!agreed(qp) || rq.head == rq.begun || (qp.has(kKeepAlive) && rq.una == rq.keepAlivePsn)) return;
  const SendEntry& e = qp.entry(rq.head);
  if (e.isLocal() || e.isReadOrAtomic()) return;
  const uint32_t packet = (rq.una - e.firstPsn) & wire::kPsnMask;
  if (packet >= e.packets || qp.peerLocal) return;
  FragmentPath& f = path(qp);
  const bool again = f.suspected == rq.una;
  f.suspected = rq.una;
  narrow(qp, again, std::min(qp.mtu, e.length - packet * qp.mtu));
}

// Each response has its own history: while one is missing, others may be re-requested as well.
void Fragments::onRepeated(Qp& qp, Resource& of, uint32_t psn, uint32_t payload, uint32_t often) {
  of.repeats = of.repeated == psn ? of.repeats + 1 : 1;
  of.repeated = psn;
  if (of.atomic || of.repeats < often || !agreed(qp) || qp.peerLocal) return;
  FragmentPath& f = path(qp);
  narrow(qp, of.triedSize == f.size && c_.now > f.since, std::min(qp.mtu, payload));
  of.triedSize = f.size;
}

FragmentPath& Fragments::path(Qp& qp) {
  if (!qp.fragments) qp.fragments = std::make_unique<FragmentPath>();
  return *qp.fragments;
}

// `again`: a packet sent in fragments of the current size has not arrived either.
void Fragments::narrow(Qp& qp, bool again, uint32_t payload) {
  FragmentPath& f = *qp.fragments;
  if (f.size != 0 && !again) return;  // fragments have arrived so far: the path may be down
  uint32_t next = f.size ? f.size / kStep : kFirst;
  while (next >= payload && next > kSmallest) next /= kStep;  // even a short packet may be too long
  next = std::max(next, kSmallest);
  if (payload <= next || next == f.size) return;
  f.size = next;
  f.since = c_.now;
  f.probing = false;
  f.lostProbes = 0;
  c_.counters.blackHoles++;
}

// Returns the current size of a packet's fragments, or 0 if it is sent whole.
uint32_t Fragments::sizeFor(Qp& qp, const OutPacket& whole) {
  FragmentPath& f = *qp.fragments;
  const SendState& rq = qp.rq;
  const wire::Bth bth = wire::parseBth(whole.header);
  const uint32_t larger = f.size * kStep >= qp.mtu ? 0 : f.size * kStep;
  if (!(wire::kOpcodes[bth.opcode].flags & wire::kRequest)) {
    // Only a re-request shows that a response is missing, so no single response can be a probe.
    if (c_.now - f.since < std::max(f.every, kFirstRetryNs)) return f.size;
    f.every = nextRetry(f.every);
    return f.size = 0;
  }
  if (f.probing) {
    if (bth.psn == f.probe) {  // retransmitted: it is lost, or its response is lost or late
      f.probing = false;
      if (++f.lostProbes < kMostProbes) return f.size;
      f.lostProbes = 0;
      f.every = nextRetry(f.every);
      f.since = c_.now;
    } else if (wire::psnDiff(rq.una, f.probe) > 0) {
      f.probing = false;
      f.every = f.lostProbes = 0;
      f.size = larger;
    }
    return f.size;
  }
  const bool proven = ((f.suspected - rq.una) & wire::kPsnMask) >= ((rq.maxPsn - rq.una) & wire::kPsnMask);
  const bool fresh = wire::psnAdd(bth.psn, 1) == rq.maxPsn;
  if (!proven || !fresh || c_.now - f.since < f.every) return f.size;
  f.probing = true;
  f.probe = bth.psn;
  return larger;
}

bool Fragments::send(Qp& qp, const Path& path, OutPacket& whole) {
  if (whole.payloadLength <= qp.fragments->size) return c_.link.send(path, whole);
  const uint32_t size = sizeFor(qp, whole), total = lengthOf(whole);
  if (size == 0) return c_.link.send(path, whole);
  wire::Bth bth = wire::parseBth(whole.header);
  bth.pad = kindOf(bth.opcode);
  bth.opcode = wire::kOpFragment;
  bth.solicited = bth.ackRequest = false;
  wire::emitBth(part_.header, bth);
  part_.headerLength = wire::kBthBytes + kPlaceBytes;
  bool sent = true;
  for (uint32_t offset = 0; offset < total; offset += size) {
    wire::store16(part_.header + wire::kBthBytes, offset);
    wire::store16(part_.header + wire::kBthBytes + 2, total);
    sent = slice(whole, offset, std::min(size, total - offset), part_) && c_.link.send(path, part_) && sent;
    c_.counters.sentFragments++;
  }
  return sent;
}

const uint8_t* Fragments::receive(const PacketMeta& meta, const wire::Bth& bth, const uint8_t* bytes,
                                  uint32_t bytesLength, uint32_t* length) {
  Qp* const qp = c_.byQpn(bth.destinationQpn);
  if (!qp) {
    c_.counters.unknownQp++;
    return nullptr;
  }
  if (!agreed(*qp) || !stateRules(qp->state()).receivesResponses) {
    c_.counters.unknownOpcode++;
    return nullptr;
  }
  if (!Context::comesFromPeer(*qp, meta)) {
    c_.counters.wrongAddress++;
    return nullptr;
  }
  constexpr uint32_t header = wire::kBthBytes + kPlaceBytes;
  const uint32_t n = bytesLength > header ? bytesLength - header : 0;
  const uint32_t offset = n ? wire::load16(bytes + wire::kBthBytes) : 0,
                 total = n ? wire::load16(bytes + wire::kBthBytes + 2) : 0;
  constexpr uint32_t unit = FragmentAssembly::kUnit;
  const bool fits = n != 0 && offset % unit == 0 && (n % unit == 0 || offset + n == total) && offset + n <= total;
  if (!fits || total > OutPacket::kMaxHeader + qp->mtu) {
    c_.counters.malformed++;
    return nullptr;
  }
  if (!qp->assemblies) qp->assemblies = std::make_unique<FragmentAssemblies>();
  FragmentAssembly& a = qp->assemblies->of(bth.pad, bth.psn, total, c_.now);
  copyBytes(a.bytes.data() + offset, bytes + header, n);
  for (uint32_t i = offset / unit; i * unit < offset + n; i++) {
    a.missing -= !a.units[i];
    a.units[i] = true;
  }
  a.at = c_.now;
  c_.counters.receivedFragments++;
  if (a.missing != 0) return nullptr;
  a.total = 0;
  const bool sound = total >= wire::kBthBytes && wire::parseBth(a.bytes.data()).destinationQpn == bth.destinationQpn &&
                     wire::parseBth(a.bytes.data()).psn == bth.psn && a.bytes[0] != wire::kOpFragment;
  if (!sound) {
    c_.counters.malformed++;
    return nullptr;
  }
  *length = total;
  return a.bytes.data();
}

}  // namespace nd
