// The owner's side of direct access: it publishes a table, and ends peers' access to its memory.
//
// Guarantee: once a key or queue pair has been withdrawn and settle() has returned true, no peer writes through it any
// more, and no READ through it succeeds. A peer first announces that it is inside, and where, and then reads the table.
// The owner first withdraws a record, and then reads the announcements (direct_table.h). settle() never waits. It
// evicts a peer that is inside through a withdrawn record, which voids the access and makes the few pages involved
// private to the owner. A caller that can wait therefore first does so, without the lock, while occupied() reports a
// peer inside.
//
// Each HCA, rather than each process, has one DirectOwner. All functions require the engine's lock.
#pragma once
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/host_counters.h"
#include "local/direct_table.h"
#include "platform/mapping.h"
#include "platform/os.h"
#include "platform/shared_memory.h"

namespace nd {

class LocalPair;

// A withdrawn record through which no peer may be inside any more.
struct DirectWithdrawn {
  uint32_t number;  // a key, or
  bool isQp;        // a QPN
};

class DirectOwner {
 public:
  static constexpr uint64_t kEvictionTimeoutNs =
      50'000'000;  // the wait for a peer inside; copying a piece takes a few microseconds
  // How often settle() checks another peer that accesses an evicted peer's file. An atomic operation has finished by
  // then.
  static constexpr uint32_t kChecks = 1024;

  explicit DirectOwner(HostCounters& counters) : counters_(counters) {}
  DirectOwner(const DirectOwner&) = delete;
  DirectOwner& operator=(const DirectOwner&) = delete;

  // Maximum wait for a peer inside, in nanoseconds; tests change it.
  uint64_t evictionTimeoutNs() const { return evictionTimeoutNs_; }
  void setEvictionTimeoutNs(uint64_t ns) { evictionTimeoutNs_ = ns; }

  // Returns false if the OS does not support publishing.
  bool create();
  bool created() const { return table() != nullptr; }
  // Returns the descriptor to be passed to peers.
  Descriptor fd() const { return fd_.get(); }

  // Returns the content of a record; see DirectKey.
  struct Key {
    uint32_t key, access, pd, qpn;
    uint64_t address, length, shift;
  };
  // Returns the index of the record, for its withdrawal. Returns 0 if the key was not published, because the memory is
  // not from allocate() (`range`), the table is full, another HCA has published the memory, or it has been reclaimed.
  uint32_t publish(const Key& key, const SharedRange* range);
  void withdraw(uint32_t key, uint32_t place);
  struct Qp {
    uint32_t qpn, peer, access, pd, pkey;
  };
  void publish(const Qp& qp);
  bool says(const Qp& qp) const;  // returns whether exactly this is published
  void withdrawQp(uint32_t qpn);

  using Withdrawn = DirectWithdrawn;
  // Returns the withdrawals since the last settle(), which does not check them unless they are passed back.
  std::vector<Withdrawn> takeWithdrawn() { return std::exchange(withdrawn_, {}); }
  void giveBack(const std::vector<Withdrawn>& withdrawn) {
    withdrawn_.insert(withdrawn_.end(), withdrawn.begin(), withdrawn.end());
  }
  // Counts a wait for peers that are inside through withdrawn records.
  void countWait() { counters_.add(HostCounter::kDirectWaits); }
  bool occupied(LocalPair* const* pairs, size_t count, const std::vector<Withdrawn>& withdrawn) const;
  enum class Settled : uint8_t { kQuiet, kReclaimed, kNoMemory };
  // Ends peers' access through withdrawn records. kReclaimed: some memory is private to the owner from now on, and
  // peers must be notified. kNoMemory: pages of an evicted peer could not be moved; each later settle() tries again.
  Settled settle(LocalPair* const* pairs, size_t count);
  // Returns whether an evicted peer may still write to this memory.
  bool unsafe(const SharedRange& range) const;
  // Returns the memory of this file while keys of it are published, or null. `writable`: peers may write to some of it.
  const SharedRange* rangeOf(uint32_t file, bool* writable) const;

 private:
  struct File {
    std::shared_ptr<const SharedRange> range;
    uint32_t keys, writable;
  };
  // Pages of evicted peers that could not be moved. The memory stays allocated until they can be, or until these
  // processes have ended.
  struct Unmoved {
    std::shared_ptr<const SharedRange> range;
    std::vector<SharedRange::Part> parts;
    std::vector<ProcessId> peers;
  };
  DirectTable* table() const { return static_cast<DirectTable*>(pages_.get()); }
  bool hold(const SharedRange& range, uint32_t access);
  void release(uint32_t file, uint32_t access);
  void forgetFiles(LocalPair* const* pairs, size_t count);
  void withdrawFile(uint32_t file);
  bool evict(LocalPair& pair, const DirectAccessRecord::Seen& seen);
  void reclaim(LocalPair* const* pairs, size_t count, Unmoved all, uint32_t file);
  void moveUnmoved();

  HostCounters& counters_;
  uint64_t evictionTimeoutNs_ = kEvictionTimeoutNs;
  Mapping pages_;
  UniqueFd fd_;
  std::unordered_map<uint32_t, File> files_;
  std::vector<Withdrawn> withdrawn_;
  std::vector<Unmoved> unmoved_;
  bool forgetful_ = false;  // some of them have no keys any more
};

}  // namespace nd
