#include "platform/peer_memory.h"

#include "platform/windows/system.h"

namespace nd {

void allowPeers() {}

int64_t readPeerMemory(ProcessId process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  const UniqueFd peer(descriptorOf(OpenProcess(PROCESS_VM_READ, FALSE, static_cast<DWORD>(process))));
  if (!peer.valid()) return -1;
  return copyPieces(to, toCount, from, fromCount, UINT64_MAX, [&](uint8_t* target, const uint8_t* source, uint64_t bytes) {
    SIZE_T got = 0;
    return ReadProcessMemory(handleOf(peer.get()), source, target, bytes, &got) != 0 ? uint64_t{got} : 0;
  });
}

bool mayReadPeer(ProcessId process) {
  const UniqueFd peer(descriptorOf(OpenProcess(PROCESS_VM_READ, FALSE, static_cast<DWORD>(process))));
  return peer.valid();
}

}  // namespace nd
