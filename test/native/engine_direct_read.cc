// READs of memory of other kinds than allocate()'s, which this side makes by the system while the peer sleeps: what it may read, how
// often, and that no READ succeeds by a key that has ended.
#include <thread>

#include "direct_world.h"

using namespace world;

namespace {

constexpr uint32_t kBytes = 1u << 20;
constexpr uint64_t kForEver = UINT64_MAX / 4, kShort = 1'000'000;

bool same(const void* a, const void* b, size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

// The time in which the READs before are forgotten.
void pause(DirectWorld& w) { w.clock.time += ReadChoice::kPauseNs + 1; }

DirectPeer::Place enterToRead(DirectConnection& w, Buffer& memory) {
  DirectPeer::Refusal why;
  DirectPeer::Request r{w.qa.qpn, w.qb.qpn, memory.rkey, kAccessRemoteRead, wire::kDefaultPkey, memory.at(), 8};
  r.readable = true;
  return w.pa->peer.enter(r, w.pa->maps, &why);
}

}  // namespace

// A sleeping peer's memory is read by the system; the peer does not run, and no packet is sent.
TEST(direct_read_of_any_memory) {
  DirectConnection w;
  Buffer target(*w.b, kBytes, kAllAccess, 3), back(*w.a, kBytes);
  w.pb->sleeping(true);
  const uint64_t packets = w.a->counter("sent_pkts") + w.b->counter("sent_pkts");
  uint64_t requests = 0;
  for (const uint32_t size : {1u, 2u, 8u, 65u, 4096u, 65'535u, 65'536u, 65'537u, 200'001u}) {
    for (const uint32_t pieces : {1u, 2u, 4u}) {
      check::note = "size";
      check::noteNumber = size;
      if (size < pieces) continue;
      std::vector<Sge> to;
      for (uint32_t i = 0, at = 0; i < pieces; i++) {
        const uint32_t part = i + 1 == pieces ? size - at : size / pieces;
        to.push_back({back.at(at), part, back.lkey});
        at += part;
      }
      pause(w);
      std::memset(back.data(), 0xEE, kBytes);
      const uint32_t r = w.qa.post(oneSided(kOpRead, to, target.at(13), target.rkey));
      while (w.a->step());  // b does not run
      only(w.qa.sendCq, r, kOpRead, kWcSuccess, size);
      CHECK(same(back.data(), target.data() + 13, size) && back.data()[size] == 0xEE);
      CHECK_EQ(w.a->counter("direct_system_read"), ++requests);
    }
  }
  check::note = "";
  CHECK_EQ(w.a->counter("sent_pkts") + w.b->counter("sent_pkts"), packets);
  CHECK_EQ(w.direct(*w.a), requests);
  // What changes the memory is left to its owner, and so is a READ while the peer is awake.
  for (const uint32_t op : {kOpWrite, kOpFetchAdd}) {
    w.qa.post(oneSided(op, {{back.at(), 8, back.lkey}}, target.at(), target.rkey));
    w.pump();
    CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  }
  w.pb->sleeping(false);
  pause(w);
  w.qa.post(oneSided(kOpRead, {{back.at(), 8, back.lkey}}, target.at(), target.rkey));
  w.pump();
  CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  CHECK_EQ(w.direct(*w.a), requests);
}

// The responder's checks, as for memory of allocate().
TEST(direct_read_of_any_memory_is_checked) {
  struct Case {
    const char* name;
    uint32_t status, keyAccess;
    int64_t offset;
    uint32_t keyChange;
    bool otherPd;
  };
  constexpr uint32_t kWrite = kAccessRemoteWriteBit | kAccessLocalWrite;
  const Case cases[] = {
      {"allowed", kWcSuccess, kAccessRemoteRead, 0, 0, false},
      {"zero based", kWcSuccess, kAccessRemoteRead | kAccessZeroBased, 0, 0, false},
      {"last bytes", kWcSuccess, kAllAccess, 4088, 0, false},
      {"one byte too far", kWcRemoteAccess, kAllAccess, 4089, 0, false},
      {"below", kWcRemoteAccess, kAllAccess, -1, 0, false},
      {"another key", kWcRemoteAccess, kAllAccess, 0, 1, false},
      {"key without read", kWcRemoteAccess, kWrite, 0, 0, false},
      {"another domain", kWcRemoteAccess, kAllAccess, 0, 0, true},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    Buffer memory(*w.b, 8192, kAllAccess, 5), own(*w.a, 64);
    Handle pd = w.b->pd;
    if (c.otherPd) CHECK(w.b->engine.allocatePd(w.b->kernel, &pd) == Status::kSuccess);
    uint32_t lkey = 0, rkey = 0;
    CHECK(w.b->engine.registerMr(pd, memory.at(), 4096, c.keyAccess, &lkey, &rkey) == Status::kSuccess);
    w.pb->sleeping(true);
    const uint64_t base = (c.keyAccess & kAccessZeroBased) != 0 ? 0 : memory.at();
    const uint32_t i = w.qa.post(oneSided(kOpRead, {{own.at(), 8, own.lkey}}, base + uint64_t(c.offset), rkey + c.keyChange));
    w.pump();
    only(w.qa.sendCq, i, kOpRead, c.status, 8);
    CHECK_EQ(w.a->counter("direct_system_read"), c.status == kWcSuccess ? 1u : 0u);
    if (c.status == kWcSuccess) CHECK(same(own.data(), memory.data() + c.offset, 8));
    CHECK(w.b->engine.deregisterMr(pd, lkey) == Status::kSuccess);
  }
  check::note = "";
}

// As many as cost no more than a wake-up; then the peer is woken, until the next pause.
TEST(direct_reads_of_any_memory_end_in_a_wake_up) {
  DirectConnection w;
  Buffer target(*w.b, kBytes, kAllAccess, 3), back(*w.a, kBytes);
  w.pb->sleeping(true);
  const auto readsUntilWoken = [&](uint32_t size) {
    const uint64_t before = w.a->counter("direct_system_read");
    pause(w);
    for (;;) {
      const uint64_t woken = w.countersA.get(HostCounter::kLocalWakes);
      w.qa.post(oneSided(kOpRead, {{back.at(), size, back.lkey}}, target.at(), target.rkey));
      while (w.a->step());
      if (w.countersA.get(HostCounter::kLocalWakes) != woken) break;
      CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
    }
    w.pump();
    CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
    w.pb->sleeping(true);
    return w.a->counter("direct_system_read") - before;
  };
  CHECK_EQ(readsUntilWoken(8), ReadChoice::kWakeUpNs / (ReadChoice::kCallNs + 1));
  CHECK_EQ(readsUntilWoken(65'536), ReadChoice::kWakeUpNs / (ReadChoice::kCallNs + 65'536 / ReadChoice::kBytesPerNs));
  CHECK_EQ(readsUntilWoken(kBytes), 0u);
  CHECK_EQ(readsUntilWoken(8), ReadChoice::kWakeUpNs / (ReadChoice::kCallNs + 1));
}

// Where processes may not read each other, the peer answers.
TEST(direct_read_of_any_memory_that_the_system_refuses) {
  DirectConnection w({}, {}, 1);  // no memory of ours is there
  Buffer target(*w.b, 4096, kAllAccess, 3), back(*w.a, 4096);
  w.pb->sleeping(true);
  w.qa.post(oneSided(kOpRead, {{back.at(), 4096, back.lkey}}, target.at(), target.rkey));
  w.pump();
  CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  CHECK(same(back.data(), target.data(), 4096));
  CHECK_EQ(w.direct(*w.a), 0u);
}

// A command does not return while a peer is inside.
TEST(direct_end_waits_for_a_reader) {
  DirectConnection w;
  w.b->link.board->setPatience(kForEver);
  Buffer memory(*w.b, 4096, kAllAccess, 1);
  const DirectPeer::Place place = enterToRead(w, memory);
  CHECK(place && !place.mapped && place.at == memory.data());
  std::atomic<bool> returned{false};
  std::thread owner([&] {
    CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
    returned = true;
  });
  while (w.hostCounter(*w.b, HostCounter::kDirectWaits) == 0) std::this_thread::yield();
  CHECK(!returned);
  CHECK(w.pa->peer.leave());
  owner.join();
  memory.lkey = 0;
  CHECK(!enterToRead(w, memory));
}

// What a stopped reader has read does not count, and the memory stays where it is.
TEST(direct_end_does_not_wait_for_a_stopped_reader) {
  DirectConnection w;
  w.b->link.board->setPatience(kShort);
  Buffer memory(*w.b, 4096, kAllAccess, 1), own(*w.a, 64);
  CHECK(enterToRead(w, memory));
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectEvictions), 1u);
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectTakenBack), 0u);
  CHECK(!w.pa->peer.leave());
  CHECK(!enterToRead(w, memory));
}

