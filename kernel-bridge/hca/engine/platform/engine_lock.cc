#include "platform/engine_lock.h"

#include "base/fence.h"
#include "platform/wait_word.h"

namespace nd {

void EngineLock::fence() { fullFence(); }

void EngineLock::setBarrier(void (*barrier)()) {
  barrier_.store(barrier, std::memory_order_seq_cst);
  // A sleeper increments `sleepers_` before it re-checks. After this barrier, either the releasing thread sees the
  // count or the sleeper sees the release.
  barrier();
  barriers_.store(true, std::memory_order_release);
}

void EngineLock::sleep() {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Either the releasing thread sees a sleeper, or the sleeper sees the release.
  if (auto* const barrier = barrier_.load(std::memory_order_seq_cst)) barrier();
  while (!try_lock()) sleepWhile(held_, 1);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void EngineLock::wakeSleeper() { wakeOne(held_); }

}  // namespace nd
