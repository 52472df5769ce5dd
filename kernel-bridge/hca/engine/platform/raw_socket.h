// A socket that receives whole IPv4 packets, with the headers that a UDP socket hides (RawWire). It takes a privilege.
#pragma once
#include <cstdint>

#include "platform/unique_fd.h"

namespace nd {

// For UDP; nothing comes before divideRoce(). 0 or an errno; EPERM: the privilege is missing.
int openRawSocket(uint32_t receiveBufferBytes, UniqueFd* raw);

// Divides RoCEv2 packets between the raw socket and the UDP socket on that port. What is for queue pairs of this slot
// comes by the raw socket alone; from this host, though, reliable connections' only. Other hosts' MADs and packets for
// groups come by both, and all else by the UDP socket alone. 0 or an errno.
int divideRoce(Descriptor raw, Descriptor udp, uint32_t slot);

}  // namespace nd
