#include "platform/raw_socket.h"

#include <cerrno>

namespace nd {

// A raw socket of this system hears UDP only in a mode that gets all packets of the adapter.
int openRawSocket(uint32_t, UniqueFd*) { return ENOTSUP; }
int divideRoce(Descriptor, Descriptor, uint32_t) { return ENOTSUP; }

}  // namespace nd
