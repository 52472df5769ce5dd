// A thread of this library, on which no signal of the program is handled.
#pragma once
#include <cstdint>

namespace nd {

// A thread of this process.
using ThreadId = int32_t;
ThreadId currentThread();
// Whether the thread is runnable but not running, even if only because the caller has just preempted it. False where
// the OS does not report this, and for a thread that has ended. Takes some microseconds.
bool lacksProcessor(ThreadId thread);
// CPU time used by it; 0: unknown.
uint64_t processorTimeNs(ThreadId thread);

class Thread {
 public:
  // `name`: at most 15 characters, for people who inspect the process. False: out of resources.
  bool start(const char* name, void (*main)(void*), void* argument);
  bool running() const { return running_; }
  // Waits until it has ended.
  void join();
  // Lets it end by itself.
  void detach();

 private:
  uintptr_t handle_ = 0;
  bool running_ = false;
};

}  // namespace nd
