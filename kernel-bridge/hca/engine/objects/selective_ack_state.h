// Loss records of the two sides of a connection with selective recovery (extensions::kRecovery). They are allocated on
// the first loss.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/copy.h"
#include "base/packet_headers.h"

namespace nd {

// A range of PSNs, first to last inclusive.
struct PsnRange {
  uint32_t first, last;
};

// One bit for each PSN of a window. The window's size is a power of two of at least 64.
class PsnBits {
 public:
  uint32_t size() const { return static_cast<uint32_t>(words_.size()) * 64; }
  void resize(uint32_t psns) { words_.assign(psns / 64, 0); }
  void put(uint32_t psn, bool on) {
    uint64_t& word = words_[at(psn) / 64];
    const uint64_t bit = 1ull << (psn % 64);
    word = on ? word | bit : word & ~bit;
  }
  // Returns the distance from `psn` to the first bit that equals `on`, at most `most`.
  uint32_t next(uint32_t psn, bool on, uint32_t most) const {
    for (uint32_t n = 0; n < most;) {
      const uint32_t i = at(psn + n);
      const uint64_t word = (on ? words_[i / 64] : ~words_[i / 64]) >> (i % 64);
      if (word != 0) return std::min(most, n + static_cast<uint32_t>(__builtin_ctzll(word)));
      n += 64 - i % 64;
    }
    return most;
  }

 private:
  uint32_t at(uint32_t psn) const { return psn & (size() - 1); }
  std::vector<uint64_t> words_;
};

// Copies of the packets that the responder keeps behind a gap. They are executed in order, as if they had just arrived.
// This preserves the order of memory changes, on which programs that poll memory rely.
class KeptPackets {
 public:
  static constexpr uint32_t kMostAhead = 1u << 16;  // PSNs

  // `total`: bytes kept by all connections.
  explicit KeptPackets(uint64_t* total) : total_(total) {}
  KeptPackets(const KeptPackets&) = delete;
  KeptPackets& operator=(const KeptPackets&) = delete;
  ~KeptPackets() { *total_ -= bytes_; }

  uint32_t count() const { return count_; }
  // Includes the table, which a single packet far ahead can make large.
  uint64_t bytes() const { return bytes_; }
  // Returns how many bytes one more packet would add, this far ahead of the expected one.
  uint64_t costOf(uint32_t ahead, uint32_t length) const {
    return length + kEachBytes + (ahead < capacity() ? 0 : uint64_t(sizeFor(ahead) - capacity()) * kSlotBytes);
  }
  bool has(uint32_t psn) const { return capacity() != 0 && at(psn).bytes && at(psn).psn == psn; }
  // Keeps a packet that is not kept yet and less than kMostAhead after `expected`.
  void put(uint32_t expected, uint32_t psn, const uint8_t* bth, uint32_t length) {
    advance(expected);
    const uint32_t ahead = static_cast<uint32_t>(wire::psnDiff(psn, expected));
    add(costOf(ahead, length));
    if (ahead >= capacity()) grow(sizeFor(ahead));
    Slot& slot = at(psn);
    slot.bytes.reset(new uint8_t[length]);
    copyBytes(slot.bytes.get(), bth, length);
    slot.length = length;
    slot.psn = psn;
    there_.put(psn, true);
    count_++;
  }
  // Returns the expected packet, or null.
  std::unique_ptr<uint8_t[]> take(uint32_t expected, uint32_t* length) {
    advance(expected);
    if (!has(expected)) return nullptr;
    Slot& slot = at(expected);
    *length = slot.length;
    std::unique_ptr<uint8_t[]> bytes = std::move(slot.bytes);
    remove(&slot);
    return bytes;
  }
  // Stores the kept ranges from `expected` on, in order, at most `most` of them.
  uint32_t ranges(uint32_t expected, PsnRange* out, uint32_t most) {
    advance(expected);
    uint32_t n = 0;
    for (uint32_t from = 0; n < most && from < capacity(); n++) {
      const uint32_t first = from + there_.next(expected + from, true, capacity() - from);
      if (first >= capacity()) break;
      from = first + there_.next(expected + first, false, capacity() - first);
      out[n] = {wire::psnAdd(expected, first), wire::psnAdd(expected, from - 1)};
    }
    return n;
  }
  uint32_t sinceReport = 0;

