// Queue pairs and completion queues that do nothing, for measuring the cost of calls.
#pragma once
#include "object.h"

namespace nd2 {

HRESULT giveHollowQueue(void** queue);
/// Creates a queue pair whose Sends are the results of that hollow completion queue.
HRESULT createHollowPair(IUnknown* queue, void* context, void** queuePair);

}  // namespace nd2
