// Memory of allocate(): pages (pages.h) that another process of this host can map. It belongs to the process and works
// without an engine.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

// Exists while it is referenced: by its ArrayBuffer, and by every pinned range in it. The file keeps its size.
struct SharedRange : std::enable_shared_from_this<SharedRange> {
  SharedRange() = default;
  SharedRange(const SharedRange&) = delete;
  SharedRange& operator=(const SharedRange&) = delete;
  ~SharedRange();
  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }

  UniqueFd fd;
  uint64_t id = 0;                // its number in this process; never reused
  uint64_t base = 0, length = 0;  // whole pages; the file begins with the first byte
  // Once: before the file goes to a peer (pages.h).
  void seal(bool writable) const;
  // Whole pages of it.
  struct Part {
    uint64_t offset, length;
    bool detached = false;  // takeBack() has begun to copy it, and must not begin with the file again
  };
  // The pages that hold so many bytes from an address on, as far as they are its own.
  Part partAt(uint64_t address, uint64_t bytes) const;
  // From now on these parts, which do not overlap, are this process's alone; peers keep a file that means nothing
  // there. False: no memory; `parts` has the rest, to try again. Only for its publisher, and for all parts at once:
  // what was taken back before is no part.
  bool takeBack(std::vector<Part>* parts) const;

  mutable std::atomic<bool> told{false};  // peers have the file: its end must be sent to them
  mutable std::atomic<bool> sealed{false}, takenBack{false};
  // The one HCA of this process that lets peers access it directly (direct_owner.h); null: none does.
  mutable std::atomic<const void*> publisher{nullptr};
};

// Zeroed memory, allocated at once. kInvalidParameter (no bytes, or more than there are addresses), kNoMemory,
// kInsufficientResources (a limit of the process or of the system: EMFILE, ENFILE, EFBIG), kNotSupported (the system
// refuses such files). `error`, if given: the errno of a failed system call, else 0.
Status allocateShared(uint64_t bytes, std::shared_ptr<const SharedRange>* out, int* error = nullptr);
// The allocation that contains the whole range, or null. Any thread.
std::shared_ptr<const SharedRange> sharedRangeAt(uint64_t address, uint64_t bytes);
// How often memory that was offered to peers has been freed. Any thread.
uint32_t toldRangesFreed();
// Calls `hook` at each such event, on the thread that frees, until the end is asked for with the same argument. The
// hook takes no locks.
void onToldRangeFreed(void (*hook)(void*), void* argument);
void endOnToldRangeFreed(void* argument);

}  // namespace nd
