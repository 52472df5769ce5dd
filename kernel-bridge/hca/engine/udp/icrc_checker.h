// The ICRC of packets that UDP sockets of one address family receive. It covers the IPv4 ID, which these hide: most
// senders use 0, those with a connected socket use consecutive ones, and any other is solved for. Used by the UDP
// receiver, with the engine's lock held.
#pragma once
#include "udp/peer_socket.h"

namespace nd {

class IcrcChecker {
 public:
  IcrcChecker(HostCounters& counters, IpFamily family) : counters_(counters), v4_(family == IpFamily::kV4) {}

  // Checks a packet of a datagram. `ids`: its sender's. `solves`: any ID is possible. Fills in the headers it was sent
  // with.
  bool check(const UdpWire::Datagram& datagram, CountedIds* ids, const uint8_t* bth, uint32_t length, bool solves,
             IcrcHeaders* headers);
  // A single small packet, preceded by FlowIcrc::kRoom bytes; and after it has been accepted.
  bool checkSingle(const PeerSocket& by, uint8_t* bth, uint32_t length) const {
    return by.icrc.of(bth, length, counts(by) ? static_cast<uint16_t>(by.ids.last + 1) : uint16_t(0)) ==
           loadIcrc(bth + length);
  }
  void tookSingle(PeerSocket* by) const {
    if (counts(*by)) by->ids.last++;
  }
  // A datagram without metadata is one packet, or several of equal length: one, unless the first ends, by its ICRC,
  // where another BTH to the same queue pair begins. False: the ICRCs confirm neither.
  bool findSegment(const PeerSocket& by, UdpWire::Datagram* datagram) const;

 private:
  bool counts(const PeerSocket& by) const { return v4_ && by.ids.port == by.port(); }
  HostCounters& counters_;
  const bool v4_;
  IcrcStart start_;  // of the last packet
};

}  // namespace nd
