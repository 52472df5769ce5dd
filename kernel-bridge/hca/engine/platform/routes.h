// The system's routes: from which address and by which interface a RoCEv2 packet leaves for a destination.
#pragma once
#include "base/types.h"

namespace nd {

struct RouteQuery {
  Gid destination;
  Gid source;              // unspecified (all zeros): the system's choice
  uint32_t interface = 0;  // leaves by this one; 0: by any
};

struct Route {
  Gid source;
  uint32_t interface = 0;
  uint32_t mtu = 0;  // bytes of an IP packet, if the route has an MTU of its own; 0: the interface's
};

// Asks the system: static, policy and default routes, and its choice of a source address. kNetworkUnreachable: no route
// takes packets from that source there, or it is a broadcast address; kInvalidParameter: addresses of two families;
// kInsufficientResources: no socket to ask by.
Status findRoute(const RouteQuery& query, Route* out);

}  // namespace nd
