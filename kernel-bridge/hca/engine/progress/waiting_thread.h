// A thread of the program that waits for completions and meanwhile owns progress. A packet wakes this thread directly,
// rather than the engine's thread first, and the thread processes the packet itself. owner_table.h defines its states.
//
// Only one thread at a time has the claim. The engine's thread does not rely on the claimant: while no thread polls, it
// sleeps on the same descriptors and wakes together with it. It then yields to the claimant for as long as a mark is
// valid, but only once for each claim.
//
// No event is lost while the thread falls asleep. A packet that arrives before fallAsleep() is found by fallAsleep() or
// by the preceding step. A later packet makes the descriptor readable, because fallAsleep() has requested signals from
// peers under the lock. When another thread delivers an event (NotifySink), or has consumed a signal (`wake`), it makes
// this thread's own descriptor readable, whether this thread is already asleep or not.
//
// If peers have rings, the thread polls these first, without a system call, and everything else when that is due and
// before it sleeps. The descriptor on which it sleeps covers everything.
#pragma once
#include <utility>

#include "progress/spin_and_sleep_times.h"
#include "progress/spin_payoff.h"
#include "progress/progress_engine.h"
#include "progress/owner_table.h"

namespace nd {

class WaitingThread {
 public:
  enum class Entry {
    kDone,    // the awaited event has occurred
    kSleep,   // sleep until descriptor() is readable or `wake` is called, then enter again or leave
    kServed,  // other threads serve the host: sleep until the event, then leave
  };
  // `wake` ends the thread's sleep. It is called from any thread with the engine's lock held.
  WaitingThread(ProgressEngine& engine, void (*wake)(void* self), void* self);
  ~WaitingThread();
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;

  // Must be called before the thread sleeps. Serves the host until `done` returns true. After a few steps the rest is
  // left to the engine's thread. `sleeps`: the thread will really sleep, and spins first if that has recently paid off.
  template <typename Done>
  Entry enter(Done done, bool sleeps = true) {
    if (!begin()) return Entry::kServed;
    if (spin(done, sleeps)) return Entry::kDone;
    for (uint32_t i = 0; i < progress::kStepsBeforeSleep; i++) {
      const bool nothing = lastStep();
      if (done()) return Entry::kDone;
      if (!nothing) continue;
      on(WaitEvent::kSleep);
      return Entry::kSleep;
    }
    on(WaitEvent::kSpent);
    return Entry::kServed;
  }
  // Must be called after sleeping, and after kDone: the thread now does something else. Has no effect without enter().
  void leave() { on(WaitEvent::kLeave); }
  Descriptor descriptor() const { return engine_.descriptor(); }
  WaitState state() const { return state_; }

 private:
  template <typename Done>
  bool spin(Done done, bool sleeps) {
    const bool woken = state_ == WaitState::kWoken;
    uint64_t now = poll();
    if (done()) return true;
    on(WaitEvent::kEmpty);
    if (woken || !sleeps || !spin_.pays()) return false;
    for (const uint64_t end = now + progress::kSpinNs; now < end;) {
      if (engine_.contended()) return false;  // which says nothing about later events
      const uint64_t before = std::exchange(now, poll());
      if (!done()) continue;
      spin_.found(now - before);
      return true;
    }
    spin_.failed();
    return false;
  }
  bool begin();
  uint64_t poll();  // returns the time
  bool lastStep();  // true: nothing was left to do, and peers signal from now on
  void on(WaitEvent event);

  ProgressEngine& engine_;
  Sleeper sleeper_;
  WaitState state_ = WaitState::kAway;
  uint64_t allDue_ = 0;  // when everything other than rings has to be polled
  SpinPayoff spin_;
};

}  // namespace nd
