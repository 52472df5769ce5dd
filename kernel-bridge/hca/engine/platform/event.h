// A descriptor that is readable from raiseEvent() to clearEvent(), whichever process calls them.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// Returns an invalid descriptor if none is available.
UniqueFd makeEvent();
void raiseEvent(Descriptor event);
void clearEvent(Descriptor event);

// Returns whether a descriptor from another process is such an event and never blocks. Without this check, this process
// would write with its own rights to whatever it was given. Returns true where the OS cannot report it.
bool isEvent(Descriptor fd);

}  // namespace nd
