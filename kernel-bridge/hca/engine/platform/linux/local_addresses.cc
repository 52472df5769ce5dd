#include "platform/local_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

namespace nd {

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
