// The threads that may sleep on the host's descriptors. A peer on the local link signals only once, and another thread
// may consume this signal before the sleeper has seen that its descriptor was readable. The sleeper is then woken
// through this list.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

namespace nd {

struct Sleeper {
  void (*wake)(void* self) = nullptr;  // makes it check again; called with the engine's lock held
  void* self = nullptr;
  std::atomic<bool> asleep{false};  // the thread clears it when it wakes up
};

// Requires the engine's lock.
class Sleepers {
 public:
  void add(Sleeper& sleeper) {
    if (std::find(all_.begin(), all_.end(), &sleeper) == all_.end()) all_.push_back(&sleeper);
  }
  void remove(Sleeper& sleeper) { all_.erase(std::remove(all_.begin(), all_.end(), &sleeper), all_.end()); }
  bool anyAsleep() const {
    return std::any_of(all_.begin(), all_.end(), [](const Sleeper* s) { return s->asleep.load(); });
  }
  void wakeAll() {
    for (Sleeper* sleeper : all_)
      if (sleeper->asleep.exchange(false)) sleeper->wake(sleeper->self);
  }

 private:
  std::vector<Sleeper*> all_;
};

}  // namespace nd
