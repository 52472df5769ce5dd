// Tests of progress ownership: the tables, cell by cell, and every sequence of events of a waiting thread.
#include <algorithm>

#include "platform/event.h"
#include "progress/waiting_thread.h"
#include "world.h"

using namespace world;

namespace {

// An engine that does what a test specifies, and counts what its owners do.
struct ScriptedEngine final : ProgressEngine {
  struct : Clock {
    uint64_t time = 1'000'000;
    uint64_t now() const override { return time; }
  } clock;
  ProgressOwner progress{clock};
  EngineLock mutex;
  bool busy = false;  // whether there is always work to do
  uint32_t wakes = 0, polls = 0;
  std::vector<Stepper> steps;
  PollScope next = PollScope::kBusiest;

  ScriptedEngine() { CHECK(progress.open()); }
  ProgressOwner& owner() override { return progress; }
  Descriptor descriptor() const override { return kNoDescriptor; }
  uint64_t now() const override { return clock.time; }
  void wakeThread() override { wakes++; }
  void setWake(void (*)(void*), void*) override {}
  EngineLock& lock() override { return mutex; }
  std::unique_lock<EngineLock> hold() override { return std::unique_lock<EngineLock>(mutex); }
  bool contended() const override { return false; }
  void pollNext(PollScope what) override { next = what; }
  bool step(Stepper stepper) override {
    CHECK(!mutex.try_lock());  // owners work only with the lock
    steps.push_back(stepper);
    return busy;
  }
  uint64_t nextDeadline() override { return UINT64_MAX; }
  bool fallAsleep(Sleeper& sleeper) override { return sleeper.asleep = true; }
  void forget(Sleeper&) override {}
  void fail(int) override {}
};

}  // namespace

TEST(each_cell_of_a_waiting_thread) {
  struct Expected {
    WaitState from;
    WaitEvent event;
    WaitState next;
    uint32_t actions;
  };
  using S = WaitState;
  using E = WaitEvent;
  const Expected possible[] = {
      {S::kAway, E::kEnter, S::kSpinning, kNoAction},
      {S::kAway, E::kTaken, S::kServed, kJoinServed},
      {S::kAway, E::kLeave, S::kAway, kNoAction},
      {S::kSpinning, E::kEnter, S::kSpinning, kRenew},
      {S::kSpinning, E::kEmpty, S::kSpinning, kNoAction},
      {S::kSpinning, E::kSleep, S::kSleeping, kNoAction},
      {S::kSpinning, E::kSpent, S::kServed, kRelease | kMark | kJoinServed},
      {S::kSpinning, E::kLeave, S::kAway, kRelease | kMark},
      {S::kWoken, E::kEnter, S::kSpinning, kRenew},
      {S::kWoken, E::kEmpty, S::kSpinning, kNoAction},
      {S::kWoken, E::kLeave, S::kAway, kRelease | kMarkQuietly},
      {S::kSleeping, E::kEnter, S::kWoken, kRenew},
      {S::kSleeping, E::kLeave, S::kAway, kRelease | kMark},
      {S::kServed, E::kTaken, S::kServed, kNoAction},
      {S::kServed, E::kLeave, S::kAway, kLeaveServed},
  };
  for (uint32_t s = 0; s < kWaitStates; s++) {
    for (uint32_t e = 0; e < kWaitEvents; e++) {
      const WaitCell cell = waitCell(WaitState(s), WaitEvent(e));
      const Expected* expected = nullptr;
      for (const Expected& each : possible)
        if (each.from == WaitState(s) && each.event == WaitEvent(e)) expected = &each;
      check::note = "state * 10 + event";
      check::noteNumber = s * 10 + e;
      CHECK_EQ(uint32_t(cell.actions), expected ? expected->actions : uint32_t(kImpossible));
      if (!expected) continue;
      CHECK(cell.next == expected->next);
      // A claim is released exactly where it ends, and a served thread is counted exactly as long as it is served.
      const bool had = hasClaim(WaitState(s)), has = hasClaim(cell.next);
      CHECK_EQ((cell.actions & kRelease) != 0, had && !has);
      CHECK_EQ((cell.actions & kRenew) != 0, had && has && WaitEvent(e) == E::kEnter);
      CHECK_EQ((cell.actions & kJoinServed) != 0, WaitState(s) != S::kServed && cell.next == S::kServed);
      CHECK_EQ((cell.actions & kLeaveServed) != 0, WaitState(s) == S::kServed && cell.next != S::kServed);
      CHECK_EQ((cell.actions & (kMark | kMarkQuietly)) != 0, (cell.actions & kRelease) != 0);
    }
  }
}

