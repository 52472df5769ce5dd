// A descriptor that is readable from raiseEvent() to clearEvent(), whichever process calls them.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// Invalid: no descriptor is available.
UniqueFd makeEvent();
void raiseEvent(Descriptor event);
void clearEvent(Descriptor event);

// Whether a descriptor from another process is such an event and never blocks. Anything else would be written to with
// this process's rights. True where the OS cannot report it.
bool isEvent(Descriptor fd);

}  // namespace nd
