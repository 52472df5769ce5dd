// Addresses and options of UDP sockets.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/types.h"

namespace nd {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// Fills in one for an address and port; returns its length.
inline socklen_t socketAddress(const Gid& gid, uint16_t port, uint32_t scopeId, SocketAddress* out) {
  std::memset(out, 0, sizeof *out);
  if (gid.isV4()) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    std::memcpy(&out->v4.sin_addr, gid.raw.data() + 12, 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(port);
  out->v6.sin6_scope_id = scopeId;
  std::memcpy(&out->v6.sin6_addr, gid.raw.data(), 16);
  return sizeof out->v6;
}

inline int familyOf(IpFamily family) { return family == IpFamily::kV4 ? AF_INET : AF_INET6; }

inline bool setInt(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// A buffer may exceed the OS limit only with privileges, so failures of both calls are ignored.
inline void setReceiveBuffer(int fd, uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<uint32_t>(bytes, INT32_MAX / 2));
  if (!setInt(fd, SOL_SOCKET, SO_RCVBUFFORCE, wanted)) setInt(fd, SOL_SOCKET, SO_RCVBUF, wanted);
}
inline void setSendBuffer(int fd, uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<uint32_t>(bytes, INT32_MAX / 2));
  if (!setInt(fd, SOL_SOCKET, SO_SNDBUFFORCE, wanted)) setInt(fd, SOL_SOCKET, SO_SNDBUF, wanted);
}

}  // namespace nd
