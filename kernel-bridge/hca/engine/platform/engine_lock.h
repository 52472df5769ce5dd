// The engine's lock. Since a polling thread acquires and releases it about a million times per second, acquiring it
// takes only one locked instruction, and releasing it only a plain store and a check for sleepers. A thread that is
// about to sleep requests a barrier in all threads from the OS, so that at least one of the two threads sees the other.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

class EngineLock {
 public:
  bool try_lock() {
    return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0;
  }
  void lock() {
    if (!try_lock()) sleep();
  }
  void unlock() {
    held_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the compiler from reordering the store with the loads
    if (!barriers_.load(std::memory_order_acquire)) fence();
    if (sleepers_.load(std::memory_order_relaxed) != 0) wakeSleeper();
  }
  // Until this is called, releasing the lock uses a fence. `barrier` orders every earlier access by any thread of the
  // process before every later one by the caller. Must be called only once.
  void setBarrier(void (*barrier)());

 private:
  static void fence();
  void sleep();
  void wakeSleeper();
  std::atomic<uint32_t> held_{0};
  std::atomic<uint32_t> sleepers_{0};  // threads in sleep()
  std::atomic<bool> barriers_{false};  // sleepers issue the barrier
  std::atomic<void (*)()> barrier_{nullptr};
};

}  // namespace nd
