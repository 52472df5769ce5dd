// Tests of the end of direct access. Once a key, a queue pair or a process is gone, no peer writes with it any more,
// whatever the peer is doing.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "direct_world.h"
#include "trap.h"

using namespace world;

#if defined(__SANITIZE_THREAD__)
// The trap is triggered where this process accesses its own memory, and not in the middle of an allocation.
extern "C" const char* __tsan_default_options() { return "report_signal_unsafe=0"; }
#endif

namespace {

constexpr uint64_t kForEver = UINT64_MAX / 4, kShort = 1'000'000;

DirectPeer::Request request(const DirectConnection& w, const SharedBuffer& memory, uint32_t right, uint64_t offset = 0,
                            uint64_t length = 8) {
  return {w.qa.qpn, w.qb.qpn, memory.rkey, right, wire::kDefaultPkey, memory.memory->base + offset, length};
}

ProcessId endedProcess() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  CHECK(waitpid(child, nullptr, 0) == child);
  return child;
}

uint8_t* enter(DirectConnection& w, const SharedBuffer& memory, uint32_t right = kAccessRemoteWriteBit,
               uint64_t offset = 0, uint64_t length = 8) {
  DirectPeer::Refusal why;
  return w.pa->peer.enter(request(w, memory, right, offset, length), w.pa->maps, &why);
}

}  // namespace

// Tests every command that ends a peer's rights. Afterwards the peer's own check finds nothing, and a request has the
// same outcome as without direct access.
TEST(direct_ends_with_every_command_that_ends_it) {
  struct Case {
    const char* name;
    std::function<void(DirectConnection&, SharedBuffer&)> end;
  };
  const Case cases[] = {
      {"deregister",
       [](DirectConnection& w, SharedBuffer& m) {
         CHECK(w.b->engine.deregisterMr(w.b->pd, m.lkey) == Status::kSuccess);
         m.lkey = 0;
       }},
      {"unpin", [](DirectConnection& w, SharedBuffer& m) { w.b->engine.unpinRange(m.range); }},
      {"error", [](DirectConnection& w, SharedBuffer&) { CHECK(w.qb.toState(kQpsError) == Status::kSuccess); }},
      {"reset", [](DirectConnection& w, SharedBuffer&) { CHECK(w.qb.toState(kQpsReset) == Status::kSuccess); }},
      {"destroy",
       [](DirectConnection& w, SharedBuffer&) { CHECK(w.b->engine.destroyQp(w.qb.handle) == Status::kSuccess); }},
      {"rights",
       [](DirectConnection& w, SharedBuffer&) {
         QpAttributes a;
         a.access = kAccessRemoteRead;
         CHECK(w.qb.modify(qpmask::kAccess, a) == Status::kSuccess);
       }},
      {"kernel",
       [](DirectConnection& w, SharedBuffer& m) {
         w.b->engine.detachKernel(w.b->kernel);
         m.lkey = 0;
       }},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    SharedBuffer memory(*w.b, 4096);
    Buffer own(*w.a, 64, kAllAccess, 4);
    w.meet(memory);
    CHECK(enter(w, memory) && w.pa->peer.leave());
    w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, memory.at(), memory.rkey));
    CHECK_EQ(w.direct(*w.a), 1u);
    w.qa.sendCq.drain();
    c.end(w, memory);
    CHECK(!enter(w, memory));
    std::memset(memory.data(), 0xAB, 4096);
    w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, memory.at(), memory.rkey));
    CHECK(w.until([&] { return w.qa.sendCq.written() != w.qa.sendCq.consumer; }));
    CHECK(w.qa.sendCq.drain().at(0).status != kWcSuccess);
    CHECK_EQ(w.direct(*w.a), 1u);
    for (uint32_t i = 0; i < 4096; i++) CHECK_EQ(memory.data()[i], 0xAB);
    CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectWaits), 0u);
  }
  check::note = "";
}

