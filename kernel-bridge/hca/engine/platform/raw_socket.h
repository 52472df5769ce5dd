// A socket that receives whole IPv4 packets, including the headers that a UDP socket hides (RawWire). Requires a
// privilege.
#pragma once
#include <cstdint>

#include "platform/unique_fd.h"

namespace nd {

// Opens the socket for UDP. It receives nothing before divideRoce(). Returns 0 or an errno, EPERM if the privilege is
// missing.
int openRawSocket(uint32_t receiveBufferBytes, UniqueFd* raw);

// Divides RoCEv2 packets between the raw socket and the UDP socket on that port. Packets for queue pairs of this slot
// go to the raw socket alone; of those from this host, only packets of reliable connections do. MADs from other hosts
// and packets for groups go to both, and everything else to the UDP socket alone. Returns 0 or an errno.
int divideRoce(Descriptor raw, Descriptor udp, uint32_t slot);

}  // namespace nd
