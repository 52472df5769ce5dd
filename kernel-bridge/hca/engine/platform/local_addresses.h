// The addresses of this host.
#pragma once
#include <vector>
#include "base/types.h"

namespace nd {

class LocalAddresses {
 public:
  // Loopback addresses, and those of the interfaces. An unknown address causes the addresses to be listed again, but at
  // most once a second. A new address may therefore be recognized with that much delay.
  bool contains(const Gid& address, const Clock& clock);

 private:
  static constexpr uint64_t kRefreshNs = 1'000'000'000;
  void refresh();
  std::vector<Gid> addresses_;
  uint64_t refreshedAt_ = 0;
  bool known_ = false;
};

Gid loopbackOf(IpFamily family);
bool isLoopback(const Gid& address);
bool isLinkLocal6(const Gid& address);
Gid gidOfIpv4(uint32_t networkOrder);

}  // namespace nd
