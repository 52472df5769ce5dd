// For small messages on the local link, the fast path is a shortcut and nothing else. The same program produces the
// same memory, completions, events and counters, whether both sides of a pair, one or neither have the fast path.
#include "local_world.h"
#include "small_program.h"

using namespace world;

namespace {

struct OnRing : SmallProgram<LocalWorld> {
  // More packets might be left for the next step, which takes the slow path.
  static constexpr uint32_t kDepth = 16;
  const bool tampers;
  OnRing(uint64_t seed, bool tampered, bool fastA, bool fastB)
      : SmallProgram(seed, {}, kDepth, 0, seed % 10 == 9 ? kQptUc : kQptRc), tampers(tampered) {
    pa->fast = fastA;
    pb->fast = fastB;
  }
  void disturb(uint32_t kind) override {
    switch (kind) {
      case 0: a->link.localOnly = random.below(2); break;
      case 1: b->link.localOnly = random.below(2); break;
      default:
        if (tampers) tamper();
        break;
    }
  }
  // Modifies entries that are or were in the ring, as the other process may.
  void tamper() {
    const bool first = random.below(2);
    const uint32_t back = 1 + random.below(3), word = random.below(LocalRing::kSlotBody / 4), bit = random.below(32);
    LocalRing::Slot& slot =
        segment().rings[first ? 0 : 1].slots[((first ? pa : pb)->position() - back) % LocalRing::kSlots];
    slot.body[4 * word + bit / 8] ^= uint8_t(1u << (bit % 8));
  }
  bool goesOn() const override { return pa->up() && pb->up(); }
};

// Both queue pairs are in one process: `b` is the same HCA as `a`.
struct SelfWorld : World {
  HostCounters told;
  std::shared_ptr<LocalPair> self = std::make_shared<LocalPair>(1, told);
  Node* const b = a.get();
  explicit SelfWorld(EngineOptions options = {}) : World(options) {
    CHECK(self->startSelf());
    a->link.pair = self;
    a->link.local = true;
  }
};
struct OnSelf : SmallProgram<SelfWorld> {
  OnSelf(uint64_t seed, bool fast) : SmallProgram(seed, {}, OnRing::kDepth, 0, seed % 10 == 9 ? kQptUc : kQptRc) {
    self->fast = fast;
  }
  void disturb(uint32_t kind) override {
    if (kind == 0) a->link.localOnly = random.below(2);
  }
};

}  // namespace

TEST(fast_changes_nothing_within_a_process) {
  uint64_t messages = 0;
  for (uint64_t seed = 1; seed <= check::seeds(500); seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    const auto outcome = [&](bool fast) {
      OnSelf program(seed, fast);
      program.run(2000);
      return program.outcome();
    };
    const Outcome with = outcome(true), without = outcome(false);
    CHECK_EQ(without.fast, 0u);
    messages += with.fast;
    CHECK(with.completions == without.completions);
    CHECK(with.events == without.events);
    CHECK(with.memory == without.memory);
    CHECK(with.counters == without.counters);
  }
  CHECK(messages > check::seeds(10'000));
}

TEST(fast_changes_nothing) {
  uint64_t fast = 0;
  for (uint64_t seed = 1; seed <= check::seeds(1000); seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    const bool tampers = seed % 2 == 0;
    const auto outcome = [&](bool fastA, bool fastB) {
      OnRing program(seed, tampers, fastA, fastB);
      program.run(2000);
      return program.outcome();
    };
    const Outcome without = outcome(false, false);
    CHECK_EQ(without.fast, 0u);
    const Outcome with = outcome(seed % 3 != 0, seed % 3 != 1);
    fast += with.fast;
    CHECK(with.completions == without.completions);
    CHECK(with.events == without.events);
    // A modified entry may contain addresses, which differ from run to run.
    if (!tampers) CHECK(with.memory == without.memory);
    CHECK(with.counters == without.counters);
  }
  CHECK(fast > check::seeds(10'000));
}
