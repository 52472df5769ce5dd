// The engine's own thread: handles sockets and timers when no thread of the application polls.
//
// It sleeps in the operating system until a descriptor, a deadline or a wake-up needs it; an idle process has no wake-ups. While
// another thread polls, it leaves the sockets to that thread and sleeps until the polling has ended (progress/owner.h).
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "engine/engine.h"
#include "host/host.h"
#include "platform/thread.h"
#include "platform/unique_fd.h"

namespace nd {

class EngineThread {
 public:
  EngineThread(Engine& engine, Host& host, const Clock& clock) : engine_(engine), host_(host), clock_(clock) {}
  ~EngineThread() { stop(0); }
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Starts the thread. False: the system has no room for it.
  bool start();
  // The thread ends as soon as it can.
  void askToStop();
  // Ends the thread and waits for at most `timeoutMs`, 0: without limit. False: it continues.
  bool stop(uint32_t timeoutMs);

  // Engine::setWake: a deadline is earlier than the thread knows, or a caller waits.
  static void wake(void* self);

 private:
  static void main(void* self);
  void run();
  void signalWake();
  // Waits for the wake-up descriptor and `other`, until `deadline`. True: `other` is readable.
  bool sleep(Descriptor other, uint64_t deadline);
  // The thread ends, and the kernels are told.
  void fail(int error);
  // Sleeps until `time`, while other threads own progress until the last of them has been away for so long; at most until `deadline`.
  void giveWay(uint64_t time, uint64_t deadline);
  // At `now`, when the thread that last set a mark, or watched, has not come in time: whether it only waits for a processor, and
  // comes as soon as it has one.
  bool comesLater(uint64_t mark, uint32_t watch, uint64_t now);

  Engine& engine_;
  Host& host_;
  const Clock& clock_;
  ProgressOwner& owner_ = engine_.owner();
  UniqueFd wakeFd_;
  Sleeper sleeper_;
  Thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attention_{false};   // a wake-up that the thread has not seen
  std::atomic<uint64_t> wakeMark_{0};    // the poller's mark at the last wake-up
  struct Absence {
    uint64_t mark = 0;   // of the thread that does not come, and
    uint32_t watch = 0;  // its watch
    bool away = true;    // it does something else
    uint64_t since = 0, processorTime = 0;
  };
  Absence absence_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool hasEnded_ = false;
};

}  // namespace nd
