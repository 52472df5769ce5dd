// An engine and its host, as used by owners of progress.
#pragma once
#include <algorithm>

#include "engine/engine.h"
#include "host/host.h"
#include "progress/progress_engine.h"

namespace nd {

class HostedEngine final : public ProgressEngine {
 public:
  HostedEngine(Engine& engine, Host& host) : engine_(engine), host_(host) {}
  ProgressOwner& owner() override { return engine_.owner(); }
  Descriptor descriptor() const override { return host_.pollFd(); }
  uint64_t now() const override { return host_.now(); }
  void wakeThread() override { engine_.wakeThread(); }
  void setWake(void (*wake)(void*), void* argument) override { engine_.setWake(wake, argument); }
  EngineLock& lock() override { return engine_.lock(); }
  std::unique_lock<EngineLock> hold() override { return engine_.hold(); }
  bool contended() const override { return engine_.contended(); }
  void pollNext(PollScope next) override { host_.pollNext(next); }
  bool step(Stepper stepper) override { return engine_.poll(stepper); }
  uint64_t nextDeadline() override { return std::min(engine_.nextDeadline(), host_.nextDeadline()); }
  bool fallAsleep(Sleeper& sleeper) override { return host_.fallAsleep(sleeper); }
  void forget(Sleeper& sleeper) override { host_.forget(sleeper); }
  void fail(int error) override { engine_.onThreadFailed(error); }

 private:
  Engine& engine_;
  Host& host_;
};

}  // namespace nd
