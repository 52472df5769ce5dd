#include "platform/local_addresses.h"

namespace nd {

Gid gidOfIpv4(uint32_t networkOrder) {
  Gid gid;
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw.data() + 12, &networkOrder, 4);
  return gid;
}

Gid loopbackOf(IpFamily family) {
  static const Gid v4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}},
      v6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return family == IpFamily::kV4 ? v4 : v6;
}

bool isLoopback(const Gid& address) {
  return address.isV4() ? address.raw[12] == 127 : address == loopbackOf(IpFamily::kV6);
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

}  // namespace nd
