// What leaves: staging, ICRC, faults, capture; and the way to processes of this host where there is no wire.
#include <algorithm>

#include "base/mad.h"
#include "base/wire.h"
#include "host/host_impl.h"
#include "platform/event.h"

namespace nd {
namespace {

constexpr uint32_t kDestinationUses = 4096;      // packets for which a destination is believed to stay local
constexpr uint32_t kMaxLocalQueue = 4096;        // packets of this process to itself, without a wire

}  // namespace

uint32_t gather(uint8_t* out, const OutPacket& packet) {
  std::memcpy(out, packet.header, packet.headerLength);
  uint32_t at = packet.headerLength;
  for (uint32_t i = 0; i < packet.pieceCount; i++) {
    if (packet.pieces[i].length == 0) continue;  // may have no address
    std::memcpy(out + at, packet.pieces[i].data, packet.pieces[i].length);
    at += static_cast<uint32_t>(packet.pieces[i].length);
  }
  std::memset(out + at, 0, packet.padLength);
  return at + packet.padLength;
}

// Length from BTH to pad, 0 if the packet is not one that may be sent.
uint32_t checkedLength(const OutPacket& packet) {
  if (packet.headerLength < kBthBytes || packet.headerLength > OutPacket::kMaxHeader || packet.padLength > 3 ||
      packet.pieceCount > OutPacket::kMaxPieces)
    return 0;
  uint64_t pieces = 0;
  for (uint32_t i = 0; i < packet.pieceCount; i++) pieces += packet.pieces[i].length;
  const uint64_t length = packet.headerLength + pieces + packet.padLength;
  if (pieces != packet.payloadLength || length % 4 != 0 || length + kIcrcBytes > kMaxDatagram) return 0;
  return static_cast<uint32_t>(length);
}

namespace {

// Of a connection that repeats what is lost: it may change its way, and be late once.
bool isReliable(const OutPacket& packet) { return wire::isReliable(packet.header[0]); }

PacketMeta metaOf(const Path& path) {
  PacketMeta meta;
  meta.source = path.source;
  meta.destination = path.destination;
  meta.trafficClass = path.trafficClass;
  meta.hopLimit = path.hopLimit;
  meta.flowLabel = path.flowLabel;
  meta.scopeId = path.scopeId;
  return meta;
}

}  // namespace

void Host::Impl::captureOut(const Path& path, const uint8_t* bytes, uint32_t length) {
  IcrcHeaders headers;
  headers.source = path.source;
  headers.destination = path.destination;
  captureOut(path, headers, bytes, length);
}

void Host::Impl::captureOut(const Path& path, const IcrcHeaders& headers, const uint8_t* bytes, uint32_t length) {
  if (!capture.active()) return;
  capture.write(Capture::Direction::kOutbound, headers, {path.trafficClass, path.hopLimit, path.flowLabel}, bytes,
                length);
  capture.scheduleFlush(clock.now());
}

bool Host::Impl::isDropped(const Faults::Fate& fate) {
  if (!fate.drop) return false;
  counters.add(fate.dropMad ? HostCounter::kFaultMadsDropped : HostCounter::kFaultDropped);
  return true;
}

bool Host::Impl::hold(Wire* wire, LocalPair* pair, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets) {
  if (held.packetsToGo != 0) return false;  // one at a time is enough disorder
  held.packetsToGo = packets;
  held.due = clock.now() + Faults::kMaxHoldNs;
  dueChanged();
  held.wire = wire;
  held.pair = pair ? pair->shared_from_this() : nullptr;
  held.path = path;
  held.bytes.assign(bytes, bytes + length);
  counters.add(HostCounter::kFaultReordered);
  return true;
}

void Host::Impl::overtakeHeld() {
  if (held.packetsToGo != 0 && --held.packetsToGo == 0) releaseHeld();
}

void Host::Impl::releaseHeld() {
  held.packetsToGo = 0;
  held.due = UINT64_MAX;
  dueChanged();
  const auto length = static_cast<uint32_t>(held.bytes.size());
  const std::shared_ptr<LocalPair> pair = std::move(held.pair);
  if (held.wire == nullptr) return carryLocal(pair.get(), held.path, held.bytes.data(), length);
  std::memcpy(held.wire->udp.stage(), held.bytes.data(), length);
  commit(*held.wire, held.path, held.bytes.data(), length);
}

void Host::Impl::commit(Wire& wire, const Path& path, const uint8_t* bytes, uint32_t length) {
  captureOut(path, bytes, length);
  wire.udp.commit(path, length, false);
}

bool Host::Impl::staysHere(const Gid& destination) {
  if (lastDestinationUses != 0 && destination == lastDestination) {
    lastDestinationUses--;
    return lastDestinationLocal;
  }
  lastDestination = destination;
  lastDestinationLocal = addresses.contains(destination, clock);
  lastDestinationUses = kDestinationUses;
  return lastDestinationLocal;
}

// `bytes` is the wire's staging room and holds a packet, with its ICRC.
void Host::Impl::transmitFaulty(Wire& wire, const Path& path, uint8_t* bytes, uint32_t total) {
  const Faults::Fate fate = faults.decide(bytes, total - kIcrcBytes);
  if (isDropped(fate)) return;
  if (fate.corrupt) {
    uint64_t bit = fate.bit % (total * 8ull);
    if (bit / 8 == wire::kBthCongestionByte) bit += 8;  // the one byte that the ICRC leaves out
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1u << bit % 8);
    counters.add(HostCounter::kFaultCorrupted);
  }
  if (fate.reorder && hold(&wire, nullptr, path, bytes, total, fate.holdFor)) return;
  commit(wire, path, bytes, total);
  if (fate.duplicate) {
    counters.add(HostCounter::kFaultDuplicated);
    uint8_t* copy = wire.udp.stage();  // may send the batch; its bytes stay where they are
    if (copy != bytes) std::memcpy(copy, bytes, total);
    commit(wire, path, copy, total);
  }
  overtakeHeld();
}

