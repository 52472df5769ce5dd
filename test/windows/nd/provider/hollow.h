// Queue pairs and completion queues that do nothing: they show what calls cost.
#pragma once
#include "object.h"

namespace nd2 {

HRESULT giveHollowQueue(void** queue);
/// Each of its Sends is the next result of that hollow completion queue.
HRESULT giveHollowPair(IUnknown* queue, void* context, void** queuePair);

}  // namespace nd2
