// What both ends of a connection remember about losses, where both recover selectively (extensions::kRecovery). Its memory comes with
// the first loss.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/wire.h"

namespace nd {

// A range of PSNs: from the first to the last.
struct PsnRange {
  uint32_t first, last;
};

// The responder's packets behind a gap, in copies: they are executed in order, as if they came then. That keeps the order in which
// memory changes, on which programs rely that poll it.
class KeptPackets {
 public:
  static constexpr uint32_t kMostAhead = 1u << 16;  // PSNs

  // `total`: bytes that all connections keep.
  explicit KeptPackets(uint64_t* total) : total_(total) {}
  KeptPackets(const KeptPackets&) = delete;
  KeptPackets& operator=(const KeptPackets&) = delete;
  ~KeptPackets() { *total_ -= bytes_; }

  uint32_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }
  bool has(uint32_t psn) const { return capacity() != 0 && at(psn).bytes && at(psn).psn == psn; }
  // One that is not there yet, less than kMostAhead after `expected`.
  void put(uint32_t expected, uint32_t psn, const uint8_t* bth, uint32_t length) {
    const uint32_t ahead = static_cast<uint32_t>(wire::psnDiff(psn, expected));
    if (ahead >= capacity()) grow(ahead);
    Slot& slot = at(psn);
    if (slot.bytes) remove(&slot);  // left over from before
    slot.bytes.reset(new uint8_t[length]);
    std::memcpy(slot.bytes.get(), bth, length);
    slot.length = length;
    slot.psn = psn;
    count_++;
    bytes_ += length;
    *total_ += length;
    if (count_ == 1 || wire::psnDiff(psn, highest_) > 0) highest_ = psn;
  }
  // The one with this PSN, or null.
  std::unique_ptr<uint8_t[]> take(uint32_t psn, uint32_t* length) {
    if (!has(psn)) return nullptr;
    Slot& slot = at(psn);
    *length = slot.length;
    std::unique_ptr<uint8_t[]> bytes = std::move(slot.bytes);
    remove(&slot);
    return bytes;
  }
  // What is there from `expected` on, in order, at most so many ranges.
  uint32_t ranges(uint32_t expected, PsnRange* out, uint32_t most) const {
    uint32_t n = 0;
    bool inside = false;
    for (uint32_t psn = expected, left = count_; left != 0 && wire::psnDiff(psn, highest_) <= 0; psn = wire::psnAdd(psn, 1)) {
      if (!has(psn)) {
        inside = false;
        continue;
      }
      left--;
      if (!inside && n == most) break;
      if (!inside) out[n++].first = psn;
      out[n - 1].last = psn;
      inside = true;
    }
    return n;
  }
  uint32_t sinceReport = 0;

 private:
  struct Slot {
    uint32_t psn = 0, length = 0;
    std::unique_ptr<uint8_t[]> bytes;
  };
  uint32_t capacity() const { return static_cast<uint32_t>(slots_.size()); }
  Slot& at(uint32_t psn) { return slots_[psn & (capacity() - 1)]; }
  const Slot& at(uint32_t psn) const { return slots_[psn & (capacity() - 1)]; }
  void remove(Slot* slot) {
    slot->bytes.reset();
    count_--;
    bytes_ -= slot->length;
    *total_ -= slot->length;
  }
  void grow(uint32_t ahead) {
    uint32_t size = 256;
    while (size <= ahead) size *= 2;
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.bytes) at(slot.psn) = std::move(slot);
  }

  uint64_t* const total_;
  std::vector<Slot> slots_;
  uint32_t count_ = 0, highest_ = 0;
  uint64_t bytes_ = 0;
};

// Losses before `end` have made the window smaller.
struct LossMark {
  bool known = false;
  uint32_t end = 0;
};

// The requester's view of what the peer has. Of each PSN under way: whether the peer keeps it, or it was sent again, when the newest
// PSN was the one noted.
class Scoreboard {
 public:
  // So much later packets may overtake one that is not lost (RFC 6675's DupThresh).
  static constexpr uint32_t kReordering = 3;

  uint32_t kept = 0;            // PSNs
  uint32_t highest = 0;         // one past the highest that the peer keeps
  uint32_t end = 0;             // from here on nothing is noted
  uint32_t examined = 0;        // up to here each PSN is kept, or known to be lost
  uint32_t probeEnd = 0;        // a probe asked for what was sent before this
  LossMark reduced;
  uint32_t oldestAgain = 0;     // how often the oldest was sent again
  std::deque<uint32_t> lost;    // to be sent again
  struct Again {
    uint32_t psn, newest;
  };
  std::deque<Again> again;      // sent again, in that order

