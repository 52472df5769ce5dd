// The engine's own thread: owns progress when no thread of the application does.
//
// It sleeps in the operating system until a descriptor, a deadline or a wake-up needs it; an idle process has no
// wake-ups. While another thread owns progress, it leaves the sockets to that thread and sleeps until that has ended
// (owner.h). owner_table.h has what it does when it wakes up.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "platform/thread.h"
#include "platform/unique_fd.h"
#include "progress/progress_engine.h"
#include "progress/owner_table.h"

namespace nd {

class EngineThread {
 public:
  EngineThread(ProgressEngine& engine, const Clock& clock) : engine_(engine), clock_(clock) {}
  ~EngineThread() { stop(0); }
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Starts the thread. False: the system has no room for it.
  bool start();
  // The thread ends as soon as it can.
  void askToStop();
  // Ends the thread and waits for at most `timeoutMs`, 0: without limit. False: it continues.
  bool stop(uint32_t timeoutMs);

  // ProgressEngine::setWake: a deadline is earlier than the thread knows, or a caller waits.
  static void wake(void* self);

 private:
  static void main(void* self);
  void run();
  void signalWake();
  // Waits for the wake-up descriptor and `other`, until `deadline`. True: `other` is readable.
  bool sleep(Descriptor other, uint64_t deadline);
  // The thread ends, and the kernels are told.
  void fail(int error);
  Turn nextTurn(uint64_t mark, uint32_t claim, uint64_t now);
  // Sleeps until `time`, while other threads own progress until the last of them has been away for so long; at most
  // until `deadline`.
  void yieldUntil(uint64_t time, uint64_t deadline);
  // At `now`, when the thread that last polled, or has the claim, has not come in time: whether it only waits for a
  // CPU, and comes as soon as it has one.
  bool isPreempted(uint64_t mark, uint32_t claim, uint64_t now);
  void serve(uint64_t mark);

  ProgressEngine& engine_;
  const Clock& clock_;
  ProgressOwner& owner_ = engine_.owner();
  UniqueFd wakeFd_;
  Sleeper sleeper_;
  Thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attention_{false};  // a wake-up that the thread has not seen
  std::atomic<uint64_t> wakeMark_{0};   // the poller's mark at the last wake-up

  // ── Of the thread itself
  // The poller's mark at the last wake-up. It is ignored however recent it is, because the poller now waits; a newer
  // mark means that polling continues, and that the poller handles the cause of the wake-up.
  uint64_t ignoredMark_ = 0;
  uint32_t passedClaim_ = 0;        // the last one that this thread has given way to
  bool readable_ = false;           // the host's descriptor, when the thread slept last
  uint64_t deadline_ = UINT64_MAX;  // of the engine's timers
  struct Absence {
    uint64_t mark = 0;   // of the thread that does not come, and
    uint32_t claim = 0;  // its claim
    bool away = true;    // it does something else
    uint64_t since = 0, processorTime = 0;
  };
  Absence absence_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool hasEnded_ = false;
};

}  // namespace nd
