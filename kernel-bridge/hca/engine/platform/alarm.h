// A descriptor that becomes readable at a set time.
#pragma once
#include <cstdint>

#include "platform/unique_fd.h"

namespace nd {

class Alarm {
 public:
  // Returns false if no descriptor is available.
  bool open();
  Descriptor fd() const { return fd_.get(); }
  // Sets the alarm to a time of monotonicNs(). Any thread.
  void set(uint64_t time);

 private:
  UniqueFd fd_;
};

}  // namespace nd
