// The text from which the GUIDs of interfaces without a MAC address are derived.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

namespace nd {

// In the host's own network namespace the text contains the machine id (machine-id(5)), and so survives restarts.
// Elsewhere, and without a machine id, it is valid until the host restarts, because containers may share the machine id
// of their image, and their namespaces do not survive a restart. `networkNamespace` is the target of /proc/self/ns/net,
// "net:[number]". Linux numbers objects created during boot from 0xF0000000 on; newer kernels number the first
// namespace below that. Containers are created later.
inline std::string hostIdentityOf(const std::string& machineId, const std::string& bootId,
                                  const std::string& networkNamespace) {
  constexpr uint64_t kFirstOfContainers = 0xF0000100;
  const std::string before = "net:[";
  const bool numbered = networkNamespace.compare(0, before.size(), before) == 0;
  const uint64_t number = numbered ? std::strtoull(networkNamespace.c_str() + before.size(), nullptr, 10) : 0;
  const bool own = number != 0 && number < kFirstOfContainers;
  return own && !machineId.empty() ? machineId : bootId + " " + networkNamespace;
}

}  // namespace nd
