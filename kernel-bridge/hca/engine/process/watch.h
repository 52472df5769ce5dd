// A thread of the program that waits for completions watches the host's descriptors itself: a packet wakes it directly, and not
// the engine's thread first, and it takes the packet in.
//
// One thread watches at a time. The engine's thread does not rely on it: while nobody attends it sleeps on the same descriptors
// and wakes together with the watching thread. It then gives way to that thread for as long as a mark is valid.
//
// If there are rings of peers, the thread polls these first, which needs no system call, and everything else when that is due or
// before it sleeps. While it sleeps, its descriptor covers everything.
#pragma once
#include <utility>

#include "engine/engine.h"
#include "host/host.h"
#include "progress/adaptive_spin.h"

namespace nd {

class Watch {
 public:
  enum class Entry {
    kDone,      // the awaited event is there
    kWatching,  // sleep until pollFd() is readable or `tell` is called, then enter again or leave
    kApart,     // other threads serve the host: sleep until the event, then leave
  };
  // `tell` ends the thread's sleep; called from any thread with the engine's lock held.
  Watch(Engine& engine, Host& host, void (*tell)(void* self), void* self);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Before the thread sleeps: serves the host, until `done` returns true. After a few steps the rest is left to the engine's
  // thread. `sleeps`: the thread will really sleep, and polls for a moment before, if that has succeeded lately.
  template <typename Done>
  Entry enter(Done done, bool sleeps = true) {
    if (!begin()) return Entry::kApart;
    if (comes(done, sleeps)) return Entry::kDone;
    for (uint32_t i = 0; i < progress::kStepsBeforeSleep; i++) {
      const bool nothing = step();
      if (done()) return Entry::kDone;
      if (!nothing) continue;
      sleeps_ = true;
      return Entry::kWatching;
    }
    giveUp();
    return Entry::kApart;
  }
  // After sleeping, and after kDone: the thread does something else now. No effect without enter().
  void leave();
  Descriptor pollFd() const { return host_.pollFd(); }

 private:
  template <typename Done>
  bool comes(Done done, bool sleeps) {
    uint64_t now = look();
    if (done()) return true;
    if (slept() || !sleeps || !spin_.pays()) return false;
    for (const uint64_t end = now + progress::kSpinNs; now < end;) {
      if (engine_.contended()) return false;  // which says nothing of what comes
      const uint64_t before = std::exchange(now, look());
      if (!done()) continue;
      spin_.found(now - before);
      return true;
    }
    spin_.failed();
    return false;
  }
  bool begin();
  bool slept();     // it has slept, and this was not called since
  uint64_t look();  // returns the time
  bool step();      // true: there was nothing to do, and peers signal from now on
  void giveUp();

  Engine& engine_;
  Host& host_;
  Sleeper sleeper_;
  bool entered_ = false;  // this thread is the one that watches
  bool sleeps_ = false;   // it was allowed to sleep
  bool slept_ = false;    // and has done so
  bool apart_ = false;
  uint64_t allDue_ = 0;   // when everything else has to be polled
  AdaptiveSpin spin_;
};

}  // namespace nd
