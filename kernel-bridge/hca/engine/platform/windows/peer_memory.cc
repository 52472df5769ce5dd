#include "platform/peer_memory.h"

#include <algorithm>

#include "platform/windows/system.h"

namespace nd {

int64_t readPeerMemory(int64_t process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  const UniqueFd peer(descriptorOf(OpenProcess(PROCESS_VM_READ, FALSE, static_cast<DWORD>(process))));
  if (!peer.valid()) return -1;
  uint64_t copied = 0, within = 0;
  uint32_t source = 0;
  for (uint32_t i = 0; i < toCount; i++) {
    for (uint64_t done = 0; done < to[i].length;) {
      while (source < fromCount && within == from[source].length) {
        source++;
        within = 0;
      }
      if (source == fromCount) return static_cast<int64_t>(copied);
      const uint64_t bytes = std::min(to[i].length - done, from[source].length - within);
      SIZE_T got = 0;
      const bool ok = ReadProcessMemory(handleOf(peer.get()), static_cast<const uint8_t*>(from[source].data) + within,
                                        static_cast<uint8_t*>(to[i].data) + done, bytes, &got) != 0;
      copied += got;
      if (!ok || got != bytes) return copied != 0 ? static_cast<int64_t>(copied) : -1;
      done += bytes;
      within += bytes;
    }
  }
  return static_cast<int64_t>(copied);
}

}  // namespace nd
