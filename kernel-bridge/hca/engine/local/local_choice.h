// Whether a large payload goes through the ring, where both processes copy at the same time, or is named and copied once by the
// receiver, page by page, with the system's help. On near processors the ring is twice as fast, on far ones slower, and threads
// move between processors while they run. So copies are timed now and then, and the slower way is tried again after a while.
#pragma once
#include <algorithm>
#include <cstdint>

#include "platform/os.h"

namespace nd {

// The cost of a copy: a moving average in ns for kUnit bytes; 0: unknown.
class CopyCost {
 public:
  static constexpr uint32_t kUnit = 64u << 10;
  uint32_t value() const { return value_; }
  // A sample much larger than the average was interrupted; it counts as at most twice the average.
  void add(uint64_t ns, uint32_t bytes) {
    const auto sample = static_cast<uint32_t>(std::min<uint64_t>(ns * kUnit / bytes + 1, kMost));
    value_ = value_ == 0 ? sample : value_ - value_ / 4 + std::min(sample, 2 * value_) / 4 + 1;
  }
  static uint64_t clock() { return monotonicNs(); }

 private:
  static constexpr uint32_t kMost = 1u << 30;
  uint32_t value_ = 0;
};

// Used by the process that has the payload.
class LocalChoice {
 public:
  // Payload may be named from these sizes on: where this process reads the peer's memory by a system call, and where it is
  // mapped. Below them two copies, made by both processes at the same time, are faster.
  static constexpr uint32_t kReferenceFrom = 96u << 10, kMappedFrom = 4u << 10;
  static constexpr uint64_t kTrialAfter = 256u << 20;  // bytes
  static constexpr uint32_t kTrialBytes = 1u << 20;
  enum class Way : uint8_t { kCheaper, kName, kCarry };
  // For tests: always this way.
  void fix(Way way) { way_ = way; }

  // Whether the next payload is named. `taken`, `pulled`: CopyCost of the peer, which copies out of the ring, or by the system. A
  // way without a measurement is tried, the ring first.
  bool names(uint32_t taken, uint32_t pulled) const {
    if (way_ != Way::kCheaper) return way_ == Way::kName;
    const bool known = filled_.value() != 0 && taken != 0;
    const bool name = known && (pulled == 0 || pulled < std::max(filled_.value(), taken));
    return name != (sent_ >= kTrialAfter);
  }
  void sent(uint32_t bytes) {
    sent_ += bytes;
    if (sent_ >= kTrialAfter + kTrialBytes) sent_ = 0;
  }
  void filled(uint64_t ns, uint32_t bytes) { filled_.add(ns, bytes); }

 private:
  CopyCost filled_;    // by us, into the ring
  uint64_t sent_ = 0;  // since the last trial
  Way way_ = Way::kCheaper;
};

}  // namespace nd
