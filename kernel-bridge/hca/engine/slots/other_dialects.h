// Processes of this user on this host that run another dialect (kDialect). They own slots and ports under different
// names, so they are never contacted. These lookups are for messages, and for the UDP port that all of them share.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"
#include "platform/os.h"

namespace nd {

struct OtherDialect {
  uint32_t dialect = 0;  // 0: older than the first dialect that is part of the names
  uint32_t slot = 0;
  ProcessId process = 0;  // 0: not visible to this process
};

// Returns whether there is such a process.
bool otherDialectsRun();
// Returns each of their HCAs, by its slot.
std::vector<OtherDialect> otherDialects();
// Finds the process that listens on this RDMA port, by a claim of the address or of all addresses. Returns false if
// none does.
bool otherDialectAt(uint32_t service, uint16_t port, const Gid& address, OtherDialect* found);

}  // namespace nd
