#include "platform/event.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace nd {

UniqueFd makeEvent() { return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void raiseEvent(Descriptor event) {
  const uint64_t one = 1;
  if (write(event, &one, sizeof one) < 0) {
    // This fails only if the counter is at its limit, and then the descriptor is readable, as intended.
  }
}

void clearEvent(Descriptor event) {
  uint64_t count;
  if (read(event, &count, sizeof count) < 0) {
    // The event was not raised.
  }
}

bool isEvent(Descriptor fd) {
  constexpr char kName[] = "anon_inode:[eventfd]";
  char path[32], name[sizeof kName];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(path, name, sizeof name);
  if (n >= 0 && std::string(name, static_cast<size_t>(n)) != kName) return false;
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && ((flags & O_NONBLOCK) != 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

}  // namespace nd
