// Polls descriptors according to a schedule (progress/poll_schedule.h) and passes events to their handlers. It is
// called by Host::poll() and related functions, with the engine's lock held.
#pragma once
#include <vector>

#include "host/local_delivery.h"
#include "progress/poll_schedule.h"
#include "progress/sleepers.h"
#include "slots/udp_port_claim.h"
#include "slots/rdma_ports.h"

namespace nd {

class Dispatcher {
 public:
  // `handler` handles the frames of other processes.
  Dispatcher(const HostParts& parts, WireReceiver& receiver4, WireReceiver& receiver6, UdpPortClaim& claim,
             Inbound& inbound, RdmaPorts& ports, LocalPairs& pairs, LocalDelivery& local, Inbound::Handler handler,
             void* argument);
  void stop();

  PollSchedule schedule;
  // Returns the number of packets received. `now`: 0 without pairs.
  uint32_t poll(uint32_t budget, uint64_t now);
  // Continues to poll the busiest socket after an empty poll, until `wanted` is not 0.
  void pollBusiest(uint32_t budget, const std::atomic<uint32_t>& wanted);

  // See Host::fallAsleep().
  bool fallAsleep(Sleeper& sleeper);
  Sleepers sleepers;

  // Returns when onTime() is due, or UINT64_MAX if never.
  uint64_t deadline() const { return resumeDue_; }
  void onTime(uint64_t now) {
    if (resumeDue_ <= now) resume();
  }

 private:
  static constexpr uint32_t kLeastShare = 8;            // packets of one socket per poll of all sockets
  static constexpr uint32_t kFramesPerConnection = 64;  // frames of one peer process per poll
  static constexpr uint64_t kPauseNs = 100'000'000;

  uint32_t pollOne(uint32_t budget);
  uint32_t pollAll(uint32_t budget);
  uint32_t onReceiver(WireReceiver& receiver, uint32_t socket, uint32_t budget);
  void pause(uint64_t listener);
  void resume();
  void listen(uint64_t listener, bool on);

  const HostParts parts_;
  WireReceiver& receiver4_;
  WireReceiver& receiver6_;
  UdpPortClaim& claim_;
  Inbound& inbound_;
  RdmaPorts& ports_;
  LocalPairs& pairs_;
  LocalDelivery& local_;
  const Inbound::Handler handler_;
  void* const argument_;

  WireReceiver* busiest_ = nullptr;  // the socket that last delivered packets
  std::vector<uint64_t> paused_;     // listeners not watched until resumeDue_, by their tags in the readiness set
  uint64_t resumeDue_ = UINT64_MAX;
};

}  // namespace nd
