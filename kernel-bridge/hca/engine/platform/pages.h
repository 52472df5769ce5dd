// Whole pages of an unnamed file, which another process can map for reading.
#pragma once
#include <cstdint>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

struct Pages {
  UniqueFd fd;
  uint64_t base = 0, length = 0;
};

// Zeroed and allocated at once; the file keeps its size, and new writable mappings of it are impossible. kInvalidParameter (no
// bytes, or more than there are addresses), kNoMemory, kInsufficientResources (a limit of the process or of the system: EMFILE,
// ENFILE, EFBIG), kNotSupported (the system refuses such files). `error`: the errno of a failed system call, else 0.
Status allocatePages(uint64_t bytes, Pages* out, int* error);
void freePages(uint64_t base, uint64_t length);

}  // namespace nd
