#include "host/wire_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/joined_packets.h"
#include "base/packet_headers.h"
#include "slots/host_events.h"

namespace nd {
namespace {

// A packet for another process that was received on a socket of this one.
Frame strayFrame(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  Frame frame;
  frame.kind = FrameKind::kStray;
  frame.meta = meta;
  frame.body = bth;
  frame.bodyLength = length;
  return frame;
}

}  // namespace

WireReceiver::WireReceiver(const HostParts& parts, UdpWire& udp, WireSender& sender, RawReceiver* raw, IpFamily family)
    : parts_(parts),
      udp_(udp),
      raw_(raw),
      family_(family),
      peers_(parts.counters, family),
      icrc_(parts.counters, family),
      steering_(parts.counters, &WireSender::sendProbe, &sender) {}

// Joined packets would also reach the raw socket joined, which does not know where they end.
int WireReceiver::bind(uint32_t receiveBufferBytes, bool first, DatagramSocket* bound) const {
  return bound->openShared(family_, kRocePort, receiveBufferBytes, !exact(), first);
}

int WireReceiver::open(DatagramSocket bound, uint32_t receiveBufferBytes) {
  receiveBufferBytes_ = receiveBufferBytes;
  udp_.open(std::move(bound));
  if (exact()) {
    if (const int error = raw_->divide(udp_.fd())) {
      close();
      return error;
    }
  }
  parts_.readiness.add(udp_.fd(), Readiness::kReadable, eventTag(EventKind::kWire, static_cast<uint32_t>(family_)));
  parts_.addresses.rejoin(udp_, family_);
  if (portsAreShared()) steering_.start(udp_.fd(), parts_.slots.slot(), parts_.clock.now());
  udp_.flush();
  return 0;
}

void WireReceiver::close() {
  udp_.close();
  if (raw_ != nullptr) raw_->close();
  peers_.close();
  early_.clear();
  turn_ = wanted_ = nullptr;
}

// ── Which socket ────────────────────────────────────────────────────────────────────────────────

bool WireReceiver::turnTo(uint32_t peer) {
  PeerSocket* const socket = peer != kPortSocket && peers_.at(peer).ready() ? &peers_.at(peer) : nullptr;
  return std::exchange(turn_, socket) != socket;
}

uint32_t WireReceiver::receive(uint32_t budget) {
  if (!udp_.hears()) return 0;
  return turn_ != nullptr ? receiveByPeer(*turn_, budget) : receiveByPort(budget);
}

uint32_t WireReceiver::receiveByPort(uint32_t budget, uint32_t* datagrams) {
  if (!udp_.hears()) return 0;
  uint32_t packets = 0, raw = 0;
  if (exact()) {
    raw = raw_->receive(budget);
    if (raw >= budget || (raw != 0 && ++rawBatches_ < kRawBatches)) return raw;
    rawBatches_ = 0;
    budget -= raw;
  }
  const uint32_t n = udp_.receive(budget);
  if (datagrams != nullptr) *datagrams = n;
  for (uint32_t i = 0; i < n; i++) packets += take(udp_.datagram(i), nullptr);
  if (wanted_ != nullptr) packets += openPeer();
  return raw + packets;
}

uint32_t WireReceiver::drainPort() {
  if (!udp_.hears()) return 0;
  uint32_t packets = 0, left = exact() ? kMostDrained : std::min(udp_.socket().queuedAtMost(), kMostDrained);
  while (left != 0) {
    uint32_t datagrams = 0;
    const uint32_t got = receiveByPort(std::min(left, UdpWire::kReceiveBatch), &datagrams);
    if (got == 0) break;
    packets += got;
    left -= std::min(left, std::max(datagrams, 1u));
  }
  return packets;
}

// ── Packets ─────────────────────────────────────────────────────────────────────────────────────

// Returns the number of packets in the datagram. An empty one also counts.
uint32_t WireReceiver::take(const Datagram& datagram, PeerSocket* by) {
  if (datagram.length == 0) return 1;  // sent by a peer to learn its own IPv4 ID
  const bool accepted = parts_.addresses.accepts(datagram.meta);
  uint32_t at = 0, packets = 0;
  do {
    const uint32_t length = std::min(datagram.segment, datagram.length - at);
    onPacket(datagram, by, datagram.bytes + at, length, accepted);
    at += length;
    packets++;
  } while (at < datagram.length);
  if (by == nullptr && accepted) considerPeer(datagram);
  return packets;
}

// `bth`: one packet of the datagram, `whole` bytes including its ICRC. `accepted`: its source and destination are
// valid.
void WireReceiver::onPacket(const Datagram& datagram, PeerSocket* by, const uint8_t* bth, uint32_t whole,
                            bool accepted) {
  if (!parts_.intake.cameByWire(datagram.complete ? whole : 0)) return;
  const uint32_t length = whole - kIcrcBytes, qpn = wire::destinationQpn(bth), slot = qpn >> 16;
  const PacketMeta& meta = datagram.meta;
  IcrcHeaders headers;
  if (!isIntact(datagram, by, bth, length, &headers)) return;
  if (meta.destination.isMulticast() && !portsAreShared()) return onGroupPacket(meta, headers, bth, length, accepted);
  if (!accepted) return onUnaccepted(meta, bth, length);
  // The OS gives a copy to every process that has joined. Nothing else is sent to a group.
  if (meta.destination.isMulticast()) {
    if (qpn != wire::kMulticastQpn) return parts_.counters.add(HostCounter::kRxNotLocal);
    if (!parts_.copies.takesOwn(meta, bth, length, parts_.clock.now()))
      return parts_.counters.add(HostCounter::kGroupCopies);
    return parts_.intake.takeChecked(meta, headers, bth, length);
  }
  if (qpn <= wire::kGsiQpn && by == nullptr) {
    drainPeers();
    sibling_->drainPeers();
  }
  if (qpn <= wire::kGsiQpn || slot == parts_.slots.slot()) return parts_.intake.takeChecked(meta, headers, bth, length);
  if (slot == SteeringProbe::kQpnMark >> 16 && bth[0] == SteeringProbe::kOpcode) return onProbe(datagram, bth, length);
  forward(meta, by, bth, length);
}

bool WireReceiver::isIntact(const Datagram& datagram, PeerSocket* by, const uint8_t* bth, uint32_t length,
                            IcrcHeaders* headers) {
  const uint32_t qpn = wire::destinationQpn(bth);
  // Packets of other processes are checked by those processes.
  const bool knowsExactly =
      exact() && (qpn >> 16 == parts_.slots.slot() || qpn <= wire::kGsiQpn || qpn == wire::kMulticastQpn);
  const bool right = icrc_.check(datagram, by != nullptr ? &by->ids : &ids_, bth, length, !knowsExactly, headers);
  // Packets sent by this host have ID 0; all others are verified by a copy from the raw socket.
  if (knowsExactly && (right || !parts_.addresses.isOwn(datagram.meta.source)))
    return raw_->vouchesFor(datagram.meta, bth, length);
  if (!right) parts_.counters.add(HostCounter::kIcrcErrors);
  return right;
}

// The port's socket has joined the groups of all processes. Processes of this host send to each other without the wire.
void WireReceiver::onGroupPacket(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth,
                                 uint32_t length, bool accepted) {
  const bool heard = meta.source.isUnicast() && !parts_.addresses.isOwn(meta.source) &&
                     wire::destinationQpn(bth) == wire::kMulticastQpn;
  const bool forOthers = heard && parts_.addresses.othersJoined(meta.destination, meta.scopeId);
  if (forOthers) parts_.slots.sendToOthers(strayFrame(meta, bth, length), parts_.clock.now());
  if (heard && accepted) return parts_.intake.takeChecked(meta, headers, bth, length);
  parts_.counters.add(forOthers ? HostCounter::kRxMisdirected : HostCounter::kRxNotLocal);
}

void WireReceiver::announceGroups(Descriptor owner) {
  parts_.addresses.forEachJoined(family_, [&](const Gid& group, uint32_t interface) {
    Frame frame;
    frame.kind = FrameKind::kGroupJoined;
    frame.meta.destination = group;
    frame.meta.scopeId = interface;
    sendFrame(owner, frame);
  });
}

void WireReceiver::onGroup(uint32_t member, const Frame& frame) {
  const Gid& group = frame.meta.destination;
  if (frame.kind == FrameKind::kGroupJoined) parts_.addresses.joinFor(member, udp_, group, frame.meta.scopeId);
  else parts_.addresses.leaveFor(member, udp_, group, frame.meta.scopeId);
}

// If a group has a single member among the port's sockets, Linux finds that socket but then chooses among all of them
// nevertheless. This concerns only IPv4; IPv6 sockets also see packets for members on other interfaces. A process that
// has just left a group cannot distinguish such a datagram from its own last copies, but each receiver can
// (group_copies.h).
void WireReceiver::onUnaccepted(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  const bool strayed = family_ == IpFamily::kV4 && meta.destination.isMulticast() && meta.source.isUnicast() &&
                       wire::destinationQpn(bth) == wire::kMulticastQpn;
  if (!strayed) return parts_.counters.add(HostCounter::kRxNotLocal);
  parts_.counters.add(HostCounter::kRxMisdirected);
  parts_.slots.sendToOthers(strayFrame(meta, bth, length), parts_.clock.now());
}

void WireReceiver::onProbe(const Datagram& datagram, const uint8_t* bth, uint32_t length) {
  SteeringProbe probe;
  if (!isLoopback(datagram.meta.source) || length != kBthBytes + sizeof probe) return;
  std::memcpy(&probe, bth + kBthBytes, sizeof probe);
  // Only a process that shares the port can send from it.
  if (probe.magic != SteeringProbe::kMagic) {
    probedByOther_ |= probe.magic >> 16 == SteeringProbe::kMark && datagram.sourcePort == kRocePort;
    return;
  }
  const ProbeReply reply{probe.nonce, probe.index, parts_.slots.slot()};
  if (probe.slot == parts_.slots.slot()) return steering_.onReply(reply);
  Frame frame;
  frame.kind = FrameKind::kProbeReply;
  frame.body = reinterpret_cast<const uint8_t*>(&reply);
  frame.bodyLength = sizeof reply;
  if (probe.slot < Slots::kMax) parts_.slots.send(probe.slot, frame);
}

// Handles a packet for another process on this host.
void WireReceiver::forward(const PacketMeta& meta, PeerSocket* by, const uint8_t* bth, uint32_t length) {
  parts_.counters.add(HostCounter::kRxMisdirected);
  if (by != nullptr) by->strays = true;
  const uint32_t slot = wire::destinationQpn(bth) >> 16;
  if (slot >= Slots::kMax) return parts_.counters.add(HostCounter::kUnknownSlot);
  // The steering is wrong only if the packet should have reached an existing process.
  if (parts_.slots.send(slot, strayFrame(meta, bth, length)) == 0 && by == nullptr)
    steering_.onMisdirected(parts_.clock.now());
}

// ── Peer sockets: receiving, and when one is opened ──────────────────────────────────────

uint32_t WireReceiver::receiveByPeer(PeerSocket& peer, uint32_t budget) {
  uint32_t packets = 0, n;
  do {
    n = peers_.receive(peer, budget, parts_.tap.captures());
    if (n == 1 && takeSingle(peer)) return packets + 1;
    for (uint32_t i = 0; i < n; i++) {
      Datagram datagram = peers_.datagram(peer, i);
      if (datagram.hasMetadata || icrc_.findSegment(peer, &datagram)) {
        packets += take(datagram, &peer);
      } else {
        peers_.wantMetadata(peer);
        parts_.counters.add(HostCounter::kIcrcErrors);
        packets++;
      }
    }
  } while (peer.strays && n != 0 && packets < kMostDrained);
  if (peer.strays && n == 0) {
    peers_.refuse(peer);
    if (turn_ == &peer) turn_ = nullptr;
  }
  return packets;
}

// The single-packet fast path, for a single small packet of one of this process's connections. It makes the same checks
// as for all packets, and these change no state. Returns false if the packet was not handled.
bool WireReceiver::takeSingle(PeerSocket& peer) {
  uint32_t whole;
  uint8_t* const bth = peers_.single(&whole);
  const uint32_t length = whole - kIcrcBytes;
  if (bth == nullptr || peer.strays || !isPacketLength(length)) return false;
  const uint32_t qpn = wire::destinationQpn(bth);
  if (qpn <= wire::kGsiQpn || qpn >> 16 != parts_.slots.slot()) return false;
  constexpr uint32_t kLeast = kBthBytes + kIcrcBytes;
  for (uint32_t segment = kLeast; segment + kLeast <= whole; segment += 4)
    if (mayBeJoined(bth, whole, segment)) return false;
  const PacketMeta meta = peers_.metaOf(peer);
  if (!icrc_.checkSingle(peer, bth, length) || !parts_.addresses.accepts(meta) ||
      !parts_.intake.takeSingle(meta, bth, length))
    return false;
  icrc_.tookSingle(&peer);
  peers_.tookSingle(peer);
  return true;
}

uint32_t WireReceiver::drainPeers() {
  uint32_t n = early_.empty() ? 0 : takeEarly();
  for (uint32_t i = 0; i < PeerSockets::kMostPeers; i++) {
    PeerSocket& peer = peers_.at(i);
    uint32_t drained = 0;
    for (uint32_t got = 1; peer.ready() && got != 0 && drained < kMostDrained; drained += got)
      got = receiveByPeer(peer, UdpWire::kReceiveBatch);
    n += drained;
  }
  return n;
}

// A flow from a process on this host to this one may get its own socket.
void WireReceiver::considerPeer(const Datagram& d) {
  if (wanted_ != nullptr || exact() || d.sourcePort == kRocePort || !d.complete) return;
  if (d.length < kBthBytes + kIcrcBytes || !wire::isReliable(d.bytes[0])) return;
  if (wire::destinationQpn(d.bytes) >> 16 != parts_.slots.slot() || isLinkLocal6(d.meta.source)) return;
  if (!parts_.addresses.isOwn(d.meta.source)) return;
  wanted_ = peers_.consider(d.meta, d.sourcePort);
}

// Nothing is lost or reordered. While the socket is bound but not yet connected, packets of other senders may reach it:
// either all packets of a sender, or none. They are delivered after the earlier contents of the port's socket, and
// before later ones. The peer's own earlier packets are either all in the port's socket, or all in this one.
uint32_t WireReceiver::openPeer() {
  PeerSocket& peer = *wanted_;
  if (!peers_.bind(peer, receiveBufferBytes_)) {
    peers_.refuse(*std::exchange(wanted_, nullptr));
    return 0;
  }
  uint32_t n = drainUdp();
  const bool connected = peers_.connect(peer);
  const uint32_t id = peers_.indexOf(peer) | (family_ == IpFamily::kV4 ? 0 : kPeers6);
  const bool watched =
      connected && parts_.readiness.add(peer.fd(), Readiness::kReadable, eventTag(EventKind::kPeerSocket, id));
  // Receives everything that was there when it was connected, that is, until it is empty or has delivered more than its
  // buffer can hold.
  uint64_t bytes = 0, packets = 0;
  for (uint32_t got = 1; got != 0 && bytes <= 2ull * receiveBufferBytes_ && packets < kMostDrained; packets += got) {
    got = udp_.receiveFrom(peer.fd());
    for (uint32_t i = 0; i < got; i++) {
      const Datagram d = udp_.datagram(i);
      bytes += d.length;
      if (peer.is(d.meta, d.sourcePort)) early_.push_back({d, std::vector<uint8_t>(d.bytes, d.bytes + d.length)});
      else n += take(d, nullptr);
    }
  }
  n += drainUdp();
  n += takeEarly();
  wanted_ = nullptr;
  if (!watched) {
    peers_.refuse(peer);
    return n;
  }
  peer.ids = ids_;
  peers_.settle(peer);
  turn_ = &peer;
  return n;
}

// Receives everything in the port's socket.
uint32_t WireReceiver::drainUdp() {
  uint32_t packets = 0;
  for (uint32_t n = 0, got = 1; got != 0 && n < kMostDrained; n += got) {
    got = udp_.receive(UdpWire::kReceiveBatch);
    for (uint32_t i = 0; i < got; i++) packets += take(udp_.datagram(i), nullptr);
  }
  return packets;
}

// Before the peer socket is settled, packets are handled as if received on the port's socket.
uint32_t WireReceiver::takeEarly() {
  uint32_t packets = 0;
  for (Early& each : std::exchange(early_, {})) {
    each.datagram.bytes = each.bytes.data();
    packets += take(each.datagram, nullptr);
  }
  return packets;
}

}  // namespace nd