  bool isKept(uint32_t psn) const { return noted(psn) == kKept; }
  // False: it was noted before.
  bool keep(uint32_t una, uint32_t psn) {
    uint32_t& mark = place(una, psn);
    if (mark == kKept) return false;
    mark = kKept;
    kept++;
    return true;
  }
  void sentAgain(uint32_t una, uint32_t psn, uint32_t newest) {
    place(una, psn) = kSent | newest;
    again.push_back({psn, newest});
  }
  bool wasSentAgain(const Again& a) const { return noted(a.psn) == (kSent | a.newest); }
  // The PSN is acknowledged. True: the peer had said that it keeps it.
  bool forget(uint32_t psn) {
    if (!covers(psn)) return false;
    uint32_t& mark = marks_[psn & (marks_.size() - 1)];
    const bool was = mark == kKept;
    mark = 0;
    kept -= was;
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
  // Later PSNs have the places of earlier ones.
  bool covers(uint32_t psn) const { return !marks_.empty() && wire::psnDiff(psn, top_) < 0; }
  uint32_t noted(uint32_t psn) const { return covers(psn) ? marks_[psn & (marks_.size() - 1)] : 0; }
  uint32_t& place(uint32_t una, uint32_t psn) {
    const uint32_t ahead = static_cast<uint32_t>(wire::psnDiff(psn, una));
    const bool first = marks_.empty();
    if (ahead >= marks_.size()) {
      size_t size = 256;
      while (size <= ahead) size *= 2;
      std::vector<uint32_t> old(size);
      old.swap(marks_);
      for (uint32_t i = 0; i < old.size(); i++) {
        const uint32_t from = wire::psnAdd(una, i);
        marks_[from & (size - 1)] = old[from & (old.size() - 1)];
      }
    }
    if (first || wire::psnDiff(psn, top_) >= 0) top_ = wire::psnAdd(psn, 1);
    return marks_[psn & (marks_.size() - 1)];
  }
  std::vector<uint32_t> marks_;  // by PSN; a power of two
  uint32_t top_ = 0;             // one past the highest that was noted
};

// The requester's view of the answers to its READs and ATOMICs, from the first that is missing on: what came behind it, in copies, and
// what has been asked for again.
class AnswerBoard {
 public:
  // So many PSNs from `first` on, asked for when `newest` was the next new PSN. `position`: how many had been asked for before.
  struct Asked {
    uint32_t first, count, newest, position;
    bool has(uint32_t psn) const { return ((psn - first) & wire::kPsnMask) < count; }
    uint32_t end() const { return position + count; }
  };

  // `total`: bytes that all connections keep.
  AnswerBoard(uint64_t* total, uint32_t una) : kept(total), executed(una), highest(una), examined(una), end(una) {}

  KeptPackets kept;
  uint32_t executed;            // what the peer has certainly executed ends here
  uint32_t highest;             // one past the highest PSN whose first answer has come
  uint32_t examined;            // up to here all is kept, or was asked for again, or will be
  uint32_t end;                 // from here on nothing is noted
  std::deque<PsnRange> lost;    // to be asked for again
  std::deque<Asked> asked;      // in that order
  uint32_t position = 0;
  bool probing = false;         // a probe has the place `probePosition`, for what was sent before `probeEnd`
  uint32_t probePosition = 0, probeEnd = 0;
  bool delivering = false;      // what the queue pair takes now was kept
  LossMark reduced;

  void extend(uint32_t psn) {
    if (wire::psnDiff(psn, end) > 0) end = psn;
  }
  void ask(uint32_t psn, uint32_t count, uint32_t newest) {
    asked.push_back({psn, count, newest, position});
    position += count;
    extend(wire::psnAdd(psn, count));
  }
  // The newest question for a PSN behind the first `passed` of them, or null.
  const Asked* question(uint32_t psn, size_t passed = 0) const {
    for (size_t i = asked.size(); i > passed; i--)
      if (asked[i - 1].has(psn)) return &asked[i - 1];
    return nullptr;
  }
  void lose(uint32_t psn) {
    if (!lost.empty() && wire::psnAdd(lost.back().last, 1) == psn) lost.back().last = psn;
    else lost.push_back({psn, psn});
  }
};

}  // namespace nd
