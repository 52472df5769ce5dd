// A set of descriptors that reports which of them are ready.
#pragma once
#include <cstdint>

#include "platform/unique_fd.h"

namespace nd {

class Readiness {
 public:
  enum Kind : uint32_t {
    kNothing = 0,
    kReadable = 1,
    kWritable = 2,
    kEnded = 4
  };  // kEnded: the connection has ended or failed
  struct Event {
    uint64_t tag;    // as passed to add()
    uint32_t kinds;  // may include kEnded even if it was not requested
  };

  Readiness();
  bool valid() const { return fd_.valid(); }
  // Readable when a member is ready.
  Descriptor fd() const { return fd_.get(); }
  // `kinds`: the events to report. A descriptor leaves the set when it is closed. Returns false if resources are
  // exhausted.
  bool add(Descriptor descriptor, uint32_t kinds, uint64_t tag);
  void change(Descriptor descriptor, uint32_t kinds, uint64_t tag);
  // Must be called before closing a descriptor that another process also holds. Otherwise the underlying object would
  // stay in the set until that process closes it.
  void remove(Descriptor descriptor);
  // Returns the number of current events, at most kMostEvents.
  static constexpr uint32_t kMostEvents = 32;
  uint32_t take(Event events[kMostEvents]);

 private:
  UniqueFd fd_;
};

// Sleeps until one of a few descriptors is readable, or for this many nanoseconds (UINT64_MAX: without limit). May
// return earlier. Bit i of the result is set if descriptor i is readable or no longer valid. `error`: 0, or an errno if
// waiting can never succeed again.
uint32_t waitReadable(const Descriptor* descriptors, uint32_t count, uint64_t nanoseconds, int* error = nullptr);

}  // namespace nd
