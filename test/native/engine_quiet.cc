// Tests that a poll that finds nothing on the local link returns early, and never skips what is due in the engine
// itself.
#include "world.h"

using namespace world;

namespace {

struct CountingLink final : Link {
  bool nothing = true;  // the result of quiet()
  uint64_t asked = 0;   // the time of its last call
  uint32_t polls = 0;
  bool quiet(uint64_t now) const override {
    const_cast<CountingLink*>(this)->asked = now;
    return nothing;
  }
  uint32_t brings = 0;  // number of malformed packets to deliver
  bool hasMore = false;
  bool poll(PacketSink& sink, uint32_t) override {
    polls++;
    const uint8_t none = 0;
    for (; brings != 0; brings--) sink.onPacket({}, &none, 1);
    return std::exchange(hasMore, false);
  }
  uint32_t repeats = 0;
  uint64_t* time = nullptr;
  uint64_t repeatNs = 0;
  void pollBusiest(PacketSink&, uint32_t, const std::atomic<uint32_t>&) override {
    repeats++;
    if (time) *time += repeatNs;
  }
  bool send(const Path&, const OutPacket&) override { return true; }
  void flush() override {}
  bool isLocal(const Gid&) override { return false; }
  Status watchPeer(uint32_t) override { return Status::kSuccess; }
  uint32_t interfaceOf(const Gid&) override { return 0; }
  Status joinGroup(const Gid&, uint32_t) override { return Status::kNetworkUnreachable; }
  void leaveGroup(const Gid&, uint32_t) override {}
};

struct HandClock final : Clock {
  uint64_t time = 1'000'000;
  uint64_t now() const override { return time; }
};

}  // namespace

TEST(quiet_link_is_not_polled_and_the_poller_is_still_seen) {
  CountingLink link;
  HandClock clock;
  Engine engine(link, clock, EngineOptions());
  CHECK(!engine.progress());
  CHECK_EQ(link.polls, 0u);
  CHECK_EQ(link.asked, clock.time);
  CHECK_EQ(engine.owner().marked(), clock.time);  // otherwise the engine's thread would take over from a polling thread
  clock.time += 500'000;
  engine.progress();
  CHECK_EQ(engine.owner().marked(), clock.time);
  link.nothing = false;
  engine.progress();
  CHECK_EQ(link.polls, 1u);
  engine.poll(Stepper::kEngine);  // the engine's thread polls in any case
  CHECK_EQ(link.polls, 2u);
}

TEST(a_poller_polls_the_last_active_socket_again_after_a_while_without_result) {
  CountingLink link;
  HandClock clock;
  Engine engine(link, clock, EngineOptions());
  link.nothing = false;
  // Returns how often the engine polls the last active socket again while a thread polls every 500 ns.
  const auto polls = [&](uint32_t times) {
    const uint32_t before = link.repeats;
    for (uint32_t i = 0; i < times; i++) {
      clock.time += 500;
      engine.progress();
    }
    return link.repeats - before;
  };
  // The first polls do not poll the socket again: a program that checks for another message before it sleeps polls like
  // this.
  CHECK_EQ(polls(6), 0u);
  CHECK_EQ(polls(10), 10u);
  // Work that takes longer than a poll counts as other work of the thread.
  clock.time += 3'000;
  CHECK_EQ(polls(1), 0u);
  CHECK_EQ(polls(10), 10u);
  // A packet arrives.
  link.brings = 1;
  CHECK_EQ(polls(1), 0u);
  CHECK_EQ(polls(5), 0u);
  CHECK_EQ(polls(10), 10u);
  // There are more packets, though the poll's budget is used up.
  link.hasMore = true;
  CHECK_EQ(polls(1), 0u);
  CHECK_EQ(polls(5), 0u);
  CHECK_EQ(polls(10), 10u);
  // The engine's thread has other sources to poll.
  clock.time += 500;
  const uint32_t before = link.repeats;
  engine.poll(Stepper::kEngine);
  CHECK_EQ(link.repeats, before);
}

// Polling a socket again takes time as well, but is not other work of the thread. The thread continues polling, and
// others get the CPU as soon as they would without it.
TEST(polling_a_socket_again_is_part_of_the_wait) {
  constexpr uint64_t kPollNs = 1'000;
  for (const uint64_t repeatNs : {0, 1'000, 2'500, 20'000}) {
    check::note = "ns";
    check::noteNumber = repeatNs;
    CountingLink link;
    HandClock clock;
    Engine engine(link, clock, EngineOptions());
    link.nothing = false;
    link.time = &clock.time;
    link.repeatNs = repeatNs;
    const auto yields = [&] {
      const auto& names = Engine::counterNames();
      const auto values = engine.counters();
      for (size_t i = 0; i < values.size(); i++)
        if (std::strcmp(names[i], "poller_yield") == 0) return values[i];
      CHECK(!"a counter of this name");
      return uint64_t(0);
    };
    const uint64_t start = clock.time;
    uint32_t polls = 0;
    while (yields() == 0 && polls < 1000) {
      clock.time += kPollNs;
      engine.progress();
      polls++;
    }
    CHECK(clock.time - start < 80'000);
    CHECK(link.repeats + 4 >= polls);
  }
}
