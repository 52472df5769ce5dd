// What the fault layer under the wire's transmit side does to packets.
#pragma once
#include <cstdint>

namespace nd {

// Probabilities 0..1.
struct FaultOptions {
  uint64_t seed = 1;
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;
  uint32_t dropMadCount[32] = {};   // by (attribute id − 0x10): drop the first n of that CM message
};

bool asksForFaults(const FaultOptions& options);

}  // namespace nd
