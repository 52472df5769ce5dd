#include "platform/wait_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "platform/os.h"

namespace nd {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free,
              "a futex is a plain word");

void sleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wakeOne(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

bool waitWhile(std::atomic<int32_t>& word, int32_t value, int64_t microseconds) {
  const bool bounded = microseconds >= 0;
  const uint64_t end = bounded ? monotonicNs() + static_cast<uint64_t>(microseconds) * 1000 : 0;
  while (word.load() == value) {
    timespec left{};
    if (bounded) {
      const uint64_t now = monotonicNs();
      if (now >= end) return false;
      left.tv_sec = static_cast<time_t>((end - now) / 1'000'000'000u);
      left.tv_nsec = static_cast<long>((end - now) % 1'000'000'000u);
    }
    // The result (woken, changed before, timeout, signal) does not matter, because the caller checks the word.
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, bounded ? &left : nullptr, nullptr, 0);
  }
  return true;
}

void wakeAll(std::atomic<int32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace nd
