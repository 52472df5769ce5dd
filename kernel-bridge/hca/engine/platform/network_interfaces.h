// The network interfaces of this process's network namespace.
#pragma once
#include <string>
#include <vector>
#include "base/types.h"

namespace nd {

struct InterfaceAddress {
  Gid gid;
  bool v4 = false;
  uint32_t prefixLength = 0;  // in bits of the address's own family
  uint32_t scopeId = 0;       // for an IPv6 link-local address: the interface's index
};

struct NetworkInterface {
  std::string name;
  uint32_t index = 0;
  uint32_t mtu = 0;          // bytes of an IP packet
  bool up = false;           // enabled (IFF_UP)
  bool running = false;      // and has a carrier, if its kind can have one (IFF_RUNNING)
  std::vector<uint8_t> mac;  // of any length; empty if there is none
  std::vector<InterfaceAddress> addresses;
};

// Lists all interfaces by index, with or without address and carrier. Returns 0 or an errno. An interface that
// disappears meanwhile is omitted.
int listInterfaces(std::vector<NetworkInterface>* out);
bool hasInterface(uint32_t index);
// Returns a text that differs between hosts and between network namespaces, and survives a restart where possible.
std::string hostIdentity();

}  // namespace nd
