// Reports changes in this process's network namespace.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

enum class NetworkPart : uint8_t {
  kInterfaces,  // links and their addresses
  kRoutes,      // routes, and the rules that choose among routing tables
};

// Reports that something has changed, but not what, so callers query the state again.
class NetworkEvents {
 public:
  // Returns false if it is not permitted, or if resources are exhausted.
  bool open(NetworkPart part);
  // Readable when there are messages.
  Descriptor fd() const { return fd_.get(); }
  // Reads the messages. Returns whether something has changed or messages were dropped.
  bool take();

 private:
  UniqueFd fd_;
};

}  // namespace nd
