// A descriptor that is readable from raiseEvent() to clearEvent(), whichever process has raised it.
#pragma once
#include "platform/unique_fd.h"

namespace nd {

// Not valid: the system has no descriptor for it.
UniqueFd makeEvent();
void raiseEvent(Descriptor event);
void clearEvent(Descriptor event);

// Whether a descriptor that another process has handed over is such an event, and keeps nobody who raises or clears it: whatever
// else it is would be written to with this process's rights. Where the system tells of no descriptors, it is believed.
bool isEvent(Descriptor fd);

}  // namespace nd
