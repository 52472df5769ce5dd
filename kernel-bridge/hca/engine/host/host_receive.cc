// What comes in: from the sockets, from other processes of this host, from this process itself.
#include <algorithm>
#include <utility>

#include "base/joined.h"
#include "base/mad.h"
#include "base/wire.h"
#include "host/host_impl.h"
#include "platform/host_events.h"
#include "platform/event.h"

namespace nd {
namespace {

constexpr uint32_t kFramesPerConnection = 64;    // of one peer process per poll
constexpr uint32_t kEventsPerLook = 32;
constexpr uint32_t kPollsWithoutLook = 4;
constexpr uint32_t kRawBatches = 4;              // of the raw socket for one of the UDP socket beside it

}  // namespace

uint32_t Host::Impl::receiveFrom(Wire& wire, uint32_t budget) {
  if (!wire.udp.isOpen()) return 0;
  return wire.turn != nullptr ? receiveBy(wire, *wire.turn, budget) : receiveByUdp(wire, budget);
}

// From where packets came last.
uint32_t Host::Impl::receiveAgain(uint32_t budget) {
  const uint32_t n = receiveFrom(*busyWire, budget);
  if (n != 0) moreLooks = std::min(2 * moreLooks + 1, kMostMoreLooks);
  return n;
}

uint32_t Host::Impl::receiveByUdp(Wire& wire, uint32_t budget, uint32_t* datagrams) {
  if (!wire.udp.isOpen()) return 0;
  uint32_t packets = 0, raw = 0;
  if (wire.raw.isOpen()) {
    raw = receiveRaw(wire, budget);
    if (raw >= budget || (raw != 0 && ++rawBatches < kRawBatches)) return raw;
    rawBatches = 0;
    budget -= raw;
  }
  const uint32_t n = wire.udp.receive(budget);
  if (datagrams != nullptr) *datagrams = n;
  for (uint32_t i = 0; i < n; i++) packets += take(wire, wire.udp.datagram(i), nullptr);
  if (wire.wanted != nullptr) packets += openInlet(wire);
  return raw + packets;
}

// `by`: null: the socket that hears everybody. Answers how many packets it was; one that is empty counts as well.
uint32_t Host::Impl::take(Wire& wire, const UdpWire::Datagram& datagram, UdpInlet* by) {
  if (datagram.length == 0) return 1;  // a peer that learns something from its own system
  const bool taken = takes(datagram.meta);
  uint32_t at = 0, packets = 0;
  do {
    const uint32_t length = std::min(datagram.segment, datagram.length - at);
    onDatagram(wire, datagram, by, datagram.bytes + at, length, taken);
    at += length;
    packets++;
  } while (at < datagram.length);
  counters.add(HostCounter::kWireRxPackets, packets);
  if (by == nullptr && taken) hear(wire, datagram);
  return packets;
}

// What comes by the raw socket: whole packets for queue pairs of this process.
uint32_t Host::Impl::receiveRaw(Wire& wire, uint32_t budget) {
  const uint32_t n = wire.raw.receive(budget);
  uint32_t packets = 0, witnesses = 0;
  for (uint32_t i = 0; i < n; i++) {
    RawWire::Piece piece = wire.raw.piece(i);
    const bool taken = piece.length != 0 && !piece.meta.destination.isMulticast() && takes(piece.meta);
    RawWire::Packet packet;
    uint32_t ours = 0;
    for (; wire.raw.next(&piece, &packet); ours++) {
      if (taken)
        deliver(packet.meta, packet.headers, packet.bth, packet.length, packet.bth + packet.length);
      else
        counters.add(HostCounter::kRxNotLocal);
    }
    packets += ours;
    witnesses += ours == 0;
  }
  counters.add(HostCounter::kWireRxPackets, packets);
  return packets + witnesses;
}

// All that lies in the raw socket, so that a message that may end connections does not overtake their packets.
void Host::Impl::drainRaw() {
  for (uint32_t n = 0, got = 1; got != 0 && n < kMaxDrained; n += got) got = receiveRaw(wire4, RawWire::kBatch);
}

// Exact ICRCs: whether a packet that came past the raw socket is known to be whole. What this host has sent itself is; of
// all others the raw socket has had a copy, before the UDP sockets.
bool Host::Impl::vouchedFor(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (!wire4.raw.isOpen() || !meta.source.isV4()) return true;
  if (wire::destinationQpn(bth) == wire::kGsiQpn) drainRaw();
  if (addresses.contains(meta.source, clock) || wire4.raw.witnessed(meta, bth, length)) return true;
  drainRaw();
  if (wire4.raw.witnessed(meta, bth, length)) return true;
  counters.add(HostCounter::kRawUnwitnessed);
  return false;
}

// Whether a packet has come from and to where it may.
bool Host::Impl::takes(const PacketMeta& meta) {
  if (!meta.source.isUnicast()) return false;
  if (!meta.destination.isMulticast()) return addresses.contains(meta.destination, clock);
  for (const Joined& j : joined)
    if (j.group == meta.destination && j.interface == meta.scopeId) return true;
  return false;
}

// `bth`: one packet of the datagram, with its ICRC. `taken`: it came from and to where it may.
void Host::Impl::onDatagram(Wire& wire, const UdpWire::Datagram& datagram, UdpInlet* by, const uint8_t* bth,
                            uint32_t whole, bool taken) {
  if (!datagram.complete || whole < kBthBytes + kIcrcBytes || whole > kMaxDatagram || whole % 4 != 0)
    return counters.add(HostCounter::kWireRxShort);
  const uint32_t length = whole - kIcrcBytes;
  IcrcHeaders headers;
  headers.source = datagram.meta.source;
  headers.destination = datagram.meta.destination;
  headers.sourcePort = datagram.sourcePort;
  // Most senders' ID is 0, and those of a socket that counts follow each other.
  CountedIds& ids = by != nullptr ? by->ids : wire.ids;
  const bool counts = wire.family == AF_INET && headers.sourcePort == ids.port;
  if (counts) headers.ipv4Id = bth == datagram.bytes ? ++ids.last : ids.last;
  const uint32_t computed = icrcOf(wire.received, headers, bth, length), received = loadIcrc(bth + length);
  const uint32_t qpn = wire::destinationQpn(bth), slot = qpn >> 16;
  if (wire.raw.isOpen() && (slot == slots.slot() || qpn <= wire::kGsiQpn || qpn == wire::kMulticastQpn)) {
    // From this host, with ID 0; or a copy witnesses for it. Packets of others' are theirs to judge.
    const bool own = addresses.contains(datagram.meta.source, clock);
    if (own && computed != received) return counters.add(HostCounter::kIcrcErrors);
    if (!vouchedFor(datagram.meta, bth, length)) return;
  } else if (computed != received) {
    if (wire.family != AF_INET || !solveIpv4Id(computed, received, length, &headers))
      return counters.add(HostCounter::kIcrcErrors);
    counters.add(HostCounter::kIpv4IdSolved);
    ids = {headers.sourcePort, headers.ipv4Id};
  }
  if (!taken) {
    // A group that has a single member among the sockets of the port: Linux finds it, and then chooses among all of
    // them nevertheless. Only for IPv4; IPv6 sockets see what is for other interfaces' members as well.
    const bool strayed = wire.family == AF_INET && datagram.meta.destination.isMulticast() &&
                         datagram.meta.source.isUnicast() && qpn == wire::kMulticastQpn;
    if (!strayed) return counters.add(HostCounter::kRxNotLocal);
    counters.add(HostCounter::kRxMisdirected);
    Frame frame;
    frame.kind = FrameKind::kStray;
    frame.meta = datagram.meta;
    frame.body = bth;
    frame.bodyLength = length;
    return sendToOthers(frame);
  }
  // The system gives every process that joined a copy of its own. Nothing else is sent to a group.
  if (datagram.meta.destination.isMulticast()) {
    if (qpn != wire::kMulticastQpn) return counters.add(HostCounter::kRxNotLocal);
    return deliver(datagram.meta, headers, bth, length, bth + length);
  }
  if (qpn <= wire::kGsiQpn && by == nullptr) drainInlets();
  if (qpn <= wire::kGsiQpn || slot == slots.slot())
    return deliver(datagram.meta, headers, bth, length, bth + length);
  if (slot == SteeringProbe::kQpnMark >> 16 && bth[0] == SteeringProbe::kOpcode)
    return onProbe(wire, datagram.meta, bth, length);
  counters.add(HostCounter::kRxMisdirected);
  if (by != nullptr) by->strays = true;
  if (slot >= Slots::kMax) return counters.add(HostCounter::kUnknownSlot);
  Frame frame;
  frame.kind = FrameKind::kStray;
  frame.meta = datagram.meta;
  frame.body = bth;
  frame.bodyLength = length;
  // Only a packet that had somebody to go to says that the steering is wrong.
  if (slots.send(slot, frame) && by == nullptr) wire.steering.onMisdirected(clock.now());
}

void Host::Impl::onProbe(Wire& wire, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  SteeringProbe probe;
  if (!isLoopback(meta.source) || length != kBthBytes + sizeof probe) return;
  std::memcpy(&probe, bth + kBthBytes, sizeof probe);
  if (probe.magic != SteeringProbe::kMagic) return;
  const ProbeReply reply{probe.nonce, probe.index, slots.slot()};
  if (probe.slot == slots.slot()) return wire.steering.onReply(reply);
  Frame frame;
  frame.kind = FrameKind::kProbeReply;
  frame.body = reinterpret_cast<const uint8_t*>(&reply);
  frame.bodyLength = sizeof reply;
  if (probe.slot < Slots::kMax) slots.send(probe.slot, frame);
}

// Whether the raw socket has a copy of its own of what another process hands over: a queue pair's packet that came by the
// wire, from another host, or from this one's reliable connections.
bool Host::Impl::comesByRaw(const Frame& frame, uint32_t qpn) {
  const PacketMeta& meta = frame.meta;
  if (!wire4.raw.isOpen() || meta.destination.isMulticast() || qpn <= wire::kGsiQpn || !meta.source.isV4()) return false;
  return !addresses.contains(meta.source, clock) || (frame.kind == FrameKind::kStray && wire::isReliable(frame.body[0]));
}

void Host::Impl::onFrame(const Frame& frame, FrameOrigin& origin) {
  counters.add(HostCounter::kForwardedIn);
  const bool stray = frame.kind == FrameKind::kStray;
  if (frame.kind == FrameKind::kPortAsk && frame.bodyLength == sizeof(PortQuestion))
    return ports.onAsked(frame, origin.connection);
  if (frame.kind >= FrameKind::kPortAsk) return counters.add(HostCounter::kSlotBadFrames);
  if (frame.kind >= FrameKind::kPairAsk && !stray) return pairs.onFrame(frame, origin, clock.now(), *sink);
  if (frame.kind == FrameKind::kProbeReply) {
    ProbeReply reply;
    if (frame.bodyLength != sizeof reply) return counters.add(HostCounter::kSlotBadFrames);
    std::memcpy(&reply, frame.body, sizeof reply);
    wire4.steering.onReply(reply);
    wire6.steering.onReply(reply);
    return;
  }
  const bool packet = frame.bodyLength >= kBthBytes && frame.bodyLength % 4 == 0 &&
                      frame.bodyLength + kIcrcBytes <= kMaxDatagram;
  const uint32_t qpn = packet ? wire::destinationQpn(frame.body) : 0;
  const bool multicast = frame.meta.destination.isMulticast();
  // One for a group comes to everybody: what is not for us is no mistake.
  if (multicast && packet && qpn == wire::kMulticastQpn && frame.kind != FrameKind::kMad && !takes(frame.meta))
    return counters.add(HostCounter::kRxNotLocal);
  if (!packet || !takes(frame.meta)) return counters.add(HostCounter::kSlotBadFrames);
  IcrcHeaders headers;
  headers.source = frame.meta.source;
  headers.destination = frame.meta.destination;
  if (comesByRaw(frame, qpn) || !vouchedFor(frame.meta, frame.body, frame.bodyLength)) return;
  if (frame.kind == FrameKind::kMad) {
    if (qpn != wire::kGsiQpn) return counters.add(HostCounter::kSlotBadFrames);
    // A process passes on what came by the wire, and speaks for itself. It does not speak for another.
    if (frame.meta.sender != kByWire && !slots.mayComeFrom(frame.meta.sender, origin.connection))
      return counters.add(HostCounter::kSlotBadFrames);
    Deferred message;
    message.frame.resize(Frame::kHeaderBytes + frame.bodyLength);
    frame.encodeHeader(message.frame.data());
    std::memcpy(message.frame.data() + Frame::kHeaderBytes, frame.body, frame.bodyLength);
    deferred.push_back(std::move(message));
    return;
  }
  if (frame.kind != FrameKind::kPacket && !stray) return counters.add(HostCounter::kSlotBadFrames);
  // Never forwarded again: a frame for another slot is its sender's mistake.
  const bool ours = multicast ? qpn == wire::kMulticastQpn : qpn >> 16 == slots.slot() || qpn == wire::kGsiQpn;
  if (!ours) return counters.add(HostCounter::kSlotBadFrames);
  deliver(frame.meta, headers, frame.body, frame.bodyLength, nullptr);
}

// `icrc`: the bytes that came with the packet, null if it came without.
void Host::Impl::captureIn(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
                           const uint8_t* icrc) {
  if (!capture.active()) return;
  uint8_t whole[kMaxDatagram];
  std::memcpy(whole, bth, length);
  if (icrc != nullptr)
    std::memcpy(whole + length, icrc, kIcrcBytes);
  else
    storeIcrc(whole + length, icrcOf(headers, bth, length));
  capture.write(Capture::Direction::kInbound, headers, {meta.trafficClass, meta.hopLimit, meta.flowLabel}, whole,
                length + kIcrcBytes);
  capture.scheduleFlush(clock.now());
}

void Host::Impl::deliver(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
                         const uint8_t* icrc) {
  captureIn(meta, headers, bth, length, icrc);
  sink->onPacket(meta, bth, length);
}

void Host::Impl::silenceLocal() {
  if (std::exchange(localRung, false)) clearEvent(localWake.get());
}

uint32_t Host::Impl::drainLocalQueue(uint32_t budget) {
  uint32_t n = 0;
  while (n < budget && !localQueue.empty()) {
    // Taken out first: delivering may queue an answer.
    const std::vector<uint8_t> bytes = std::move(localQueue.front());
    localQueue.pop_front();
    if (localQueue.empty()) silenceLocal();
    Frame frame;
    if (frame.decode(bytes.data(), static_cast<uint32_t>(bytes.size()))) {
      IcrcHeaders headers;
      headers.source = frame.meta.source;
      headers.destination = frame.meta.destination;
      if (pairs.any() && wire::destinationQpn(frame.body) == wire::kGsiQpn) drainPairs();  // it may end a connection
      deliver(frame.meta, headers, frame.body, frame.bodyLength, nullptr);
    }
    n++;
  }
  return n;
}

// Whether data that its sender sent before may still lie in a socket, and be lost if this is delivered first: it ends a
// connection. A message that begins one has no data before it, and need not wait for what strangers send.
bool Host::Impl::endsConnection(const Deferred& what) {
  if (what.frame.empty()) return true;
  const uint8_t* bth = what.frame.data() + Frame::kHeaderBytes;
  if (!mad::isMadPacket(bth, static_cast<uint32_t>(what.frame.size()) - Frame::kHeaderBytes)) return true;
  const uint32_t attribute = mad::attribute(bth + mad::kPacketMadOffset);
  return attribute == mad::kDreq || attribute == mad::kRej;
}

// Receives what the sockets hold now, and nothing that arrives later: a flood has no end.
uint32_t Host::Impl::drainSockets() {
  uint32_t packets = 0;
  for (Wire* wire : {&wire4, &wire6}) {
    if (!wire->udp.isOpen()) continue;
    uint32_t left = wire->raw.isOpen() ? kMaxDrained : std::min(wire->udp.queuedAtMost(), kMaxDrained);
    while (left != 0) {
      uint32_t datagrams = 0;
      const uint32_t got = receiveByUdp(*wire, std::min(left, UdpWire::kReceiveBatch), &datagrams);
      if (got == 0) break;
      packets += got;
      left -= std::min(left, std::max(datagrams, 1u));
    }
  }
  return packets + drainInlets();
}

uint32_t Host::Impl::deliverDeferred() {
  uint32_t n = 0;
  if (std::any_of(deferred.begin(), deferred.end(), endsConnection)) n = drainSockets();
  if (pairs.any()) drainPairs();
  while (!deferred.empty()) {
    const Deferred what = std::move(deferred.front());
    deferred.pop_front();
    Frame frame;
    if (what.frame.empty()) {
      sink->onPeerProcessGone(what.slot, what.orderly);
      pairs.forget(what.slot);
    } else if (frame.decode(what.frame.data(), static_cast<uint32_t>(what.frame.size()))) {
      gsi.onHandedOver(frame.meta, frame.body, frame.bodyLength);
    }
  }
  return n;
}

void Host::Impl::turnTo(Wire& wire, UdpInlet* inlet) {
  if (busyWire != &wire || wire.turn != inlet) moreLooks = 0;
  busyWire = &wire;
  wire.turn = inlet;
}

uint32_t Host::Impl::lookAtAll(uint32_t budget) {
  epoll_event events[kEventsPerLook];
  const int count = epoll_wait(epoll.get(), events, kEventsPerLook, 0);
  uint32_t n = 0;
  for (int i = 0; i < count; i++) {
    const uint32_t left = n < budget ? budget - n : 0, id = eventId(events[i].data.u64);
    switch (eventKind(events[i].data.u64)) {
      case EventKind::kWire:
        turnTo(id == AF_INET ? wire4 : wire6, nullptr);
        if (left != 0) n += receiveFrom(*busyWire, left);
        break;
      case EventKind::kInlet: {
        Wire& wire = (id & kInlets6) == 0 ? wire4 : wire6;
        UdpInlet& inlet = wire.inlets.at(id & ~kInlets6);
        turnTo(wire, inlet.ready() ? &inlet : nullptr);
        if (left != 0) n += receiveFrom(*busyWire, left);
        break;
      }
      case EventKind::kSlotListener:
        if (!inbound.acceptFrom(slots.listener())) stopListening(events[i].data.u64);
        break;
      case EventKind::kInbound:
        if (left == 0) break;
        moreLooks = 0;
        n += inbound.read(
            id, std::min(left, kFramesPerConnection),
            [](void* self, const Frame& frame, FrameOrigin& origin) { static_cast<Impl*>(self)->onFrame(frame, origin); },
            this);
        break;
      case EventKind::kOutbound:
        onOutbound(id, events[i].events);
        break;
      case EventKind::kClaim:
        if (!ports.acceptOn(id, inbound)) stopListening(events[i].data.u64);
        break;
      case EventKind::kPair:
        pairs.rang(id);
        break;
      case EventKind::kLocalQueue:
        break;  // looked at in every poll
    }
  }
  return n;
}

// Or whoever sleeps would be woken at once, again and again, until a descriptor is given back.
void Host::Impl::stopListening(uint64_t tag) {
  deaf.push_back(tag);
  hear(tag, false);
  listenDue = clock.now() + kListenAgainNs;
  dueChanged();
}

void Host::Impl::listenAgain() {
  listenDue = UINT64_MAX;
  dueChanged();
  for (const uint64_t tag : std::exchange(deaf, {})) hear(tag, true);
}

void Host::Impl::hear(uint64_t tag, bool on) {
  if (eventKind(tag) == EventKind::kClaim) return ports.hear(eventId(tag), on);
  watchFd(epoll.get(), slots.listener(), on ? EPOLLIN : 0u, EventKind::kSlotListener, 0, EPOLL_CTL_MOD);
}

void Host::Impl::onOutbound(uint32_t slot, uint32_t events) {
  const Departure departure = slots.onOutbound(slot, events, clock.now());
  if (departure != Departure::kNone) deferred.push_back({{}, slot, departure == Departure::kOrderly});
}

uint64_t Host::Impl::nextDeadline() const {
  return std::min(std::min(std::min(rareDue, capture.flushDue()), pairs.deadline()),
                  std::min(wire4.steering.deadline(), wire6.steering.deadline()));
}

void Host::Impl::runTimers() {
  const uint64_t now = clock.now();
  if (held.due <= now) releaseHeld();
  if (listenDue <= now) listenAgain();
  if (pairs.deadline() <= now) pairs.onTime(now, *sink);
  if (capture.flushDue() <= now) {
    capture.flush();
    if (!capture.active()) {
      counters.add(HostCounter::kCaptureErrors);
      sink->onCaptureFailed(capture.error());
    }
  }
  for (Wire* wire : {&wire4, &wire6})
    if (wire->steering.deadline() <= now) wire->steering.onTime(now);
}

bool Host::poll(PacketSink& sink, uint32_t budget) {
  Impl& h = *impl_;
  if (!h.started || budget == 0) return false;
  h.sink = &sink;
  uint32_t n = 0;
  if (h.pairs.any()) n = h.pairs.receive(sink, h.plainSink, budget);
  if (!h.localQueue.empty()) n += h.drainLocalQueue(budget);
  const uint64_t now = h.pairs.any() ? h.clock.recent() : 0;
  if (n < budget && (now == 0 || now >= h.lookDue)) {
    // Traffic comes where it came from last: that socket is asked first. One system call tells of all others.
    const uint32_t before = n;
    if (h.busyWire != nullptr && !std::exchange(h.lookAll, false)) n += h.receiveAgain(budget - n);
    if (n < budget && (n == before || ++h.pollsWithoutLook >= kPollsWithoutLook)) {
      h.pollsWithoutLook = 0;
      n += h.lookAtAll(budget - n);
    }
    h.looked(now, n != before);
  }
  if (!h.deferred.empty()) n += h.deliverDeferred();
  if (h.nextDeadline() != UINT64_MAX) {
    h.runTimers();
    flush();
  }
  if (h.pairs.grown()) h.tellSleepers();  // they do not wait for the new ones yet
  h.sink = nullptr;
  return n >= std::min(budget, UdpWire::kReceiveBatch) || !h.localQueue.empty() || h.pairs.pending();
}

void Host::lookOut(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>& wanted) {
  Impl& h = *impl_;
  if (!h.started || h.busyWire == nullptr || h.pairs.any() || !h.localQueue.empty()) return;
  h.sink = &sink;
  for (uint32_t looks = h.moreLooks; looks != 0 && wanted.load(std::memory_order_relaxed) == 0; looks--)
    if (h.receiveAgain(budget) != 0) break;
  h.sink = nullptr;
}

uint64_t Host::nextDeadline() const { return impl_->nextDeadline(); }

bool Host::isLocal(const Gid& address) { return impl_->addresses.contains(address, impl_->clock); }

void Host::reportEnd(uint32_t slot, PacketSink& sink) {
  Impl& h = *impl_;
  if (!h.started || !h.slots.endedUnseen(slot)) return;
  h.onOutbound(slot, EPOLLHUP);
  h.sink = &sink;
  if (!h.deferred.empty()) h.deliverDeferred();
  h.sink = nullptr;
}

bool Host::watchPeer(uint32_t slot) { return impl_->started && impl_->slots.watch(slot); }

}  // namespace nd
