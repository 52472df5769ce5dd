#include "platform/interface_events.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace nd {

bool InterfaceEvents::open() {
  fd_.reset(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd_.valid()) return false;
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) fd_.reset();
  return fd_.valid();
}

bool InterfaceEvents::take() {
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
