// A thread of this library's own, on which no signal of the program is handled.
#pragma once
#include <cstdint>

namespace nd {

// A thread of this process.
using ThreadId = int32_t;
ThreadId currentThread();
// Whether the thread is ready to run and has no processor, be it that the caller has just taken it. False where the
// system does not say so, and of a thread that has ended. Takes some microseconds.
bool lacksProcessor(ThreadId thread);
// Processor time that it has used; 0: unknown.
uint64_t processorTimeNs(ThreadId thread);

class Thread {
 public:
  // `name`: at most 15 characters, for people who look at the process. False: the system has no room for it.
  bool start(const char* name, void (*main)(void*), void* argument);
  bool running() const { return running_; }
  // Waits for its end.
  void join();
  // It ends by itself.
  void detach();

 private:
  uintptr_t handle_ = 0;
  bool running_ = false;
};

}  // namespace nd
