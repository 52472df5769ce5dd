// What happens at devices, on its way to the kernel's thread: a queue from any thread to its event loop.
#pragma once
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "addon/waker.h"
#include "base/types.h"

namespace nd::verbs {

// An event that the kernel has not taken yet.
struct Event : HcaEvent {
  uint32_t device = 0;
  std::vector<uint8_t> data;  // of kCm
};

class Events {
 public:
  explicit Events(Waker* waker) : waker_(waker) {}
  void push(uint32_t device, const HcaEvent& event, std::vector<uint8_t> data = {}) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waker_ == nullptr) return;
    events_.push_back({event, device, std::move(data)});
    if (!armed_) return;
    armed_ = false;
    waker_->wake(waker_);
  }
  // False: there is none, and the next one wakes the kernel.
  bool take(Event* out) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (events_.empty()) {
      armed_ = true;
      return false;
    }
    *out = std::move(events_.front());
    events_.pop_front();
    return true;
  }
  // Nobody takes any more.
  void close() {
    std::lock_guard<std::mutex> lock(mutex_);
    waker_ = nullptr;
    events_.clear();
  }

 private:
  std::mutex mutex_;
  std::deque<Event> events_;
  bool armed_ = true;
  Waker* waker_;
};

}  // namespace nd::verbs
