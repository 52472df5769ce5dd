// Windows users.
#pragma once
#include <string>

#include "platform/os.h"
#include "platform/windows/system.h"

namespace nd {

// Returns the SID of this process's user, as text.
std::string ownSid();
// Returns the SID of a process's user. Empty if it cannot be determined, as for protected processes of other users.
std::string sidOf(ProcessId process);
// Returns whether a process runs as this process's user. Also false if that cannot be determined.
bool isOwnUser(ProcessId process);

// Returns an access list that admits only this user, for objects shared by its processes, or null if Windows could not
// create it.
SECURITY_ATTRIBUTES* ownAccess();

}  // namespace nd
