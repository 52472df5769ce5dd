#include "objects/memory.h"
#include "local/direct_owner.h"
#include "platform/os.h"
#include "objects/qp.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kRemoteRights = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic;
constexpr uint32_t kPublishedRights = kRemoteRights | kAccessRemoteView;
constexpr uint32_t kAllRights = kPublishedRights | kAccessLocalWrite | kAccessMwBind | kAccessZeroBased;
constexpr uint32_t kMeaningful = 0x7FFFFFFF;  // WV_ACCESS_NON_CACHABLE is only a caching hint
constexpr uint64_t kRingAlignment = 64;
// User-space addresses end here. A range beyond this cannot be memory of a process.
constexpr uint64_t kAddressLimit = 1ull << 56;

bool inside(uint64_t address, uint64_t length, uint64_t outerAddress, uint64_t outerLength) {
  return address >= outerAddress && length <= outerLength && address - outerAddress <= outerLength - length;
}

// Remote writes and atomics change memory, so the region must be locally writable (IBA 1 §10.6.3.3).
bool needsLocalWrite(uint32_t access) { return (access & (kAccessRemoteWriteBit | kAccessRemoteAtomic)) != 0; }

bool rightsOfRegion(uint32_t access) {
  if ((access & kAccessRemoteView) != 0 && (access & kAccessRemoteRead) == 0) return false;
  return (access & ~kAllRights) == 0 && (!needsLocalWrite(access) || (access & kAccessLocalWrite) != 0);
}

}  // namespace

Ring::Ring(std::shared_ptr<std::atomic<uint32_t>> live) : live_(std::move(live)) {
  live_->fetch_add(1, std::memory_order_relaxed);
}

Ring::~Ring() {
  freeAligned(base);
  live_->fetch_sub(1, std::memory_order_relaxed);
}

bool Ring::allocate(uint64_t size) {
  const uint64_t rounded = (size + kRingAlignment - 1) & ~(kRingAlignment - 1);
  void* p = allocateAligned(kRingAlignment, rounded);
  if (p == nullptr) return false;
  std::memset(p, 0, rounded);
  base = static_cast<uint8_t*>(p);
  bytes = rounded;
  return true;
}

Memory::Memory(const EngineOptions& options, Link& link)
    : options_(options), link_(link), liveRings_(std::make_shared<std::atomic<uint32_t>>(0)), windows_(options.maxMw) {}

Memory::~Memory() = default;

// ── Pinned ranges and rings ─────────────────────────────────────────────────────────────────────

Status Memory::pinRange(uint64_t address, uint64_t length, uint64_t* id) {
  if (address == 0 || length == 0 || address >= kAddressLimit || length > kAddressLimit - address)
    return Status::kInvalidParameter;
  PinnedRange range;
  range.id = *id = nextRange_++;
  range.address = address;
  range.length = length;
  range.shared = sharedRangeAt(address, length);
  ranges_.emplace(range.id, std::move(range));
  return Status::kSuccess;
}

std::shared_ptr<const SharedRange> Memory::unpinRange(uint64_t id) {
  auto found = ranges_.find(id);
  if (found == ranges_.end()) return nullptr;
  std::shared_ptr<const SharedRange> shared = std::move(found->second.shared);
  const std::vector<MemoryKey*> regions = std::move(found->second.regions);
  ranges_.erase(found);
  epoch_++;
  for (MemoryKey* region : regions) {
    withdraw(*region);
    withdrawWindowsOf(*region);
  }
  revoke();
  for (MemoryKey* region : regions) {
    // The same memory may have been pinned more than once. The region then moves to the other range.
    attach(*region, covering(region->start(), region->length));
    region->live = region->range != nullptr;
    publish(*region);
  }
  return shared;
}

const SharedRange* Memory::sharedAt(uint64_t address, uint64_t length) const {
  for (auto it = ranges_.rbegin(); it != ranges_.rend(); ++it) {
    const PinnedRange& range = it->second;
    if (range.shared && inside(address, length, range.address, range.length)) return range.shared.get();
  }
  return nullptr;
}

PinnedRange* Memory::covering(uint64_t address, uint64_t length) {
  // The newest range is tried first. Registration follows pinning, so it nearly always matches.
  for (auto it = ranges_.rbegin(); it != ranges_.rend(); ++it)
    if (inside(address, length, it->second.address, it->second.length)) return &it->second;
  return nullptr;
}

std::shared_ptr<Ring> Memory::makeRing(uint64_t bytes) {
  auto ring = std::make_shared<Ring>(liveRings_);
  return ring->allocate(bytes) ? ring : nullptr;
}

