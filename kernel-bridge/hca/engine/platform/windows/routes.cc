#include "platform/windows/winsock.h"

#include "platform/routes.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/ip.h"
#include "platform/network_interfaces.h"
#include "platform/windows/error_text.h"

namespace nd {
namespace {

class ProbeSocket {
 public:
  explicit ProbeSocket(int family)
      : socket(socketsReady() ? ::socket(family, SOCK_DGRAM, IPPROTO_UDP) : INVALID_SOCKET) {}
  ~ProbeSocket() {
    if (socket != INVALID_SOCKET) closesocket(socket);
  }
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;
  const SOCKET socket;
};

Status statusOfLast() {
  const int error = errnoOf(static_cast<unsigned long>(WSAGetLastError()));
  switch (error) {
    case ENOBUFS:
    case ENOMEM:
    case EMFILE: return statusOfLack(error);
    default: return Status::kNetworkUnreachable;
  }
}

const NetworkInterface* ownerOf(const Gid& address, const std::vector<NetworkInterface>& all) {
  for (const NetworkInterface& one : all)
    for (const InterfaceAddress& own : one.addresses)
      if (own.gid == address) return &one;
  return nullptr;
}

bool isBroadcast(const Gid& gid, const std::vector<NetworkInterface>& all) {
  if (!gid.isV4()) return false;
  const auto word = [](const Gid& g) {
    uint32_t value;
    std::memcpy(&value, g.raw.data() + 12, sizeof value);
    return ntohl(value);
  };
  for (const NetworkInterface& one : all)
    for (const InterfaceAddress& own : one.addresses) {
      if (!own.v4 || own.prefixLength == 0 || own.prefixLength >= 31) continue;
      const uint32_t hosts = UINT32_MAX >> own.prefixLength;
      if (word(gid) == (word(own.gid) | hosts)) return true;
    }
  return word(gid) == UINT32_MAX;
}

// Sets the outgoing interface of this socket's packets.
bool setInterface(SOCKET socket, bool v4, uint32_t interface) {
  constexpr int kUnicastInterface = 31;  // IP_UNICAST_IF and IPV6_UNICAST_IF
  const DWORD value = v4 ? htonl(interface) : interface;
  return setsockopt(socket, v4 ? IPPROTO_IP : IPPROTO_IPV6, kUnicastInterface, reinterpret_cast<const char*>(&value),
                    sizeof value) == 0;
}

}  // namespace

// A connected socket has used the route of Windows. Its address is the source, and the interface of that address is the
// outgoing one.
Status findRoute(const RouteQuery& query, Route* out) {
  const bool v4 = query.destination.isV4();
  const bool chosen = query.source != Gid{};
  if (chosen && query.source.isV4() != v4) return Status::kInvalidParameter;
  std::vector<NetworkInterface> all;
  if (listInterfaces(&all) != 0) return Status::kInsufficientResources;
  if (isBroadcast(query.destination, all)) return Status::kNetworkUnreachable;
  const ProbeSocket probe(v4 ? AF_INET : AF_INET6);
  if (probe.socket == INVALID_SOCKET) return statusOfLast();
  SocketAddress address;
  int bytes;
  const NetworkInterface* own = nullptr;
  if (chosen) {
    own = ownerOf(query.source, all);
    if (query.interface != 0 && own != nullptr && own->index != query.interface) return Status::kNetworkUnreachable;
    bytes = socketAddress(query.source, 0, own != nullptr ? own->index : 0, &address);
    if (bind(probe.socket, &address.any, bytes) != 0) return statusOfLast();
  } else if (query.interface != 0) {
    setInterface(probe.socket, v4, query.interface);
  }
  bytes = socketAddress(query.destination, kRocePort, query.interface, &address);
  if (connect(probe.socket, &address.any, bytes) != 0) return statusOfLast();
  bytes = sizeof address;
  if (getsockname(probe.socket, &address.any, &bytes) != 0) return statusOfLast();
  const Gid source = gidOf(&address.any);
  own = ownerOf(source, all);
  if (own == nullptr || (query.interface != 0 && own->index != query.interface)) return Status::kNetworkUnreachable;
  *out = Route{source, own->index, 0};
  return Status::kSuccess;
}

}  // namespace nd
