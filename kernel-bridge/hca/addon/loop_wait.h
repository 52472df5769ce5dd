// A thread whose requests wait for events of the HCA owns progress in the meantime (progress/waiting_thread.h): between
// two iterations of its event loop, or while it is blocked.
#pragma once
#include "env.h"
#include "platform/unique_fd.h"
#include "progress/waiting_thread.h"

namespace nd::js {

// A wait of a blocked thread.
class BlockedWait {
 public:
  explicit BlockedWait(ProgressEngine& engine);
  bool valid() const { return fd_.valid(); }
  // Waits as Channel::wait does.
  bool wait(door::Channel& channel, uint32_t slot, int64_t timeoutMs);

 private:
  UniqueFd fd_;
  WaitingThread waiting_;
};

// A wait of an event loop. Used on the loop's thread only.
class LoopWait {
 public:
  // `deliver` reports the channel's completions to JavaScript. Returns null if the loop is ending or resources are
  // exhausted.
  static std::unique_ptr<LoopWait> open(EnvData& data, ProgressEngine& engine, std::shared_ptr<door::Channel> channel,
                                        std::shared_ptr<LoopSignal> signal, std::function<void()> deliver);
  ~LoopWait();
  // Called when a request waits for an event. The loop owns progress from its next iteration until no such request is
  // left.
  void start();

 private:
  struct Handles;
  LoopWait() = default;
  void stop();
  void beforeSleep();
  void afterSleep();
  void takeIn();
  void deliver();
  void poll(bool on);
  void carryOn(bool on);

  Handles* handles_ = nullptr;
  std::unique_ptr<WaitingThread> waiting_;
  std::shared_ptr<door::Channel> channel_;
  std::shared_ptr<LoopSignal> signal_;
  std::function<void()> deliver_;
  bool started_ = false, polls_ = false, carriesOn_ = false;
};

}  // namespace nd::js
