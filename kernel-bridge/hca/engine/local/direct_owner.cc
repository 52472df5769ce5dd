#include "local/direct_owner.h"

#include <algorithm>

#include "schema/ring.h"
#include "base/fence.h"
#include "local/local_pair.h"

namespace nd {
namespace {

constexpr uint32_t kChanges = abi::kAccessRemoteWriteBit | abi::kAccessRemoteAtomic;
constexpr uint64_t kMostFiles = UINT32_MAX;

bool entered(const DirectAccessRecord::Seen& seen, const std::vector<DirectOwner::Withdrawn>& by) {
  return std::any_of(by.begin(), by.end(),
                     [&](const DirectOwner::Withdrawn& w) { return w.number == (w.isQp ? seen.qpn : seen.key); });
}

// Merges adjacent parts.
void merge(std::vector<SharedRange::Part>* parts) {
  std::sort(parts->begin(), parts->end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::vector<SharedRange::Part> all;
  for (const SharedRange::Part& part : *parts) {
    if (part.length == 0) continue;
    if (all.empty() || part.offset > all.back().offset + all.back().length) all.push_back(part);
    else all.back().length = std::max(all.back().length, part.offset + part.length - all.back().offset);
  }
  *parts = std::move(all);
}

}  // namespace

bool DirectOwner::create() {
  if (!pages_.createPublished(sizeof(DirectTable), &fd_)) return false;
  table()->magic = DirectTable::kMagic;
  return true;
}

// ── Keys and queue pairs ──────────────────────────────────────────────────────────────────────────

uint32_t DirectOwner::publish(const Key& key, const SharedRange* range) {
  if (!created() || range == nullptr || key.access == 0 || !hold(*range, key.access)) return 0;
  const auto file = static_cast<uint32_t>(range->id);
  for (uint32_t n = 0; n < DirectTable::kPlaces; n++) {
    const uint32_t place = DirectTable::placeOf(key.key, n);
    DirectKey& record = table()->keys[place];
    if (directLoad(record.key) != 0) continue;
    directChange(record, [&](DirectKey& r) {
      directStore(r.access, key.access);
      directStore(r.pd, key.pd);
      directStore(r.qpn, key.qpn);
      directStore(r.file, file);
      directStore(r.address, key.address);
      directStore(r.length, key.length);
      directStore(r.shift, key.shift);
      directStore(r.key, key.key);
    });
    return place + 1;
  }
  counters_.add(HostCounter::kDirectUnpublished);
  release(file, key.access);
  return 0;
}

// Counts a key of this memory. Returns false if the memory cannot be published.
bool DirectOwner::hold(const SharedRange& range, uint32_t access) {
  if (range.id > kMostFiles || range.reclaimed.load(std::memory_order_acquire)) return false;
  const void* publisher = nullptr;
  if (!range.publisher.compare_exchange_strong(publisher, this, std::memory_order_acq_rel) && publisher != this)
    return false;
  File& entry = files_.try_emplace(static_cast<uint32_t>(range.id), File{range.shared_from_this(), 0, 0}).first->second;
  entry.keys++;
  if ((access & kChanges) != 0) entry.writable++;
  return true;
}

void DirectOwner::release(uint32_t file, uint32_t access) {
  File& entry = files_.find(file)->second;
  if ((access & kChanges) != 0) entry.writable--;
  forgetful_ |= --entry.keys == 0;
}

// Files without keys are kept while any peer is inside, because their pages may have to be moved.
void DirectOwner::forgetFiles(LocalPair* const* pairs, size_t count) {
  const auto inUse = [&](uint32_t file) {
    return std::any_of(pairs, pairs + count, [&](LocalPair* pair) {
      const DirectAccessRecord* const access = pair->remoteAccess();
      const uint64_t word = access != nullptr ? DirectInUse::load(&access->inUse) : 0;
      return DirectInUse::inside(word) && DirectInUse::file(word) == file && !hasEnded(pair->process());
    });
  };
  forgetful_ = false;
  for (auto it = files_.begin(); it != files_.end();) {
    const File& file = it->second;
    if (file.keys != 0 || inUse(it->first)) {
      forgetful_ |= file.keys == 0;
      ++it;
      continue;
    }
    file.range->publisher.store(nullptr, std::memory_order_release);
    it = files_.erase(it);
  }
}

void DirectOwner::withdraw(uint32_t key, uint32_t place) {
  if (place == 0) return;
  withdrawn_.push_back({key, false});
  DirectKey& record = table()->keys[place - 1];
  if (directLoad(record.key) != key) return;  // it has already been withdrawn
  const uint32_t file = directLoad(record.file), access = directLoad(record.access);
  directChange(record, [](DirectKey& r) { directStore(r.key, 0u); });
  release(file, access);
}

void DirectOwner::withdrawFile(uint32_t file) {
  const File& entry = files_.find(file)->second;
  for (uint32_t place = 0; place < DirectTable::kKeys && entry.keys != 0; place++) {
    const DirectKey& record = table()->keys[place];
    const uint32_t key = directLoad(record.key);
    if (key == 0 || directLoad(record.file) != file) continue;
    const uint32_t access = directLoad(record.access);
    directChange(table()->keys[place], [](DirectKey& r) { directStore(r.key, 0u); });
    release(file, access);
  }
}

void DirectOwner::publish(const Qp& qp) {
  if (!created()) return;
  directChange(table()->qps[qp.qpn % DirectTable::kQps], [&](DirectQp& r) {
    directStore(r.qpn, qp.qpn);
    directStore(r.peer, qp.peer);
    directStore(r.access, qp.access);
    directStore(r.pd, qp.pd);
    directStore(r.pkey, qp.pkey);
  });
}

bool DirectOwner::says(const Qp& qp) const {
  const DirectQp& r = table()->qps[qp.qpn % DirectTable::kQps];
  return r.qpn == qp.qpn && r.peer == qp.peer && r.access == qp.access && r.pd == qp.pd && r.pkey == qp.pkey;
}

void DirectOwner::withdrawQp(uint32_t qpn) {
  if (!created()) return;
  withdrawn_.push_back({qpn, true});
  directChange(table()->qps[qpn % DirectTable::kQps], [](DirectQp& r) { directStore(r.qpn, 0u); });
}

const SharedRange* DirectOwner::rangeOf(uint32_t file, bool* writable) const {
  const auto found = files_.find(file);
  if (found == files_.end() || found->second.keys == 0) return nullptr;
  *writable = found->second.writable != 0;
  return found->second.range.get();
}

// ── Peers inside ──────────────────────────────────────────────────────────────────────────────────

bool DirectOwner::occupied(LocalPair* const* pairs, size_t count, const std::vector<Withdrawn>& withdrawn) const {
  fullFence();  // pairs with the fence in DirectInUse::enter()
  return std::any_of(pairs, pairs + count, [&](LocalPair* pair) {
    const DirectAccessRecord* const access = pair->remoteAccess();
    DirectAccessRecord::Seen seen;
    return access != nullptr && access->read(&seen) && entered(seen, withdrawn) && !hasEnded(pair->process());
  });
}

// Returns false if the peer has left by itself.
bool DirectOwner::evict(LocalPair& pair, const DirectAccessRecord::Seen& seen) {
  if (!DirectInUse::evict(&pair.remoteAccess()->inUse, seen.inUse)) return false;
  counters_.add(HostCounter::kDirectEvictions);
  return true;
}

DirectOwner::Settled DirectOwner::settle(LocalPair* const* pairs, size_t count) {
  if (!created()) return Settled::kQuiet;
  const std::vector<Withdrawn> withdrawn = takeWithdrawn();
  if (!unmoved_.empty()) moveUnmoved();
  std::vector<std::pair<uint32_t, Unmoved>> evicted;
  if (!withdrawn.empty()) fullFence();
  for (size_t i = 0; i < count && !withdrawn.empty(); i++) {
    const DirectAccessRecord* const access = pairs[i]->remoteAccess();
    DirectAccessRecord::Seen seen;
    if (access == nullptr || !access->read(&seen) || !entered(seen, withdrawn) || hasEnded(pairs[i]->process()) ||
        !evict(*pairs[i], seen))
      continue;
    const auto found = files_.find(seen.file());
    // The peer may have announced an unknown file, which does not concern this process. Memory is reclaimed only once.
    if (found == files_.end() || found->second.range->reclaimed.load(std::memory_order_relaxed)) continue;
    auto of = std::find_if(evicted.begin(), evicted.end(), [&](const auto& e) { return e.first == seen.file(); });
    if (of == evicted.end()) of = evicted.insert(of, {seen.file(), {found->second.range, {}, {}}});
    of->second.parts.push_back(
        found->second.range->partAt(seen.address, std::min(seen.bytes, DirectAccessRecord::kMostBytes)));
    of->second.peers.push_back(pairs[i]->process());
  }
  for (auto& [file, all] : evicted) reclaim(pairs, count, std::move(all), file);
  if (forgetful_) forgetFiles(pairs, count);
  return !unmoved_.empty() ? Settled::kNoMemory : !evicted.empty() ? Settled::kReclaimed : Settled::kQuiet;
}

// All keys of the file end. An access through another of its keys continues in the file, and may count, so it has to
// end before pages are replaced.
void DirectOwner::reclaim(LocalPair* const* pairs, size_t count, Unmoved all, uint32_t file) {
  withdrawFile(file);
  fullFence();
  for (size_t i = 0; i < count; i++) {
    const DirectAccessRecord* const access = pairs[i]->remoteAccess();
    DirectAccessRecord::Seen seen;
    for (uint32_t checks = 0; access != nullptr && access->read(&seen) && seen.file() == file; checks++) {
      if (checks < kChecks) continue;
      if (!hasEnded(pairs[i]->process()) && evict(*pairs[i], seen)) {
        all.parts.push_back(all.range->partAt(seen.address, std::min(seen.bytes, DirectAccessRecord::kMostBytes)));
        all.peers.push_back(pairs[i]->process());
      }
      break;  // once: a peer that returns ignores the table
    }
  }
  merge(&all.parts);
  counters_.add(HostCounter::kDirectReclaimed);
  if (all.range->reclaim(&all.parts)) return;
  counters_.add(HostCounter::kDirectUnmoved);
  unmoved_.push_back(std::move(all));
}

void DirectOwner::moveUnmoved() {
  const auto done = [](Unmoved& u) {
    return std::all_of(u.peers.begin(), u.peers.end(), hasEnded) || u.range->reclaim(&u.parts);
  };
  unmoved_.erase(std::remove_if(unmoved_.begin(), unmoved_.end(), done), unmoved_.end());
}

bool DirectOwner::unsafe(const SharedRange& range) const {
  return std::any_of(unmoved_.begin(), unmoved_.end(), [&](const Unmoved& u) { return u.range.get() == &range; });
}

}  // namespace nd
