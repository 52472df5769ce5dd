// Checks the ICRC of packets that UDP sockets of one address family receive. The ICRC covers the IPv4 ID, which these
// sockets hide. Most senders use ID 0, and those with a connected socket use consecutive IDs; any other ID is computed
// from the ICRC. The UDP receiver calls this class with the engine's lock held.
#pragma once
#include "udp/peer_socket.h"

namespace nd {

class IcrcChecker {
 public:
  IcrcChecker(HostCounters& counters, IpFamily family) : counters_(counters), v4_(family == IpFamily::kV4) {}

  // Checks a packet of a datagram. `ids`: the IDs of its sender. `solves`: any ID is possible. Fills in the headers
  // with which it was sent.
  bool check(const UdpWire::Datagram& datagram, CountedIds* ids, const uint8_t* bth, uint32_t length, bool solves,
             IcrcHeaders* headers);
  // Checks a single small packet, preceded by FlowIcrc::kRoom bytes. The second function is called after it has been
  // accepted.
  bool checkSingle(const PeerSocket& by, uint8_t* bth, uint32_t length) const {
    return by.icrc.of(bth, length, counts(by) ? static_cast<uint16_t>(by.ids.last + 1) : uint16_t(0)) ==
           loadIcrc(bth + length);
  }
  void tookSingle(PeerSocket* by) const {
    if (counts(*by)) by->ids.last++;
  }
  // A datagram without metadata is one packet, or several of equal length. It counts as one packet, unless the ICRC
  // shows that the first packet ends where another BTH to the same queue pair begins. Returns false if the ICRCs
  // confirm neither.
  bool findSegment(const PeerSocket& by, UdpWire::Datagram* datagram) const;

 private:
  bool counts(const PeerSocket& by) const { return v4_ && by.ids.port == by.port(); }
  HostCounters& counters_;
  const bool v4_;
  IcrcStart start_;  // the start of the last packet's ICRC
};

}  // namespace nd
