// Tracks which thread serves sockets and timers: polling threads, a waiting thread of the program that watches the descriptors
// itself (watch.h), or the engine's thread if none of these does so in time.
//
// Each polling thread sets a mark. The engine's thread leaves the sockets to others while the newest mark is valid, and sleeps
// until its alarm, which is set to the end of that time. Polling moves the alarm forward, twice in that time. So the thread does
// not wake while somebody polls, and takes over when the last mark is kMarkNs old.
//
// Where the processors are scarce, a thread that attends may be ready to run for longer than that, without a processor. The engine's
// thread would take one from others each time, and serve what that thread is about to serve. So marks are valid for longer
// there, up to kMostMarkNs.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/types.h"
#include "platform/alarm.h"
#include "platform/thread.h"

namespace nd {

class Attendance {
 public:
  static constexpr uint64_t kMarkNs = 1'000'000;  // how long a mark is valid,
  static constexpr uint64_t kMostMarkNs = 8 * kMarkNs;  // and how long at most

  explicit Attendance(const Clock& clock) : clock_(clock) {}

  // Any thread, at `now`: it attends, and will come back.
  void mark(uint64_t now) {
    stay(now);
    putOff(now);
  }
  // The same without moving the alarm, which is a system call: the engine's thread may then wake for nothing, once.
  void stay(uint64_t now) { mark_.store(now, std::memory_order_relaxed); }
  // Only moves the alarm. Timers that were set since the last mark belong to the engine's thread, which gives way to a newer
  // mark.
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
  // Changes the number of threads that wait without watching.
  void apart(int32_t change) { apart_ += change; }
  bool anyApart() const { return apart_ != 0; }

  // ── The engine's thread.
  // Identifies the present sleep of a watching thread; 0: none.
  uint32_t watching() const { return watching_; }
  bool open() { return alarm_.open(); }
  // Readable when the alarm's time has come.
  Descriptor alarm() const { return alarm_.fd(); }
  // Sets the alarm, which marks move forward from now on.
  void sleepUntil(uint64_t time) {
    alarm_.set(time);
    renewDue_.store(time - markNs() / 2, std::memory_order_relaxed);
  }
  // Marks do not move the alarm any more.
  void wokeUp() { renewDue_.store(UINT64_MAX, std::memory_order_relaxed); }
  // How long a mark is valid now. Doubled, or as at first.
  uint64_t markNs() const { return markNs_.load(std::memory_order_relaxed); }
  void trustLonger() { markNs_.store(std::min(2 * markNs(), kMostMarkNs), std::memory_order_relaxed); }
  void trustLess() { markNs_.store(kMarkNs, std::memory_order_relaxed); }
  // The thread that has attended, as last noted; 0: none.
  ThreadId attendant() const { return attendant_.load(std::memory_order_relaxed); }

 private:
  void renew(uint64_t now) {
    // Only one of several concurrent callers, and not if the engine's thread has just woken.
    uint64_t due = renewDue_.load(std::memory_order_relaxed);
    const uint64_t valid = markNs();
    if (now < due || !renewDue_.compare_exchange_strong(due, now + valid / 2, std::memory_order_relaxed)) return;
    alarm_.set(now + valid);
    attendant_.store(currentThread(), std::memory_order_relaxed);
  }

  uint32_t nextWatch() {
    attendant_.store(currentThread(), std::memory_order_relaxed);
    return ++lastWatch_ | 1u << 31;
  }

  const Clock& clock_;
  std::atomic<uint32_t> watching_{0}, lastWatch_{0};
  std::atomic<int32_t> apart_{0};
  std::atomic<uint64_t> mark_{0};               // time of the last mark (ns)
  std::atomic<uint64_t> renewDue_{UINT64_MAX};  // from this time on a mark moves the alarm
  std::atomic<uint64_t> markNs_{kMarkNs};
  std::atomic<ThreadId> attendant_{0};
  Alarm alarm_;
};

}  // namespace nd
