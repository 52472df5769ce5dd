// The protocol between a peer that is inside and the owner that withdraws (direct_table.h), in all orders of its steps: visits of two
// peers, and the end of a key, with and without patience. After the owner is done nothing changes any more in its memory; and what counted
// for a peer is in that memory.
#include <array>
#include <set>
#include <vector>

#include "check.h"
#include "local/direct_table.h"

using namespace nd;

namespace {

constexpr int kVisitors = 2, kVisits = 2, kBytes = 2;
constexpr uint32_t kFile = 7;

// The file and, after it was taken back, the owner's own pages.
struct Memory {
  std::array<int, kVisitors * kBytes> bytes{};
};

struct Visitor {
  int step = 0, visit = 1;
  uint64_t mark = 0, entered = 0;
  bool allowed = false;
  int counted = 0;  // the newest visit that counted
};

struct State {
  uint32_t sequence = 0, key = 1;  // the record
  Memory file, own;
  bool takenBack = false;
  std::array<Visitor, kVisitors> visitors;
  // The owner
  int step = 0, looksAt = 0;
  uint64_t seen = 0;
  bool evicted = false, done = false;
  Memory atEnd;
  const Memory& memory() const { return takenBack ? own : file; }
};

// States that were seen, as lists of all their words: two orders that lead to the same one go on alike.
std::set<std::vector<uint64_t>> seen;

std::vector<uint64_t> wordsOf(const State& s) {
  std::vector<uint64_t> w = {s.sequence, s.key, s.takenBack, uint64_t(s.step), uint64_t(s.looksAt), s.seen, s.evicted, s.done};
  for (const Memory* memory : {&s.file, &s.own, &s.atEnd})
    for (const int byte : memory->bytes) w.push_back(uint64_t(byte));
  for (const Visitor& v : s.visitors)
    for (const uint64_t word : {uint64_t(v.step), uint64_t(v.visit), v.mark, v.entered, uint64_t(v.allowed), uint64_t(v.counted)}) w.push_back(word);
  return w;
}

// One step of a visitor. False: it has none left.
bool visit(State& s, int who) {
  Visitor& v = s.visitors[size_t(who)];
  if (v.visit > kVisits) return false;
  const size_t place = size_t(who * kBytes);
  switch (v.step++) {
    case 0:
      v.entered = DirectMark::enter(&v.mark, v.entered, kFile);
      return true;
    case 1:
      v.allowed = s.key != 0 && (s.sequence & 1) == 0;
      if (!v.allowed) v.step = 4;
      return true;
    case 2:
      s.file.bytes[place] = v.visit;  // a visitor has the file mapped, whatever the owner has
      return true;
    case 3:
      s.file.bytes[place + 1] = v.visit;
      return true;
    default:
      if (DirectMark::leave(&v.mark, v.entered) && v.allowed) v.counted = v.visit;
      v.visit++;
      v.step = 0;
      return true;
  }
}

// One step of the owner. `patient`: it does not evict. False: it has none left, or waits.
bool end(State& s, bool patient) {
  switch (s.step) {
    case 0:
      s.sequence++;
      s.step++;
      return true;
    case 1:
      s.key = 0;
      s.step++;
      return true;
    case 2:
      s.sequence++;
      s.step++;
      return true;
    case 3: {  // looks at a mark
      if (s.looksAt == kVisitors) {
        s.step = s.evicted ? 5 : 6;
        return true;
      }
      const uint64_t mark = DirectMark::look(&s.visitors[size_t(s.looksAt)].mark);
      if (!DirectMark::inside(mark)) {
        s.looksAt++;
        return true;
      }
      s.seen = mark;
      s.step = 4;
      return true;
    }
    case 4: {  // waits for it to change
      uint64_t& mark = s.visitors[size_t(s.looksAt)].mark;
      if (DirectMark::look(&mark) != s.seen) {
        s.looksAt++;
        s.step = 3;
        return true;
      }
      if (patient) return false;
      if (DirectMark::evict(&mark, s.seen)) s.evicted = true;
      s.looksAt++;
      s.step = 3;
      return true;
    }
    case 5:  // copies the pages, one after the other
      s.own = s.file;
      s.takenBack = true;
      s.step++;
      return true;
    case 6:
      s.atEnd = s.memory();
      s.done = true;
      s.step++;
      return true;
    default:
      return false;
  }
}

void check(const State& s) {
  if (s.done) CHECK(s.memory().bytes == s.atEnd.bytes);
  for (int who = 0; who < kVisitors; who++) {
    const Visitor& v = s.visitors[size_t(who)];
    // What has counted is there, unless a later visit has begun to write over it.
    for (int i = 0; i < kBytes; i++)
      if (v.counted != 0) CHECK(s.memory().bytes[size_t(who * kBytes + i)] >= v.counted);
  }
}

void explore(const State& s, bool patient) {
  if (!seen.insert(wordsOf(s)).second) return;
  check(s);
  bool moved = false;
  for (int who = 0; who < kVisitors; who++) {
    State next = s;
    if (!visit(next, who)) continue;
    moved = true;
    explore(next, patient);
  }
  State next = s;
  if (end(next, patient)) {
    moved = true;
    explore(next, patient);
  }
  if (!moved) CHECK(s.done);
}

}  // namespace

TEST(direct_model_of_patience) {
  seen.clear();
  explore(State{}, true);
  CHECK(seen.size() > 1000);
}

TEST(direct_model_of_eviction) {
  seen.clear();
  explore(State{}, false);
  CHECK(seen.size() > 1000);
}