// Removing a P_Key from the table ends direct access as well, and restoring the P_Key starts it again.
TEST(direct_follows_the_partition) {
  DirectWorld w;
  Handle table;
  CHECK(w.b->engine.createPkeyTable(w.b->kernel, &table) == Status::kSuccess);
  QpShape shape;
  TestQp qa(*w.a, shape, 1);
  shape.pkeyTable = table;
  TestQp qb(*w.b, shape, 2);
  w.connect(qa, qb);
  w.pump();
  SharedBuffer memory(*w.b, 4096);
  CHECK(w.pb->offers.offer(*memory.memory, true));
  CHECK_EQ(w.map(*w.a), 1u);
  const auto finds = [&] {
    DirectPeer::Refusal why;
    const bool found = w.pa->peer.enter({qa.qpn, qb.qpn, memory.rkey, kAccessRemoteRead, 0xFFFF, memory.at(), 8},
                                        w.pa->maps, &why) != nullptr;
    return found && w.pa->peer.leave();
  };
  CHECK(finds());
  CHECK(w.b->engine.setPkeyTable(table, {0x8001}, {}) == Status::kSuccess);
  CHECK(!finds());
  CHECK(w.b->engine.setPkeyTable(table, {0x7FFF}, {}) == Status::kSuccess);
  CHECK(finds());
  CHECK(w.b->engine.destroyQp(qb.handle) == Status::kSuccess);
  CHECK(w.b->engine.destroyPkeyTable(table) == Status::kSuccess);
}

// A command does not return while a peer is in the middle of an access.
TEST(direct_end_waits_for_the_peer) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kForEver);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  uint8_t* const at = enter(w, memory);
  CHECK(at != nullptr);
  std::atomic<bool> returned{false};
  std::thread owner([&] {
    CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
    returned = true;
  });
  while (w.hostCounter(*w.b, HostCounter::kDirectWaits) == 0) std::this_thread::yield();
  CHECK(!returned);
  *at = 42;
  CHECK(!returned);
  CHECK(w.pa->peer.leave());
  owner.join();
  memory.lkey = 0;
  CHECK_EQ(memory.data()[0], 42);
  CHECK(!memory.memory->reclaimed);
  CHECK(!enter(w, memory));
}

// A peer that is stopped in the middle of an access loses the memory, whose contents are preserved. Everything
// continues in packets.
TEST(direct_end_does_not_wait_for_a_stopped_peer) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kShort);
  const uint64_t bytes = 5 * kPage + 77;
  SharedBuffer memory(*w.b, bytes, 6);
  Buffer own(*w.a, 64, kAllAccess, 4);
  uint32_t lkey, rkey;  // another key of the same memory
  CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), bytes, kAllAccess, &lkey, &rkey) == Status::kSuccess);
  w.meet(memory);
  uint8_t* const at = enter(w, memory, kAccessRemoteWriteBit, 0, bytes);
  at[1] = 0x11;
  const std::vector<uint8_t> held(memory.data(), memory.data() + bytes);
  CHECK_EQ(held[1], 0x11);
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  CHECK(memory.memory->reclaimed);
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectReclaimed), 1u);
  CHECK(std::memcmp(memory.data(), held.data(), bytes) == 0);
  for (uint64_t i = 0; i < bytes; i += 100) at[i] = 0xEE;  // the peer continues, without effect
  CHECK(std::memcmp(memory.data(), held.data(), bytes) == 0);
  memory.data()[2] = 0x22;
  CHECK(at[2] != 0x22);
  CHECK(!w.pa->peer.leave());
  // The next access works like any other, but this memory is no longer published.
  const uint32_t i = w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, memory.at(kPage), rkey));
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(memory.data() + kPage, own.data(), 8) == 0);
  CHECK_EQ(w.direct(*w.a), 0u);
  SharedBuffer other(*w.b, 4096);
  w.meet(other);
  w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, other.at(), other.rkey));
  CHECK_EQ(w.direct(*w.a), 1u);
  CHECK(std::memcmp(other.data(), own.data(), 8) == 0);
  CHECK(w.b->engine.deregisterMr(w.b->pd, lkey) == Status::kSuccess);
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectEvictions), 1u);
}

// The same test with the only key of the memory.
TEST(direct_end_of_the_only_key_under_a_stopped_peer) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kShort);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  uint8_t* const at = enter(w, memory, kAccessRemoteWriteBit, 0, 4096);
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  std::memset(memory.data(), 0xAB, 4096);
  std::memset(at, 0xEE, 4096);
  for (uint32_t i = 0; i < 4096; i++) CHECK_EQ(memory.data()[i], 0xAB);
  CHECK(!w.pa->peer.leave());
}

