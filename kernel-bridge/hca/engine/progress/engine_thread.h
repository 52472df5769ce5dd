// The engine's own thread, which owns progress when no thread of the application does.
//
// It sleeps in the OS until a descriptor becomes readable, a deadline expires or it is woken; in an idle process this
// never happens. While another thread owns progress, it leaves the sockets to that thread and sleeps until that
// ownership has ended (owner.h). owner_table.h defines what it does when it wakes up.
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

  // Starts the thread. Returns false if resources are exhausted.
  bool start();
  // Requests the thread to end as soon as possible.
  void requestStop();
  // Ends the thread and waits for at most `timeoutMs`; 0 means without limit. Returns false if it is still running.
  bool stop(uint32_t timeoutMs);

  // For ProgressEngine::setWake: there is an earlier deadline than the thread knows of, or a caller waits.
  static void wake(void* self);

 private:
  static void main(void* self);
  void run();
  void signalWake();
  // Waits for the wake-up descriptor and `other`, until `deadline`. Returns whether `other` is readable.
  bool sleep(Descriptor other, uint64_t deadline);
  // Ends the thread, and notifies the kernels.
  void fail(int error);
  Turn nextTurn(uint64_t mark, uint32_t claim, uint64_t now);
  // Sleeps until `time`, or, while other threads own progress, until the last of them has been away for that long; at
  // most until `deadline`.
  void yieldUntil(uint64_t time, uint64_t deadline);
  // Called at `now`, when the thread that last polled or has the claim is late. Returns whether it only waits for a
  // CPU, and will continue as soon as it gets one.
  bool isPreempted(uint64_t mark, uint32_t claim, uint64_t now);
  void serve(uint64_t mark);

  ProgressEngine& engine_;
  const Clock& clock_;
  ProgressOwner& owner_ = engine_.owner();
  UniqueFd wakeFd_;
  Sleeper sleeper_;
  Thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attention_{false};  // a wake-up that the thread has not seen yet
  std::atomic<uint64_t> wakeMark_{0};   // the poller's mark at the last wake-up

  // ── Of the thread itself
  // The poller's mark at the last wake-up. It is ignored, however recent it is, because the poller now waits. A newer
  // mark means that polling continues and that the poller handles the cause of the wake-up.
  uint64_t ignoredMark_ = 0;
  uint32_t passedClaim_ = 0;        // the last one to which this thread has yielded
  bool readable_ = false;           // whether the host's descriptor was readable when the thread last slept
  uint64_t deadline_ = UINT64_MAX;  // the deadline of the engine's timers
  struct Absence {
    uint64_t mark = 0;   // the mark of the thread that is late, and
    uint32_t claim = 0;  // its claim
    bool away = true;    // it is doing something else
    uint64_t since = 0, processorTime = 0;
  };
  Absence absence_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool hasEnded_ = false;
};

}  // namespace nd
