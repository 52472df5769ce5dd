// The memory that the HCA may access: rings, pinned ranges, memory regions and memory windows (IBA 1 §10.6, §9.4.1).
// Nothing here allocates or scans on the data path; callers hold the engine's lock.
#pragma once
#include <atomic>
#include <map>
#include <unordered_map>
#include "base/packet_link.h"
#include "base/handle_table.h"
#include "platform/shared_memory.h"
#include "objects/parameters.h"

namespace nd {

struct Qp;

struct Pd {
  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t users = 0;  // regions, windows and queue pairs
};

// Zeroed memory shared with the poster. It exists until both its id and its last user have released it.
struct Ring {
  explicit Ring(std::shared_ptr<std::atomic<uint32_t>> live);
  ~Ring();
  bool allocate(uint64_t bytes);
  uint8_t* base = nullptr;
  uint64_t bytes = 0;

 private:
  std::shared_ptr<std::atomic<uint32_t>> live_;
};

struct PinnedRange;

// A memory region, or a type 2B memory window. `address` is the start of the range that the key covers, either as an
// address of the caller or zero-based.
struct MemoryKey {
  uint32_t key = 0;  // 24 random index bits, 8 key bits
  bool window = false;
  bool live = false;  // region: registered, and its range is pinned; window: bound
  Pd* pd = nullptr;
  uint64_t address = 0, length = 0;
  uint64_t shift = 0;  // address + shift is the caller's own address
  uint32_t access = 0;
  uint32_t published = 0;  // DirectOwner::publish()
  uint64_t start() const { return address + shift; }
  // Region
  uint32_t windows = 0;  // bound to it
  PinnedRange* range = nullptr;
  size_t rangePlace = 0;  // in range->regions
  // Region that was allocated for fast registration
  bool fast = false;
  bool registered = false;  // by FAST_REGISTER, until invalidated, whether or not its range is still pinned
  uint64_t mostBytes = 0;
  // Window
  Handle handle = 0;
  MemoryKey* region = nullptr;
  Qp* qp = nullptr;
  MemoryKey *nextBound = nullptr, *previousBound = nullptr;  // of the same QP
};

struct PinnedRange {
  uint64_t id = 0, address = 0, length = 0;
  std::shared_ptr<const SharedRange> shared;  // the allocation that contains it, if it is allocate() memory
  std::vector<MemoryKey*> regions;
};

// The last used key, cached so that a stream does not look it up for every packet.
struct KeyCache {
  uint32_t key = 0;
  uint64_t epoch = 0;
  MemoryKey* entry = nullptr;
};

class Memory {
 public:
  Memory(const EngineOptions& options, Link& link);
  ~Memory();

  Status pinRange(uint64_t address, uint64_t length, uint64_t* id);
  // The result may be the last reference, and freeing the memory takes time, so drop it without the lock.
  std::shared_ptr<const SharedRange> unpinRange(uint64_t id);
  // Returns the allocate() memory of a pinned range that contains all of this, or null. The memory stays while the
  // range is pinned. For a key no search is needed: see MemoryKey::range->shared.
  const SharedRange* sharedAt(uint64_t address, uint64_t length) const;

  std::shared_ptr<Ring> makeRing(uint64_t bytes);  // call without the lock; null: out of memory
  void addRing(const std::shared_ptr<Ring>& ring);
  void releaseRing(uint64_t address);
  // Returns the ring allocation that contains all of it, or null.
  std::shared_ptr<Ring> ringAt(uint64_t address, uint64_t bytes) const;

  Status registerRegion(Pd& pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey, uint32_t* rkey);
  // Allocates a region of at most `mostBytes` for FAST_REGISTER. Until that is executed, its key grants nothing.
  Status allocateRegion(Pd& pd, uint64_t mostBytes, uint32_t* lkey);
  // For an allocated region, `lkey` may have any low byte. Fails with kNoMemory if a peer that does not respond is
  // accessing the region directly and no memory is left to reclaim it. The region then stays, and the call may be
  // retried.
  Status deregisterRegion(Pd& pd, uint32_t lkey);
  Status allocateWindow(Pd& pd, Handle* mw, uint32_t* rkey);
  Status deallocateWindow(Handle mw);
  // Drops everything that a kernel registered.
  void dropKernel(KernelId kernel);

