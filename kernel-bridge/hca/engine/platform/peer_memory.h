// The memory of another process of the same user.
#pragma once
#include <cstdint>

#include "base/piece.h"
#include "platform/os.h"

namespace nd {

// Copies from pieces of that process, given by its own addresses, to pieces of this one. Returns the number of bytes copied;
// negative: the system refused. It may wait without end, for pages that the other process keeps back (userfaultfd, FUSE), and nothing
// short of this process's end breaks that off.
int64_t readPeerMemory(ProcessId process, const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount);

// Whether the system allows that. It does not wait, and reads nothing.
bool mayReadPeer(ProcessId process);

// Where the system restricts who may read a process's memory (Yama), any process of this user may read this one's from now on.
void allowPeers();

}  // namespace nd