#if !defined(__SANITIZE_THREAD__)  // TSan takes the remapping for a write
// Memory is withdrawn while threads of its owner write to it. Nothing that they write is lost.
TEST(direct_memory_reclaimed_under_its_writers) {
  std::shared_ptr<const SharedRange> memory;
  const uint64_t bytes = 512 * kPage;
  CHECK(allocateShared(bytes, &memory) == Status::kSuccess);
  auto* const words = reinterpret_cast<uint64_t*>(memory->base);
  const uint64_t count = bytes / 8;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; round++) {
      for (uint64_t i = 0; i < count; i += 64) {
        if (__atomic_load_n(words + i, __ATOMIC_RELAXED) != round - 1) CHECK(!"what was written is there");
        __atomic_store_n(words + i, round, __ATOMIC_RELAXED);
      }
      rounds = round;
    }
  });
  while (rounds < 3) std::this_thread::yield();
  std::vector<SharedRange::Part> all = {memory->partAt(memory->base, memory->length)};
  CHECK(memory->reclaim(&all));
  const uint64_t then = rounds;
  while (rounds < then + 3) std::this_thread::yield();
  stop = true;
  writer.join();
  for (uint64_t i = 0; i < count; i += 64) CHECK_EQ(words[i], rounds);
}
#endif

// Only the pages that the peer is accessing become the owner's private copies, and they remain private when the rest is
// tried again.
TEST(direct_memory_is_reclaimed_in_parts) {
  std::shared_ptr<const SharedRange> memory;
  CHECK(allocateShared(8 * kPage, &memory) == Status::kSuccess);
  Mapping file;
  CHECK(file.openShared(memory->fd.get(), memory->length, true));
  auto* const bytes = reinterpret_cast<uint8_t*>(memory->base);
  auto* const theirs = static_cast<uint8_t*>(file.get());
  std::vector<SharedRange::Part> parts = {memory->partAt(memory->base + kPage + 1, kPage),
                                          memory->partAt(memory->base + 5 * kPage, 1)};
  CHECK(parts[0].offset == kPage && parts[0].length == 2 * kPage && parts[1].offset == 5 * kPage &&
        parts[1].length == kPage);
  for (uint32_t i = 0; i < 8; i++) bytes[i * kPage] = uint8_t(i + 1);
  CHECK(memory->reclaim(&parts) && parts.empty() && memory->reclaimed);
  for (uint32_t i = 0; i < 8; i++) {
    const bool own = i == 1 || i == 2 || i == 5;
    CHECK_EQ(bytes[i * kPage], i + 1);
    theirs[i * kPage] = 0xEE;
    CHECK_EQ(bytes[i * kPage], own ? i + 1 : 0xEEu);
  }
}

TEST(direct_parts_of_memory) {
  std::shared_ptr<const SharedRange> memory;
  CHECK(allocateShared(2 * kPage, &memory) == Status::kSuccess);
  const uint64_t base = memory->base;
  struct Case {
    uint64_t address, bytes, offset, length;
  };
  // A peer may report any values.
  const Case cases[] = {{base, 1, 0, kPage},
                        {base + kPage - 1, 2, 0, 2 * kPage},
                        {base + 2 * kPage - 1, 100, kPage, kPage},
                        {base - 1, 2, 0, kPage},
                        {base, 0, 0, 0},
                        {base + 2 * kPage, 8, 0, 0},
                        {base - 8, 8, 0, 0},
                        {UINT64_MAX - 3, 8, 0, 0},
                        {0, UINT64_MAX, 0, 2 * kPage}};
  for (const Case& c : cases) {
    const SharedRange::Part part = memory->partAt(c.address, c.bytes);
    CHECK(part.length == c.length && (c.length == 0 || part.offset == c.offset));
  }
}

namespace {

// Two peers of one HCA write to the same memory: tests of their in-use flags.
struct Peers {
  HostCounters counters;
  LocalPair own[2] = {{1, counters}, {2, counters}}, theirs[2] = {{0, counters}, {0, counters}};
  LocalPair* all[2] = {&own[0], &own[1]};
  explicit Peers(ProcessId second = getpid()) {
    for (int i = 0; i < 2; i++) {
      UniqueFd fd;
      CHECK(own[i].mapping.create(&fd) && theirs[i].mapping.open(fd.get()));
      own[i].attach(0, i == 1 ? second : getpid(), true);
      theirs[i].attach(1, getpid(), true);
      own[i].state = theirs[i].state = LocalPair::State::kUp;
    }
  }
  void goInside(int who, const SharedRange& memory, uint32_t key = 0x100, uint64_t offset = 0, uint32_t bytes = 8) {
    DirectAccessRecord* const access = own[who].remoteAccess();
    access->announce(memory.base + offset, bytes, key, 0);
    DirectInUse::enter(&access->inUse, DirectInUse::load(&access->inUse), uint32_t(memory.id));
  }
};

}  // namespace

