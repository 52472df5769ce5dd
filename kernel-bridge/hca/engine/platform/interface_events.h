// Tells that the network interfaces of this process's network namespace, or their addresses, have changed.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// A routing socket (rtnetlink) that hears of links and addresses. Says that something has changed, and not what:
// who wants to know lists the interfaces anew.
class InterfaceEvents {
 public:
  // False: the system forbids it, or has no room.
  bool open();
  // Readable when there is something to take.
  int fd() const { return fd_.get(); }
  // Takes what has come. True: something has changed, or too much has come for the system to keep.
  bool take();

 private:
  UniqueFd fd_;
};

}  // namespace nd
