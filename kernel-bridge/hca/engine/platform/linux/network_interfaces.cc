#include "platform/network_interfaces.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "platform/linux/host_identity.h"
#include "platform/local_addresses.h"
#include "platform/unique_fd.h"

namespace nd {
namespace {

uint32_t bitsOf(const void* mask, uint32_t bytes) {
  const auto* p = static_cast<const uint8_t*>(mask);
  uint32_t bits = 0;
  for (uint32_t i = 0; i < bytes; i++) bits += static_cast<uint32_t>(__builtin_popcount(p[i]));
  return bits;
}

// The label of an IPv4 address starts with the interface's name, optionally followed by a colon and a text.
std::string interfaceName(const char* label) { return std::string(label).substr(0, std::strcspn(label, ":")); }

bool readMtu(int socket, const std::string& name, uint32_t* mtu) {
  ifreq request{};
  if (name.size() >= sizeof request.ifr_name) return false;
  std::memcpy(request.ifr_name, name.data(), name.size());
  if (ioctl(socket, SIOCGIFMTU, &request) != 0) return false;
  *mtu = static_cast<uint32_t>(request.ifr_mtu);
  return true;
}

void addAddress(const ifaddrs& entry, std::vector<NetworkInterface>& all) {
  const int family = entry.ifa_addr->sa_family;
  if ((family != AF_INET && family != AF_INET6) || entry.ifa_netmask == nullptr) return;
  const std::string name = interfaceName(entry.ifa_name);
  const auto owner = std::find_if(all.begin(), all.end(), [&](const NetworkInterface& i) { return i.name == name; });
  if (owner == all.end()) return;
  InterfaceAddress address;
  address.v4 = family == AF_INET;
  if (address.v4) {
    address.gid = gidOfIpv4(reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr.s_addr);
    address.prefixLength = bitsOf(&reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr, 4);
  } else {
    const auto* own = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    std::memcpy(address.gid.raw.data(), &own->sin6_addr, 16);
    address.prefixLength = bitsOf(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr, 16);
    address.scopeId = own->sin6_scope_id;
  }
  owner->addresses.push_back(address);
}

// Returns an empty string if there is no such file.
std::string readLine(const char* path) {
  char text[128];
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t bytes = file.valid() ? read(file.get(), text, sizeof text) : 0;
  std::string line(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

}  // namespace

int listInterfaces(std::vector<NetworkInterface>* out) {
  out->clear();
  const UniqueFd queries(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!queries.valid()) return errno;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return errno;
  // Every interface has one entry, and another one for each address. The entry of an interface without a link layer
  // (TUN, WireGuard, PPP) has no address.
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family != AF_PACKET) continue;
    const auto* link = reinterpret_cast<const sockaddr_ll*>(i->ifa_addr);
    NetworkInterface found;
    found.name = i->ifa_name;
    found.index = link ? static_cast<uint32_t>(link->sll_ifindex) : if_nametoindex(i->ifa_name);
    const bool listed =
        std::any_of(out->begin(), out->end(), [&](const NetworkInterface& one) { return one.index == found.index; });
    if (found.index == 0 || listed || !readMtu(queries.get(), found.name, &found.mtu)) continue;
    found.up = (i->ifa_flags & IFF_UP) != 0;
    found.running = (i->ifa_flags & IFF_RUNNING) != 0;
    if (link)
      found.mac.assign(link->sll_addr, link->sll_addr + std::min<size_t>(link->sll_halen, sizeof link->sll_addr));
    out->push_back(std::move(found));
  }
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr) addAddress(*i, *out);
  freeifaddrs(list);
  std::sort(out->begin(), out->end(),
            [](const NetworkInterface& a, const NetworkInterface& b) { return a.index < b.index; });
  return 0;
}

bool hasInterface(uint32_t index) {
  char name[IF_NAMESIZE];
  return if_indextoname(index, name) != nullptr;
}

// Without procfs, the available parts have to suffice.
std::string hostIdentity() {
  char text[128];
  const ssize_t bytes = readlink("/proc/self/ns/net", text, sizeof text);
  const std::string network(text, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  return hostIdentityOf(readLine("/etc/machine-id"), readLine("/proc/sys/kernel/random/boot_id"), network);
}

}  // namespace nd