// Two peers are stopped in the same memory, which is withdrawn once.
TEST(direct_end_under_two_stopped_peers) {
  Peers peers;
  DirectOwner keyTable(peers.counters);
  CHECK(keyTable.create());
  keyTable.setEvictionTimeoutNs(kShort);
  std::shared_ptr<const SharedRange> memory;
  CHECK(allocateShared(4096, &memory) == Status::kSuccess);
  const uint32_t place = keyTable.publish({0x100, kAccessRemoteWriteBit, 1, 0, memory->base, 4096}, memory.get());
  for (int i = 0; i < 2; i++) peers.goInside(i, *memory);
  keyTable.withdraw(0x100, place);
  CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kReclaimed);
  CHECK_EQ(peers.counters.get(HostCounter::kDirectEvictions), 2u);
  CHECK_EQ(peers.counters.get(HostCounter::kDirectReclaimed), 1u);
}

// An access of another peer in the same file, with another key and on other pages, continues and counts if it ends in
// time. A peer that is stopped there is evicted with the first, and its pages are moved as well. A peer that is
// accessing the memory with a key that remains is left alone.
TEST(direct_end_beside_another_peer) {
  for (const bool stopped : {false, true}) {
    Peers peers;
    DirectOwner keyTable(peers.counters);
    CHECK(keyTable.create());
    std::shared_ptr<const SharedRange> memory;
    CHECK(allocateShared(8 * kPage, &memory) == Status::kSuccess);
    const auto publish = [&](uint32_t key) {
      return keyTable.publish({key, kAccessRemoteWriteBit, 1, 0, memory->base, 8 * kPage}, memory.get());
    };
    const uint32_t one = publish(0x100), two = publish(0x200), three = publish(0x300);
    peers.goInside(0, *memory, 0x100);
    peers.goInside(1, *memory, 0x200, 4 * kPage);
    const uint64_t second = DirectInUse::load(&peers.own[1].remoteAccess()->inUse);
    keyTable.withdraw(0x300, three);
    CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kQuiet);  // no peer is accessing memory with it
    CHECK_EQ(peers.counters.get(HostCounter::kDirectEvictions), 0u);
    if (!stopped) CHECK(DirectInUse::leave(&peers.own[1].remoteAccess()->inUse, second));
    keyTable.withdraw(0x100, one);
    CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kReclaimed);
    CHECK_EQ(peers.counters.get(HostCounter::kDirectEvictions), stopped ? 2u : 1u);
    if (stopped) CHECK(!DirectInUse::leave(&peers.own[1].remoteAccess()->inUse, second));
    Mapping file;
    CHECK(file.openShared(memory->fd.get(), memory->length, true));
    auto* const bytes = reinterpret_cast<uint8_t*>(memory->base);
    for (uint32_t page = 0; page < 8; page++) {
      static_cast<uint8_t*>(file.get())[page * kPage] = 0xEE;
      CHECK_EQ(bytes[page * kPage] == 0xEE, !(page == 0 || (stopped && page == 4)));
    }
    keyTable.withdraw(0x200, two);
    CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kQuiet);
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // sanitizers may need OS memory at any time
// If there is no room for the pages, nothing waits. The command that ends the key fails, the region stays, and the
// command may be repeated. Other requests are served meanwhile.
TEST(direct_end_without_memory) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kShort);
  SharedBuffer memory(*w.b, 1024 * kPage), other(*w.b, kPage);
  w.meet(memory);
  uint8_t* const at = enter(w, memory);
  rlimit before;
  CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
  rlimit none = before;
  none.rlim_cur = kPage;  // Linux ignores a limit of 0
  CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  const uint64_t start = monotonicNs();
  const Status status = w.b->engine.deregisterMr(w.b->pd, memory.lkey),
               again = w.b->engine.deregisterMr(w.b->pd, memory.lkey);
  const uint64_t took = monotonicNs() - start;
  const Status others = w.b->engine.deregisterMr(w.b->pd, other.lkey);
  CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
  CHECK(status == Status::kNoMemory && again == Status::kNoMemory && others == Status::kSuccess);
  CHECK(took < 5'000'000'000);
  other.lkey = 0;
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectUnmoved), 1u);
  CHECK(!enter(w, memory));
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  memory.data()[0] = 0xAB;
  at[0] = 0xEE;
  CHECK_EQ(memory.data()[0], 0xAB);
  CHECK(!w.pa->peer.leave());
}