// A READ during which the key ends does not succeed, whatever was read.
TEST(direct_end_in_the_middle_of_a_read) {
  DirectConnection w;
  w.b->link.board->setPatience(kShort);
  Buffer memory(*w.b, 4096, kAllAccess, 1), own(*w.a, 64);
  w.pb->sleeping(true);
  const uint32_t i = w.qa.write(oneSided(kOpRead, {{own.at(), 8, own.lkey}}, memory.at(), memory.rkey));
  // The choice between entering and reading looks at the clock.
  bool entered = false;
  w.clock.hook = [&] {
    if (!DirectMark::inside(DirectMark::look(w.pb->directMark()))) return;
    w.clock.hook = nullptr;
    entered = true;
    CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
    memory.lkey = 0;
  };
  w.a->engine.doorbell(w.qa.handle);
  CHECK(entered);
  w.pump();
  only(w.qa.sendCq, i, kOpRead, kWcRemoteAccess, 8);
  CHECK_EQ(w.a->counter("direct_system_read"), 0u);
  CHECK_EQ(w.a->counter("direct_evicted"), 1u);
}

// A batch of which the last READs are more than the system should make: these go by the ring, in their turn, and so do those that
// follow while they are under way.
TEST(direct_reads_in_batches_beside_a_wake_up) {
  QpShape shape;
  shape.sendEntries = 64;
  for (const LocalChoice::Way way : {LocalChoice::Way::kName, LocalChoice::Way::kCarry}) {
    DirectConnection w({}, shape);
    w.fixWay(way);
    Buffer target(*w.b, kBytes, kAllAccess, 3), back(*w.a, kBytes);
    constexpr uint32_t kSize = 4096, kInFlight = 16;
    uint32_t outstanding = 0, done = 0;
    for (uint32_t round = 0; round < 500; round++) {
      if (round % 7 == 0) w.pb->sleeping(true);
      if (round % 50 == 0) pause(w);
      const uint32_t before = outstanding;
      for (; outstanding < kInFlight; outstanding++) w.qa.write(oneSided(kOpRead, {{back.at(), kSize, back.lkey}}, target.at(round), target.rkey));
      if (before != outstanding) w.a->engine.doorbell(w.qa.handle);
      for (uint32_t i = 0; i < 1 + round % 3; i++) w.a->step(), w.b->step();
      for (const Cqe& c : w.qa.sendCq.drain()) {
        CHECK_EQ(c.status, kWcSuccess);
        outstanding--;
        done++;
      }
    }
    CHECK(w.a->counter("direct_system_read") > 0 && w.a->counter("direct_system_read") < done);
  }
}
