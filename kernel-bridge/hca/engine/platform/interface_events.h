// Reports changes of the network interfaces of this process's network namespace, and of their addresses.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// Reports changes of links and addresses. It reports that something has changed, not what: callers list the interfaces again.
class InterfaceEvents {
 public:
  // False: the system forbids it, or has no room.
  bool open();
  // Readable when there are messages.
  Descriptor fd() const { return fd_.get(); }
  // Reads the messages. True: something has changed, or the system has dropped messages.
  bool take();

 private:
  UniqueFd fd_;
};

}  // namespace nd
