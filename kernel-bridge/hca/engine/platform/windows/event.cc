#include "platform/event.h"

#include "platform/windows/system.h"

namespace nd {

UniqueFd makeEvent() { return UniqueFd(descriptorOf(CreateEventW(nullptr, TRUE, FALSE, nullptr))); }
void raiseEvent(Descriptor event) { SetEvent(handleOf(event)); }
void clearEvent(Descriptor event) { ResetEvent(handleOf(event)); }

// If the handle is not an event, the calls fail without effect.
bool isEvent(Descriptor) { return true; }

}  // namespace nd
