// The memory of another process of the same user.
#pragma once
#include <cstdint>

#include "base/piece.h"

namespace nd {

// Copies from pieces of that process, given by its own addresses, to pieces of this one. Returns the number of bytes copied;
// negative: the system refused.
int64_t readPeerMemory(int64_t process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount);

}  // namespace nd
