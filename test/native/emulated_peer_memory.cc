// readPeerMemory() for an emulator without process_vm_readv (qemu-user): the tests' other process is this one. A pipe copies,
// because the system refuses an address that is not there where memcpy() would end the process.
#include <unistd.h>

#include <algorithm>

#include "platform/peer_memory.h"
#include "platform/unique_fd.h"

namespace nd {
namespace {

constexpr uint64_t kAtOnce = 4096;

bool copyByPipe(const UniqueFd (&ends)[2], void* to, const void* from, uint64_t bytes) {
  const ssize_t put = write(ends[1].get(), from, bytes);
  if (put <= 0) return false;
  return read(ends[0].get(), to, static_cast<size_t>(put)) == put && static_cast<uint64_t>(put) == bytes;
}

}  // namespace

int64_t readPeerMemory(int64_t process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  int fds[2];
  if (process != getpid() || pipe(fds) != 0) return -1;
  const UniqueFd ends[2] = {UniqueFd(fds[0]), UniqueFd(fds[1])};
  uint64_t copied = 0, within = 0;
  uint32_t source = 0;
  for (uint32_t i = 0; i < toCount; i++) {
    for (uint64_t done = 0; done < to[i].length;) {
      while (source < fromCount && within == from[source].length) {
        source++;
        within = 0;
      }
      if (source == fromCount) return static_cast<int64_t>(copied);
      const uint64_t bytes = std::min({to[i].length - done, from[source].length - within, kAtOnce});
      if (!copyByPipe(ends, static_cast<uint8_t*>(to[i].data) + done, static_cast<const uint8_t*>(from[source].data) + within, bytes))
        return copied != 0 ? static_cast<int64_t>(copied) : -1;
      copied += bytes;
      done += bytes;
      within += bytes;
    }
  }
  return static_cast<int64_t>(copied);
}

}  // namespace nd
