#include "udp/icrc_checker.h"

#include "base/joined_packets.h"

namespace nd {

bool IcrcChecker::check(const UdpWire::Datagram& d, CountedIds* ids, const uint8_t* bth, uint32_t length, bool solves,
                        IcrcHeaders* headers) {
  *headers = {d.meta.source, d.meta.destination, d.sourcePort};
  if (v4_ && d.sourcePort == ids->port) headers->ipv4Id = bth == d.bytes ? ++ids->last : ids->last;
  const uint32_t computed = icrcOf(start_, *headers, bth, length), received = loadIcrc(bth + length);
  if (computed == received) return true;
  if (!solves || !v4_ || !solveIpv4Id(computed, received, length, headers)) return false;
  counters_.add(HostCounter::kIpv4IdSolved);
  *ids = {d.sourcePort, headers->ipv4Id};
  return true;
}

bool IcrcChecker::findSegment(const PeerSocket& by, UdpWire::Datagram* d) const {
  constexpr uint32_t kLeast = kBthBytes + kIcrcBytes;
  if (d->length % 4 != 0) return true;
  IcrcHeaders headers{d->meta.source, d->meta.destination, d->sourcePort};
  headers.ipv4Id = v4_ ? static_cast<uint16_t>(by.ids.last + 1) : 0;
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
  return guesses == 0 || (d->length <= kMaxDatagram && right(d->length));
}

}  // namespace nd
