// Whole pages of a file without a name, which another process can map for reading.
#pragma once
#include <cstdint>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

struct Pages {
  UniqueFd fd;
  uint64_t base = 0, length = 0;
};

// Zeroed and present from the start; the file keeps its size, and nobody makes a new writable mapping of it.
// kInvalidParameter (no bytes, or more than there are addresses), kNoMemory, kInsufficientResources (a limit of the process or
// of the system: EMFILE, ENFILE, EFBIG), kNotSupported (the system refuses such files). `error` becomes the errno of a failure
// that the system has told, else 0.
Status allocatePages(uint64_t bytes, Pages* out, int* error);
void freePages(uint64_t base, uint64_t length);

}  // namespace nd