  struct BindRequest {
    uint32_t presentRkey = 0, nextRkey = 0, lkey = 0, access = 0;
    uint64_t address = 0, length = 0;
  };
  bool bind(Qp& qp, const BindRequest& request);
  // Gives an allocated region the memory of another one, and its key a new low byte (IBA 1 §10.6.6). Allowed only while
  // the region is invalid.
  struct FastRegisterRequest {
    uint32_t nextKey = 0, lkey = 0, access = 0;
    uint64_t address = 0, length = 0;
  };
  bool fastRegister(Qp& qp, const FastRegisterRequest& request);
  // Ends the binding of a window, or the registration of an allocated region. The caller acts for this side, or for the
  // peer, which can only reach regions with remote rights.
  enum class By { kOwner, kPeer };
  bool invalidate(Qp& qp, uint32_t key, By by);
  void unbindAll(Qp& qp);
  // Returns whether this is, or was, the key of a window.
  bool isWindow(uint32_t key) const;

  // For direct access by peers. From now on no peer enters through these keys, which are about to end. A caller that
  // can wait lets peers that are inside leave first; otherwise they are evicted.
  void retireRegion(const Pd& pd, uint32_t lkey);
  void retireWindow(Handle mw);
  void retireRange(uint64_t id);
  void retireWindowsOf(const Qp& qp);
  void retireKernel(KernelId kernel);
  // Does the same for LOCAL_INVALIDATE.
  void retireKey(const Qp& qp, uint32_t key);

  // Called whenever a key is invalidated. Peers may be copying from memory to which packets refer; from now on such
  // copies do not count. Peers that access the memory directly through a withdrawn key are evicted.
  void revoke();
  uint64_t revocations() const { return revocations_; }

  // Returns the memory of a local SGE. Returns null if the key is unknown or belongs to another PD, the range is out of
  // bounds, or local write access is missing. length > 0.
  uint8_t* local(KeyCache& cache, const Pd* pd, uint32_t lkey, uint64_t address, uint64_t length, bool write) const;
  // Returns the memory that a peer may access through this QP with this right, or null. length > 0.
  uint8_t* remote(KeyCache& cache, const Qp& qp, uint32_t rkey, uint64_t address, uint64_t length,
                  uint32_t right) const;

  // Returns the allocate() memory that contains a key's memory, or null. It stays while the key is valid.
  const SharedRange* sharedOf(KeyCache& cache, uint32_t key) const;

  template <typename F>
  void forEachKey(F&& f) const {
    for (const auto& key : keys_) f(*key.second);
  }
  uint32_t regionCount() const { return regions_; }
  uint32_t windowCount() const { return windows_.size(); }
  uint32_t ringCount() const { return liveRings_->load(std::memory_order_relaxed); }
  uint32_t rangeCount() const { return uint32_t(ranges_.size()); }

 private:
  struct Window {
    MemoryKey* key = nullptr;
  };
  MemoryKey* find(uint32_t key) const;
  MemoryKey* atIndexOf(uint32_t key) const;  // whatever its low byte
  MemoryKey* cached(KeyCache& cache, uint32_t key) const;
  MemoryKey* add(Pd& pd);
  void erase(MemoryKey* key);
  void dropRegion(MemoryKey* region);
  void unbind(MemoryKey& window);
  void place(MemoryKey& region, uint64_t start, uint64_t length, uint32_t access);
  static void attach(MemoryKey& region, PinnedRange* range);
  static void detach(MemoryKey& region);
  // For direct access by peers (direct_owner.h). withdraw() is followed by revoke().
  void publish(MemoryKey& key);
  void withdraw(MemoryKey& key);
  void retire(const MemoryKey& key);
  static const SharedRange* sharedOf(const MemoryKey& key);
  bool isUnsafe(const SharedRange* memory) const;
  void withdrawWindowsOf(const MemoryKey& region);
  PinnedRange* covering(uint64_t address, uint64_t length);
  uint32_t randomWord();

  const EngineOptions& options_;
  Link& link_;
  std::shared_ptr<std::atomic<uint32_t>> liveRings_;
  std::map<uint64_t, std::shared_ptr<Ring>> rings_;  // by address
  std::map<uint64_t, PinnedRange> ranges_;           // by id
  uint64_t nextRange_ = 1;
  std::unordered_map<uint32_t, std::unique_ptr<MemoryKey>> keys_;  // by key >> 8
  uint32_t regions_ = 0;
  HandleTable<Window> windows_;
  uint64_t revocations_ = 0;
  uint64_t epoch_ = 1;  // changes whenever a key becomes invalid
  std::array<uint32_t, 64> random_{};
  uint32_t randomLeft_ = 0;
};

}  // namespace nd
