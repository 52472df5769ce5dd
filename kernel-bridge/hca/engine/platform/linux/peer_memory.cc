#include "platform/peer_memory.h"

#include <sys/prctl.h>

#include <cerrno>
#include <cstdint>

#include "platform/linux/pieces.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

namespace nd {

void allowPeers() { prctl(PR_SET_PTRACER, static_cast<unsigned long>(-1), 0, 0, 0); }

int64_t readPeerMemory(ProcessId process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  return process_vm_readv(static_cast<pid_t>(process), vectors(to), toCount, vectors(from), fromCount, 0);
}

// The right is checked first; then an address that no process has is refused without a page being asked for.
bool mayReadPeer(ProcessId process) {
  uint8_t byte;
  const Piece to = {&byte, 1}, from = {reinterpret_cast<void*>(UINTPTR_MAX - 4095), 1};
  return readPeerMemory(process, &to, 1, &from, 1) < 0 && errno == EFAULT;
}

}  // namespace nd
