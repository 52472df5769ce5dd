// Runs the protocol between peers that access memory and the owner that withdraws it (direct_table.h) in all orders of
// its steps. Two peers access one page with two keys while one of the keys ends, with and without a wait. Once the
// owner is done, no peer writes with that key any more, and the pages that the owner has moved do not change. An access
// that counted for a peer is in the owner's memory.
#include <array>
#include <set>
#include <vector>

#include "check.h"
#include "local/direct_table.h"

using namespace nd;

namespace {

constexpr int kInitiators = 2, kAccesses = 2, kBytes = 2, kKeys = 2;
constexpr uint32_t kFile = 7, kEnding = 0;

// Whether the owner waits for peers that access memory with the key that ends, and for others in the same file.
enum class Wait { kForAll, kForOthers, kForNone };

using Page = std::array<int, kInitiators * kBytes>;

struct Initiator {
  int step = 0, accesses = 1;
  DirectAccessRecord words{};
  uint64_t entered = 0;
  bool allowed = false;
  int counted = 0;  // the newest access that counted
};

struct State {
  std::array<uint32_t, kKeys> sequence{}, key = {1, 1};  // the records
  Page file{}, own{};
  bool reclaimed = false;
  std::array<Initiator, kInitiators> initiators;
  // The owner
  int step = 0, looksAt = 0;
  uint64_t seen = 0;
  uint32_t seenKey = 0;
  bool evicted = false, done = false;
  Page atEnd{};
  const Page& memory() const { return reclaimed ? own : file; }
};

// States that were seen, each as a list of all its words. Two orders that lead to the same state continue alike.
std::set<std::vector<uint64_t>> seen;

std::vector<uint64_t> wordsOf(const State& s) {
  std::vector<uint64_t> w = {s.reclaimed, uint64_t(s.step), uint64_t(s.looksAt), s.seen, s.seenKey, s.evicted, s.done};
  for (int k = 0; k < kKeys; k++) w.insert(w.end(), {s.sequence[size_t(k)], s.key[size_t(k)]});
  for (const Page* page : {&s.file, &s.own, &s.atEnd})
    for (const int byte : *page) w.push_back(uint64_t(byte));
  for (const Initiator& v : s.initiators)
    for (const uint64_t word : {uint64_t(v.step), uint64_t(v.accesses), v.words.inUse, uint64_t(v.words.key), v.entered,
                                uint64_t(v.allowed), uint64_t(v.counted)})
      w.push_back(word);
  return w;
}

// Performs one step of an initiator, whose accesses alternate between the keys. False: it has no step left.
bool advance(State& s, int who) {
  Initiator& v = s.initiators[size_t(who)];
  if (v.accesses > kAccesses) return false;
  const auto key = uint32_t(who + v.accesses) % kKeys;
  const auto write = [&](int byte) {
    if (s.done && !s.reclaimed) CHECK(key != kEnding);
    s.file[size_t(who * kBytes + byte)] = v.accesses;  // an initiator has the file mapped, whatever the owner has
  };
  switch (v.step++) {
    case 0: v.words.announce(0, 1, key, 0); return true;
    case 1: v.entered = DirectInUse::enter(&v.words.inUse, v.entered, kFile); return true;
    case 2:
      v.allowed = s.key[key] != 0 && (s.sequence[key] & 1) == 0;
      if (!v.allowed) v.step = 5;
      return true;
    case 3: return write(0), true;
    case 4: return write(1), true;
    default:
      if (DirectInUse::leave(&v.words.inUse, v.entered) && v.allowed) v.counted = v.accesses;
      v.accesses++;
      v.step = 0;
      return true;
  }
}

// Performs one step of the owner. False: it has no step left, or waits.
bool end(State& s, Wait wait) {
  const auto next = [&](int step) {
    s.step = step;
    return true;
  };
  const auto nextInitiator = [&](int look, int then) {
    if (++s.looksAt < kInitiators) return next(look);
    s.looksAt = 0;
    return next(then);
  };
  DirectAccessRecord& words = s.initiators[size_t(s.looksAt)].words;
  switch (s.step) {
    case 0:  // withdraws the record
      s.sequence[kEnding]++;
      return next(1);
    case 1: s.key[kEnding] = 0; return next(2);
    case 2: s.sequence[kEnding]++; return next(3);
    case 3:  // checks an initiator
      s.seen = DirectInUse::load(&words.inUse);
      return DirectInUse::inside(s.seen) ? next(4) : nextInitiator(3, 6);
    case 4: s.seenKey = words.key; return next(5);
    case 5:  // waits for it, or evicts it
      if (DirectInUse::load(&words.inUse) != s.seen || s.seenKey != kEnding) return nextInitiator(3, 6);
      if (wait == Wait::kForAll) return false;
      s.evicted |= DirectInUse::evict(&words.inUse, s.seen);
      return nextInitiator(3, 6);
    case 6:  // withdraws the other key of the file
      if (!s.evicted) return next(10);
      s.sequence[1 - kEnding]++;
      return next(7);
    case 7:
      s.key[1 - kEnding] = 0;
      s.sequence[1 - kEnding]++;
      return next(8);
    case 8: {  // every other initiator of the file leaves, or is evicted
      const uint64_t inUse = DirectInUse::load(&words.inUse);
      if (!DirectInUse::inside(inUse)) return nextInitiator(8, 9);
      if (wait == Wait::kForOthers) return false;
      DirectInUse::evict(&words.inUse, inUse);
      return nextInitiator(8, 9);
    }
    case 9:  // the OS copies the page
      s.own = s.file;
      s.reclaimed = true;
      return next(10);
    case 10:
      s.atEnd = s.memory();
      s.done = true;
      return next(11);
    default: return false;
  }
}

void check(const State& s) {
  if (s.done && s.reclaimed) CHECK(s.memory() == s.atEnd);
  for (int who = 0; who < kInitiators; who++) {
    const Initiator& v = s.initiators[size_t(who)];
    // A counted access is in memory, unless a later access has begun to overwrite it.
    for (int i = 0; i < kBytes; i++)
      if (v.counted != 0) CHECK(s.memory()[size_t(who * kBytes + i)] >= v.counted);
  }
}

void explore(const State& s, Wait wait) {
  if (!seen.insert(wordsOf(s)).second) return;
  check(s);
  bool moved = false;
  for (int who = 0; who < kInitiators; who++) {
    State after = s;
    if (!advance(after, who)) continue;
    moved = true;
    explore(after, wait);
  }
  State after = s;
  if (end(after, wait)) {
    moved = true;
    explore(after, wait);
  }
  if (!moved) CHECK(s.done);
}

void exploreAll(Wait wait) {
  seen.clear();
  explore(State{}, wait);
  CHECK(seen.size() > 1000);
}

}  // namespace

TEST(direct_model_with_a_wait) { exploreAll(Wait::kForAll); }
TEST(direct_model_with_a_wait_for_others) { exploreAll(Wait::kForOthers); }
TEST(direct_model_of_eviction) { exploreAll(Wait::kForNone); }
