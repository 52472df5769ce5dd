// The ICRC of packets that UDP sockets of one address family receive. It covers the IPv4 ID, which these hide: most
// senders' is 0, those of a connected socket follow each other, and any other is solved for. The wire receiver asks it,
// with the engine's lock held.
#pragma once
#include "udp/peer_socket.h"

namespace nd {

class IcrcChecker {
 public:
  IcrcChecker(HostCounters& counters, IpFamily family) : counters_(counters), v4_(family == IpFamily::kV4) {}

  // A packet of a datagram. `ids`: its sender's; `solves`: any ID may be. Fills in the headers it was sent with.
  bool check(const UdpWire::Datagram& datagram, CountedIds* ids, const uint8_t* bth, uint32_t length, bool solves,
             IcrcHeaders* headers);
  // A small packet that came by itself, which has FlowIcrc::kRoom before it; and when it was taken.
  bool checkSingle(const PeerSocket& by, uint8_t* bth, uint32_t length) const {
    return by.icrc.of(bth, length, counts(by) ? static_cast<uint16_t>(by.ids.last + 1) : uint16_t(0)) ==
           loadIcrc(bth + length);
  }
  void tookSingle(PeerSocket* by) const {
    if (counts(*by)) by->ids.last++;
  }
  // A datagram without metadata is one packet, or several of one length: it is one, unless the first ends, by its ICRC,
  // where there is another BTH to the same queue pair. False: the ICRCs say neither.
  bool findSegment(const PeerSocket& by, UdpWire::Datagram* datagram) const;

 private:
  bool counts(const PeerSocket& by) const { return v4_ && by.ids.port == by.port(); }
  HostCounters& counters_;
  const bool v4_;
  IcrcStart start_;  // of the last packet
};

}  // namespace nd
