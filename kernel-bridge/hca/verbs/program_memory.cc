#include "verbs/program_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace nd::verbs {

namespace {
constexpr uint64_t kAlignment = 64;
}

RingMemory::RingMemory(uint64_t size) {
  const uint64_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, rounded) != 0) return;
  std::memset(memory, 0, rounded);
  base = static_cast<uint8_t*>(memory);
  bytes = rounded;
}

RingMemory::~RingMemory() { std::free(base); }

// The tables are leaked, because finalizers may run late.
Rings& Rings::all() {
  static Rings* instance = new Rings;
  return *instance;
}

std::shared_ptr<RingMemory> Rings::allocate(uint64_t bytes) {
  auto ring = std::make_shared<RingMemory>(bytes);
  if (ring->base == nullptr) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  rings_.emplace(reinterpret_cast<uintptr_t>(ring->base), ring);
  return ring;
}

void Rings::release(uint64_t address) {
  std::shared_ptr<RingMemory> last;  // freed after the lock is released
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = rings_.find(address);
  if (it == rings_.end()) return;
  last = std::move(it->second);
  rings_.erase(it);
}

std::shared_ptr<RingMemory> Rings::find(uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = rings_.upper_bound(address);
  if (it == rings_.begin() || address % kAlignment != 0) return nullptr;
  --it;
  const uint64_t offset = address - it->first;
  return offset <= it->second->bytes && bytes <= it->second->bytes - offset ? it->second : nullptr;
}

Ranges& Ranges::all() {
  static Ranges* instance = new Ranges;
  return *instance;
}

uint64_t Ranges::add(uint64_t address, uint64_t length) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t id = nextId_++;
  ranges_.emplace(id, Range{address, length, 0});
  byAddress_.emplace(address, id);
  longest_ = std::max(longest_, length);
  return id;
}

void Ranges::remove(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = ranges_.find(id);
  if (it == ranges_.end()) return;
  const auto [from, to] = byAddress_.equal_range(it->second.address);
  for (auto entry = from; entry != to; ++entry) {
    if (entry->second != id) continue;
    byAddress_.erase(entry);
    break;
  }
  ranges_.erase(it);
  if (ranges_.empty()) longest_ = 0;
}

uint64_t Ranges::use(uint64_t address, uint64_t length) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = byAddress_.upper_bound(address); it != byAddress_.begin();) {
    --it;
    if (address - it->first > longest_) return 0;
    Range& range = ranges_.at(it->second);
    const uint64_t offset = address - range.address;
    if (offset > range.length || length > range.length - offset) continue;
    ++range.registrations;
    return it->second;
  }
  return 0;
}

void Ranges::unuse(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = ranges_.find(id);
  if (it != ranges_.end()) --it->second.registrations;
}

bool Ranges::used(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = ranges_.find(id);
  return it != ranges_.end() && it->second.registrations > 0;
}

}  // namespace nd::verbs
