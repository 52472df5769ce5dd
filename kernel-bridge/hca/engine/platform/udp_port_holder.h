// Describes, for messages, the holder of the RoCEv2 port when it cannot be bound.
#pragma once
#include <cstdint>
#include <string>

#include "base/types.h"
#include "platform/os.h"

namespace nd {

// `text`: a noun phrase: "process 4711 (qemu)", "process 4711 (node) of user 1000", "a process of user 1000", "a kernel
// driver such as rdma_rxe"; or "another process" if the OS does not report it.
struct UdpPortHolder {
  std::string text;
  ProcessId process = 0;  // 0: unknown
};
UdpPortHolder findUdpPortHolder(IpFamily family, uint16_t port);

}  // namespace nd
