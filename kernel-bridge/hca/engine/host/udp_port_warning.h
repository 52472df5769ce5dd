// The warning that a process gives if UDP port 4791 (RoCEv2) is not open for it.
#pragma once
#include <string>

namespace nd {

// Returns clauses of a sentence, given the errno of binding the port on IPv4 and on IPv6 (0: it succeeded). Empty if
// some process of this user receives from the network, or the host does not support the family.
std::string udpPortWarning(int error4, int error6);

}  // namespace nd
