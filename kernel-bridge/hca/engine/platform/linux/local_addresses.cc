#include "platform/local_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

namespace nd {

Gid gidOfIpv4(uint32_t networkOrder) {
  Gid gid;
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw.data() + 12, &networkOrder, 4);
  return gid;
}

bool isLoopback(const Gid& address) {
  if (address.isV4()) return address.raw[12] == 127;
  static const Gid loopback6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return address == loopback6;
}

bool isLinkLocal6(const Gid& address) { return address.raw[0] == 0xfe && (address.raw[1] & 0xc0) == 0x80; }

bool LocalAddresses::contains(const Gid& address, const Clock& clock) {
  if (isLoopback(address)) return true;
  for (const Gid& own : addresses_)
    if (own == address) return true;
  if (!address.isUnicast()) return false;
  const uint64_t now = clock.now();
  if (known_ && now - refreshedAt_ < kRefreshNs) return false;
  refreshedAt_ = now;
  known_ = true;
  refresh();
  for (const Gid& own : addresses_)
    if (own == address) return true;
  return false;
}

void LocalAddresses::refresh() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  addresses_.clear();
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    if (i->ifa_addr->sa_family == AF_INET) {
      addresses_.push_back(gidOfIpv4(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr));
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      Gid gid;
      std::memcpy(gid.raw.data(), &reinterpret_cast<const sockaddr_in6*>(i->ifa_addr)->sin6_addr, 16);
      addresses_.push_back(gid);
    }
  }
  freeifaddrs(list);
}

}  // namespace nd
