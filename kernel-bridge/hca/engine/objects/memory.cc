#include "objects/memory.h"
#include <algorithm>
#include "platform/os.h"
#include "objects/qp.h"

namespace nd {

using namespace abi;

namespace {

constexpr uint32_t kRemoteRights = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic;
constexpr uint32_t kAllRights = kRemoteRights | kAccessLocalWrite | kAccessMwBind;
constexpr uint64_t kRingAlignment = 64;
// User-space addresses end here; a range beyond is not memory a process can have.
constexpr uint64_t kAddressLimit = 1ull << 56;

bool inside(uint64_t address, uint64_t length, uint64_t outerAddress, uint64_t outerLength) {
  return address >= outerAddress && length <= outerLength && address - outerAddress <= outerLength - length;
}

// Remote writes and atomics change memory, so the region must be locally writable (IBA 1 §10.6.3.3).
bool needsLocalWrite(uint32_t access) { return (access & (kAccessRemoteWriteBit | kAccessRemoteAtomic)) != 0; }

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

Memory::Memory(const EngineOptions& options)
    : options_(options), liveRings_(std::make_shared<std::atomic<uint32_t>>(0)), windows_(options.maxMw) {}

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
  revoke();
  for (MemoryKey* region : regions) {
    // The same memory may have been pinned more than once: the region lives on in the other range.
    region->range = covering(region->address, region->length);
    if (region->range) {
      region->range->regions.push_back(region);
    } else {
      region->live = false;
    }
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
  // Newest first: registering follows pinning, so the first look nearly always hits.
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

MemoryKey* Memory::find(uint32_t key) const {
  const auto it = keys_.find(key >> 8);
  return it != keys_.end() && it->second->key == key ? it->second.get() : nullptr;
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
  if (observer_) observer_(observerArgument_, revocations_);
}

void Memory::erase(MemoryKey* key) {
  epoch_++;
  revoke();
  key->pd->users--;
  keys_.erase(key->key >> 8);
}

Status Memory::registerRegion(Pd& pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                              uint32_t* rkey) {
  access &= 0x7FFFFFFF;  // WV_ACCESS_NON_CACHABLE is advice about caches
  if (length == 0 || length > options_.maxMrSize || (access & ~kAllRights) != 0) return Status::kInvalidParameter;
  if (needsLocalWrite(access) && !(access & kAccessLocalWrite)) return Status::kInvalidParameter;
  if (regions_ >= options_.maxMr) return Status::kInsufficientResources;
  PinnedRange* range = covering(address, length);
  if (!range) return Status::kAccessViolation;
  MemoryKey* region = add(pd);
  region->address = address;
  region->length = length;
  region->access = access;
  region->live = true;
  region->range = range;
  range->regions.push_back(region);
  regions_++;
  *lkey = region->key;
  *rkey = access & kRemoteRights ? region->key : 0;
  return Status::kSuccess;
}

Status Memory::deregisterRegion(Pd& pd, uint32_t lkey) {
  MemoryKey* region = find(lkey);
  if (!region || region->window || region->pd != &pd) return Status::kInvalidHandle;
  if (region->windows > 0) return Status::kDeviceBusy;
  if (region->range) {
    auto& all = region->range->regions;
    all.erase(std::find(all.begin(), all.end(), region));
  }
  regions_--;
  erase(region);
  return Status::kSuccess;
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
  if (r.access & ~(kRemoteRights | kAccessLocalWrite)) return false;
  MemoryKey* region = find(r.lkey);
  if (!region || region->window || !region->live || region->pd != qp.pd) return false;
  if (!(region->access & kAccessMwBind)) return false;
  if (needsLocalWrite(r.access) && !(region->access & kAccessLocalWrite)) return false;
  if (r.length == 0 || !inside(r.address, r.length, region->address, region->length)) return false;
  epoch_++;
  window->key = r.nextRkey;
  window->address = r.address;
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
  return true;
}

void Memory::unbind(MemoryKey& window) {
  if (!window.live) return;
  epoch_++;
  revoke();
  window.region->windows--;
  if (window.nextBound) window.nextBound->previousBound = window.previousBound;
  (window.previousBound ? window.previousBound->nextBound : window.qp->windows) = window.nextBound;
  window.live = false;
  window.region = nullptr;
  window.qp = nullptr;
  window.nextBound = window.previousBound = nullptr;
}

bool Memory::invalidatable(const Qp& qp, uint32_t rkey) const {
  const MemoryKey* window = find(rkey);
  return window && window->window && window->live && window->qp == &qp;
}

bool Memory::invalidate(Qp& qp, uint32_t rkey) {
  if (!invalidatable(qp, rkey)) return false;
  unbind(*find(rkey));
  return true;
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
  for (MemoryKey* region : regions) deregisterRegion(*region->pd, region->key);
}

// ── Access ──────────────────────────────────────────────────────────────────────────────────────

uint8_t* Memory::local(KeyCache& cache, const Pd* pd, uint32_t lkey, uint64_t address, uint64_t length,
                       bool write) const {
  const MemoryKey* region = cached(cache, lkey);
  if (!region || region->window || !region->live || region->pd != pd) return nullptr;
  if (write && !(region->access & kAccessLocalWrite)) return nullptr;
  if (!inside(address, length, region->address, region->length)) return nullptr;
  return reinterpret_cast<uint8_t*>(address);
}

uint8_t* Memory::remote(KeyCache& cache, const Qp& qp, uint32_t rkey, uint64_t address, uint64_t length,
                        uint32_t right) const {
  const MemoryKey* key = cached(cache, rkey);
  if (!key || !key->live || key->pd != qp.pd || !(key->access & right)) return nullptr;
  if (key->window && (key->qp != &qp || !key->region->live)) return nullptr;
  if (!inside(address, length, key->address, key->length)) return nullptr;
  return reinterpret_cast<uint8_t*>(address);
}

const SharedRange* Memory::sharedOf(KeyCache& cache, uint32_t key) const {
  const MemoryKey* entry = cached(cache, key);
  if (entry && entry->window) entry = entry->region;
  return entry && entry->live && entry->range ? entry->range->shared.get() : nullptr;
}

}  // namespace nd