// Memory that could not be moved away from a peer stays allocated until that peer's process has ended, whoever frees
// it.
TEST(direct_memory_stays_while_it_could_not_be_moved) {
  Peers peers;
  DirectOwner keyTable(peers.counters);
  CHECK(keyTable.create());
  std::shared_ptr<const SharedRange> memory;
  CHECK(allocateShared(1024 * kPage, &memory) == Status::kSuccess);
  const std::weak_ptr<const SharedRange> alive = memory;
  const uint32_t place = keyTable.publish({0x100, kAccessRemoteWriteBit, 1, 0, memory->base, kPage}, memory.get());
  peers.goInside(0, *memory);
  keyTable.withdraw(0x100, place);
  rlimit before;
  CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
  rlimit none = before;
  none.rlim_cur = kPage;
  CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  const DirectOwner::Settled settled = keyTable.settle(peers.all, 2);
  CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
  CHECK(settled == DirectOwner::Settled::kNoMemory && keyTable.unsafe(*memory));
  memory.reset();
  CHECK(!alive.expired());
  CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kQuiet);
  CHECK(alive.expired());
}
#endif

// A command does not hold the lock while it waits, so other threads can take it.
TEST(direct_end_leaves_the_lock_to_others) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kForEver);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  CHECK(enter(w, memory) != nullptr);
  std::thread owner([&] { CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess); });
  while (w.hostCounter(*w.b, HostCounter::kDirectWaits) == 0) std::this_thread::yield();
  for (uint32_t i = 0; i < 100; i++) CHECK(w.b->engine.counters().size() > 0);
  CHECK(w.pa->peer.leave());
  owner.join();
  memory.lkey = 0;
}

// A peer that comes back as soon as it is evicted does not hold up the owner for ever. Whether it is fast enough is a
// matter of chance.
TEST(direct_end_under_a_peer_that_always_comes_back) {
  Peers peers(endedProcess());
  DirectOwner keyTable(peers.counters);
  CHECK(keyTable.create());
  keyTable.setEvictionTimeoutNs(kShort);
  uint64_t* const inUse = &peers.own[0].remoteAccess()->inUse;
  std::atomic<bool> stop{false};
  std::thread hostile([&] {
    while (!stop) {
      uint64_t now = DirectInUse::load(inUse);
      const uint64_t again = ((now & ~DirectInUse::kEvicted) + DirectInUse::kNextAccess) | DirectInUse::kInside;
      if ((now & DirectInUse::kEvicted) != 0)
        __atomic_compare_exchange_n(inUse, &now, again, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
  });
  for (uint64_t round = 0; round < 50; round++) {
    std::shared_ptr<const SharedRange> memory;
    CHECK(allocateShared(4096, &memory) == Status::kSuccess);
    const uint32_t place = keyTable.publish({0x100, kAccessRemoteWriteBit, 1, 0, memory->base, 4096}, memory.get());
    peers.goInside(1, *memory);  // the peer is killed there; checking that gives the other one time to come back
    peers.goInside(0, *memory);
    const uint64_t before = peers.counters.get(HostCounter::kDirectEvictions);
    keyTable.withdraw(0x100, place);
    CHECK(keyTable.settle(peers.all, 2) == DirectOwner::Settled::kReclaimed);
    CHECK(memory->reclaimed);
    CHECK(peers.counters.get(HostCounter::kDirectEvictions) <= before + 2);
  }
  stop = true;
  hostile.join();
}

// The key ends at each page of a copy in turn. An access that has not counted is then sent in packets, and refused. The
// end of another key of the memory changes nothing.
TEST(direct_eviction_at_every_page_of_a_copy) {
  const uint32_t pages = 4, bytes = uint32_t(pages * kPage);
  for (const uint32_t opcode : {kOpWrite, kOpRead}) {
    for (uint32_t page = 0; page < pages; page++) {
      for (const bool same : {false, true}) {
        check::note = same ? "key itself" : "another key";
        check::noteNumber = page;
        DirectConnection w;
        w.b->link.keyTable->setEvictionTimeoutNs(kShort);
        SharedBuffer memory(*w.b, bytes, 8), own(*w.a, bytes, 9);
        uint32_t lkey, rkey;
        CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), bytes, kAllAccess, &lkey, &rkey) == Status::kSuccess);
        w.meet(memory);
        std::vector<uint8_t> before(memory.data(), memory.data() + bytes);
        const std::vector<uint8_t> source(own.data(), own.data() + bytes);
        {
          Trap trap(own.data() + page * kPage, [&] {
            CHECK(w.b->engine.deregisterMr(w.b->pd, same ? memory.lkey : lkey) == Status::kSuccess);
            if (same) std::memset(memory.data(), 0xAB, bytes);
          });
          const uint32_t i = w.qa.post(oneSided(opcode, {{own.at(), bytes, own.lkey}}, memory.at(), memory.rkey));
          w.pump();
          only(w.qa.sendCq, i, opcode, same ? kWcRemoteAccess : kWcSuccess, opcode == kOpRead ? bytes : 0);
        }
        if (same) memory.lkey = 0;
        CHECK_EQ(w.a->counter("direct_evicted"), same ? 1u : 0u);
        CHECK_EQ(w.direct(*w.a), same ? 0u : 1u);
        if (same) {
          for (uint32_t i = 0; i < bytes; i++) CHECK_EQ(memory.data()[i], 0xAB);
        } else if (opcode == kOpWrite) {
          CHECK(std::memcmp(memory.data(), source.data(), bytes) == 0);
        } else {
          CHECK(std::memcmp(own.data(), before.data(), bytes) == 0);
        }
      }
    }
  }
  check::note = "";
}

