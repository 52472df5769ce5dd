// Users of the system.
#pragma once
#include <string>

#include "platform/os.h"
#include "platform/windows/system.h"

namespace nd {

// The SID of this process's user, as text.
std::string ownSid();
// The SID of a process's user. Empty if that cannot be found out, as with processes of other users that the system
// protects.
std::string sidOf(ProcessId process);
// Whether a process runs under this process's user. False as well if that cannot be found out.
bool isOwnUser(ProcessId process);

// For objects that processes of this user share: an access list that admits this user, and nobody else. Null: the
// system makes none.
SECURITY_ATTRIBUTES* ownAccess();

}  // namespace nd
