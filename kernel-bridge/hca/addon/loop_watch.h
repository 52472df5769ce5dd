// A thread whose requests wait for events of the HCA watches the host itself (process/watch.h): its event loop between two turns,
// or the thread while it is blocked.
#pragma once
#include "env.h"
#include "platform/unique_fd.h"
#include "process/watch.h"

namespace nd::js {

// For a blocked thread.
class BlockedWatch {
 public:
  BlockedWatch(Engine& engine, Host& host);
  bool valid() const { return fd_.valid(); }
  // As Channel::wait.
  bool wait(door::Channel& channel, uint32_t slot, int64_t timeoutMs);

 private:
  UniqueFd fd_;
  Watch watch_;
};

// For an event loop. All on the loop's thread.
class LoopWatch {
 public:
  // `deliver` reports the channel's completions to JavaScript. Null: the loop is ending, or the system has no room.
  static std::unique_ptr<LoopWatch> open(EnvData& data, Engine& engine, Host& host, std::shared_ptr<door::Channel> channel,
                                         std::shared_ptr<LoopSignal> signal, std::function<void()> deliver);
  ~LoopWatch();
  // A request waits for an event: watches from the next turn on, as long as there are such requests.
  void start();

 private:
  struct Handles;
  LoopWatch() = default;
  void stop();
  void beforeSleep();
  void afterSleep();
  void takeIn();
  void tell();
  void poll(bool on);
  void carryOn(bool on);

  Handles* handles_ = nullptr;
  std::unique_ptr<Watch> watch_;
  std::shared_ptr<door::Channel> channel_;
  std::shared_ptr<LoopSignal> signal_;
  std::function<void()> deliver_;
  bool started_ = false, polls_ = false, carriesOn_ = false;
};

}  // namespace nd::js