// It is unknown whether an atomic was executed in time, so the request fails like one whose response was lost, and is
// not executed twice. A call that is not a request reports this, and the connection stays.
TEST(direct_eviction_at_an_atomic) {
  for (const bool request : {true, false}) {
    DirectConnection w;
    w.b->link.keyTable->setEvictionTimeoutNs(kShort);
    SharedBuffer memory(*w.b, kPage);
    Buffer own(*w.a, 8);
    w.meet(memory);
    std::memset(memory.data(), 0, kPage);
    uint8_t* const seen = enter(w, memory);
    CHECK(w.pa->peer.leave());
    {
      Trap trap(seen, [&] { CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess); });
      if (request) {
        Wr r = oneSided(kOpFetchAdd, {{own.at(), 8, own.lkey}}, memory.at(), memory.rkey);
        r.compare = 5;
        const uint32_t i = w.qa.post(r);
        w.pump();
        only(w.qa.sendCq, i, kOpFetchAdd, kWcTimeoutRetry);
      } else {
        uint8_t five[8] = {5};
        CHECK(w.a->engine.direct(w.qa.handle, DirectOperation::kFetchAdd, five, 8, memory.at(), memory.rkey) ==
              DirectResult::kUnknown);
        CHECK_EQ(five[0], 5);
      }
    }
    memory.lkey = 0;
    CHECK_EQ(memory.data()[0], 0);
    CHECK_EQ(w.qa.state(), request ? kQpsError : kQpsRts);
  }
}

// The owner does not wait for a peer that was killed in the middle of an access, and that peer's in-use flag has no
// effect.
TEST(direct_end_after_a_killed_peer) {
  DirectConnection w({}, {}, endedProcess());
  w.b->link.keyTable->setEvictionTimeoutNs(kForEver);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  CHECK(enter(w, memory));
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  CHECK(!memory.memory->reclaimed);
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectEvictions), 0u);
}

