// The warning of a process that UDP port 4791 (RoCEv2) is not open for.
#pragma once
#include <string>

namespace nd {

// Clauses of a sentence, by the errno with which binding the port failed on IPv4 and on IPv6; 0: it did not. Empty:
// some process of this user receives from the network, or the host has no such family.
std::string udpPortWarning(int error4, int error6);

}  // namespace nd
