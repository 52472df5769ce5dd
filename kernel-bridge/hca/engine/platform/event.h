// A descriptor that is readable from raiseEvent() to clearEvent(), in whichever process these are called.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// Invalid: the system has no descriptor for it.
UniqueFd makeEvent();
void raiseEvent(Descriptor event);
void clearEvent(Descriptor event);

// Whether a descriptor from another process is such an event that never blocks. Anything else would be written to with
// this process's rights. Where the system cannot tell, true.
bool isEvent(Descriptor fd);

}  // namespace nd
