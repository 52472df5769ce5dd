// What happens at devices, on its way to the kernel's thread: a queue from any thread to its event loop.
#pragma once
#include <deque>
#include <mutex>
#include <vector>

#include "addon/waker.h"
#include "base/types.h"

namespace nd::verbs {

// An event that the kernel has not taken yet. The numbers are those of hca/verbs-binding.ts.
struct Event {
  enum class Kind : uint32_t { kNone, kQp, kCq, kSrq, kPort, kGone, kCm } kind = Kind::kNone;
  uint32_t device = 0;
  uint32_t handle = 0, token = 0, event = 0, reason = 0;
  // kCm
  int status = 0;
  uint32_t listener = 0, qpn = 0, qkey = 0;
  uint8_t responderResources = 0, initiatorDepth = 0, retryCount = 0, rnrRetryCount = 0, srq = 0;
  std::vector<uint8_t> data;
};

class Events {
 public:
  explicit Events(Waker* waker) : waker_(waker) {}
  void push(Event&& event) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waker_ == nullptr) return;
    events_.push_back(std::move(event));
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
