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

// Zeroed and allocated at once; the file keeps its size. kInvalidParameter (0 bytes, or beyond the address space),
// kNoMemory, kInsufficientResources (a limit of the process or of the OS: EMFILE, ENFILE, EFBIG), kNotSupported (the OS
// refuses such files). `error`: the errno of a failed system call, otherwise 0.
Status allocatePages(uint64_t bytes, Pages* out, int* error);
void freePages(uint64_t base, uint64_t length);
// Call before passing the file to another process: prevents new writable mappings of it, unless `writable`.
void sealPages(Descriptor fd, bool writable);
// Makes some of the pages private to this process, in place and with their content; other threads may use them
// meanwhile. Other processes keep the file. Takes two steps. Each may be retried if memory is lacking (false).
// After the first step has succeeded, a page shows the file until it is written; the second copies the pages.
// `offset`: of the first page, both in the file and from `base`.
bool detachPages(Descriptor fd, uint64_t base, uint64_t offset, uint64_t length);
bool copyDetachedPages(uint64_t base, uint64_t offset, uint64_t length);
uint64_t pageBytes();

}  // namespace nd