// The engine's thread never serves while another thread polls, and always does when none polls. Only pollers delay a
// due timer.
TEST(each_cell_of_the_engines_thread) {
  using T = Turn;
  const Turn expected[kOwnerStates][kWakeCauses] = {{T::kYieldToMark, T::kYieldToMark, T::kYieldToMark},
                                                    {T::kYieldToClaim, T::kServe, T::kYieldIfPreempted},
                                                    {T::kYieldIfPreempted, T::kServe, T::kYieldIfPreempted},
                                                    {T::kServe, T::kServe, T::kServe}};
  for (uint32_t s = 0; s < kOwnerStates; s++) {
    for (uint32_t c = 0; c < kWakeCauses; c++) {
      const Turn turn = turnOf(OwnerState(s), WakeCause(c));
      CHECK(turn == expected[s][c]);
      CHECK_EQ(turn == T::kYieldToMark, OwnerState(s) == OwnerState::kPolling);
      if (OwnerState(s) == OwnerState::kAway) CHECK(turn == T::kServe);
      if (WakeCause(c) == WakeCause::kDue && OwnerState(s) != OwnerState::kPolling) CHECK(turn == T::kServe);
    }
  }
}

// Runs all sequences of up to eight events of two waiting threads. At most one of them has the claim, every served
// thread is counted, and nothing is left over when both have left. No impossible cell is reached, because such a state
// would not match the counts.
TEST(every_course_of_two_threads_that_wait) {
  constexpr uint32_t kLength = 8, kChoices = 10;
  uint64_t courses = 1;
  for (uint32_t i = 0; i < kLength; i++) courses *= kChoices;
  Random random(1);
  std::vector<bool> seen(kWaitStates);
  for (uint64_t n = 0; n < 40'000; n++) {
    uint64_t course = random.next() % courses;
    check::note = "course";
    check::noteNumber = course;
    ScriptedEngine engine;
    uint32_t woken = 0;
    const auto wake = [](void* count) { ++*static_cast<uint32_t*>(count); };
    WaitingThread a(engine, wake, &woken), b(engine, wake, &woken);
    for (uint32_t i = 0; i < kLength; i++, course /= kChoices) {
      const uint64_t choice = course % kChoices;
      WaitingThread& one = choice % 2 ? a : b;
      engine.busy = choice / 2 == 1;
      uint32_t asked = 0;
      const uint32_t comes = choice / 2 == 2 ? 1 : choice / 2 == 3 ? 2 : 0;  // at the first poll, later, or not
      const WaitState before = one.state();
      const uint32_t wakesBefore = engine.wakes;
      if (choice / 2 == 4) {
        one.leave();
        CHECK(one.state() == WaitState::kAway);
      } else {
        const auto entry = one.enter([&] { return ++asked == comes; }, false);
        CHECK(entry != WaitingThread::Entry::kSleep || one.state() == WaitState::kSleeping);
        CHECK(entry != WaitingThread::Entry::kServed || one.state() == WaitState::kServed);
        CHECK(entry != WaitingThread::Entry::kDone || hasClaim(one.state()));
        // The first poll after a sleep sends the ACKs that the peer waits for.
        if (before == WaitState::kSleeping)
          CHECK(std::find(engine.steps.begin(), engine.steps.end(), Stepper::kWoken) != engine.steps.end());
        else CHECK(std::find(engine.steps.begin(), engine.steps.end(), Stepper::kWoken) == engine.steps.end());
      }
      engine.steps.clear();
      seen[uint32_t(one.state())] = true;
      CHECK(!(hasClaim(a.state()) && hasClaim(b.state())));
      CHECK_EQ(engine.progress.claim() != 0, hasClaim(a.state()) || hasClaim(b.state()));
      const bool served = a.state() == WaitState::kServed || b.state() == WaitState::kServed;
      CHECK_EQ(engine.progress.anyServed(), served);
      // No served thread relies on a thread that is away. The engine's thread is woken when a thread starts to be
      // served, and when the claim ends.
      const bool ended = hasClaim(before) && !hasClaim(one.state()),
                 begun = before != WaitState::kServed && one.state() == WaitState::kServed;
      CHECK_EQ(engine.wakes != wakesBefore, begun || (ended && served));
      engine.clock.time += 10'000;
    }
    a.leave();
    b.leave();
    CHECK_EQ(engine.progress.claim(), 0u);
    CHECK(!engine.progress.anyServed());
    CHECK(engine.mutex.try_lock());
    engine.mutex.unlock();
  }
  for (const bool state : seen) CHECK(state);
}
