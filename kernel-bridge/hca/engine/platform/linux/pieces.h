// Passes pieces to Linux, which expects the same layout.
#pragma once
#include <sys/uio.h>

#include <cstddef>

#include "base/piece.h"

namespace nd {

static_assert(sizeof(Piece) == sizeof(iovec) && offsetof(Piece, data) == offsetof(iovec, iov_base) &&
              offsetof(Piece, length) == offsetof(iovec, iov_len) && sizeof(size_t) == sizeof(uint64_t));

inline const iovec* vectors(const Piece* pieces) { return reinterpret_cast<const iovec*>(pieces); }

}  // namespace nd
