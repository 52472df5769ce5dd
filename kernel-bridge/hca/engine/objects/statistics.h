// What an engine tells of its queue pairs and registrations to people. No addresses of memory, no keys, nothing of what it holds.
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