void Host::Impl::transmitLocal(LocalPair* pair, const Path& path, uint8_t* bytes, uint32_t length) {
  if (!faults.active()) return carryLocal(pair, path, bytes, length);
  const Faults::Fate fate = faults.decide(bytes, length);
  if (isDropped(fate)) return;
  if (fate.corrupt) return counters.add(HostCounter::kFaultCorrupted);  // no ICRC here: what it would find is lost
  if (fate.reorder && hold(nullptr, pair, path, bytes, length, fate.holdFor)) return;
  carryLocal(pair, path, bytes, length);
  if (fate.duplicate) {
    counters.add(HostCounter::kFaultDuplicated);
    carryLocal(pair, path, bytes, length);
  }
  overtakeHeld();
}

// Without a wire: to the process that owns the destination QP. QP1 is everybody's, so its packets are this
// process's own to route.
void Host::Impl::carryLocal(LocalPair* pair, const Path& path, const uint8_t* bytes, uint32_t length) {
  if (capture.active()) {
    uint8_t whole[kMaxDatagram];
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    std::memcpy(whole, bytes, length);
    storeIcrc(whole + length, icrcOf(headers, bytes, length));
    captureOut(path, whole, length + kIcrcBytes);
  }
  if (pair != nullptr) {
    // One that was held back comes when its pair may be full, or gone: lost.
    if (pair->ready(length, false)) pair->putPlain(metaOf(path), bytes, length);
    return;
  }
  Frame frame;
  frame.meta = metaOf(path);
  frame.meta.sender = slots.slot();
  frame.body = bytes;
  frame.bodyLength = length;
  // A group's members are known to themselves only.
  if (path.destination.isMulticast()) {
    sendToOthers(frame);
    if (takes(frame.meta)) queueLocal(frame);
    return;
  }
  const uint32_t qpn = wire::destinationQpn(bytes), slot = qpn >> 16;
  if (qpn == wire::kGsiQpn || slot == slots.slot()) return queueLocal(frame);
  slots.send(slot, frame);
}

// To every other process of this host: who is a member of the group takes it.
void Host::Impl::sendToOthers(const Frame& frame) {
  for (uint32_t member : slots.liveNow(clock.now()))
    if (member != slots.slot()) slots.send(member, frame);
}

void Host::Impl::ringLocal() {
  localRung = true;
  raiseEvent(localWake.get());
}

