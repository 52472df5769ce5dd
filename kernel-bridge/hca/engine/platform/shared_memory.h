// allocate() memory: pages (pages.h) that another process on this host can map. It belongs to the process and works
// without an engine.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "platform/unique_fd.h"

namespace nd {

// It exists while it is referenced by its ArrayBuffer or by a pinned range in it. The file keeps its size.
struct SharedRange : std::enable_shared_from_this<SharedRange> {
  SharedRange() = default;
  SharedRange(const SharedRange&) = delete;
  SharedRange& operator=(const SharedRange&) = delete;
  ~SharedRange();
  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }

  UniqueFd fd;
  uint64_t id = 0;                // identifies it in this process; never reused
  uint64_t base = 0, length = 0;  // whole pages; the file starts with the first byte
  // Must be called once, before the file is passed to a peer (pages.h).
  void seal(bool writable) const;
  // A run of whole pages.
  struct Part {
    uint64_t offset, length;
    bool detached = false;  // reclaim() has started to copy it, and must not map the file again
  };
  // Returns the pages that contain this many bytes from an address on, limited to the range's own pages.
  Part partAt(uint64_t address, uint64_t bytes) const;
  // Makes these parts, which must not overlap, private to this process. Peers keep the file, whose content no longer
  // matters there. Returns false if memory is exhausted; `parts` then holds the rest, for a retry. Only the publisher
  // may call this, with all parts in one call. Parts reclaimed earlier must not be included.
  bool reclaim(std::vector<Part>* parts) const;

  mutable std::atomic<bool> offered{false};  // peers have the file: they must be notified when it is freed
  mutable std::atomic<bool> sealed{false}, reclaimed{false};
  // The one HCA of this process that gives peers direct access to it (direct_owner.h); null: none.
  mutable std::atomic<const void*> publisher{nullptr};
};

// Allocates zeroed memory immediately. Fails with kInvalidParameter (0 bytes, or beyond the address space), kNoMemory,
// kInsufficientResources (a limit of the process or of the OS: EMFILE, ENFILE, EFBIG) or kNotSupported (the OS refuses
// such files). `error`, if given: the errno of a failed system call, otherwise 0.
Status allocateShared(uint64_t bytes, std::shared_ptr<const SharedRange>* out, int* error = nullptr);
// Returns the allocation that contains the whole range, or null. Any thread.
std::shared_ptr<const SharedRange> sharedRangeAt(uint64_t address, uint64_t bytes);
// Returns how many ranges that were offered to peers have been freed. Any thread.
uint32_t offeredRangesFreed();
// Calls `hook` on the freeing thread whenever that happens, until it is removed with the same argument. The hook must
// not take locks.
void onOfferedRangeFreed(void (*hook)(void*), void* argument);
void endOnOfferedRangeFreed(void* argument);

}  // namespace nd
