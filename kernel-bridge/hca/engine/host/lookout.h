// Decides which descriptors are looked at, and when: first the socket that packets came by last, then all by one system call;
// while the local link is busy, none for some microseconds. Has the list of threads that sleep.
// Host::poll() and its kin call it, with the engine's lock held.
#pragma once
#include <vector>

#include "host/local_delivery.h"
#include "slots/port_claim.h"
#include "slots/ports.h"

namespace nd {

class Lookout {
 public:
  // `handler`: takes the frames of other processes.
  Lookout(const HostParts& parts, WireReceiver& receiver4, WireReceiver& receiver6, PortClaim& claim, Inbound& inbound, Ports& ports,
          LocalPairs& pairs, LocalDelivery& local, Inbound::Handler handler, void* argument);
  void stop();

  // ── Looking; answers how many packets came.
  // `now`: 0 without pairs.
  uint32_t look(uint32_t budget, uint64_t now);
  // Extra polls of the busiest socket after a look that found nothing; stops when `wanted` is not 0.
  void lookMore(uint32_t budget, const std::atomic<uint32_t>& wanted);
  bool due(uint64_t now) const { return now >= due_; }
  // Host::lookNext() and its kin.
  void next() { due_ = 0; }
  void allNext() { due_ = 0, all_ = true; }
  void later(uint64_t now) { due_ = now + kLongestGapNs; }

  // ── Sleepers: Host::fallAsleep() and Host::forget().
  bool fallAsleep(Sleeper& sleeper);
  void forget(Sleeper& sleeper);
  void wakeSleepers();

  // When onTime() has something to do, UINT64_MAX if never.
  uint64_t deadline() const { return resumeDue_; }
  void onTime(uint64_t now) {
    if (resumeDue_ <= now) resume();
  }

 private:
  static constexpr uint32_t kLeastShare = 8;  // packets of one socket per look at all
  static constexpr uint32_t kFramesPerConnection = 64;  // of one peer process per look
  static constexpr uint32_t kPollsWithoutAll = 4;
  // Extra polls of the busiest socket after an empty look at all; more of them while only that socket delivers.
  static constexpr uint32_t kMostMoreLooks = 7;
  // While pairs are up, between looks that find nothing; and between steps that copy much, some 20 µs each.
  static constexpr uint64_t kFirstGapNs = 500, kLongestGapNs = 20'000, kCopyGapNs = 80'000;
  static constexpr uint64_t kPauseNs = 100'000'000;

  uint32_t lookAgain(uint32_t budget);
  uint32_t lookAtAll(uint32_t budget);
  uint32_t onReceiver(WireReceiver& receiver, uint32_t socket, uint32_t budget);
  bool anyAsleep() const;
  void pause(uint64_t listener);
  void resume();
  void listen(uint64_t listener, bool on);

  const HostParts parts_;
  WireReceiver& receiver4_;
  WireReceiver& receiver6_;
  PortClaim& claim_;
  Inbound& inbound_;
  Ports& ports_;
  LocalPairs& pairs_;
  LocalDelivery& local_;
  const Inbound::Handler handler_;
  void* const argument_;

  WireReceiver* busy_ = nullptr;       // where packets came from last
  uint32_t moreLooks_ = 0;
  uint32_t pollsWithoutAll_ = 0;
  bool all_ = false;                   // the next look is at all
  bool crowded_ = false;               // the last look at all found several sockets with something: they take turns
  uint64_t due_ = 0, gap_ = 0;         // of the next look, while pairs are up
  std::vector<Sleeper*> sleepers_;
  std::vector<uint64_t> paused_;       // listeners not watched until resumeDue_, as readiness names them
  uint64_t resumeDue_ = UINT64_MAX;
};

}  // namespace nd
