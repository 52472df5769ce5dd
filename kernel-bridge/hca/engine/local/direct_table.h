// The table of memory keys and queue pairs that an HCA publishes for direct access. Peers on this host can read the
// table, but only the HCA can write it. A peer performs the responder's checks against the table, and then the access
// itself (direct_peer.h) in allocate() memory that it has mapped.
//
// Only its owner publishes and withdraws a record. A record's sequence number is odd while the record changes, and
// readers check it before and after.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

struct DirectKey {
  alignas(64) uint32_t sequence;
  uint32_t key;     // 0: none
  uint32_t access;  // remote access bits of WV_ACCESS_*, and views
  uint32_t pd;
  uint32_t qpn;   // for a window: the queue pair to which it is bound; 0: any of the PD
  uint32_t file;  // the allocate() memory that contains it (SharedRange::id)
  uint64_t address, length;
  uint64_t shift;  // address + shift is the owner's own address; 0 unless zero-based
};

struct DirectQp {
  alignas(32) uint32_t sequence;
  uint32_t qpn;   // 0: accepts no requests
  uint32_t peer;  // QPN of the connected queue pair
  uint32_t access;
  uint32_t pd;
  uint32_t pkey;
};

struct DirectTable {
  static constexpr uint32_t kMagic = 0x4E444B31;
  // A key is stored in the slot given by the low bits of its index, or in one of the next slots. If all of these are
  // taken, the key is not published.
  static constexpr uint32_t kKeys = 1u << 14, kPlaces = 8, kQps = 1u << 16;
  static constexpr uint32_t placeOf(uint32_t key, uint32_t n) { return ((key >> 8) + n) % kKeys; }
  alignas(64) uint32_t magic;
  DirectKey keys[kKeys];
  DirectQp qps[kQps];  // indexed by the low bits of the QPN
};

// The words of a record. Earlier accesses are not reordered after a store, nor later ones before a load, so the
// sequence number covers all of them.
template <typename Word>
Word directLoad(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}
template <typename Word>
void directStore(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

// Changes a record between two sequence numbers.
template <typename Record, typename Change>
void directChange(Record& record, Change change) {
  const uint32_t before = directLoad(record.sequence);
  directStore(record.sequence, before + 1);
  change(record);
  directStore(record.sequence, before + 2);
}

// Reads a record. Returns false if it is being changed.
template <typename Record, typename Read>
bool directRead(const Record& record, Read read) {
  const uint32_t before = directLoad(record.sequence);
  if ((before & 1) != 0) return false;
  read(record);
  return directLoad(record.sequence) == before;
}

// The in-use flag announces that one side accesses the other's memory. It consists of the file in the low half, a
// state, and an access count, so that no two accesses have the same value. The accessing side writes it; the owner only
// changes it from kInside to kEvicted, after it has waited long enough.
struct DirectInUse {
  static constexpr uint64_t kInside = 1ull << 32, kEvicted = 1ull << 33, kNextAccess = 1ull << 34;
  static uint32_t file(uint64_t inUse) { return static_cast<uint32_t>(inUse); }
  static bool inside(uint64_t inUse) { return (inUse & (kInside | kEvicted)) == kInside; }

  // For the accessing side: from now on the owner waits, and earlier withdrawals are visible. The exchange is the fence
  // between setting the flag and reading the table. The owner has a fence between changing the table and reading the
  // flag.
  static uint64_t enter(uint64_t* inUse, uint64_t last, uint32_t file) {
    const uint64_t now = ((last & ~(kNextAccess - 1)) + kNextAccess) | kInside | file;
    __atomic_exchange_n(inUse, now, __ATOMIC_SEQ_CST);
    return now;
  }
  // For the accessing side. Returns false if the owner has withdrawn the pages, so that the access does not count.
  static bool leave(uint64_t* inUse, uint64_t entered) {
    uint64_t expected = entered;
    if (__atomic_compare_exchange_n(inUse, &expected, entered & ~kInside, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return true;
    __atomic_store_n(inUse, entered & ~kInside, __ATOMIC_RELEASE);
    return false;
  }
  static uint64_t load(const uint64_t* inUse) { return __atomic_load_n(inUse, __ATOMIC_ACQUIRE); }
  // For the owner. Returns false if the accessing side has left by itself.
  static bool evict(uint64_t* inUse, uint64_t seen) {
    return __atomic_compare_exchange_n(inUse, &seen, seen | kEvicted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
};

// One side's record of its access in the pair's segment: the in-use flag, and the location. The other words describe
// the access that the flag counts. They are written before it begins, and after the previous one has ended.
struct DirectAccessRecord {
  static constexpr uint32_t kMostBytes =
      64u << 10;  // of one access: the owner may have to wait for it, or to move these pages
  uint64_t inUse;
  uint64_t address;  // in the owner's address space
  uint32_t bytes;
  uint32_t key, qpn;  // through which it entered; the owner's QPN

  struct Seen {
    uint64_t inUse, address;
    uint32_t bytes, key, qpn;
    uint32_t file() const { return DirectInUse::file(inUse); }
  };
  // For the accessing side, before DirectInUse::enter().
  void announce(uint64_t at, uint32_t length, uint32_t by, uint32_t queuePair) {
    directStore(address, at);
    directStore(bytes, length);
    directStore(key, by);
    directStore(qpn, queuePair);
  }
  // For the owner. Returns false if the peer is not inside, or has just ended the access that was read.
  bool read(Seen* seen) const {
    seen->inUse = DirectInUse::load(&inUse);
    if (!DirectInUse::inside(seen->inUse)) return false;
    seen->address = directLoad(address);
    seen->bytes = directLoad(bytes);
    seen->key = directLoad(key);
    seen->qpn = directLoad(qpn);
    return DirectInUse::load(&inUse) == seen->inUse;
  }
};

}  // namespace nd
