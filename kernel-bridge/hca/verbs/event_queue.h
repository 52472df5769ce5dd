// Device events for the kernel's thread. Any thread may fill the queue, and the kernel's event loop drains it.
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
  std::vector<uint8_t> data;  // the data of kCm
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
  // Returns false if the queue is empty; the next event then wakes the kernel.
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
  // Called when the kernel does not accept further events.
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
