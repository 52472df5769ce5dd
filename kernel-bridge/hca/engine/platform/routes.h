// The routes of the OS, which determine the source address and interface of a RoCEv2 packet to a destination.
#pragma once
#include "base/types.h"

namespace nd {

struct RouteQuery {
  Gid destination;
  Gid source;              // unspecified (all zeros): chosen by the OS
  uint32_t interface = 0;  // outgoing interface; 0: any
};

struct Route {
  Gid source;
  uint32_t interface = 0;
  uint32_t mtu = 0;  // bytes of an IP packet, if the route has its own MTU; 0: the interface's
};

// Queries the OS, including static, policy and default routes and source address selection. Fails with
// kNetworkUnreachable if there is no route from that source to the destination or it is a broadcast address, with
// kInvalidParameter for addresses of different families, and with kInsufficientResources if no socket is available for
// the query.
Status findRoute(const RouteQuery& query, Route* out);

}  // namespace nd
