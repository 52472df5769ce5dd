// The warning of a process for which UDP port 4791 (RoCEv2) is not open.
#pragma once
#include <string>

namespace nd {

// Clauses of a sentence, from the errno of binding the port on IPv4 and on IPv6 (0: it succeeded). Empty:
// some process of this user receives from the network, or the host does not support the family.
std::string udpPortWarning(int error4, int error6);

}  // namespace nd
