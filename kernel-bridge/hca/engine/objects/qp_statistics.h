// Statistics of an engine's queue pairs and registrations, without addresses, keys or contents of memory.
#pragma once
#include <vector>

#include "base/types.h"
#include "schema/statistics.h"

namespace nd {

struct QpStatistics : QpNumbers {
  Gid source, destination;
};

struct Statistics {
  std::vector<QpStatistics> queuePairs;
  std::vector<MemoryStatistics> memory;
  uint32_t sharedReceived = 0;  // receives of shared receive queues that have got a message; as QpStatistics::received
};

}  // namespace nd
