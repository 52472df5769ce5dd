// A thread of the program that waits for completions watches the host's descriptors itself: what arrives wakes it and not the
// engine's thread first, and it takes it in on its own.
//
// One thread watches at a time. The engine's thread does not rely on it: while nobody attends it sleeps on the same
// descriptors and is woken with the watching thread, and it lets that one go first, for as long as a mark is good.
//
// Where there are peers' rings, it looks at those first, which takes no system call, and at all else when that is due or before it
// sleeps. While it sleeps, its descriptor tells of everything.
#pragma once
#include "base/expectation.h"
#include "engine/engine.h"
#include "host/host.h"

namespace nd {

class Watch {
 public:
  enum class Entry {
    kDone,      // what the thread waits for is there
    kWatching,  // sleep until pollFd() is readable or the sleeper is told, then enter again or leave
    kApart,     // others see to the host: sleep until what is waited for is there, then leave
  };
  // `tell` ends the thread's sleep; called from any thread with the engine's lock held.
  Watch(Engine& engine, Host& host, void (*tell)(void* self), void* self);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Before the thread sleeps: does what there is to do, until `done` says that what it waits for is there. More than a
  // few steps are left to the engine's thread. `sleeps`: it will really sleep, and looks on for a moment before, where
  // that has been worth it.
  template <typename Done>
  Entry enter(Done done, bool sleeps = true) {
    if (!begin()) return Entry::kApart;
    if (comes(done, sleeps)) return Entry::kDone;
    for (uint32_t i = 0; i < kSteps; i++) {
      const bool nothing = step();
      if (done()) return Entry::kDone;
      if (!nothing) continue;
      sleeps_ = true;
      return Entry::kWatching;
    }
    giveUp();
    return Entry::kApart;
  }
  // After sleeping, and after kDone: the thread does something else now. Without enter() before, nothing.
  void leave();
  int pollFd() const { return host_.pollFd(); }

 private:
  static constexpr uint32_t kSteps = 8;
  static constexpr uint64_t kRingsAloneNs = 50'000;  // a look at all else is due then
  static constexpr uint64_t kLookOnNs = 20'000;      // about what a sleep and its end cost

  template <typename Done>
  bool comes(Done done, bool sleeps) {
    uint64_t now = look();
    if (done()) return true;
    if (slept() || !sleeps || !expectation_.worthIt()) return false;
    for (const uint64_t end = now + kLookOnNs; now < end;) {
      if (engine_.contended()) return false;  // which says nothing of what comes
      now = look();
      if (!done()) continue;
      expectation_.met();
      return true;
    }
    expectation_.inVain();
    return false;
  }
  bool begin();
  bool slept();     // it comes from sleeping, and has not asked yet
  uint64_t look();  // answers when
  bool step();      // true: there was nothing to do, and peers ring from now on
  void giveUp();

  Engine& engine_;
  Host& host_;
  Sleeper sleeper_;
  bool entered_ = false;  // this thread is the one that watches
  bool sleeps_ = false;   // it was told to
  bool slept_ = false;    // and comes from that
  bool apart_ = false;
  uint64_t allDue_ = 0;   // when the rings alone are not enough
  Expectation expectation_;
};

}  // namespace nd
