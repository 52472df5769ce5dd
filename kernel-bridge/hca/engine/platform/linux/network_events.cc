#include "platform/network_events.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace nd {
namespace {

constexpr uint32_t bitOf(rtnetlink_groups group) { return 1u << (group - 1); }

constexpr uint32_t groupsOf(NetworkPart part) {
  return part == NetworkPart::kInterfaces
             ? bitOf(RTNLGRP_LINK) | bitOf(RTNLGRP_IPV4_IFADDR) | bitOf(RTNLGRP_IPV6_IFADDR)
             : bitOf(RTNLGRP_IPV4_ROUTE) | bitOf(RTNLGRP_IPV6_ROUTE) | bitOf(RTNLGRP_IPV4_RULE) |
                   bitOf(RTNLGRP_IPV6_RULE);
}

}  // namespace

bool NetworkEvents::open(NetworkPart part) {
  fd_.reset(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd_.valid()) return false;
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = groupsOf(part);
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) fd_.reset();
  return fd_.valid();
}

bool NetworkEvents::take() {
  bool changed = false;
  for (;;) {
    // The content is ignored, so a message may be truncated.
    char ignored[64];
    if (recv(fd_.get(), ignored, sizeof ignored, MSG_DONTWAIT | MSG_TRUNC) >= 0 || errno == ENOBUFS) {
      changed = true;
    } else if (errno != EINTR) {
      return changed;
    }
  }
}

}  // namespace nd
