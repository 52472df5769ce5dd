#include "platform/event.h"

#include "platform/windows/system.h"

namespace nd {

UniqueFd makeEvent() { return UniqueFd(descriptorOf(CreateEventW(nullptr, TRUE, FALSE, nullptr))); }
void raiseEvent(Descriptor event) { SetEvent(handleOf(event)); }
void clearEvent(Descriptor event) { ResetEvent(handleOf(event)); }

// A handle that is no event refuses both calls, and nothing else can be done with it by them.
bool isEvent(Descriptor) { return true; }

}  // namespace nd
