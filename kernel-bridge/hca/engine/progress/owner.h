// Decides which thread owns progress, that is, serves sockets and timers. The owner is a thread that polls, a waiting
// thread of the program that sleeps on the descriptors itself (waiting_thread.h), or, if neither serves them in time,
// the engine's thread. owner_table.h defines the states.
//
// Each poll sets a mark, which is the time of the poll and is valid for kMarkNs. While the newest mark is valid, the
// engine's thread leaves the sockets to others and sleeps until its alarm at the end of that time. Since polling
// threads postpone the alarm twice in that time, the engine's thread does not wake while others poll, and takes over
// when the last mark has expired.
//
// If CPUs are scarce, a thread that polls or waits may be runnable for longer than that without getting a CPU. The
// engine's thread would then repeatedly take a CPU from others, only to serve what that thread is about to serve. On
// such a host marks are therefore valid for longer, up to kMostMarkNs.
//
// All accesses are relaxed, except those to the claim and to the number of served threads. A mark that is seen late
// costs a wake-up, but never an event. No wake-up depends on a mark alone, because the alarm ends every sleep that a
// mark has caused.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/types.h"
#include "platform/alarm.h"
#include "platform/thread.h"
#include "progress/spin_and_sleep_times.h"

namespace nd {

class ProgressOwner {
 public:
  explicit ProgressOwner(const Clock& clock) : clock_(clock) {}

  // Called by any thread at `now`: it polls, and will poll again.
  void poll(uint64_t now) {
    mark(now);
    postpone(now);
  }
  // Sets the mark without touching the alarm, which would be a system call: the engine's thread may then wake
  // needlessly, once.
  void mark(uint64_t now) { mark_.store(now, std::memory_order_relaxed); }
  // Only postpones the alarm. Timers set since the last mark belong to the engine's thread, which yields to a newer
  // mark.
  void postpone(uint64_t now) {
    if (now >= renewDue_.load(std::memory_order_relaxed)) renew(now);
  }
  // Does both, with the current time.
  void poll() { poll(clock_.recent()); }
  void mark() { mark(clock_.recent()); }
  void postpone() { postpone(clock_.recent()); }
  uint64_t marked() const { return mark_.load(std::memory_order_relaxed); }

  // ── A thread that waits. The claim is a number that identifies the thread's present sleep; 0: no thread has it.
  // Returns false if another thread has the claim.
  bool takeClaim() {
    uint32_t none = 0;
    return claim_.compare_exchange_strong(none, nextClaim());
  }
  void renewClaim() { claim_ = nextClaim(); }
  void releaseClaim() { claim_ = 0; }
  uint32_t claim() const { return claim_; }
  // The number of threads that wait without the claim.
  void addServed(int32_t change) { served_ += change; }
  bool anyServed() const { return served_ != 0; }

  // ── The engine's thread.
  bool open() { return alarm_.open(); }
  // Readable when the alarm's time has come.
  Descriptor alarm() const { return alarm_.fd(); }
  // Sets the alarm, which polls postpone from now on.
  void sleepUntil(uint64_t time) {
    alarm_.set(time);
    renewDue_.store(time - markNs() / 2, std::memory_order_relaxed);
  }
  // Polls no longer postpone the alarm.
  void wokeUp() { renewDue_.store(UINT64_MAX, std::memory_order_relaxed); }
  // How long a mark is currently valid. trustLonger() doubles that time, and trustLess() resets it.
  uint64_t markNs() const { return markNs_.load(std::memory_order_relaxed); }
  void trustLonger() { markNs_.store(std::min(2 * markNs(), progress::kMostMarkNs), std::memory_order_relaxed); }
  void trustLess() { markNs_.store(progress::kMarkNs, std::memory_order_relaxed); }
  // Returns the last thread noted as polling or waiting, or 0 if there is none.
  ThreadId thread() const { return thread_.load(std::memory_order_relaxed); }

 private:
  void renew(uint64_t now) {
    // Only one of several concurrent callers sets the alarm, and none if the engine's thread has just woken.
    uint64_t due = renewDue_.load(std::memory_order_relaxed);
    const uint64_t valid = markNs();
    if (now < due || !renewDue_.compare_exchange_strong(due, now + valid / 2, std::memory_order_relaxed)) return;
    alarm_.set(now + valid);
    thread_.store(currentThread(), std::memory_order_relaxed);
  }

  uint32_t nextClaim() {
    thread_.store(currentThread(), std::memory_order_relaxed);
    return ++lastClaim_ | 1u << 31;
  }

  const Clock& clock_;
  std::atomic<uint32_t> claim_{0}, lastClaim_{0};
  std::atomic<int32_t> served_{0};
  std::atomic<uint64_t> mark_{0};               // time of the last mark (ns)
  std::atomic<uint64_t> renewDue_{UINT64_MAX};  // from this time on a poll postpones the alarm
  std::atomic<uint64_t> markNs_{progress::kMarkNs};
  std::atomic<ThreadId> thread_{0};
  Alarm alarm_;
};

}  // namespace nd
