// A word in memory that a thread waits on and others wake it by (futex).
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace nd::door {

using Word = std::atomic<int32_t>;
static_assert(sizeof(Word) == sizeof(int32_t) && Word::is_always_lock_free, "the system sees a plain word");

// Waits while the word has this value; negative: without a bound. False: it still had it after that time.
inline bool waitWhile(Word& word, int32_t value, int64_t microseconds) {
  using Clock = std::chrono::steady_clock;
  const bool bounded = microseconds >= 0;
  const Clock::time_point end = bounded ? Clock::now() + std::chrono::microseconds(microseconds) : Clock::time_point();
  while (word.load() == value) {
    timespec left{};
    if (bounded) {
      const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
      if (ns <= 0) return false;
      left.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
      left.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    }
    // Whatever it answers (woken, changed before, time, signal), the word tells.
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, bounded ? &left : nullptr, nullptr, 0);
  }
  return true;
}

// After the word was changed.
inline void wakeWaiters(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace nd::door
