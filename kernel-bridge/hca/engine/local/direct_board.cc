#include "local/direct_board.h"

#include <algorithm>

#include "base/abi.h"
#include "base/fence.h"
#include "local/local_pair.h"

namespace nd {
namespace {

constexpr uint32_t kChanges = abi::kAccessRemoteWriteBit | abi::kAccessRemoteAtomic;
constexpr uint64_t kMostFiles = UINT32_MAX;

bool contains(const std::vector<uint32_t>& files, uint32_t file) { return std::find(files.begin(), files.end(), file) != files.end(); }

}  // namespace

bool DirectBoard::create() {
  if (!pages_.createPublished(sizeof(DirectTable), &fd_)) return false;
  table()->magic = DirectTable::kMagic;
  return true;
}

// ── Keys and queue pairs ──────────────────────────────────────────────────────────────────────────

uint32_t DirectBoard::publish(const Key& key, const SharedRange* range) {
  const uint32_t access = range ? key.access : key.access & abi::kAccessRemoteRead;
  if (!created() || access == 0 || (range && !hold(*range, access))) return 0;
  const uint32_t file = range ? static_cast<uint32_t>(range->id) : DirectKey::kAnyMemory;
  for (uint32_t n = 0; n < DirectTable::kPlaces; n++) {
    const uint32_t place = DirectTable::placeOf(key.key, n);
    DirectKey& record = table()->keys[place];
    if (directLoad(record.key) != 0) continue;
    directChange(record, [&](DirectKey& r) {
      directStore(r.access, access);
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
  release(file, access);
  return 0;
}

// Counts a key of this memory. False: it cannot be published.
bool DirectBoard::hold(const SharedRange& range, uint32_t access) {
  if (range.id > kMostFiles || range.takenBack.load(std::memory_order_acquire)) return false;
  const void* nobody = nullptr;
  if (!range.publisher.compare_exchange_strong(nobody, this, std::memory_order_acq_rel) && nobody != this) return false;
  File& entry = files_.try_emplace(static_cast<uint32_t>(range.id), File{&range, 0, 0}).first->second;
  entry.keys++;
  if ((access & kChanges) != 0) entry.writable++;
  return true;
}

void DirectBoard::release(uint32_t file, uint32_t access) {
  if (file == DirectKey::kAnyMemory) return;
  File& entry = files_.find(file)->second;
  if ((access & kChanges) != 0) entry.writable--;
  forgetful_ |= --entry.keys == 0;
}

// Files without keys are kept until nobody can be inside: they may have to be taken back.
void DirectBoard::forgetFiles() {
  forgetful_ = false;
  for (auto it = files_.begin(); it != files_.end();) {
    const File& file = it->second;
    if (file.keys == 0) file.range->publisher.store(nullptr, std::memory_order_release);
    it = file.keys == 0 ? files_.erase(it) : std::next(it);
  }
}

void DirectBoard::withdraw(uint32_t key, uint32_t place) {
  if (place == 0) return;
  DirectKey& record = table()->keys[place - 1];
  if (directLoad(record.key) != key) return;  // withdrawFile() was here
  const uint32_t file = directLoad(record.file), access = directLoad(record.access);
  directChange(record, [](DirectKey& r) { directStore(r.key, 0u); });
  release(file, access);
}

void DirectBoard::withdrawFile(uint32_t file) {
  const File& entry = files_.find(file)->second;
  for (uint32_t place = 0; place < DirectTable::kKeys && entry.keys != 0; place++) {
    const DirectKey& record = table()->keys[place];
    const uint32_t key = directLoad(record.key);
    if (key != 0 && directLoad(record.file) == file) withdraw(key, place + 1);
  }
}

void DirectBoard::publish(const Qp& qp) {
  if (!created()) return;
  directChange(table()->qps[qp.qpn % DirectTable::kQps], [&](DirectQp& r) {
    directStore(r.qpn, qp.qpn);
    directStore(r.peer, qp.peer);
    directStore(r.access, qp.access);
    directStore(r.pd, qp.pd);
    directStore(r.pkey, qp.pkey);
  });
}

bool DirectBoard::says(const Qp& qp) const {
  const DirectQp& r = table()->qps[qp.qpn % DirectTable::kQps];
  return r.qpn == qp.qpn && r.peer == qp.peer && r.access == qp.access && r.pd == qp.pd && r.pkey == qp.pkey;
}

void DirectBoard::withdrawQp(uint32_t qpn) {
  if (created()) directChange(table()->qps[qpn % DirectTable::kQps], [](DirectQp& r) { directStore(r.qpn, 0u); });
}

const SharedRange* DirectBoard::rangeOf(uint32_t file, bool* writable) const {
  const auto found = files_.find(file);
  if (found == files_.end() || found->second.keys == 0) return nullptr;
  *writable = found->second.writable != 0;
  return found->second.range;
}

// ── Waiting for peers ─────────────────────────────────────────────────────────────────────────────

std::vector<uint32_t> DirectBoard::waitForPeers(LocalPair* const* pairs, size_t count, const std::vector<uint32_t>* only) {
  std::vector<uint32_t> evicted;
  uint64_t deadline = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t* const mark = pairs[i]->directMark();
    if (mark == nullptr) continue;
    const uint64_t seen = DirectMark::look(mark);
    if (!DirectMark::inside(seen) || (only != nullptr && !contains(*only, DirectMark::file(seen)))) continue;
    counters_.add(HostCounter::kDirectWaits);
    if (deadline == 0) deadline = monotonicNs() + patience_;
    while (DirectMark::look(mark) == seen) {
      yieldThread();
      if (pairs[i]->processEnded()) break;
      if (monotonicNs() < deadline || !DirectMark::evict(mark, seen)) continue;
      counters_.add(HostCounter::kDirectEvictions);
      if (!contains(evicted, DirectMark::file(seen))) evicted.push_back(DirectMark::file(seen));
      break;
    }
  }
  return evicted;
}

bool DirectBoard::settle(LocalPair* const* pairs, size_t count) {
  if (!created()) return false;
  fullFence();  // the counterpart of DirectMark::enter()'s
  const std::vector<uint32_t> files = waitForPeers(pairs, count, nullptr);
  std::vector<const SharedRange*> ranges;
  for (const uint32_t file : files) {
    const auto found = files_.find(file);
    // Memory that is only read needs no more than that the READ does not count. Another file is none of ours: whatever the peer does
    // there is its own affair.
    if (found == files_.end()) continue;
    ranges.push_back(found->second.range);
    withdrawFile(file);
  }
  if (!ranges.empty()) {
    // A visit by another key of these files may count. It has to end before their pages become others. A third look finds nobody
    // but a peer that ignores the table.
    fullFence();
    waitForPeers(pairs, count, &files);
  }
  for (const SharedRange* range : ranges) {
    while (!range->takeBack()) yieldThread();  // without memory there is no other way to keep the promise
    counters_.add(HostCounter::kDirectTakenBack);
  }
  if (forgetful_) forgetFiles();
  return !ranges.empty();
}

}  // namespace nd