void Memory::addRing(const std::shared_ptr<Ring>& ring) { rings_[reinterpret_cast<uint64_t>(ring->base)] = ring; }

void Memory::releaseRing(uint64_t address) { rings_.erase(address); }

std::shared_ptr<Ring> Memory::ringAt(uint64_t address, uint64_t bytes) const {
  auto it = rings_.upper_bound(address);
  if (it == rings_.begin()) return nullptr;
  --it;
  return inside(address, bytes, it->first, it->second->bytes) ? it->second : nullptr;
}

// ── Keys ────────────────────────────────────────────────────────────────────────────────────────

uint32_t Memory::randomWord() {
  if (randomLeft_ == 0) {
    fillRandom(random_.data(), sizeof random_);
    randomLeft_ = uint32_t(random_.size());
  }
  return random_[--randomLeft_];
}

MemoryKey* Memory::atIndexOf(uint32_t key) const {
  const auto it = keys_.find(key >> 8);
  return it != keys_.end() ? it->second.get() : nullptr;
}

MemoryKey* Memory::find(uint32_t key) const {
  MemoryKey* const entry = atIndexOf(key);
  return entry && entry->key == key ? entry : nullptr;
}

MemoryKey* Memory::cached(KeyCache& cache, uint32_t key) const {
  if (cache.epoch == epoch_ && cache.key == key) return cache.entry;
  MemoryKey* entry = find(key);
  if (entry) cache = {key, epoch_, entry};
  return entry;
}

MemoryKey* Memory::add(Pd& pd) {
  uint32_t key;
  do {
    key = randomWord();
  } while (key >> 8 == 0 || keys_.count(key >> 8) != 0);
  auto entry = std::make_unique<MemoryKey>();
  entry->key = key;
  entry->pd = &pd;
  pd.users++;
  MemoryKey* raw = entry.get();
  keys_.emplace(key >> 8, std::move(entry));
  return raw;
}

void Memory::revoke() {
  revocations_++;
  link_.revoke(revocations_);
}

void Memory::publish(MemoryKey& key) {
  const PinnedRange* const range = key.window ? key.region->range : key.range;
  DirectOwner* const owner = link_.directOwner();
  if (!owner || !key.live || !range || (key.access & kRemoteRights) == 0) return;
  key.published = owner->publish({key.key, key.access & kPublishedRights, key.pd->handle, key.window ? key.qp->qpn : 0,
                                  key.address, key.length, key.shift},
                                 range->shared.get());
}

void Memory::withdraw(MemoryKey& key) {
  retire(key);
  key.published = 0;
}

void Memory::retire(const MemoryKey& key) {
  if (key.published != 0) link_.directOwner()->withdraw(key.key, key.published);
}

const SharedRange* Memory::sharedOf(const MemoryKey& key) {
  const PinnedRange* const range = key.window ? key.region->range : key.range;
  return range ? range->shared.get() : nullptr;
}

// Returns whether an evicted peer may still write to the memory.
bool Memory::isUnsafe(const SharedRange* memory) const {
  const DirectOwner* const owner = link_.directOwner();
  return owner && memory && owner->unsafe(*memory);
}

void Memory::retireRegion(const Pd& pd, uint32_t lkey) {
  const MemoryKey* const region = atIndexOf(lkey);
  if (region && !region->window && region->pd == &pd && region->windows == 0) retire(*region);
}

void Memory::retireWindow(Handle mw) {
  if (Window* const window = windows_.find(mw); window && window->key->live) retire(*window->key);
}

void Memory::retireRange(uint64_t id) {
  const auto found = ranges_.find(id);
  if (found == ranges_.end()) return;
  for (const MemoryKey* region : found->second.regions) {
    retire(*region);
    if (region->windows == 0) continue;
    for (const auto& [index, key] : keys_)
      if (key->window && key->region == region) retire(*key);
  }
}

void Memory::retireWindowsOf(const Qp& qp) {
  for (const MemoryKey* window = qp.windows; window; window = window->nextBound) retire(*window);
}

void Memory::retireKernel(KernelId kernel) {
  for (const auto& [index, key] : keys_)
    if (key->pd->kernel == kernel) retire(*key);
}

void Memory::retireKey(const Qp& qp, uint32_t number) {
  const MemoryKey* const key = find(number);
  if (key && key->live && key->pd == qp.pd && (key->window ? key->qp == &qp : key->registered && key->windows == 0))
    retire(*key);
}