void Host::Impl::queueLocal(const Frame& frame) {
  if (localQueue.size() >= kMaxLocalQueue) return counters.add(HostCounter::kLocalQueueFull);
  if (!carriesOn && !localRung) ringLocal();
  std::vector<uint8_t> bytes(Frame::kHeaderBytes + frame.bodyLength);
  frame.encodeHeader(bytes.data());
  std::memcpy(bytes.data() + Frame::kHeaderBytes, frame.body, frame.bodyLength);
  localQueue.push_back(std::move(bytes));
  counters.add(HostCounter::kLocalPackets);
}

void Host::Impl::sendProbe(void* argument, const SteeringProbe& probe) {
  Wire& wire = *static_cast<Wire*>(argument);
  Path path;
  if (wire.family == AF_INET) {
    path.source = gidOfIpv4(htonl(INADDR_LOOPBACK));
  } else {
    path.source.raw[15] = 1;
  }
  path.destination = path.source;
  uint8_t* bytes = wire.udp.stage();
  const uint32_t length = kBthBytes + sizeof probe;
  wire::Bth bth;
  bth.opcode = SteeringProbe::kOpcode;
  bth.destinationQpn = SteeringProbe::kQpnMark | probe.index;
  wire::emitBth(bytes, bth);
  std::memcpy(bytes + kBthBytes, &probe, sizeof probe);
  IcrcHeaders headers;
  headers.source = headers.destination = path.source;
  storeIcrc(bytes + length, icrcOf(headers, bytes, length));
  wire.udp.commit(path, length + kIcrcBytes, false);
}

bool Host::send(const Path& path, const OutPacket& packet) {
  Impl& h = *impl_;
  const uint32_t length = checkedLength(packet);
  if (length == 0) {
    h.counters.add(HostCounter::kTxTooLong);
    return false;
  }
  Impl::Wire& wire = h.wireTo(path.destination);
  if (wire.udp.isOpen() && path.source.isV4() == path.destination.isV4() && !h.staysOffTheWire(path, packet)) {
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    if (!h.faults.active()) {
      const bool stays = h.staysHere(path.destination), v4 = wire.family == AF_INET;
      if (isReliable(packet) && (stays || !v4)) {
        const UdpWire::Way way = wire.udp.prepare(path, packet.header, length + kIcrcBytes, stays);
        headers.sourcePort = way.sourcePort;
        headers.ipv4Id = way.ipv4Id;
      }
      uint8_t* const bytes = wire.udp.stage();
      const uint32_t total = gatherWithIcrc(wire.sent, bytes, headers, packet);
      h.captureOut(path, headers, bytes, total);
      wire.udp.commit(path, total, stays);
      return true;
    }
    uint8_t* const bytes = wire.udp.stage();
    h.transmitFaulty(wire, path, bytes, gatherWithIcrc(wire.sent, bytes, headers, packet));
    return true;
  }
  const bool reachable = path.destination.isMulticast() || isLocal(path.destination);
  if (!h.started || !reachable || !isLocal(path.source)) {
    h.counters.add(HostCounter::kTxUnroutable);
    return false;
  }
  uint8_t bytes[kMaxDatagram];
  gather(bytes, packet);
  h.transmitLocal(nullptr, path, bytes, length);
  return true;
}

bool Host::sendAlone(const Path& path, uint8_t* bth, uint32_t length) {
  static_assert(kAloneRoom == FlowIcrc::kRoom && kAloneMostBytes == FlowIcrc::kMostBytes);
  Impl& h = *impl_;
  Impl::Wire& wire = h.wireTo(path.destination);
  if (!wire.udp.isOpen() || h.faults.active() || h.capture.active()) return false;
  const bool stays = h.staysHere(path.destination);
  return (stays || wire.family != AF_INET) && wire.udp.sendAlone(path, bth, length, stays);
}

void Host::flush() {
  if (impl_->wire4.udp.isOpen()) impl_->wire4.udp.flush();
  if (impl_->wire6.udp.isOpen()) impl_->wire6.udp.flush();
  if (impl_->pairs.any()) impl_->pairs.flush();
}

}  // namespace nd
