// The fence between two sides that each write their own word, then read the other's.
#pragma once
#include <atomic>

namespace nd {

// Orders this process's earlier writes before its later reads. ThreadSanitizer does not support fences. It does not
// check accesses of several processes either, and this fence is only used between processes.
inline void fullFence() {
#if defined(__SANITIZE_THREAD__)
  std::atomic<int> both{0};
  both.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace nd
