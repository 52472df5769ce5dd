// The shared memory of two processes on a host, with two lock-free queues: one single-producer single-consumer ring for
// each direction.
//
// A ring has cache-line slots and a bulk area. An entry takes 1 to 4 slots. Each slot begins with its sequence number,
// the entry's position plus one, so a small message needs one cache line and no counter. Payload that does not fit goes
// into the bulk area, contiguously, in the order of the entries. The consumer publishes its position from time to time,
// and each side keeps private copies of the other's counters. Data from the other side is read once and checked.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/copy.h"
#include "local/direct_table.h"

namespace nd {

struct LocalRing {
  static constexpr uint32_t kSlots = 1024, kSlotBody = 60;
  static constexpr uint32_t kEntrySlots = 4, kEntryBytes = kEntrySlots * kSlotBody;
  static constexpr uint32_t kBulkUnit = 64, kBulkUnits = 16384, kBulkBytes = kBulkUnits * kBulkUnit;
  struct alignas(64) Slot {
    uint32_t sequence;
    uint8_t body[kSlotBody];
  };
  Slot slots[kSlots];
  uint8_t bulk[kBulkBytes];

  static constexpr uint32_t slotsFor(uint32_t bytes) { return (bytes + kSlotBody - 1) / kSlotBody; }
  static constexpr uint32_t unitsFor(uint32_t bytes) { return (bytes + kBulkUnit - 1) / kBulkUnit; }
  // Returns the start of a payload of `units` at or after `position`. The bulk payload of an entry does not wrap
  // around.
  static constexpr uint32_t bulkStart(uint32_t position, uint32_t units) {
    const uint32_t at = position % kBulkUnits;
    return at + units > kBulkUnits ? position + (kBulkUnits - at) : position;
  }
};
static_assert(sizeof(LocalRing::Slot) == 64, "a slot is a cache line");

// The words that one side publishes to the other. Each line is written by that side, except `asleep`, which the other
// resets.
struct LocalSide {
  alignas(64) uint64_t consumed;                // position in the other's ring: slots, and bulk units in the high half
  alignas(64) uint32_t asleep;                  // 1: raise my event when there is an entry for me in your ring
  uint32_t wantsSpace;                          // 1: also raise it when you have consumed entries
  alignas(64) uint64_t epoch;                   // changes before memory that the other may be reading is freed
  uint32_t direct;                              // 1: this side publishes its keys (direct_table.h)
  alignas(64) DirectAccessRecord remoteAccess;  // this side's access to the other's memory
};

struct LocalSegment {
  static constexpr uint32_t kMagic = 0x4E444C31, kOffered = 0, kAccepted = 1, kWithdrawn = 2;
  uint32_t magic;
  uint32_t state;
  LocalSide sides[2];
  LocalRing rings[2];  // indexed by the producing side
};

inline uint64_t packConsumed(uint32_t slots, uint32_t units) { return uint64_t(units) << 32 | slots; }

class LocalProducer {
 public:
  void attach(LocalRing* ring, const uint64_t* consumed) {
    ring_ = ring;
    consumed_ = consumed;
    position_ = bulk_ = freeSlots_ = freeUnits_ = 0;
  }
  // Returns whether there is room for an entry of this many slots and bulk units (at most half of the area). Also false
  // if the peer's counter is invalid.
  bool room(uint32_t slots, uint32_t units) { return (fits(slots, units)) || (refresh() && fits(slots, units)); }
  // Returns whether more than half of the slots are in use, according to the consumer's published position.
  bool crowded() { return isHalfTaken() && (!refresh() || isHalfTaken()); }
  // Returns whether everything before `position` has been consumed.
  bool consumed(uint32_t position) { return refresh() && int32_t(freeSlots_ - position) >= 0; }
  bool broken() const { return broken_; }
  uint32_t position() const { return position_; }
  // Prefetches the line of an entry that will be written soon, because a polling consumer holds it.
  void prepare() { fetch(position_); }

  // Returns the address of the next entry's payload in the bulk area, which must have room.
  uint8_t* bulk(uint32_t bytes) {
    const uint32_t units = LocalRing::unitsFor(bytes), start = LocalRing::bulkStart(bulk_, units);
    bulk_ = start + units;
    return ring_->bulk + size_t(start % LocalRing::kBulkUnits) * LocalRing::kBulkUnit;
  }
  // Returns the next slot's body, for a single-slot entry; publish() must follow.
  uint8_t* body() { return slot(position_).body; }
  void publish() {
    __atomic_store_n(&slot(position_).sequence, position_ + 1, __ATOMIC_RELEASE);
    position_++;
    ahead();
  }
  // Writes an entry of any size up to kEntryBytes.
  void write(const uint8_t* bytes, uint32_t length) {
    const uint32_t slots = LocalRing::slotsFor(length);
    for (uint32_t i = slots; i-- > 0;) {  // the first slot's number publishes the entry
      const uint32_t from = i * LocalRing::kSlotBody;
      LocalRing::Slot& s = slot(position_ + i);
      std::memcpy(s.body, bytes + from, std::min(LocalRing::kSlotBody, length - from));
      __atomic_store_n(&s.sequence, position_ + i + 1, __ATOMIC_RELEASE);
    }
    position_ += slots;
    ahead();
  }
  // Writes an entry that consists of a header and payload, together at most as long as for write().
  template <typename Header>
  void write(const Header& header, const uint8_t* payload, uint32_t length) {
    constexpr uint32_t beside = LocalRing::kSlotBody - sizeof header;
    const uint32_t slots = LocalRing::slotsFor(sizeof header + length);
    for (uint32_t i = slots; i-- > 1;) {
      const uint32_t from = beside + (i - 1) * LocalRing::kSlotBody;
      LocalRing::Slot& s = slot(position_ + i);
      copySmall(s.body, payload + from, std::min(LocalRing::kSlotBody, length - from));
      __atomic_store_n(&s.sequence, position_ + i + 1, __ATOMIC_RELEASE);
    }
    LocalRing::Slot& first = slot(position_);
    std::memcpy(first.body, &header, sizeof header);
    copySmall(first.body + sizeof header, payload, std::min(beside, length));
    __atomic_store_n(&first.sequence, position_ + 1, __ATOMIC_RELEASE);
    position_ += slots;
    ahead();
  }

