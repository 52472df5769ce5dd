// Windows sockets and network tables. Include before any other Windows header.
#pragma once
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>
#include <iphlpapi.h>
#include "platform/windows/system.h"

#include <cstring>

#include "base/types.h"

namespace nd {

// Returns whether Windows sockets can be used. The first call initializes them.
bool socketsReady();

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// Fills in one for an address and port; returns its length.
inline int socketAddress(const Gid& gid, uint16_t port, uint32_t scopeId, SocketAddress* out) {
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

// Returns an address of all zeros for any other family.
Gid gidOf(const sockaddr* address);

}  // namespace nd
