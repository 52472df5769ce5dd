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

// Zeroed and allocated at once; the file keeps its size. kInvalidParameter (no
// bytes, or more than there are addresses), kNoMemory, kInsufficientResources (a limit of the process or of the system:
// EMFILE, ENFILE, EFBIG), kNotSupported (the system refuses such files). `error`: the errno of a failed system call,
// else 0.
Status allocatePages(uint64_t bytes, Pages* out, int* error);
void freePages(uint64_t base, uint64_t length);
// Before the file goes to another process: from now on new writable mappings of it are impossible, unless `writable`.
void sealPages(Descriptor fd, bool writable);
// Some of the pages become this process's own, in place and with what they hold; other threads may use them meanwhile.
// Others keep the file. Two steps, of which each may be tried again if there is no memory (false). After the first,
// once it has succeeded, a page shows the file until it is written; the second copies the pages. `offset`: of the first
// in the file, and behind `base`.
bool detachPages(Descriptor fd, uint64_t base, uint64_t offset, uint64_t length);
bool copyDetachedPages(uint64_t base, uint64_t offset, uint64_t length);
uint64_t pageBytes();

}  // namespace nd
