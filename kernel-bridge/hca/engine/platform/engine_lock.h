// The engine's lock. Who polls takes and releases it some million times a second, so taking it is one locked
// instruction, and releasing it none: a plain store, and a look whether somebody sleeps. That a sleeper and a thread that
// releases see each other is then the sleeper's business, who asks the system for a barrier in all threads.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

class EngineLock {
 public:
  bool try_lock() { return held_.load(std::memory_order_relaxed) == 0 && held_.exchange(1, std::memory_order_acquire) == 0; }
  void lock() {
    if (!try_lock()) sleep();
  }
  void unlock() {
    held_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // nor does the compiler exchange it with the loads
    if (!barriers_.load(std::memory_order_acquire)) fence();
    if (sleepers_.load(std::memory_order_relaxed) != 0) wakeSleeper();
  }
  // Until this is called, who releases fences for himself. `barrier` orders what every thread of the process did before
  // against what it does after. Once.
  void setBarrier(void (*barrier)());

 private:
  static void fence();
  void sleep();
  void wakeSleeper();
  std::atomic<uint32_t> held_{0};
  std::atomic<uint32_t> sleepers_{0};  // threads in sleep()
  std::atomic<bool> barriers_{false};  // sleepers see to it that they are seen
  std::atomic<void (*)()> barrier_{nullptr};
};

}  // namespace nd
