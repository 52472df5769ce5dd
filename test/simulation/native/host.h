// A host: an engine without threads, with its own clock, which may be inaccurate. The engine executes a step when a
// packet arrives, a timer is due or a program has posted something. Each step takes time.
#pragma once
#include <deque>
#include <memory>

#include "engine/engine.h"
#include "network.h"

namespace simulation {

using namespace nd;
using namespace nd::abi;

struct HostOptions {
  EngineOptions engine;
  uint32_t slot = 1;
  double skewPpm = 0;                     // how much faster its clock is than the exact one
  uint64_t startNs = 1'000'000'000;       // its clock at simulated time 0
  double polls = 0;                       // share of steps executed by a polling program
  double single = 0;                      // share of small packets processed individually: the fast path
  double stalls = 0;                      // share of steps after which it has no CPU for a while
  uint64_t longestStallNs = 5'000'000;    // maximum time without a CPU
  uint64_t latencyNs = 3'000;             // maximum time until a packet is noticed
  uint64_t stepNs = 300, packetNs = 150;  // CPU time of a step and of a packet
  uint32_t cqEntries = 4096;
};

class Simulation;

class LocalClock final : public Clock {
 public:
  LocalClock(const Agenda& agenda, const HostOptions& options)
      : agenda_(agenda), rate_(1 + options.skewPpm / 1e6), start_(options.startNs) {}
  uint64_t now() const override { return start_ + uint64_t(double(agenda_.now) * rate_); }
  // The exact time at which this clock shows `local`.
  uint64_t global(uint64_t local) const { return local <= start_ ? 0 : uint64_t(double(local - start_) / rate_) + 1; }
  // The exact length of a time span of this clock.
  uint64_t span(uint64_t ns) const { return uint64_t(double(ns) / rate_); }

 private:
  const Agenda& agenda_;
  const double rate_;
  const uint64_t start_;
};

class Host final : Link, KernelPort {
 public:
  Host(Simulation& simulation, uint32_t vertex, const Gid& gid, const HostOptions& options);
  ~Host() override;

  void arrive(Frame* frame);
  void sendMad(const Path& path, const uint8_t* mad, uint32_t psn);
  void step(uint64_t planned);
  // Plans the next step. Call it after a command or a post.
  void arrange();
  bool takeCompletions();

  const uint32_t vertex;
  const Gid gid;
  const HostOptions options;
  LocalClock clock;
  Engine engine{*this, clock, options.engine};
  KernelId kernel = 0;
  Handle pd = 0, cq = 0;
  uint64_t cqRing = 0;
  uint32_t cqConsumer = 0;
  bool silent = false;  // crashed: its remaining packets are discarded
  bool stepping = false;
  // Number of leftover objects, without those of the host itself.
  uint32_t objectsLeft();
  uint64_t counter(const char* name);

 private:
  // Link
  bool send(const Path& path, const OutPacket& packet) override;
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length) override;
  void flush() override {}
  bool poll(PacketSink& sink, uint32_t budget) override;
  bool isLocal(const Gid&) override { return false; }
  Status watchPeer(uint32_t) override { return Status::kSuccess; }
  uint32_t interfaceOf(const Gid& address) override { return address == gid ? 1 : 0; }
  Status joinGroup(const Gid&, uint32_t) override { return Status::kNetworkUnreachable; }
  void leaveGroup(const Gid&, uint32_t) override {}
  // KernelPort
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent& event) override;

  static void onGsi(void* self, const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  Frame* frameTo(const Path& path, uint32_t length);
  void wake(uint64_t at);
  void wakeByTimer(uint64_t at);

  Simulation& simulation_;
  Random random_;
  std::deque<Frame*> inbox_;
  uint64_t stepAt_ = UINT64_MAX, timerAt_ = UINT64_MAX, busyUntil_ = 0;
  uint32_t taken_ = 0, sent_ = 0;  // packets in the current step
};

}  // namespace simulation
