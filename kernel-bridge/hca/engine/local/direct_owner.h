// The owner's side of direct access: its published table, and the end of what peers may do in its memory.
//
// The promise: when a key or a queue pair was withdrawn and settle() has returned true, no peer writes by it any more,
// and no READ by it succeeds. A peer marks that it is inside, and where, then looks at the table; the owner withdraws,
// then looks at the marks (direct_table.h). settle() waits for nobody: whoever is inside by what was withdrawn is
// evicted. What it does there does not count, and the few pages that it is at become the owner's own. So whoever can
// wait does so before, without the lock, as long as occupied() says that somebody is inside.
//
// Of an HCA, not of a process. All functions require the engine's lock.
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

// What was withdrawn, and by which nobody may be inside any more.
struct DirectWithdrawn {
  uint32_t number;  // a key, or
  bool isQp;        // a QPN
};

class DirectOwner {
 public:
  static constexpr uint64_t kPatienceNs = 50'000'000;  // for a peer inside; a piece is copied in some microseconds
  // How often settle() looks at another peer that is at an evicted one's file: an atomic is over by then.
  static constexpr uint32_t kLooks = 1024;

  explicit DirectOwner(HostCounters& counters) : counters_(counters) {}
  DirectOwner(const DirectOwner&) = delete;
  DirectOwner& operator=(const DirectOwner&) = delete;

  // How long to wait for a peer inside; tests change it.
  uint64_t patience() const { return patience_; }
  void setPatience(uint64_t ns) { patience_ = ns; }

  // False: the system cannot publish.
  bool create();
  bool created() const { return table() != nullptr; }
  // For the peers.
  Descriptor fd() const { return fd_.get(); }

  // What a record says; DirectKey.
  struct Key {
    uint32_t key, access, pd, qpn;
    uint64_t address, length, shift;
  };
  // The place of the record, to withdraw it; 0: not published, because it is not in memory of allocate() (`range`),
  // there is no room, another HCA has published this memory, or it was taken back.
  uint32_t publish(const Key& key, const SharedRange* range);
  void withdraw(uint32_t key, uint32_t place);
  struct Qp {
    uint32_t qpn, peer, access, pd, pkey;
  };
  void publish(const Qp& qp);
  bool says(const Qp& qp) const;  // whether exactly this is published
  void withdrawQp(uint32_t qpn);

  using Withdrawn = DirectWithdrawn;
  // Since the last settle(), which does not look at it unless it is given back.
  std::vector<Withdrawn> takeWithdrawn() { return std::exchange(withdrawn_, {}); }
  void giveBack(const std::vector<Withdrawn>& withdrawn) {
    withdrawn_.insert(withdrawn_.end(), withdrawn.begin(), withdrawn.end());
  }
  // Whether a peer of these pairs is inside by some of it.
  void countWait() { counters_.add(HostCounter::kDirectWaits); }
  bool occupied(LocalPair* const* pairs, size_t count, const std::vector<Withdrawn>& withdrawn) const;
  enum class Settled : uint8_t { kQuiet, kTakenBack, kNoMemory };
  // Ends what peers do by what was withdrawn. kTakenBack: they are to know that some memory is the owner's alone from
  // now on. kNoMemory: pages of an evicted peer could not be moved; each later settle() tries again.
  Settled settle(LocalPair* const* pairs, size_t count);
  // Whether an evicted peer may still write to this memory.
  bool unsafe(const SharedRange& range) const;
  // The memory of this file as long as keys of it are published, or null; `writable`: peers may write to some of it.
  const SharedRange* rangeOf(uint32_t file, bool* writable) const;

 private:
  struct File {
    std::shared_ptr<const SharedRange> range;
    uint32_t keys, writable;
  };
  // Of peers that were evicted and whose pages could not be moved: the memory stays until they can be, or these
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
  bool evict(LocalPair& pair, const DirectVisit::Seen& seen);
  void takeBack(LocalPair* const* pairs, size_t count, Unmoved all, uint32_t file);
  void moveUnmoved();

  HostCounters& counters_;
  uint64_t patience_ = kPatienceNs;
  Mapping pages_;
  UniqueFd fd_;
  std::unordered_map<uint32_t, File> files_;
  std::vector<Withdrawn> withdrawn_;
  std::vector<Unmoved> unmoved_;
  bool forgetful_ = false;  // some of them have no keys any more
};

}  // namespace nd
