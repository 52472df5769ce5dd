// A set of descriptors, of which it says which have something.
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
  };  // kEnded: a connection has, or failed
  struct Event {
    uint64_t tag;    // as the descriptor was added with
    uint32_t kinds;  // kEnded may come without having been asked for
  };

  Readiness();
  bool valid() const { return fd_.valid(); }
  // Readable when there is something.
  Descriptor fd() const { return fd_.get(); }
  // `kinds`: what it is to be said of. A descriptor leaves the set when it is closed. False: the system has no room.
  bool add(Descriptor descriptor, uint32_t kinds, uint64_t tag);
  void change(Descriptor descriptor, uint32_t kinds, uint64_t tag);
  // Before a descriptor is closed that another process has, too: what it stands for would stay in the set until that
  // closes it.
  void remove(Descriptor descriptor);
  // What there is now, at most kMostEvents. Their number.
  static constexpr uint32_t kMostEvents = 32;
  uint32_t take(Event events[kMostEvents]);

 private:
  UniqueFd fd_;
};

// Sleeps until one of a few descriptors is readable, or for so many nanoseconds; UINT64_MAX: without a bound. It may
// come back earlier. Bit i: that one is readable, or is no descriptor any more. `error`: 0, or why it can never wait
// again, as an errno.
uint32_t waitReadable(const Descriptor* descriptors, uint32_t count, uint64_t nanoseconds, int* error = nullptr);

}  // namespace nd
