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

// Allocates zeroed pages immediately; the file keeps its size. Fails with kInvalidParameter (0 bytes, or beyond the
// address space), kNoMemory, kInsufficientResources (a limit of the process or of the OS: EMFILE, ENFILE, EFBIG) or
// kNotSupported (the OS refuses such files). `error`: the errno of a failed system call, otherwise 0.
Status allocatePages(uint64_t bytes, Pages* out, int* error);
void freePages(uint64_t base, uint64_t length);
// Must be called before the file is passed to another process. Prevents new writable mappings of it, unless `writable`.
void sealPages(Descriptor fd, bool writable);
// Makes some of the pages private to this process, in place and with their content; other threads may use them
// meanwhile. Other processes keep the file. This takes two steps. A step returns false if memory is lacking, and may
// then be retried. After the first step, a page shows the file until it is written. The second step copies the pages.
// `offset`: of the first page, both in the file and from `base`.
bool detachPages(Descriptor fd, uint64_t base, uint64_t offset, uint64_t length);
bool copyDetachedPages(uint64_t base, uint64_t offset, uint64_t length);
uint64_t pageBytes();

}  // namespace nd