void Memory::withdrawWindowsOf(const MemoryKey& region) {
  if (region.windows == 0) return;
  for (auto& [index, key] : keys_)
    if (key->window && key->region == &region) withdraw(*key);
}

void Memory::erase(MemoryKey* key) {
  epoch_++;
  withdraw(*key);
  revoke();
  key->pd->users--;
  keys_.erase(key->key >> 8);
}

Status Memory::registerRegion(Pd& pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                              uint32_t* rkey) {
  access &= kMeaningful;
  if (length == 0 || length > options_.maxMrSize || !rightsOfRegion(access)) return Status::kInvalidParameter;
  if (regions_ >= options_.maxMr) return Status::kInsufficientResources;
  PinnedRange* range = covering(address, length);
  if (!range) return Status::kAccessViolation;
  MemoryKey* region = add(pd);
  attach(*region, range);
  place(*region, address, length, access);
  regions_++;
  *lkey = region->key;
  *rkey = access & kRemoteRights ? region->key : 0;
  return Status::kSuccess;
}

// Sets the addresses of a region whose range is known.
void Memory::place(MemoryKey& region, uint64_t start, uint64_t length, uint32_t access) {
  region.address = access & kAccessZeroBased ? 0 : start;
  region.shift = start - region.address;
  region.length = length;
  region.access = access;
  region.live = true;
  publish(region);
}

void Memory::attach(MemoryKey& region, PinnedRange* range) {
  region.range = range;
  if (!range) return;
  region.rangePlace = range->regions.size();
  range->regions.push_back(&region);
}

void Memory::detach(MemoryKey& region) {
  if (!region.range) return;
  auto& all = region.range->regions;
  all[region.rangePlace] = all.back();
  all[region.rangePlace]->rangePlace = region.rangePlace;
  all.pop_back();
  region.range = nullptr;
}

Status Memory::allocateRegion(Pd& pd, uint64_t mostBytes, uint32_t* lkey) {
  if (mostBytes == 0 || mostBytes > options_.maxMrSize) return Status::kInvalidParameter;
  if (regions_ >= options_.maxMr) return Status::kInsufficientResources;
  MemoryKey* region = add(pd);
  region->fast = true;
  region->mostBytes = mostBytes;
  regions_++;
  *lkey = region->key;
  return Status::kSuccess;
}

bool Memory::fastRegister(Qp& qp, const FastRegisterRequest& r) {
  MemoryKey* const region = atIndexOf(r.nextKey);
  if (!region || !region->fast || region->registered || region->pd != qp.pd) return false;
  const uint32_t access = r.access & kMeaningful;
  if (r.length == 0 || r.length > region->mostBytes || !rightsOfRegion(access)) return false;
  const MemoryKey* const memory = find(r.lkey);
  if (!memory || memory->window || memory->fast || !memory->live || memory->pd != qp.pd) return false;
  if (!inside(r.address, r.length, memory->address, memory->length)) return false;
  epoch_++;
  region->key = r.nextKey;
  region->registered = true;
  attach(*region, memory->range);
  place(*region, r.address + memory->shift, r.length, access);
  return true;
}

Status Memory::deregisterRegion(Pd& pd, uint32_t lkey) {
  MemoryKey* region = atIndexOf(lkey);
  if (!region || region->window || region->pd != &pd || (!region->fast && region->key != lkey))
    return Status::kInvalidHandle;
  if (region->windows > 0) return Status::kDeviceBusy;
  if (isUnsafe(sharedOf(*region))) return Status::kNoMemory;
  dropRegion(region);
  return Status::kSuccess;
}

void Memory::dropRegion(MemoryKey* region) {
  detach(*region);
  regions_--;
  erase(region);
}

// ── Windows ─────────────────────────────────────────────────────────────────────────────────────

Status Memory::allocateWindow(Pd& pd, Handle* mw, uint32_t* rkey) {
  auto window = std::make_unique<Window>();
  Window* raw = window.get();
  const Handle handle = windows_.add(std::move(window));
  if (!handle) return Status::kInsufficientResources;
  raw->key = add(pd);
  raw->key->window = true;
  raw->key->handle = handle;
  *mw = handle;
  *rkey = raw->key->key;
  return Status::kSuccess;
}

Status Memory::deallocateWindow(Handle mw) {
  Window* window = windows_.find(mw);
  if (!window) return Status::kInvalidHandle;
  unbind(*window->key);
  erase(window->key);
  windows_.remove(mw);
  return Status::kSuccess;
}

