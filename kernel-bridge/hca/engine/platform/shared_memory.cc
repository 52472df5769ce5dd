#include "platform/shared_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "platform/pages.h"

namespace nd {
namespace {

// The ranges by base address. The table is leaked, because threads may still use it while the process exits.
struct Registry {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<const SharedRange>> ranges;
  uint64_t nextId = 1;
  std::atomic<uint32_t> freed{0};  // number of freed ranges that had been offered to peers
  struct Hook {
    void (*call)(void*);
    void* argument;
  };
  std::vector<Hook> hooks;
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

}  // namespace

SharedRange::~SharedRange() {
  if (base == 0) return;
  {
    Registry& all = registry();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.ranges.erase(base);
    if (offered.load(std::memory_order_relaxed)) {
      all.freed.fetch_add(1, std::memory_order_release);
      for (const Registry::Hook& hook : all.hooks) hook.call(hook.argument);
    }
  }
  freePages(base, length);
}

void SharedRange::seal(bool writable) const {
  if (!sealed.exchange(true, std::memory_order_relaxed)) sealPages(fd.get(), writable);
}

SharedRange::Part SharedRange::partAt(uint64_t address, uint64_t bytes) const {
  const uint64_t page = pageBytes(), first = std::max(address, base), end = std::min(address + bytes, base + length);
  if (bytes == 0 || address + bytes < address || first >= end) return {0, 0};
  const uint64_t offset = (first - base) / page * page;
  return {offset, std::min((end - base + page - 1) / page * page, length) - offset};
}

bool SharedRange::reclaim(std::vector<Part>* parts) const {
  reclaimed.store(true, std::memory_order_release);
  while (!parts->empty()) {
    Part& part = parts->back();
    if (!part.detached) part.detached = detachPages(fd.get(), base, part.offset, part.length);
    if (!part.detached || !copyDetachedPages(base, part.offset, part.length)) return false;
    parts->pop_back();
  }
  return true;
}

Status allocateShared(uint64_t bytes, std::shared_ptr<const SharedRange>* out, int* error) {
  Pages pages;
  int cause = 0;
  const Status status = allocatePages(bytes, &pages, &cause);
  if (error != nullptr) *error = cause;
  if (status != Status::kSuccess) return status;
  auto range = std::make_shared<SharedRange>();
  range->fd = std::move(pages.fd);
  range->base = pages.base;
  range->length = pages.length;
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  range->id = all.nextId++;
  all.ranges[range->base] = range;
  *out = std::move(range);
  return Status::kSuccess;
}

std::shared_ptr<const SharedRange> sharedRangeAt(uint64_t address, uint64_t bytes) {
  Registry& all = registry();
  std::shared_ptr<const SharedRange> range;
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.ranges.upper_bound(address);
  if (it == all.ranges.begin()) return nullptr;
  range = (--it)->second.lock();
  return range && range->contains(address, bytes) ? range : nullptr;
}

uint32_t offeredRangesFreed() { return registry().freed.load(std::memory_order_acquire); }

void onOfferedRangeFreed(void (*hook)(void*), void* argument) {
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.hooks.push_back({hook, argument});
}

void endOnOfferedRangeFreed(void* argument) {
  Registry& all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto own = [&](const Registry::Hook& hook) { return hook.argument == argument; };
  all.hooks.erase(std::remove_if(all.hooks.begin(), all.hooks.end(), own), all.hooks.end());
}

}  // namespace nd
