#include "base/engine_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fence.h"

namespace nd {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain word");

void EngineLock::fence() { fullFence(); }

void EngineLock::setBarrier(void (*barrier)()) {
  barrier_.store(barrier, std::memory_order_seq_cst);
  // Who sleeps, or is about to, without having seen it has counted itself before, and is seen by who sees what follows.
  barrier();
  barriers_.store(true, std::memory_order_release);
}

void EngineLock::sleep() {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  // Either who releases sees a sleeper, or the sleeper that it was released.
  if (auto* const barrier = barrier_.load(std::memory_order_seq_cst)) barrier();
  while (!try_lock()) syscall(SYS_futex, &held_, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void EngineLock::wakeOne() { syscall(SYS_futex, &held_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

}  // namespace nd
