// Tests of the engine's lock: one thread holds it at a time, no thread sleeps for ever, and the sleepers' work is done
// before and after barriers.
#include "platform/engine_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "check.h"

using nd::EngineLock;

namespace {

constexpr uint32_t kThreads = 4, kTurns = 20'000;

void systemBarrier() { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); }
bool hasBarriers() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0; }

}  // namespace

TEST(engine_lock_keeps_threads_apart) {
  for (const bool barriers : {false, true}) {
    if (barriers && !hasBarriers()) continue;
    EngineLock lock;
    uint64_t plain = 0;  // a data race if the lock does not work
    uint32_t inside = 0, most = 0;
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; t++) {
      threads.emplace_back([&, t] {
        for (uint32_t i = 0; i < kTurns; i++) {
          // Half of the threads behave like pollers, which continue without the lock.
          if (t % 2 != 0 || !lock.try_lock()) lock.lock();
          most = std::max(most, ++inside);
          plain++;
          if (i % 64 == 0) std::this_thread::yield();  // lets others find the lock held, and sleep
          inside--;
          lock.unlock();
          // Barriers start while other threads sleep, or are about to.
          if (barriers && t == 0 && i == kTurns / 10) lock.setBarrier(systemBarrier);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(plain, uint64_t(kThreads) * kTurns);
    CHECK_EQ(most, 1u);
    CHECK(lock.try_lock());
    CHECK(!lock.try_lock());
    lock.unlock();
  }
}
