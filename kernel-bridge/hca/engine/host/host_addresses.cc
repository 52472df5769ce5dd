#include "host/host_addresses.h"

#include <algorithm>
#include <cerrno>

#include "platform/network_interfaces.h"

namespace nd {
namespace {

Status statusOfJoin(int error) {
  switch (error) {
    case 0: return Status::kSuccess;
    case ENODEV:
    case EADDRNOTAVAIL: return Status::kNetworkUnreachable;
    case ENOBUFS:
    case ENOMEM: return Status::kInsufficientResources;
    case EINVAL: return Status::kInvalidAddress;
    default: return Status::kUnsuccessful;
  }
}

}  // namespace

bool Addresses::accepts(const PacketMeta& meta) {
  if (!meta.source.isUnicast()) return false;
  if (!meta.destination.isMulticast()) return isOwn(meta.destination);
  return contains(joined_, meta);
}

bool Addresses::contains(const Groups& groups, const Gid& group, uint32_t interface) {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const Joined& j) { return j.group == group && j.interface == interface; });
}

void Addresses::remove(Groups* groups, const Gid& group, uint32_t interface) {
  const auto same = [&](const Joined& j) { return j.group == group && j.interface == interface; };
  groups->erase(std::remove_if(groups->begin(), groups->end(), same), groups->end());
}

uint32_t Addresses::interfaceOf(const Gid& address) {
  std::vector<NetworkInterface> all;
  if (listInterfaces(&all) != 0) return 0;
  // All of 127.0.0.0/8 is local without being listed.
  const bool loopback = isLoopback(address);
  for (const NetworkInterface& i : all)
    for (const InterfaceAddress& own : i.addresses)
      if (own.gid == address || (loopback && isLoopback(own.gid))) return i.index;
  return 0;
}

Status Addresses::join(UdpWire& udp, const Gid& group, uint32_t interface) {
  if (!hasInterface(interface)) return Status::kNetworkUnreachable;
  const bool joins = udp.hears() && !contains(others_, group, interface);
  const Status status = joins ? statusOfJoin(udp.socket().changeGroup(true, group, interface)) : Status::kSuccess;
  if (status == Status::kSuccess) joined_.push_back({group, interface});
  return status;
}

void Addresses::leave(UdpWire& udp, const Gid& group, uint32_t interface) {
  if (udp.hears() && !contains(others_, group, interface))
    udp.socket().changeGroup(false, group, interface);  // an interface that is gone has already left
  remove(&joined_, group, interface);
}

void Addresses::joinFor(uint32_t member, UdpWire& udp, const Gid& group, uint32_t interface) {
  if (!udp.hears() || !group.isMulticast() || !hasInterface(interface) || others_.size() >= kMostOthers) return;
  if (!contains(joined_, group, interface) && !contains(others_, group, interface))
    udp.socket().changeGroup(true, group, interface);  // refused: the process receives only from members on this host
  others_.push_back({group, interface, member});
}

void Addresses::leaveFor(uint32_t member, UdpWire& udp, const Gid& group, uint32_t interface) {
  const auto same = [&](const Joined& j) { return j.member == member && j.group == group && j.interface == interface; };
  const auto found = std::find_if(others_.begin(), others_.end(), same);
  if (found == others_.end()) return;
  others_.erase(found);
  if (udp.hears() && !contains(joined_, group, interface) && !contains(others_, group, interface))
    udp.socket().changeGroup(false, group, interface);
}

void Addresses::leaveAllFor(uint32_t member, UdpWire& udp, IpFamily family) {
  for (size_t i = others_.size(); i-- > 0;) {
    const Joined one = others_[i];
    if (one.member == member && one.group.isV4() == (family == IpFamily::kV4))
      leaveFor(member, udp, one.group, one.interface);
  }
}

void Addresses::rejoin(UdpWire& udp, IpFamily family) {
  for (const Joined& j : joined_)
    if (j.group.isV4() == (family == IpFamily::kV4)) udp.socket().changeGroup(true, j.group, j.interface);
}

}  // namespace nd
