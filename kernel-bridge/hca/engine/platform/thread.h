// A thread of this library, which handles no signals of the program.
#pragma once
#include <cstdint>

namespace nd {

// A thread of this process.
using ThreadId = int32_t;
ThreadId currentThread();
// Returns whether the thread is runnable but not running, even if only because the caller has just preempted it.
// Returns false where the OS does not report this, and for a thread that has ended. Takes some microseconds.
bool lacksProcessor(ThreadId thread);
// Returns the CPU time that it has used, or 0 if that is unknown.
uint64_t processorTimeNs(ThreadId thread);

class Thread {
 public:
  // `name`: at most 15 characters, for people who inspect the process. Returns false if resources are exhausted.
  bool start(const char* name, void (*main)(void*), void* argument);
  bool running() const { return running_; }
  // Waits until it has ended.
  void join();
  // Lets the thread end by itself.
  void detach();

 private:
  uintptr_t handle_ = 0;
  bool running_ = false;
};

}  // namespace nd
