// Finds the UDP sockets of this process among its descriptors, for tests that send packets that no host side would
// send.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "base/icrc.h"

namespace hosttest {

// The port is at the same offset in both families.
inline uint16_t ownPort(int fd) {
  sockaddr_in6 own{};
  socklen_t bytes = sizeof own;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 ? ntohs(own.sin6_port) : uint16_t(0);
}

// The sockets connected to port 4791, which a process uses to send to others of its host.
inline std::vector<int> flows() {
  std::vector<int> found;
  for (int fd = 3; fd < 512; fd++) {
    sockaddr_in6 peer{};
    socklen_t bytes = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0 &&
        (peer.sin6_family == AF_INET || peer.sin6_family == AF_INET6) && peer.sin6_port == htons(nd::kRocePort))
      found.push_back(fd);
  }
  return found;
}

}  // namespace hosttest