 private:
  struct Slot {
    uint32_t psn = 0, length = 0;
    std::unique_ptr<uint8_t[]> bytes;
  };
  static constexpr uint32_t kLeastSlots = 64, kSlotBytes = sizeof(Slot),
                            kEachBytes = 16;  // heap overhead of each packet
  static uint32_t sizeFor(uint32_t ahead) {
    uint32_t size = kLeastSlots;
    while (size <= ahead) size *= 2;
    return size;
  }
  uint32_t capacity() const { return static_cast<uint32_t>(slots_.size()); }
  Slot& at(uint32_t psn) { return slots_[psn & (capacity() - 1)]; }
  const Slot& at(uint32_t psn) const { return slots_[psn & (capacity() - 1)]; }
  void add(uint64_t bytes) {
    bytes_ += bytes;
    *total_ += bytes;
  }
  void remove(Slot* slot) {
    slot->bytes.reset();
    there_.put(slot->psn, false);
    count_--;
    add(-(uint64_t(slot->length) + kEachBytes));
  }
  // Drops packets of the peer whose PSNs an earlier request also uses.
  void advance(uint32_t expected) {
    const uint32_t passed = std::min((expected - base_) & wire::kPsnMask, capacity());
    for (uint32_t n = 0; count_ != 0 && n < passed; n++) {
      n += there_.next(base_ + n, true, passed - n);
      if (n < passed) remove(&at(base_ + n));
    }
    base_ = expected;
  }
  void grow(uint32_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    there_.resize(size);
    for (Slot& slot : old) {
      if (!slot.bytes) continue;
      there_.put(slot.psn, true);
      at(slot.psn) = std::move(slot);
    }
  }

  uint64_t* const total_;
  std::vector<Slot> slots_;
  PsnBits there_;
  uint32_t base_ = 0;  // `expected` at the last call
  uint32_t count_ = 0;
  uint64_t bytes_ = 0;
};

// Losses before `end` have already reduced the window.
struct LossMark {
  bool known = false;
  uint32_t end = 0;
};

// What the requester knows of the packets at the peer. For each PSN in flight it records whether the peer keeps it, or
// that it was retransmitted when the newest PSN had the noted value.
class Scoreboard {
 public:
  // Number of later packets that may overtake one that is not lost (DupThresh of RFC 6675).
  static constexpr uint32_t kReordering = 3;

  uint32_t kept = 0;      // PSNs
  uint32_t highest = 0;   // one past the highest PSN that the peer keeps
  uint32_t end = 0;       // one past the last PSN that it records
  uint32_t examined = 0;  // every PSN before this is kept, or known to be lost
  uint32_t probeEnd = 0;  // a probe was sent for packets before this
  LossMark reduced;
  uint32_t oldestAgain = 0;   // number of retransmissions of the oldest packet
  std::deque<uint32_t> lost;  // to be retransmitted
  struct Again {
    uint32_t psn, newest;
  };
  std::deque<Again> again;  // retransmitted, in that order

  bool isKept(uint32_t psn) const { return noted(psn) == kKept; }
  // Marks the PSNs from first to last as kept. Returns how many were not marked before.
  uint32_t keep(uint32_t una, uint32_t first, uint32_t last) {
    place(una, last);
    const uint32_t before = kept, count = ((last - first) & wire::kPsnMask) + 1;
    for (uint32_t n = keptBits_.next(first, false, count); n < count; n += keptBits_.next(first + n, false, count - n))
      mark(wire::psnAdd(first, n), kKept);
    return kept - before;
  }
  void sentAgain(uint32_t una, uint32_t psn, uint32_t newest) {
    place(una, psn);
    mark(psn, kSent | newest);
    again.push_back({psn, newest});
  }
  bool wasSentAgain(const Again& a) const { return noted(a.psn) == (kSent | a.newest); }
  // Records that the PSN has been acknowledged. Returns whether the peer had reported it as kept.
  bool forget(uint32_t psn) {
    if (!covers(psn)) return false;
    const bool was = isKept(psn);
    mark(psn, 0);
    return was;
  }
  void clear() {
    marks_.clear();
    lost.clear();
    again.clear();
    kept = oldestAgain = 0;
  }

