// Memory of allocate(): pages (pages.h) that another process of this host can map. It belongs to the process
// and needs no engine.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

// Lives as long as somebody holds it: the ArrayBuffer over it, and every pinned range that lies in it. The file is
// sealed: it keeps its size, and nobody makes a new writable mapping of it.
struct SharedRange : std::enable_shared_from_this<SharedRange> {
  SharedRange() = default;
  SharedRange(const SharedRange&) = delete;
  SharedRange& operator=(const SharedRange&) = delete;
  ~SharedRange();
  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }

  UniqueFd fd;
  uint64_t id = 0;                // names it in this process; never used again
  uint64_t base = 0, length = 0;  // whole pages; the file begins with the first byte
  mutable std::atomic<bool> told{false};  // peers have been given the file: they are to hear of its end
};

// Zeroed memory, present from the start. kInvalidParameter (no bytes, or more than there are addresses), kNoMemory,
// kInsufficientResources (a limit of the process or of the system: EMFILE, ENFILE, EFBIG), kNotSupported (the system refuses memfds).
// `error`, if given, becomes the errno of a failure that the system has told, else 0.
Status allocateShared(uint64_t bytes, std::shared_ptr<const SharedRange>* out, int* error = nullptr);
// The allocation that holds all of it, or null. Any thread.
std::shared_ptr<const SharedRange> sharedRangeAt(uint64_t address, uint64_t bytes);
// How often memory that peers were told of has been given back. Any thread.
uint32_t toldRangesFreed();
// Calls `hook` at once when that happens, on the thread that does it; null: nobody any more. It takes no locks.
void onToldRangeFreed(void (*hook)(void*), void* argument);

}  // namespace nd
