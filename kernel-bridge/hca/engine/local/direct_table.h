// The table that an HCA publishes for direct access. It has the keys of the HCA's memory, and its queue pairs. Peers of
// this host can read it, and only the HCA can write it. A peer makes the responder's checks by the table, and then the
// access itself (direct_peer.h) in memory of allocate(), which it maps.
//
// A record is published and withdrawn by its owner alone. Its sequence is odd while it changes; readers look at it
// before and after.
#pragma once
#include <atomic>
#include <cstdint>

namespace nd {

struct DirectKey {
  alignas(64) uint32_t sequence;
  uint32_t key;     // 0: none
  uint32_t access;  // WV_ACCESS_* of remote operations and of views
  uint32_t pd;
  uint32_t qpn;   // of a window: the queue pair that it is bound to; 0: any of the PD
  uint32_t file;  // the memory of allocate() that it lies in (SharedRange::id)
  uint64_t address, length;
  uint64_t shift;  // address + shift is the owner's own address; 0 unless zero based
};

struct DirectQp {
  alignas(32) uint32_t sequence;
  uint32_t qpn;   // 0: takes no requests
  uint32_t peer;  // the other end's QPN
  uint32_t access;
  uint32_t pd;
  uint32_t pkey;
};

struct DirectTable {
  static constexpr uint32_t kMagic = 0x4E444B31;
  // A key stands at the place that the low bits of its index name, or at one of those that follow; if they are taken,
  // nowhere.
  static constexpr uint32_t kKeys = 1u << 14, kPlaces = 8, kQps = 1u << 16;
  static constexpr uint32_t placeOf(uint32_t key, uint32_t n) { return ((key >> 8) + n) % kKeys; }
  alignas(64) uint32_t magic;
  DirectKey keys[kKeys];
  DirectQp qps[kQps];  // by the low bits of the QPN
};

// The words of a record. What comes before a store, or behind a load, stays there: so the sequence stands around all of
// them.
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

// Reads one. False: it is being changed.
template <typename Record, typename Read>
bool directRead(const Record& record, Read read) {
  const uint32_t before = directLoad(record.sequence);
  if ((before & 1) != 0) return false;
  read(record);
  return directLoad(record.sequence) == before;
}

// The word by which one side says that it is in the other's memory: the file in the low half, a state, and a count of
// visits, so that two of them differ. The visitor writes it; the owner changes it only from kInside to kEvicted, after
// it has waited long enough.
struct DirectMark {
  static constexpr uint64_t kInside = 1ull << 32, kEvicted = 1ull << 33, kVisit = 1ull << 34;
  static uint32_t file(uint64_t mark) { return static_cast<uint32_t>(mark); }
  static bool inside(uint64_t mark) { return (mark & (kInside | kEvicted)) == kInside; }

  // Visitor: from now on the owner waits, and what it has withdrawn before is seen as withdrawn. The exchange is the
  // fence between the mark and the look at the table; the owner has one between the table and the mark.
  static uint64_t enter(uint64_t* mark, uint64_t last, uint32_t file) {
    const uint64_t now = ((last & ~(kVisit - 1)) + kVisit) | kInside | file;
    __atomic_exchange_n(mark, now, __ATOMIC_SEQ_CST);
    return now;
  }
  // Visitor: false: the owner has taken the pages away, and what was done in them does not count.
  static bool leave(uint64_t* mark, uint64_t entered) {
    uint64_t expected = entered;
    if (__atomic_compare_exchange_n(mark, &expected, entered & ~kInside, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return true;
    __atomic_store_n(mark, entered & ~kInside, __ATOMIC_RELEASE);
    return false;
  }
  static uint64_t look(const uint64_t* mark) { return __atomic_load_n(mark, __ATOMIC_ACQUIRE); }
  // Owner: false: the visitor has left by itself.
  static bool evict(uint64_t* mark, uint64_t seen) {
    return __atomic_compare_exchange_n(mark, &seen, seen | kEvicted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
};

// What a side writes about itself in the pair's segment: the mark, and where it is. The words beside the mark are those
// of the visit that the mark counts: they are written before it begins, and after the one before has ended.
struct DirectVisit {
  static constexpr uint32_t kMostBytes =
      64u << 10;  // of a visit: the owner may have to wait for it, or to move these pages
  uint64_t mark;
  uint64_t address;  // the owner's own
  uint32_t bytes;
  uint32_t key, qpn;  // by which it entered; the owner's QPN

  struct Seen {
    uint64_t mark, address;
    uint32_t bytes, key, qpn;
    uint32_t file() const { return DirectMark::file(mark); }
  };
  // Visitor, before DirectMark::enter().
  void announce(uint64_t at, uint32_t length, uint32_t by, uint32_t queuePair) {
    directStore(address, at);
    directStore(bytes, length);
    directStore(key, by);
    directStore(qpn, queuePair);
  }
  // Owner. False: the visitor is not inside, or was at another visit a moment ago: that one has ended.
  bool look(Seen* seen) const {
    seen->mark = DirectMark::look(&mark);
    if (!DirectMark::inside(seen->mark)) return false;
    seen->address = directLoad(address);
    seen->bytes = directLoad(bytes);
    seen->key = directLoad(key);
    seen->qpn = directLoad(qpn);
    return DirectMark::look(&mark) == seen->mark;
  }
};

}  // namespace nd