bool Memory::bind(Qp& qp, const BindRequest& r) {
  MemoryKey* window = find(r.presentRkey);
  if (!window || !window->window || window->live || window->pd != qp.pd) return false;
  if (r.nextRkey >> 8 != r.presentRkey >> 8 || r.nextRkey == r.presentRkey) return false;
  if (r.access & ~(kRemoteRights | kAccessLocalWrite | kAccessZeroBased)) return false;
  MemoryKey* region = find(r.lkey);
  if (!region || region->window || !region->live || region->pd != qp.pd) return false;
  if (!(region->access & kAccessMwBind) || (region->access & kAccessZeroBased)) return false;
  if (needsLocalWrite(r.access) && !(region->access & kAccessLocalWrite)) return false;
  if (r.length == 0 || !inside(r.address, r.length, region->address, region->length)) return false;
  epoch_++;
  window->key = r.nextRkey;
  window->address = r.access & kAccessZeroBased ? 0 : r.address;
  window->shift = r.address - window->address;
  window->length = r.length;
  window->access = r.access & kRemoteRights;
  window->live = true;
  window->region = region;
  window->qp = &qp;
  region->windows++;
  window->previousBound = nullptr;
  window->nextBound = qp.windows;
  if (qp.windows) qp.windows->previousBound = window;
  qp.windows = window;
  publish(*window);
  return true;
}

void Memory::unbind(MemoryKey& window) {
  if (!window.live) return;
  epoch_++;
  withdraw(window);
  revoke();
  window.region->windows--;
  if (window.nextBound) window.nextBound->previousBound = window.previousBound;
  (window.previousBound ? window.previousBound->nextBound : window.qp->windows) = window.nextBound;
  window.live = false;
  window.region = nullptr;
  window.qp = nullptr;
  window.nextBound = window.previousBound = nullptr;
}

bool Memory::invalidate(Qp& qp, uint32_t rkey, By by) {
  MemoryKey* const key = find(rkey);
  if (!key) return false;
  if (key->window) {
    if (!key->live || key->qp != &qp) return false;
    const SharedRange* const memory = sharedOf(*key);
    unbind(*key);
    return !isUnsafe(memory);
  }
  if (!key->registered || key->pd != qp.pd || key->windows > 0) return false;
  if (by == By::kPeer && (key->access & kRemoteRights) == 0) return false;
  epoch_++;
  key->live = key->registered = false;
  withdraw(*key);
  revoke();
  const bool safe = !isUnsafe(sharedOf(*key));
  detach(*key);
  return safe;
}

bool Memory::isWindow(uint32_t key) const {
  const MemoryKey* const entry = atIndexOf(key);
  return entry && entry->window;
}

void Memory::unbindAll(Qp& qp) {
  while (qp.windows) unbind(*qp.windows);
}

void Memory::dropKernel(KernelId kernel) {
  std::vector<Handle> windows;
  windows_.forEach([&](Window& w) {
    if (w.key->pd->kernel == kernel) windows.push_back(w.key->handle);
  });
  for (const Handle handle : windows) deallocateWindow(handle);
  std::vector<MemoryKey*> regions;
  for (auto& [index, key] : keys_)
    if (!key->window && key->pd->kernel == kernel) regions.push_back(key.get());
  for (MemoryKey* region : regions) dropRegion(region);
}

// ── Access ──────────────────────────────────────────────────────────────────────────────────────

uint8_t* Memory::local(KeyCache& cache, const Pd* pd, uint32_t lkey, uint64_t address, uint64_t length,
                       bool write) const {
  const MemoryKey* region = cached(cache, lkey);
  if (!region || region->window || !region->live || region->pd != pd) return nullptr;
  if (write && !(region->access & kAccessLocalWrite)) return nullptr;
  if (!inside(address, length, region->address, region->length)) return nullptr;
  return reinterpret_cast<uint8_t*>(address + region->shift);
}

uint8_t* Memory::remote(KeyCache& cache, const Qp& qp, uint32_t rkey, uint64_t address, uint64_t length,
                        uint32_t right) const {
  const MemoryKey* key = cached(cache, rkey);
  if (!key || !key->live || key->pd != qp.pd || !(key->access & right)) return nullptr;
  if (key->window && (key->qp != &qp || !key->region->live)) return nullptr;
  if (!inside(address, length, key->address, key->length)) return nullptr;
  return reinterpret_cast<uint8_t*>(address + key->shift);
}

const SharedRange* Memory::sharedOf(KeyCache& cache, uint32_t key) const {
  const MemoryKey* entry = cached(cache, key);
  if (entry && entry->window) entry = entry->region;
  return entry && entry->live && entry->range ? entry->range->shared.get() : nullptr;
}

}  // namespace nd
