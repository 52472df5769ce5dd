// A thread of this library's own, on which no signal of the program is handled.
#pragma once
#include <cstdint>

namespace nd {

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
