// A descriptor that becomes readable at a time.
#pragma once
#include <cstdint>

#include "platform/unique_fd.h"

namespace nd {

class Alarm {
 public:
  // False: the system has no descriptor for it.
  bool open();
  Descriptor fd() const { return fd_.get(); }
  // Sets it to a time of monotonicNs(). Any thread.
  void set(uint64_t time);

 private:
  UniqueFd fd_;
};

}  // namespace nd
