// Windows users.
#pragma once
#include <string>

#include "platform/os.h"
#include "platform/windows/system.h"

namespace nd {

// The SID of this process's user, as text.
std::string ownSid();
// The SID of a process's user. Empty if it cannot be determined, as for protected processes of other users.
std::string sidOf(ProcessId process);
// Whether a process runs as this process's user. Also false if that cannot be determined.
bool isOwnUser(ProcessId process);

// For objects shared by processes of this user: an access list that admits only this user. Null: Windows could not
// create it.
SECURITY_ATTRIBUTES* ownAccess();

}  // namespace nd