// A peer that writes arbitrary values into its in-use flag costs a bounded time, and affects only its own memory.
TEST(direct_hostile_in_use_flags) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(kShort);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  DirectAccessRecord* const access = w.pb->remoteAccess();
  uint64_t* const inUse = &access->inUse;
  Random random(3);
  for (int i = 0; i < 200; i++) {
    const uint64_t value = uint64_t(random.next()) << 32 | random.next();
    __atomic_store_n(inUse,
                     i % 10 ? value & ~DirectInUse::kInside : (value | DirectInUse::kInside) & ~DirectInUse::kEvicted,
                     __ATOMIC_RELEASE);
    uint32_t lkey, rkey;
    CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), 4096, kAllAccess, &lkey, &rkey) == Status::kSuccess);
    access->announce(uint64_t(random.next()) << 32 | random.next(), random.next(), rkey, random.next());
    CHECK(w.b->engine.deregisterMr(w.b->pd, lkey) == Status::kSuccess);
  }
  CHECK(!memory.memory->reclaimed || w.hostCounter(*w.b, HostCounter::kDirectReclaimed) == 1);
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectEvictions), 20u);
}

// Whatever a peer's table contains, this side accesses only what it has mapped of that peer's memory.
TEST(direct_hostile_tables) {
  DirectConnection w;
  SharedBuffer memory(*w.b, 2 * kPage);
  Buffer own(*w.a, 8192, kAllAccess, 4);
  w.meet(memory);
  Mapping pages;
  UniqueFd fd;
  CHECK(pages.createPublished(sizeof(DirectTable), &fd));
  auto* const table = static_cast<DirectTable*>(pages.get());
  w.pa->peer.close();
  CHECK(!w.pa->peer.open(fd.get()));  // the magic number is missing
  table->magic = DirectTable::kMagic;
  CHECK(w.pa->peer.open(fd.get()));
  CHECK(!w.pa->peer.open(fd.get()));  // a table is already open
  Random random(11);
  const auto any = [&] { return uint64_t(random.next()) << 32 | random.next(); };
  const auto near = [&](uint64_t value) {
    return random.below(3) ? value : random.below(2) ? any() : value + random.below(64) - 32;
  };
  DirectKey& key = table->keys[DirectTable::placeOf(memory.rkey, 0)];
  DirectQp& qp = table->qps[w.qb.qpn % DirectTable::kQps];
  uint32_t entered = 0, viewed = 0;
  for (int i = 0; i < 20'000; i++) {
    key.sequence = uint32_t(near(2));
    key.key = memory.rkey;
    key.access = uint32_t(near(kAllAccess | kAccessRemoteView));
    key.pd = uint32_t(near(1));
    key.qpn = uint32_t(near(0));
    key.file = uint32_t(near(memory.memory->id));
    key.address = near(memory.at());
    key.length = near(2 * kPage);
    qp.sequence = uint32_t(near(2));
    qp.qpn = uint32_t(near(w.qb.qpn));
    qp.peer = uint32_t(near(w.qa.qpn));
    qp.access = uint32_t(near(kAllAccess));
    qp.pd = uint32_t(near(1));
    qp.pkey = uint32_t(near(0xFFFF));
    DirectPeer::Request r = request(w, memory, 1u << random.below(3));
    r.address = near(memory.at(near(0)));
    r.length = near(8);
    DirectPeer::Refusal why;
    DirectPeer::Request view = r;
    view.right = kAccessRemoteView;
    w.pa->maps.keep(1, duplicateDescriptor(memory.memory->fd.get()));
    const FilePart part = w.pa->peer.view(view, w.pa->maps, &why);
    viewed += part.fd.valid();
    CHECK(!part.fd.valid() || (part.offset <= 2 * kPage && view.length <= 2 * kPage - part.offset));
    uint8_t* const at = w.pa->peer.enter(r, w.pa->maps, &why);
    if (!at) continue;
    entered++;
    const uint8_t* const first = w.pa->maps.findFile(key.file, memory.at(), 2 * kPage, false);
    CHECK(first && at >= first && r.length <= 2 * kPage && at + r.length <= first + 2 * kPage);
    CHECK(w.pa->peer.leave());
  }
  CHECK(entered > 20 && viewed > 20);
  // The memory starts at an address that misaligns an aligned atomic.
  std::shared_ptr<const SharedRange> other;
  CHECK(allocateShared(kPage, &other) == Status::kSuccess);
  const auto offer = [&](uint64_t base) { return w.pa->maps.add({0, 99, base, kPage, 1, 99}, other->fd.get(), true); };
  CHECK(!offer(other->base + 4) && offer(other->base));
  // The number of requested files is limited as well.
  uint32_t asked = 0;
  w.pa->peer.sendAll([&](const DirectPeer::Wish&) {
    asked++;
    return true;
  });
  CHECK(asked <= DirectPeer::kMostRequested);
}
