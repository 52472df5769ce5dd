// The fence that lets two sides see each other: each writes its own word, and then reads the other's.
#pragma once
#include <atomic>

namespace nd {

// Orders what a process did before against what it reads after. ThreadSanitizer knows no fences, and what stands on
// this one is between processes, where it does not look.
inline void fullFence() {
#if defined(__SANITIZE_THREAD__)
  std::atomic<int> both{0};
  both.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace nd
