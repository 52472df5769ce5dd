// Sockets connected to single senders (udp_inlet.h): when one is opened, and what comes by it.
#include <algorithm>
#include <utility>

#include "base/joined.h"
#include "base/mad.h"
#include "base/wire.h"
#include "host/host_impl.h"
#include "platform/host_events.h"

namespace nd {

uint32_t Host::Impl::receiveBy(Wire& wire, UdpInlet& inlet, uint32_t budget) {
  uint32_t packets = 0, n;
  do {
    n = wire.inlets.receive(inlet, budget, capture.active());
    if (n == 1 && takeAlone(wire, inlet)) return packets + 1;
    for (uint32_t i = 0; i < n; i++) {
      UdpWire::Datagram datagram = wire.inlets.datagram(inlet, i);
      if (datagram.told || divide(wire, inlet, &datagram)) {
        packets += take(wire, datagram, &inlet);
      } else {
        counters.add(HostCounter::kIcrcErrors);
        packets++;
      }
    }
  } while (inlet.strays && n != 0 && packets < kMaxDrained);
  if (inlet.strays && n == 0) {
    wire.inlets.refuse(inlet);
    if (wire.turn == &inlet) wire.turn = nullptr;
  }
  return packets;
}

// The straight way of a small packet for one of this process's connections that came by itself. False: nothing was done.
bool Host::Impl::takeAlone(Wire& wire, UdpInlet& inlet) {
  uint32_t whole;
  uint8_t* const bth = wire.inlets.alone(&whole);
  constexpr uint32_t kLeast = kBthBytes + kIcrcBytes;
  if (bth == nullptr || inlet.strays || whole < kLeast || whole % 4 != 0) return false;
  const uint32_t qpn = wire::destinationQpn(bth), length = whole - kIcrcBytes;
  if (qpn <= wire::kGsiQpn || qpn >> 16 != slots.slot()) return false;
  for (uint32_t segment = kLeast; segment + kLeast <= whole; segment += 4)
    if (mayBeJoined(bth, whole, segment)) return false;
  const PacketMeta meta = wire.inlets.metaOf(inlet);
  const bool counts = wire.family == AF_INET && inlet.ids.port == inlet.port();
  const auto id = static_cast<uint16_t>(counts ? inlet.ids.last + 1 : 0);
  if (inlet.icrc.of(bth, length, id) != loadIcrc(bth + length) || !takes(meta) || !sink->onAlone(meta, bth, length))
    return false;
  if (counts) inlet.ids.last = id;
  wire.inlets.tookAlone(inlet);
  counters.add(HostCounter::kWireRxPackets);
  return true;
}

// All that lies in them, so that a message that may end connections does not overtake their packets.
uint32_t Host::Impl::drainInlets() {
  uint32_t n = 0;
  for (Wire* wire : {&wire4, &wire6}) {
    if (!wire->early.empty()) n += takeEarly(*wire);
    for (uint32_t i = 0; i < UdpInlets::kMost; i++) {
      UdpInlet& inlet = wire->inlets.at(i);
      uint32_t drained = 0;
      for (uint32_t got = 1; inlet.ready() && got != 0 && drained < kMaxDrained; drained += got)
        got = receiveBy(*wire, inlet, UdpWire::kReceiveBatch);
      n += drained;
    }
  }
  return n;
}

// What a process of this host sends to this one alone may have a socket of its own.
void Host::Impl::hear(Wire& wire, const UdpWire::Datagram& d) {
  if (wire.wanted != nullptr || wire.raw.isOpen() || d.sourcePort == kRocePort || !d.complete) return;
  if (d.length < kBthBytes + kIcrcBytes || !wire::isReliable(d.bytes[0])) return;
  if (wire::destinationQpn(d.bytes) >> 16 != slots.slot() || isLinkLocal6(d.meta.source)) return;
  if (!addresses.contains(d.meta.source, clock)) return;
  wire.wanted = wire.inlets.hear(d.meta, d.sourcePort);
}

// Nothing is lost or overtakes. What others send while the socket is bound and not connected may come by it, all of one
// sender's or nothing: after what was in the other socket before, and before what comes by that afterwards. What the inlet's own
// sender sent before comes by the other socket, or by this one, all of it.
uint32_t Host::Impl::openInlet(Wire& wire) {
  UdpInlet& inlet = *wire.wanted;
  if (!wire.inlets.bind(inlet, wire.receiveBufferBytes)) {
    wire.inlets.refuse(*std::exchange(wire.wanted, nullptr));
    return 0;
  }
  uint32_t n = drainUdp(wire);
  const bool heard = wire.inlets.connect(inlet);
  const uint32_t id = wire.inlets.indexOf(inlet) | (wire.family == AF_INET ? 0 : kInlets6);
  const bool watched = heard && watchFd(epoll.get(), inlet.fd(), EPOLLIN, EventKind::kInlet, id);
  // All that was there when it was connected: until it is empty, or has brought more than its buffer can hold.
  uint64_t bytes = 0, packets = 0;
  for (uint32_t got = 1; got != 0 && bytes <= 2ull * wire.receiveBufferBytes && packets < kMaxDrained; packets += got) {
    got = wire.udp.receiveFrom(inlet.fd());
    for (uint32_t i = 0; i < got; i++) {
      const UdpWire::Datagram d = wire.udp.datagram(i);
      bytes += d.length;
      if (inlet.is(d.meta, d.sourcePort))
        wire.early.push_back({d, std::vector<uint8_t>(d.bytes, d.bytes + d.length)});
      else
        n += take(wire, d, nullptr);
    }
  }
  n += drainUdp(wire);
  n += takeEarly(wire);
  wire.wanted = nullptr;
  if (!watched) {
    wire.inlets.refuse(inlet);
    return n;
  }
  inlet.ids = wire.ids;
  wire.inlets.settle(inlet);
  wire.turn = &inlet;
  return n;
}

// All that is there.
uint32_t Host::Impl::drainUdp(Wire& wire) {
  uint32_t packets = 0;
  for (uint32_t n = 0, got = 1; got != 0 && n < kMaxDrained; n += got) {
    got = wire.udp.receive(UdpWire::kReceiveBatch);
    for (uint32_t i = 0; i < got; i++) packets += take(wire, wire.udp.datagram(i), nullptr);
  }
  return packets;
}

// Before the inlet is settled: as if it had come by the other socket.
uint32_t Host::Impl::takeEarly(Wire& wire) {
  uint32_t packets = 0;
  for (Wire::Early& each : std::exchange(wire.early, {})) {
    each.datagram.bytes = each.bytes.data();
    packets += take(wire, each.datagram, nullptr);
  }
  return packets;
}

// Of a datagram it is not known whether it is one packet or several of one length: it is one, unless the first ends, by its
// ICRC, where there is another BTH to the same queue pair. False: the ICRCs say neither.
bool Host::Impl::divide(Wire& wire, UdpInlet& inlet, UdpWire::Datagram* d) {
  constexpr uint32_t kLeast = kBthBytes + kIcrcBytes;
  if (d->length % 4 != 0) return true;
  IcrcHeaders headers;
  headers.source = d->meta.source;
  headers.destination = d->meta.destination;
  headers.sourcePort = d->sourcePort;
  headers.ipv4Id = wire.family == AF_INET ? static_cast<uint16_t>(inlet.ids.last + 1) : 0;
  const auto right = [&](uint32_t whole) {
    return icrcOf(headers, d->bytes, whole - kIcrcBytes) == loadIcrc(d->bytes + whole - kIcrcBytes);
  };
  uint32_t guesses = 0;
  for (uint32_t segment = kLeast; segment <= kMaxDatagram && segment + kLeast <= d->length; segment += 4) {
    if (!mayBeJoined(d->bytes, d->length, segment)) continue;
    if (guesses++ == kMostGuesses) break;
    if (!right(segment)) continue;
    d->segment = segment;
    return true;
  }
  if (guesses == 0 || (d->length <= kMaxDatagram && right(d->length))) return true;
  wire.inlets.tellNext(inlet);
  return false;
}

}  // namespace nd