 private:
  static constexpr uint32_t kKept = 0xFFFFFFFF, kSent = 0x80000000;
  // Later PSNs reuse the slots of earlier ones.
  bool covers(uint32_t psn) const { return !marks_.empty() && wire::psnDiff(psn, top_) < 0; }
  uint32_t noted(uint32_t psn) const { return covers(psn) ? marks_[psn & (marks_.size() - 1)] : 0; }
  // Only for a PSN that has a slot.
  void mark(uint32_t psn, uint32_t as) {
    uint32_t& now = marks_[psn & (marks_.size() - 1)];
    kept += (as == kKept) - (now == kKept);
    now = as;
    keptBits_.put(psn, as == kKept);
  }
  void place(uint32_t una, uint32_t psn) {
    const uint32_t ahead = static_cast<uint32_t>(wire::psnDiff(psn, una));
    const bool first = marks_.empty();
    if (ahead >= marks_.size()) {
      uint32_t size = 256;
      while (size <= ahead) size *= 2;
      std::vector<uint32_t> old(size);
      old.swap(marks_);
      keptBits_.resize(size);
      for (uint32_t i = 0; i < old.size(); i++) {
        const uint32_t from = wire::psnAdd(una, i), was = old[from & (old.size() - 1)];
        marks_[from & (size - 1)] = was;
        keptBits_.put(from, was == kKept);
      }
    }
    if (first || wire::psnDiff(psn, top_) >= 0) top_ = wire::psnAdd(psn, 1);
  }
  std::vector<uint32_t> marks_;  // indexed by PSN; the size is a power of two
  PsnBits keptBits_;             // which PSNs are marked as kept
  uint32_t top_ = 0;             // one past the highest PSN noted
};

// What the requester knows of the responses to its READs and ATOMICs from the first missing one on: copies of later
// ones that have arrived, and the re-requests.
class ResponseScoreboard {
 public:
  static constexpr size_t kMostReRequests = 1024;  // outstanding re-requests; the peer accepts no more

  // A re-request of PSNs from `first` on, made when `newest` was the next new PSN. `position` is the number of
  // re-requests before it.
  struct ReRequest {
    uint32_t first, count, newest, position;
    bool has(uint32_t psn) const { return ((psn - first) & wire::kPsnMask) < count; }
    uint32_t end() const { return position + count; }
  };

  // `total`: bytes kept by all connections.
  ResponseScoreboard(uint64_t* total, uint32_t una)
      : kept(total), executed(una), highest(una), examined(una), end(una) {}

  KeptPackets kept;
  uint32_t executed;                 // the end of what the peer has certainly executed
  uint32_t highest;                  // one past the highest PSN whose first response has arrived
  uint32_t examined;                 // every PSN before this is kept, was re-requested, or will be
  uint32_t end;                      // one past the last PSN that it records
  std::deque<PsnRange> lost;         // to be re-requested
  std::deque<ReRequest> reRequests;  // outstanding, oldest first
  uint32_t position = 0;
  bool probing = false;  // a probe has the position `probePosition`, for requests before `probeEnd`
  uint32_t probePosition = 0, probeEnd = 0;
  bool delivering = false;  // the packet that the queue pair is processing was kept
  LossMark reduced;

  void extend(uint32_t psn) {
    if (wire::psnDiff(psn, end) > 0) end = psn;
  }
  void reRequest(uint32_t psn, uint32_t count, uint32_t newest) {
    reRequests.push_back({psn, count, newest, position});
    position += count;
    extend(wire::psnAdd(psn, count));
  }
  // Returns the newest re-request for a PSN, skipping the first `passed` of them, or null if there is none.
  const ReRequest* reRequestFor(uint32_t psn, size_t passed = 0) const {
    for (size_t i = reRequests.size(); i > passed; i--)
      if (reRequests[i - 1].has(psn)) return &reRequests[i - 1];
    return nullptr;
  }
  // Called when everything from this PSN on is retransmitted.
  void forget(uint32_t from) {
    while (!reRequests.empty() && wire::psnDiff(reRequests.back().first, from) >= 0) reRequests.pop_back();
    while (!lost.empty() && wire::psnDiff(lost.back().first, from) >= 0) lost.pop_back();
  }
  void lose(uint32_t psn) {
    if (!lost.empty() && wire::psnAdd(lost.back().last, 1) == psn) lost.back().last = psn;
    else lost.push_back({psn, psn});
  }
};

}  // namespace nd
