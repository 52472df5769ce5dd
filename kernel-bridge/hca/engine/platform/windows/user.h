// Users of the system.
#pragma once
#include <string>

#include "platform/os.h"

namespace nd {

// The SID of this process's user, as text.
std::string ownSid();
// Whether a process runs under this process's user. False as well if that cannot be found out.
bool isOwnUser(ProcessId process);

}  // namespace nd
