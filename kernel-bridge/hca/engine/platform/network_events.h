// Reports changes in this process's network namespace.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

enum class NetworkPart : uint8_t {
  kInterfaces,  // links, and their addresses
  kRoutes,      // routes, and the rules that choose among tables of them
};

// Reports that something has changed, not what: callers look again.
class NetworkEvents {
 public:
  // False: the system forbids it, or has no room.
  bool open(NetworkPart part);
  // Readable when there are messages.
  Descriptor fd() const { return fd_.get(); }
  // Reads the messages. True: something has changed, or the system has dropped messages.
  bool take();

 private:
  UniqueFd fd_;
};

}  // namespace nd
