#include "platform/peer_memory.h"

#include <sys/uio.h>

#include <cstddef>

namespace nd {
namespace {

static_assert(sizeof(Piece) == sizeof(iovec) && offsetof(Piece, data) == offsetof(iovec, iov_base) &&
                  offsetof(Piece, length) == offsetof(iovec, iov_len) && sizeof(size_t) == sizeof(uint64_t),
              "the system reads pieces as they are");

const iovec* vectors(const Piece* pieces) { return reinterpret_cast<const iovec*>(pieces); }

}  // namespace

int64_t readPeerMemory(int64_t process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount) {
  return process_vm_readv(static_cast<pid_t>(process), vectors(to), toCount, vectors(from), fromCount, 0);
}

}  // namespace nd