 private:
  // A slot's line is in the consumer's cache. Early prefetching lets several transfers overlap.
  void ahead() {
    fetch(position_ + kAhead);
    fetch(position_ + kAhead + 1);
  }
  void fetch(uint32_t position) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" ::"m"(slot(position)));
#else
    __builtin_prefetch(&slot(position), 1);
#endif
  }
  LocalRing::Slot& slot(uint32_t position) { return ring_->slots[position % LocalRing::kSlots]; }
  bool fits(uint32_t slots, uint32_t units) const {
    if (position_ - freeSlots_ + slots > LocalRing::kSlots) return false;
    return units == 0 || LocalRing::bulkStart(bulk_, units) + units - freeUnits_ <= LocalRing::kBulkUnits;
  }
  bool isHalfTaken() const { return position_ - freeSlots_ > LocalRing::kSlots / 2; }
  bool refresh() {
    const uint64_t now = __atomic_load_n(consumed_, __ATOMIC_ACQUIRE);
    const uint32_t slots = uint32_t(now), units = uint32_t(now >> 32);
    // The consumer's position must advance, but not beyond what was written.
    if (slots - freeSlots_ > position_ - freeSlots_ || units - freeUnits_ > bulk_ - freeUnits_) broken_ = true;
    if (broken_) return false;
    freeSlots_ = slots;
    freeUnits_ = units;
    return true;
  }

  static constexpr uint32_t kAhead = 12;
  LocalRing* ring_ = nullptr;
  const uint64_t* consumed_ = nullptr;
  uint32_t position_ = 0, bulk_ = 0;        // next to write
  uint32_t freeSlots_ = 0, freeUnits_ = 0;  // consumed, as last seen
  bool broken_ = false;
};

class LocalConsumer {
 public:
  void attach(const LocalRing* ring, uint64_t* consumed) {
    ring_ = ring;
    consumed_ = consumed;
    position_ = bulk_ = published_ = publishedBulk_ = 0;
  }
  bool ready() const { return __atomic_load_n(&slot(position_).sequence, __ATOMIC_ACQUIRE) == position_ + 1; }
  // Copies a slot of the next entry. Returns false if it is missing, which is valid only for the first slot.
  bool copy(uint32_t index, uint8_t to[LocalRing::kSlotBody]) const {
    const LocalRing::Slot& s = slot(position_ + index);
    if (__atomic_load_n(&s.sequence, __ATOMIC_ACQUIRE) != position_ + index + 1) return false;
    std::memcpy(to, s.body, LocalRing::kSlotBody);
    return true;
  }
  // Returns a slot of the next entry, which the peer may change at any time, or null if it is missing.
  const LocalRing::Slot* peek(uint32_t index) const {
    const LocalRing::Slot& s = slot(position_ + index);
    return __atomic_load_n(&s.sequence, __ATOMIC_ACQUIRE) == position_ + index + 1 ? &s : nullptr;
  }
  // Prefetches later entries while this one is processed. This is useful only if many arrive together. If they arrive
  // one by one, the producer holds the lines that it will write next.
  void fetch() const {
    __builtin_prefetch(&slot(position_ + kAhead));
    __builtin_prefetch(&slot(position_ + kAhead + 1));
  }
  // Returns the address of the next entry's payload, which may change at any time.
  const uint8_t* bulk(uint32_t bytes) const {
    const uint32_t start = LocalRing::bulkStart(bulk_, LocalRing::unitsFor(bytes));
    return ring_->bulk + size_t(start % LocalRing::kBulkUnits) * LocalRing::kBulkUnit;
  }
  void take(uint32_t slots, uint32_t bulkBytes) {
    position_ += slots;
    if (bulkBytes) {
      const uint32_t units = LocalRing::unitsFor(bulkBytes);
      bulk_ = LocalRing::bulkStart(bulk_, units) + units;
    }
  }
  // Publishes consumed room to the producer. Returns false if there is none.
  bool publish() {
    if (published_ == position_) return false;
    published_ = position_;
    publishedBulk_ = bulk_;
    __atomic_store_n(consumed_, packConsumed(position_, bulk_), __ATOMIC_RELEASE);
    return true;
  }
  uint32_t unpublished() const { return position_ - published_; }
  // Returns whether enough was consumed to notify the producer: a quarter of the slots, or an eighth of the bulk area.
  bool publishDue() const {
    return unpublished() >= LocalRing::kSlots / 4 || bulk_ - publishedBulk_ >= LocalRing::kBulkUnits / 8;
  }

 private:
  static constexpr uint32_t kAhead = 4;
  const LocalRing::Slot& slot(uint32_t position) const { return ring_->slots[position % LocalRing::kSlots]; }
  const LocalRing* ring_ = nullptr;
  uint64_t* consumed_ = nullptr;
  uint32_t position_ = 0, bulk_ = 0, published_ = 0, publishedBulk_ = 0;
};

}  // namespace nd
