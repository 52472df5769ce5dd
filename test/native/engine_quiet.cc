// A poll that finds nothing on the local link goes no further; what is due in the engine itself is never passed over.
#include "world.h"

using namespace world;

namespace {

struct CountingLink final : Link {
  bool nothing = true;  // what quiet() says
  uint64_t asked = 0;   // with which time
  uint32_t polls = 0;
  bool quiet(uint64_t now) const override {
    const_cast<CountingLink*>(this)->asked = now;
    return nothing;
  }
  bool poll(PacketSink&, uint32_t) override {
    polls++;
    return false;
  }
  bool send(const Path&, const OutPacket&) override { return true; }
  void flush() override {}
  bool isLocal(const Gid&) override { return false; }
  bool watchPeer(uint32_t) override { return true; }
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
  CHECK_EQ(engine.pollerMark(), clock.time);  // or the engine's thread would take over from somebody who polls
  clock.time += 500'000;
  engine.progress();
  CHECK_EQ(engine.pollerMark(), clock.time);
  link.nothing = false;
  engine.progress();
  CHECK_EQ(link.polls, 1u);
  engine.progressLocked();  // the engine's thread looks in any case
  CHECK_EQ(link.polls, 2u);
}
