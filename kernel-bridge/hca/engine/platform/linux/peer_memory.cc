#include "platform/peer_memory.h"

#include <sys/prctl.h>

#include "platform/linux/pieces.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

namespace nd {

void allowPeers() { prctl(PR_SET_PTRACER, static_cast<unsigned long>(-1), 0, 0, 0); }

int64_t readPeerMemory(ProcessId process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  return process_vm_readv(static_cast<pid_t>(process), vectors(to), toCount, vectors(from), fromCount, 0);
}

}  // namespace nd
