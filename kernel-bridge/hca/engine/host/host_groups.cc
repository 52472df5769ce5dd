// Multicast groups: membership of interfaces, and how members on this host are reached without a wire.
#include <net/if.h>

#include <algorithm>
#include <cerrno>

#include "host/host_impl.h"
#include "platform/interfaces.h"

namespace nd {
namespace {

Status statusOfJoin(int error) {
  switch (error) {
    case 0:
      return Status::kSuccess;
    case ENODEV:
    case EADDRNOTAVAIL:
      return Status::kNetworkUnreachable;
    case ENOBUFS:
    case ENOMEM:
      return Status::kInsufficientResources;
    case EINVAL:
      return Status::kInvalidAddress;
    default:
      return Status::kUnsuccessful;
  }
}

}  // namespace

uint32_t Host::interfaceOf(const Gid& address) {
  std::vector<NetworkInterface> all;
  if (listInterfaces(&all) != 0) return 0;
  // All of 127.0.0.0/8 is there without being listed.
  const bool loopback = isLoopback(address);
  for (const NetworkInterface& i : all)
    for (const InterfaceAddress& own : i.addresses)
      if (own.gid == address || (loopback && isLoopback(own.gid))) return i.index;
  return 0;
}

Status Host::joinGroup(const Gid& group, uint32_t interface) {
  Impl& h = *impl_;
  char name[IF_NAMESIZE];
  if (if_indextoname(interface, name) == nullptr) return Status::kNetworkUnreachable;
  UdpWire& udp = h.wireTo(group).udp;
  const Status status = udp.isOpen() ? statusOfJoin(udp.changeGroup(true, group, interface)) : Status::kSuccess;
  if (status == Status::kSuccess) h.joined.push_back({group, interface});
  return status;
}

void Host::leaveGroup(const Gid& group, uint32_t interface) {
  Impl& h = *impl_;
  UdpWire& udp = h.wireTo(group).udp;
  if (udp.isOpen()) udp.changeGroup(false, group, interface);  // an interface that is gone has left already
  const auto same = [&](const Impl::Joined& j) { return j.group == group && j.interface == interface; };
  h.joined.erase(std::remove_if(h.joined.begin(), h.joined.end(), same), h.joined.end());
}

}  // namespace nd
