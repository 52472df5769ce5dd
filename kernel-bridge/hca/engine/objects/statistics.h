// What an engine tells of its queue pairs and registrations to people. No addresses of memory, no keys, nothing of what it holds.
#pragma once
#include <vector>

#include "base/types.h"

namespace nd {

struct QpStatistics {
  Gid source, destination;
  uint32_t qpn = 0, type = 0, state = 0, remoteQpn = 0, mtu = 0;
  bool localLink = false;
  // The send queue: places, WQEs without a completion, and how many have completed since the beginning (32 bits, which wrap).
  uint32_t sendEntries = 0, sendWaiting = 0, sent = 0;
  // The receive queue: places, receives that wait for a message, and how many have got one. All 0 with a shared receive queue.
  uint32_t receiveEntries = 0, receiveWaiting = 0, received = 0;
  bool sharedReceives = false;
  // PSNs that may be under way, and are.
  uint32_t window = 0, inFlight = 0;
  // Of the oldest unacknowledged packet.
  uint32_t retries = 0, rnrRetries = 0;
  bool rnrWaiting = false;
  uint64_t roundTripNs = 0;  // 0: not measured
};

// Calls `visit` with the name and the value of each number.
template <typename Visit>
void eachNumberOf(const QpStatistics& s, Visit visit) {
  visit("qpn", s.qpn);
  visit("type", s.type);
  visit("state", s.state);
  visit("remoteQpn", s.remoteQpn);
  visit("mtu", s.mtu);
  visit("localLink", s.localLink);
  visit("sendEntries", s.sendEntries);
  visit("sendWaiting", s.sendWaiting);
  visit("sent", s.sent);
  visit("receiveEntries", s.receiveEntries);
  visit("receiveWaiting", s.receiveWaiting);
  visit("received", s.received);
  visit("sharedReceives", s.sharedReceives);
  visit("window", s.window);
  visit("inFlight", s.inFlight);
  visit("retries", s.retries);
  visit("rnrRetries", s.rnrRetries);
  visit("rnrWaiting", s.rnrWaiting);
  visit("roundTripNs", s.roundTripNs);
}

struct MemoryStatistics {
  bool window = false;
  bool fast = false;       // allocated for fast registration
  bool live = false;       // registered or bound now
  bool allocated = false;  // in memory of allocate()
  uint64_t length = 0;
  uint32_t access = 0;     // WV_ACCESS_*
};

template <typename Visit>
void eachNumberOf(const MemoryStatistics& s, Visit visit) {
  visit("window", s.window);
  visit("fast", s.fast);
  visit("live", s.live);
  visit("allocated", s.allocated);
  visit("length", s.length);
  visit("access", s.access);
}

struct Statistics {
  std::vector<QpStatistics> queuePairs;
  std::vector<MemoryStatistics> memory;
  uint32_t sharedReceived = 0;  // receives of shared receive queues that have got a message; as QpStatistics::received
};

}  // namespace nd
