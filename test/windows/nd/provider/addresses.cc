#include "addresses.h"
#include <cstring>
#include <vector>

namespace nd2 {

namespace {

ULONG sizeOf(const SOCKADDR_INET& address) {
  return address.si_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::vector<SOCKADDR_INET> own() {
  std::vector<SOCKADDR_INET> all;
  if (modes.listed == 0) return all;
  SOCKADDR_INET four{};
  four.Ipv4.sin_family = AF_INET;
  four.Ipv4.sin_addr.s_addr = htonl(0x7f000001);
  all.push_back(four);
  SOCKADDR_INET six{};
  six.Ipv6.sin6_family = AF_INET6;
  six.Ipv6.sin6_addr.s6_addr[15] = 1;
  if (modes.ipv6 != 0) all.push_back(six);
  return all;
}

bool sameHost(const SOCKADDR_INET& a, const SOCKADDR_INET& b) {
  if (a.si_family != b.si_family) return false;
  if (a.si_family == AF_INET) return a.Ipv4.sin_addr.s_addr == b.Ipv4.sin_addr.s_addr;
  return memcmp(&a.Ipv6.sin6_addr, &b.Ipv6.sin6_addr, sizeof a.Ipv6.sin6_addr) == 0;
}

}  // namespace

std::optional<SOCKADDR_INET> copyAddress(const sockaddr* address, ULONG bytes) {
  SOCKADDR_INET copy{};
  if (address == nullptr || bytes < sizeof(sockaddr_in)) {
    violation("no address at %p of %lu bytes", static_cast<const void*>(address), bytes);
    return std::nullopt;
  }
  const ULONG size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) || bytes < size) {
    violation("an address of family %u in %lu bytes", address->sa_family, bytes);
    return std::nullopt;
  }
  memcpy(&copy, address, size);
  return copy;
}

bool isLocal(const SOCKADDR_INET& address) {
  for (const SOCKADDR_INET& one : own())
    if (sameHost(one, address)) return true;
  return false;
}

bool isWildcard(const SOCKADDR_INET& address) {
  const SOCKADDR_INET zero{};
  if (address.si_family == AF_INET) return address.Ipv4.sin_addr.s_addr == 0;
  return memcmp(&address.Ipv6.sin6_addr, &zero.Ipv6.sin6_addr, sizeof zero.Ipv6.sin6_addr) == 0;
}

USHORT portOf(const SOCKADDR_INET& address) { return ntohs(address.Ipv4.sin_port); }
void setPort(SOCKADDR_INET& address, USHORT port) { address.Ipv4.sin_port = htons(port); }

USHORT ephemeralPort() {
  // Processes start at different ports.
  static UINT32 last = GetCurrentProcessId() * 37;
  return static_cast<USHORT>(49152 + ++last % 16384);
}

HRESULT outputAddress(const SOCKADDR_INET& from, sockaddr* address, ULONG* bytes) {
  if (bytes == nullptr) {
    violation("a null pointer for the size");
    return result(INVALID_PARAMETER);
  }
  const ULONG need = sizeOf(from);
  const ULONG room = address == nullptr ? 0 : *bytes;
  *bytes = need;
  if (room < need) return result(BUFFER_OVERFLOW);
  memcpy(address, &from, need);
  return result(SUCCESS);
}

HRESULT outputAddressList(SOCKET_ADDRESS_LIST* list, ULONG* bytes) {
  if (bytes == nullptr) {
    violation("a null pointer for the size");
    return result(INVALID_PARAMETER);
  }
  const auto all = own();
  const size_t entries = offsetof(SOCKET_ADDRESS_LIST, Address) + all.size() * sizeof(SOCKET_ADDRESS);
  size_t need = entries;
  for (const SOCKADDR_INET& one : all) need += sizeOf(one);
  const ULONG room = list == nullptr ? 0 : *bytes;
  *bytes = static_cast<ULONG>(need);
  if (room < need) return result(BUFFER_OVERFLOW);
  list->iAddressCount = static_cast<INT>(all.size());
  char* at = reinterpret_cast<char*>(list) + entries;
  for (size_t i = 0; i < all.size(); i++) {
    list->Address[i] = {reinterpret_cast<sockaddr*>(at), static_cast<INT>(sizeOf(all[i]))};
    memcpy(at, &all[i], sizeOf(all[i]));
    at += sizeOf(all[i]);
  }
  return result(SUCCESS);
}

}  // namespace nd2
