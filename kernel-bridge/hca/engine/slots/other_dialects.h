// Processes of this user on this host that run another dialect (kDialect). They own slots and ports under names of
// their own, so nothing is said to them; these look-ups are for sentences, and for the port that all share.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"
#include "platform/os.h"

namespace nd {

struct OtherDialect {
  uint32_t dialect = 0;  // 0: older than the first that its names tell
  uint32_t slot = 0;
  ProcessId process = 0;  // 0: one that this process cannot see
};

// Whether there is one.
bool otherDialectsRun();
// Each HCA of them, by its slot.
std::vector<OtherDialect> otherDialects();
// The one that listens at this RDMA port, by a claim of the address or of all. False: none does.
bool otherDialectAt(uint32_t service, uint16_t port, const Gid& address, OtherDialect* found);

}  // namespace nd
