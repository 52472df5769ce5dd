// readPeerMemory() for an emulator without process_vm_readv (qemu-user): the tests' other process is this one. A pipe copies,
// because the system refuses an address that is not there where memcpy() would end the process.
#include <unistd.h>

#include "platform/peer_memory.h"
#include "platform/unique_fd.h"

namespace nd {
namespace {

constexpr uint64_t kAtOnce = 4096;

}  // namespace

int64_t readPeerMemory(int64_t process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  int fds[2];
  if (process != getpid() || pipe(fds) != 0) return -1;
  const UniqueFd ends[2] = {UniqueFd(fds[0]), UniqueFd(fds[1])};
  return copyPieces(to, toCount, from, fromCount, kAtOnce, [&](uint8_t* target, const uint8_t* source, uint64_t bytes) {
    const ssize_t put = write(ends[1].get(), source, bytes);
    if (put <= 0 || read(ends[0].get(), target, static_cast<size_t>(put)) != put) return uint64_t{0};
    return static_cast<uint64_t>(put);
  });
}

bool mayReadPeer(int64_t process) { return process == getpid(); }

}  // namespace nd
