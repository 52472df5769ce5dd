// Who attends to sockets and timers: threads that poll, a thread of the program that waits and watches the descriptors
// itself (watch.h), and the engine's thread where nobody of these does, or comes back in time.
//
// The engine's thread leaves the sockets to others as long as their marks are young, and sleeps until its alarm, which
// is set to the end of the youngest mark's time. Who polls on puts the alarm off, twice in that time, so the thread does not
// wake as long as somebody polls, and takes over when the last mark is kMarkNs old.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/types.h"
#include "platform/alarm.h"

namespace nd {

class Attendance {
 public:
  static constexpr uint64_t kMarkNs = 1'000'000;  // a mark is good for this long

  explicit Attendance(const Clock& clock) : clock_(clock) {}

  // Any thread, at `now`: it attends, and will come back.
  void mark(uint64_t now) {
    stay(now);
    putOff(now);
  }
  // The same without putting the alarm off, which is a system call: the thread may then wake for nothing, once.
  void stay(uint64_t now) { mark_.store(now, std::memory_order_relaxed); }
  // Only that: timers that were set since the last mark are the thread's, which gives way to a newer one.
  void putOff(uint64_t now) {
    if (now >= renewDue_.load(std::memory_order_relaxed)) renew(now);
  }
  // Each of them now.
  void mark() { mark(clock_.recent()); }
  void stay() { stay(clock_.recent()); }
  void putOff() { putOff(clock_.recent()); }
  uint64_t marked() const { return mark_.load(std::memory_order_relaxed); }

  // ── A thread that waits (Watch).
  // False: another one watches.
  bool watch() {
    uint32_t none = 0;
    return watching_.compare_exchange_strong(none, nextWatch());
  }
  void watchOn() { watching_ = nextWatch(); }
  void watchEnds() { watching_ = 0; }
  // One more, or less, who waits without watching.
  void apart(int32_t change) { apart_ += change; }
  bool anyApart() const { return apart_ != 0; }

  // ── The engine's thread.
  // The present sleep of a thread that watches, 0 if there is none.
  uint32_t watching() const { return watching_; }
  bool open() { return alarm_.open(); }
  // Readable when the alarm's time has come.
  Descriptor alarm() const { return alarm_.fd(); }
  // Sets the alarm, which marks put off from now on.
  void sleepUntil(uint64_t time) {
    alarm_.set(time);
    renewDue_.store(time - kMarkNs / 2, std::memory_order_relaxed);
  }
  // Nobody puts it off any more.
  void wokeUp() { renewDue_.store(UINT64_MAX, std::memory_order_relaxed); }

 private:
  void renew(uint64_t now) {
    // One of several who come at the same time; and not if the thread has just woken up.
    uint64_t due = renewDue_.load(std::memory_order_relaxed);
    if (now < due || !renewDue_.compare_exchange_strong(due, now + kMarkNs / 2, std::memory_order_relaxed)) return;
    alarm_.set(now + kMarkNs);
  }

  uint32_t nextWatch() { return ++lastWatch_ | 1u << 31; }

  const Clock& clock_;
  std::atomic<uint32_t> watching_{0}, lastWatch_{0};
  std::atomic<int32_t> apart_{0};
  std::atomic<uint64_t> mark_{0};               // when somebody last attended (ns)
  std::atomic<uint64_t> renewDue_{UINT64_MAX};  // from when on a mark puts the alarm off
  Alarm alarm_;
};

}  // namespace nd
