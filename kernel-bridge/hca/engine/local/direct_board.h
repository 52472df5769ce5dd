// The owner's side of direct access: its published table, and the wait for peers that are in its memory.
//
// The promise: when a key or a queue pair was withdrawn and settle() has returned, no peer writes by it any more, and no READ by it
// succeeds. A peer marks that it is inside, then looks at the table; the owner withdraws, then looks at the marks (direct_table.h). It
// waits for a peer inside, which copies in small pieces. One that does not leave in time is stopped: the owner takes the pages away from
// it, and what the peer does in them does not count. Memory of other kinds is only read, so it stays where it is.
//
// Of an HCA, not of a process. All functions require the engine's lock.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/host_counters.h"
#include "local/direct_table.h"
#include "platform/mapping.h"
#include "platform/os.h"
#include "platform/shared_memory.h"

namespace nd {

class LocalPair;

class DirectBoard {
 public:
  static constexpr uint64_t kPatienceNs = 50'000'000;  // for a peer inside; a piece is copied in some microseconds

  explicit DirectBoard(HostCounters& counters) : counters_(counters) {}
  DirectBoard(const DirectBoard&) = delete;
  DirectBoard& operator=(const DirectBoard&) = delete;

  // For tests: how long to wait for a peer inside.
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
  // The place of the record, to withdraw it; 0: not published, because there is no room, another HCA has published this memory, or it was
  // taken back. `range`, the memory of allocate() that it lies in, outlives the record; null: other memory, which peers may only read.
  uint32_t publish(const Key& key, const SharedRange* range);
  void withdraw(uint32_t key, uint32_t place);
  struct Qp {
    uint32_t qpn, peer, access, pd, pkey;
  };
  void publish(const Qp& qp);
  bool says(const Qp& qp) const;  // whether exactly this is published
  void withdrawQp(uint32_t qpn);

  // After withdrawing: waits until no peer of these pairs is inside on account of what was withdrawn. True: memory was taken back.
  bool settle(LocalPair* const* pairs, size_t count);
  // The memory of this file as long as keys of it are published, or null; `writable`: peers may write to some of it.
  const SharedRange* rangeOf(uint32_t file, bool* writable) const;

 private:
  struct File {
    const SharedRange* range;
    uint32_t keys, writable;
  };
  DirectTable* table() const { return static_cast<DirectTable*>(pages_.get()); }
  bool hold(const SharedRange& range, uint32_t access);
  void release(uint32_t file, uint32_t access);
  void forgetFiles();
  void withdrawFile(uint32_t file);
  // Waits for those inside; with `only`, for those in one of these files. Returns the files from which some were evicted.
  std::vector<uint32_t> waitForPeers(LocalPair* const* pairs, size_t count, const std::vector<uint32_t>* only);

  HostCounters& counters_;
  uint64_t patience_ = kPatienceNs;
  Mapping pages_;
  UniqueFd fd_;
  std::unordered_map<uint32_t, File> files_;
  bool forgetful_ = false;  // some of them have no keys any more
};

}  // namespace nd
