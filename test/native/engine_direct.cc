// Tests of direct access: what one side does itself in the other's memory, without a packet and while the other does
// not run, and what it leaves to the other.
#include <functional>

#include "direct_world.h"
#include "trap.h"

using namespace world;

namespace {

constexpr uint32_t kBytes = 1u << 20;

bool same(const void* a, const void* b, size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

// Memory that no HCA has registered.
std::vector<uint8_t> unregistered(size_t bytes, uint64_t seed) {
  std::vector<uint8_t> made(bytes);
  Random random(seed);
  for (uint8_t& byte : made) byte = uint8_t(random.next());
  return made;
}

DirectResult now(TestQp& by, DirectOperation operation, std::vector<uint8_t>& bytes, uint64_t remote, uint32_t rkey) {
  return by.node.engine.direct(by.handle, operation, bytes.data(), bytes.size(), remote, rkey);
}

DirectResult place(TestQp& by, std::vector<uint8_t> from, uint64_t remote, uint32_t rkey) {
  return now(by, DirectOperation::kWrite, from, remote, rkey);
}

// An atomic operation: its result and the previous value.
struct Changed {
  DirectResult result;
  uint64_t before;
};

Changed change(TestQp& by, DirectOperation operation, std::vector<uint64_t> operands, uint64_t remote, uint32_t rkey) {
  const size_t bytes = operands.size() * 8;
  const DirectResult result =
      by.node.engine.direct(by.handle, operation, reinterpret_cast<uint8_t*>(operands.data()), bytes, remote, rkey);
  return {result, operands[0]};
}

Changed add(TestQp& by, uint64_t value, uint64_t remote, uint32_t rkey) {
  return change(by, DirectOperation::kFetchAdd, {value}, remote, rkey);
}

Changed exchange(TestQp& by, uint64_t expected, uint64_t next, uint64_t remote, uint32_t rkey) {
  return change(by, DirectOperation::kCompareExchange, {expected, next}, remote, rkey);
}

bool allAre(SharedBuffer& memory, uint8_t value) {
  return std::all_of(memory.data(), memory.data() + memory.size, [&](uint8_t byte) { return byte == value; });
}

}  // namespace

TEST(direct_every_size_and_shape) {
  DirectConnection w;
  SharedBuffer target(*w.b, kBytes);
  Buffer own(*w.a, kBytes, kAllAccess, 3), back(*w.a, kBytes);
  w.meet(target);
  const uint64_t packets = w.a->counter("sent_pkts") + w.b->counter("sent_pkts");
  uint64_t requests = 0;
  Random random(5);
  for (const uint32_t size :
       {1u, 2u, 7u, 8u, 64u, 65u, 66u, 4096u, 65'535u, 65'536u, 65'537u, 200'001u, 524'288u, 700'000u}) {
    for (const uint32_t pieces : {1u, 2u, 4u}) {
      check::note = "size";
      check::noteNumber = size;
      if (size < pieces) continue;
      const uint32_t offset = random.below(100);
      std::vector<Sge> from, to;
      for (uint32_t i = 0, at = 0; i < pieces; i++) {
        const uint32_t part = i + 1 == pieces ? size - at : size / pieces;
        from.push_back({own.at(13 + at), part, own.lkey});
        to.push_back({back.at(at), part, back.lkey});
        at += part;
      }
      std::memset(target.data(), 0xEE, kBytes);
      std::memset(back.data(), 0xEE, kBytes);
      const uint32_t i = w.qa.post(oneSided(kOpWrite, from, target.at(offset), target.rkey));
      while (w.a->step())
        ;  // b does not run
      only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
      CHECK(same(target.data() + offset, own.data() + 13, size));
      CHECK(target.data()[offset + size] == 0xEE && (offset == 0 || target.data()[offset - 1] == 0xEE));
      const uint32_t r = w.qa.post(oneSided(kOpRead, to, target.at(offset), target.rkey));
      while (w.a->step())
        ;
      only(w.qa.sendCq, r, kOpRead, kWcSuccess, size);
      CHECK(same(back.data(), own.data() + 13, size) && back.data()[size] == 0xEE);
      requests += 2;
    }
  }
  check::note = "";
  Wr inlined = oneSided(kOpWrite, {}, target.at(), target.rkey);
  inlined.flags |= kSendFlagInline;
  inlined.inlined = {1, 2, 3, 4, 5};
  const uint32_t i = w.qa.post(inlined);
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK(same(target.data(), inlined.inlined.data(), 5));
  CHECK_EQ(w.direct(*w.a), requests + 1);
  CHECK_EQ(w.a->counter("sent_pkts") + w.b->counter("sent_pkts"), packets);
}

TEST(direct_atomics) {
  DirectConnection w;
  SharedBuffer target(*w.b, 4096);
  Buffer own(*w.a, 64);
  w.meet(target, 100);
  uint64_t* const word = reinterpret_cast<uint64_t*>(target.data()) + 1;
  *word = UINT64_MAX - 1;
  const auto run = [&](uint32_t opcode, uint64_t compare, uint64_t swap, const std::vector<Sge>& sges) {
    Wr r = oneSided(opcode, sges, target.at(8), target.rkey);
    r.compare = compare;
    r.swap = swap;
    const uint32_t i = w.qa.post(r);
    only(w.qa.sendCq, i, opcode, kWcSuccess, 8);
    uint64_t result;
    std::memcpy(&result, own.data(), 8);
    return result;
  };
  const std::vector<Sge> whole = {{own.at(), 8, own.lkey}},
                         halves = {{own.at(), 3, own.lkey}, {own.at(3), 5, own.lkey}};
  CHECK_EQ(run(kOpFetchAdd, 5, 0, whole), UINT64_MAX - 1);
  CHECK_EQ(*word, 3u);
  CHECK_EQ(run(kOpFetchAdd, 1ull << 40, 0, halves), 3u);
  CHECK_EQ(run(kOpCompareExchange, 4, 77, whole), 3 + (1ull << 40));
  CHECK_EQ(*word, 3 + (1ull << 40));
  CHECK_EQ(run(kOpCompareExchange, 3 + (1ull << 40), 77, halves), 3 + (1ull << 40));
  CHECK_EQ(*word, 77u);
  CHECK_EQ(w.a->counter("direct_atomic"), 4u);
  // For a misaligned operand, the peer decides as usual.
  Wr r = oneSided(kOpFetchAdd, whole, target.at(4), target.rkey);
  r.compare = 1;
  const uint32_t i = w.qa.post(r);
  w.pump();
  only(w.qa.sendCq, i, kOpFetchAdd, kWcRemoteInvalidRequest);
  CHECK_EQ(*word, 77u);
}

// Everything that the peer would refuse is sent to the peer, and has the same outcome as without direct access.
TEST(direct_checks_what_the_responder_checks) {
  struct Case {
    const char* name;
    uint32_t status;
    uint32_t keyAccess, qpAccess;
    uint32_t opcode;
    int64_t offset;
    uint32_t rkeyChange;
    bool otherPd;
  };
  constexpr uint32_t kRead = kAccessRemoteRead, kLocal = kAccessLocalWrite, kWrite = kAccessRemoteWriteBit | kLocal;
  constexpr uint32_t kQpAll = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kLocal;
  const Case cases[] = {
      {"allowed", kWcSuccess, kAllAccess, kQpAll, kOpWrite, 0, 0, false},
      {"last byte", kWcSuccess, kAllAccess, kQpAll, kOpWrite, 4088, 0, false},
      {"one byte too far", kWcRemoteAccess, kAllAccess, kQpAll, kOpWrite, 4089, 0, false},
      {"below", kWcRemoteAccess, kAllAccess, kQpAll, kOpWrite, -1, 0, false},
      {"far away", kWcRemoteAccess, kAllAccess, kQpAll, kOpRead, INT64_MAX / 2, 0, false},
      {"another key", kWcRemoteAccess, kAllAccess, kQpAll, kOpWrite, 0, 1, false},
      {"key without write", kWcRemoteAccess, kRead, kQpAll, kOpWrite, 0, 0, false},
      {"key without read", kWcRemoteAccess, kWrite, kQpAll, kOpRead, 0, 0, false},
      {"key without atomics", kWcRemoteAccess, kWrite, kQpAll, kOpFetchAdd, 0, 0, false},
      {"queue pair without write", kWcRemoteInvalidRequest, kAllAccess, kRead | kLocal, kOpWrite, 0, 0, false},
      {"queue pair without read", kWcRemoteInvalidRequest, kAllAccess, kWrite, kOpRead, 0, 0, false},
      {"queue pair without atomics", kWcRemoteInvalidRequest, kAllAccess, kWrite, kOpFetchAdd, 0, 0, false},
      {"another domain", kWcRemoteAccess, kAllAccess, kQpAll, kOpWrite, 0, 0, true},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    Link2 l;
    l.access = c.qpAccess;
    DirectConnection w(l);
    SharedBuffer memory(*w.b, 8192);
    Buffer own(*w.a, 64, kAllAccess, 9);
    Handle pd = w.b->pd;
    if (c.otherPd) CHECK(w.b->engine.allocatePd(w.b->kernel, &pd) == Status::kSuccess);
    uint32_t lkey = 0, rkey = 0;
    CHECK(w.b->engine.registerMr(pd, memory.at(), 4096, c.keyAccess, &lkey, &rkey) == Status::kSuccess);
    bool writable;
    CHECK(w.b->link.keyTable->rangeOf(uint32_t(memory.memory->id), &writable));
    w.pb->offers.offer(*memory.memory, true);
    CHECK_EQ(w.map(*w.a), 1u);
    std::vector<uint8_t> before(memory.data(), memory.data() + 8192);
    const uint32_t i =
        w.qa.post(oneSided(c.opcode, {{own.at(), 8, own.lkey}}, memory.at() + uint64_t(c.offset), rkey + c.rkeyChange));
    w.pump();
    only(w.qa.sendCq, i, c.opcode, c.status, c.opcode == kOpWrite ? 0 : 8);
    CHECK_EQ(w.direct(*w.a), c.status == kWcSuccess ? 1u : 0u);
    CHECK_EQ(w.qb.state() == kQpsError, c.status != kWcSuccess);
    if (c.status != kWcSuccess) CHECK(same(memory.data(), before.data(), 8192));
    CHECK(w.b->engine.deregisterMr(pd, lkey) == Status::kSuccess);
  }
  check::note = "";
}

// The peer's queue pair has exactly one peer. Another queue pair that names it as its destination does not qualify.
TEST(direct_by_the_connection_only) {
  DirectConnection w;
  TestQp impostor(*w.a);
  bring(impostor, w.b->gid, w.qb.qpn, {}, true);
  SharedBuffer target(*w.b, 4096);
  Buffer own(*w.a, 64, kAllAccess, 4);
  w.meet(target);
  std::memset(target.data(), 0, 4096);
  impostor.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, target.at(), target.rkey));
  w.pump();
  CHECK_EQ(w.direct(*w.a), 0u);
  CHECK_EQ(target.data()[0], 0);
}

// A file is mapped for writing only once it contains a key with write rights.
TEST(direct_maps_for_writing_where_that_is_allowed) {
  DirectConnection w;
  SharedBuffer memory(*w.b, 4096, 5);
  Buffer own(*w.a, 64, kAllAccess, 4);
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  const auto add = [&](uint32_t access) {
    CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), 4096, access, &memory.lkey, &memory.rkey) == Status::kSuccess);
  };
  const auto request = [&](uint32_t opcode, uint32_t key) {
    w.qa.post(oneSided(opcode, {{own.at(), 8, own.lkey}}, memory.at(), key));
    w.pump();
    CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  };
  add(kAccessRemoteRead);
  const uint32_t lkey = memory.lkey, rkey = memory.rkey;
  request(kOpRead, rkey);
  CHECK_EQ(w.map(*w.a), 1u);
  request(kOpRead, rkey);
  CHECK_EQ(w.direct(*w.a), 1u);
  CHECK(w.pa->maps.findFile(uint32_t(memory.memory->id), memory.at(), 4096, false));
  CHECK(!w.pa->maps.findFile(uint32_t(memory.memory->id), memory.at(), 4096, true));
  add(kAllAccess);
  request(kOpWrite, memory.rkey);  // uses packets, because the memory is not mapped again yet
  CHECK_EQ(w.direct(*w.a), 1u);
  CHECK_EQ(w.map(*w.a), 1u);
  request(kOpWrite, memory.rkey);
  request(kOpRead, rkey);
  CHECK_EQ(w.direct(*w.a), 3u);
  CHECK(w.b->engine.deregisterMr(w.b->pd, lkey) == Status::kSuccess);
}

// A file that the peer has mapped for reading only, because it is sealed, is unmapped like any other when the memory is
// freed.
TEST(direct_sealed_memory_is_freed) {
  DirectConnection w;
  Buffer own(*w.a, 64);
  uint32_t file = 0;
  {
    SharedBuffer memory(*w.b, 4096);
    memory.memory->seal(false);  // seals the file as for a peer without direct access
    file = uint32_t(memory.memory->id);
    CHECK(w.pb->offers.offer(*memory.memory, false));
    CHECK_EQ(w.map(*w.a), 1u);
    w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, memory.at(), memory.rkey));
    w.pump();
    CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
    CHECK_EQ(w.map(*w.a), 0u);  // the file cannot be mapped for writing
    CHECK(w.pa->maps.findFile(file, memory.at(), 1, false) != nullptr);
  }
  w.map(*w.a);
  CHECK(!w.pa->maps.findFile(file, 0, 0, false) && !w.pa->maps.has(1));
}

// When memory that was requested is gone, whether or not it was offered and mapped, its slot is free for another
// request.
TEST(direct_memory_that_came_to_nothing_is_forgotten) {
  DirectConnection w;
  Buffer own(*w.a, 64);
  const auto write = [&](const SharedBuffer& to) {
    w.qa.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, to.memory->base, to.rkey));
    w.pump();
    CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  };
  for (uint32_t i = 0; i < 2 * DirectPeer::kMostRequested; i++) {
    {
      SharedBuffer memory(*w.b, 4096);
      write(memory);
      w.pa->peer.sendAll([&](const DirectPeer::Wish&) { return w.pb->offers.offer(*memory.memory, true); });
      uint32_t number = 0;
      if (i % 2 != 0)
        w.pb->offers.sendAll(true, [&](const LocalMemory& told, Descriptor) { return (number = told.number) != 0; });
      w.pb->offers.onReply(number, false);
    }
    CHECK_EQ(w.map(*w.a), 0u);
  }
  SharedBuffer last(*w.b, 4096);
  write(last);
  CHECK_EQ(w.map(*w.a), 1u);
}

// A request that follows an outstanding one waits for it, or takes the same path.
TEST(direct_keeps_the_order) {
  DirectConnection w;
  SharedBuffer target(*w.b, 4096);
  Buffer own(*w.a, 64), to(*w.b, 64);
  w.meet(target);
  for (int i = 0; i < 8; i++) own.data()[i] = uint8_t(i + 1);
  w.qb.receive({{to.at(), 8, to.lkey}});
  const uint32_t s = w.qa.post({kOpSend, kSendFlagSignaled, {{own.at(), 1, own.lkey}}});
  const uint32_t wi = w.qa.post(oneSided(kOpWrite, {{own.at(1), 1, own.lkey}}, target.at(), target.rkey));
  CHECK_EQ(target.data()[0], 0);  // the SEND has not been executed
  CHECK_EQ(w.direct(*w.a), 0u);
  w.pump();
  std::vector<Cqe> done = w.qa.sendCq.drain();
  CHECK(done.size() == 2 && done[0].wqe == s && done[1].wqe == wi);
  CHECK_EQ(target.data()[0], 2);
  // When a SEND after a WRITE arrives, the written data is in memory.
  w.qb.receive({{to.at(), 8, to.lkey}});
  w.qa.post(oneSided(kOpWrite, {{own.at(2), 1, own.lkey}}, target.at(), target.rkey));
  CHECK_EQ(target.data()[0], 3);
  w.qa.post({kOpSend, kSendFlagSignaled, {{own.at(), 1, own.lkey}}});
  w.pump();
  CHECK_EQ(w.direct(*w.a), 1u);
  CHECK_EQ(w.qa.sendCq.drain().size(), 2u);
  // Both requests are in one batch, with unsignaled requests between them.
  w.qb.receiveCq.drain();
  w.qb.receive({{to.at(), 8, to.lkey}});
  Wr quiet = oneSided(kOpWrite, {{own.at(3), 1, own.lkey}}, target.at(), target.rkey);
  quiet.flags = 0;
  w.qa.write(quiet);
  Wr fenced = oneSided(kOpRead, {{own.at(40), 1, own.lkey}}, target.at(), target.rkey);
  fenced.flags |= kSendFlagFence;
  const uint32_t r = w.qa.write(fenced);
  const uint32_t last = w.qa.post({kOpSend, kSendFlagSignaled | kSendFlagFence, {{own.at(), 1, own.lkey}}});
  CHECK_EQ(own.data()[40], 4);
  w.pump();
  done = w.qa.sendCq.drain();
  CHECK(done.size() == 2 && done[0].wqe == r && done[0].opcode == kOpRead && done[1].wqe == last);
  CHECK_EQ(w.direct(*w.a), 3u);
}

// Memory windows are accessible only to the queue pair that they are bound to, and only while they are bound.
TEST(direct_windows) {
  DirectConnection w;
  TestQp qc(*w.a), qd(*w.b);
  w.connect(qc, qd);
  SharedBuffer memory(*w.b, 4096);
  Buffer own(*w.a, 64, kAllAccess, 2);
  w.meet(memory);
  Window window(*w.b);
  const auto bind = [&] {
    Wr r{kOpBindWindow, kSendFlagSignaled, {}};
    const uint32_t next = (window.key & ~0xFFu) | ((window.key + 1) & 0xFF);
    r.remote = memory.at(1024);
    r.rkey = memory.lkey;
    r.access = kAccessRemoteWriteBit;
    r.compare = 1024;
    r.swap = uint64_t(next) << 32 | window.key;
    window.key = next;
    w.qb.post(r);
    w.pump();
    CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  };
  const auto write = [&](TestQp& by, uint32_t key) {
    const uint32_t i = by.post(oneSided(kOpWrite, {{own.at(), 8, own.lkey}}, memory.at(1024), key));
    w.pump();
    const std::vector<Cqe> done = by.sendCq.drain();
    CHECK(done.size() == 1 && done[0].wqe == i);
    return done.at(0).status;
  };
  bind();
  CHECK_EQ(write(w.qa, window.key), kWcSuccess);
  CHECK_EQ(w.direct(*w.a), 1u);
  // When the window is bound again, the old key is invalid and the new one is valid.
  const uint32_t old = window.key;
  Wr invalidate{kOpLocalInvalidate, kSendFlagSignaled, {}};
  invalidate.rkey = old;
  w.qb.post(invalidate);
  w.pump();
  CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  bind();
  CHECK_EQ(write(w.qa, window.key), kWcSuccess);
  CHECK_EQ(w.direct(*w.a), 2u);
  CHECK_EQ(write(qc, window.key), kWcRemoteAccess);  // from another queue pair
  // A SEND with Invalidate ends the binding before the peer learns of the message.
  w.qb.receive({});
  Wr send{kOpSend, kSendFlagSignaled | kSendFlagInvalidate, {}};
  send.immediate = window.key;
  w.qa.post(send);
  w.pump();
  CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  std::memset(memory.data(), 0, 4096);
  CHECK_EQ(write(w.qa, window.key), kWcRemoteAccess);
  CHECK_EQ(w.direct(*w.a), 2u);
  CHECK_EQ(memory.data()[1024], 0);
  CHECK(w.b->engine.destroyQp(w.qb.handle) == Status::kSuccess);
  CHECK(w.b->engine.destroyQp(qd.handle) == Status::kSuccess);
}

// If two HCAs of one process published the same key, only one of them would withdraw it. So the second does not publish
// it.
TEST(direct_memory_of_one_hca_only) {
  DirectConnection w;
  SharedBuffer memory(*w.b, 4096);
  uint64_t range;
  uint32_t lkey, rkey;
  CHECK(w.a->engine.pinRange(memory.at(), 4096, &range) == Status::kSuccess);
  CHECK(w.a->engine.registerMr(w.a->pd, memory.at(), 4096, kAllAccess, &lkey, &rkey) == Status::kSuccess);
  bool writable;
  CHECK(w.b->link.keyTable->rangeOf(uint32_t(memory.memory->id), &writable) && writable);
  CHECK(!w.a->link.keyTable->rangeOf(uint32_t(memory.memory->id), &writable));
  w.a->engine.unpinRange(range);
  CHECK(w.a->engine.deregisterMr(w.a->pd, lkey) == Status::kSuccess);
}

// There are more keys than the table has slots. The rest use packets, and slots are reused.
TEST(direct_table_is_finite) {
  HostCounters counters;
  DirectOwner keyTable(counters);
  CHECK(keyTable.create());
  std::shared_ptr<const SharedRange> memory;
  CHECK(allocateShared(4096, &memory) == Status::kSuccess);
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < DirectTable::kPlaces + 1; i++) {
    const uint32_t key = (i + 1) * DirectTable::kKeys << 8 | i;  // all keys need the same slot
    places.push_back(keyTable.publish({key, kAccessRemoteWriteBit, 1, 0, memory->base, 4096}, memory.get()));
  }
  for (uint32_t i = 0; i < DirectTable::kPlaces; i++) CHECK(places[i] != 0);
  CHECK_EQ(places.back(), 0u);
  CHECK_EQ(counters.get(HostCounter::kDirectUnpublished), 1u);
  keyTable.withdraw(2 * DirectTable::kKeys << 8 | 1, places[1]);
  CHECK_EQ(keyTable.publish({77u << 8 << 14, kAccessRemoteWriteBit, 1, 0, memory->base, 4096}, memory.get()),
           places[1]);
  bool writable;
  CHECK(keyTable.rangeOf(uint32_t(memory->id), &writable));
}

// The doorbell of a late receive also serves the receive when the other direction is direct and there is nothing to
// send.
TEST(direct_beside_a_late_receive) {
  Link2 l;
  l.rnrRetries = wire::kMostRnrRetries;
  l.rnrTimeout = rnrtimeout::kResponder | rnrtimeout::kRequester;
  for (const bool meets : {false, true}) {
    DirectConnection w(l);
    SharedBuffer target(*w.b, 4096), to(*w.b, 4096), back(*w.a, 4096);
    Buffer from(*w.a, 64, kAllAccess, 3), reply(*w.b, 64, kAllAccess, 4);
    if (meets) w.meet(target);
    const uint32_t first = w.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 64, from.lkey}}});
    CHECK(w.until([&] { return w.qb.header()[kQpReceiveBell] == 1; }));
    // Meanwhile b posts requests, all of them direct where it has mapped the memory.
    if (meets) {
      const uint32_t i = w.qb.post(oneSided(kOpWrite, {{reply.at(), 64, reply.lkey}}, back.at(), back.rkey));
      w.pump();
      only(w.qb.sendCq, i, kOpWrite, kWcSuccess);
      CHECK_EQ(w.map(*w.b), 1u);
      const uint32_t n = w.qb.post(oneSided(kOpWrite, {{reply.at(), 64, reply.lkey}}, back.at(), back.rkey));
      only(w.qb.sendCq, n, kOpWrite, kWcSuccess);
      CHECK_EQ(w.direct(*w.b), 1u);
    }
    CHECK_EQ(w.qb.header()[kQpReceiveBell], 1u);
    const uint64_t posted = w.clock.time, ended = w.qa.sendCq.written();
    w.qb.receive({{to.at(), 64, to.lkey}});
    CHECK_EQ(w.qb.header()[kQpReceiveBell], 0u);
    CHECK_EQ(w.b->counter("late_receive"), 1u);
    CHECK(w.until([&] { return w.qa.sendCq.written() == ended + 1; }));
    CHECK(w.clock.time - posted <= 200'000);
    only(w.qa.sendCq, first, kOpSend, kWcSuccess);
    only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 64);
    CHECK(same(to.data(), from.data(), 64));
    // After that, the requests of a are direct again.
    if (!meets) continue;
    const uint64_t before = w.direct(*w.a);
    const uint32_t i = w.qa.post(oneSided(kOpWrite, {{from.at(), 64, from.lkey}}, target.at(), target.rkey));
    only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
    CHECK_EQ(w.direct(*w.a), before + 1);
  }
}

// A long request takes several steps. In the last one, the next request turns out not to qualify for direct access.
TEST(direct_before_one_that_is_not) {
  DirectConnection w;
  SharedBuffer target(*w.b, kBytes);
  Buffer own(*w.a, kBytes, kAllAccess, 3), other(*w.b, 8192, kAllAccess, 4), back(*w.a, 8192);
  w.meet(target);
  constexpr uint32_t kLong = LocalPair::kStepBytes + 1000;
  w.qa.write(oneSided(kOpWrite, {{own.at(), kLong, own.lkey}}, target.at(), target.rkey));
  const uint32_t last = w.qa.post(oneSided(kOpRead, {{back.at(), 5000, back.lkey}}, other.at(), other.rkey));
  w.pump();
  const std::vector<Cqe> done = w.qa.sendCq.drain();
  CHECK(done.size() == 2 && done.back().wqe == last);
  for (const Cqe& c : done) CHECK_EQ(c.status, kWcSuccess);
  CHECK_EQ(w.direct(*w.a), 1u);
  CHECK(same(target.data(), own.data(), kLong) && same(back.data(), other.data(), 5000));
}

// ── Bytes that are placed without a request ─────────────────────────────────────────────────────

// A queue pair without initiator depth has neither Reads nor atomics, on any path.
TEST(direct_now_without_initiator_depth) {
  Link2 none;
  none.depth = 0;
  DirectConnection w(none);
  SharedBuffer target(*w.b, 4096);
  Buffer back(*w.a, 4096);
  w.meet(target);
  std::vector<uint8_t> bytes(64, 7), read(64);
  CHECK(place(w.qa, bytes, target.at(), target.rkey) == DirectResult::kDone);
  CHECK(now(w.qa, DirectOperation::kRead, read, target.at(), target.rkey) == DirectResult::kRefused);
  std::vector<uint8_t> nothing;
  CHECK(now(w.qa, DirectOperation::kRead, nothing, target.at(), target.rkey) == DirectResult::kRefused);
  CHECK(add(w.qa, 1, target.at(), target.rkey).result == DirectResult::kRefused);
  CHECK(exchange(w.qa, 0, 1, target.at(), target.rkey).result == DirectResult::kRefused);
  CHECK(allAre(target, 7) || same(target.data(), bytes.data(), 64));
  const uint32_t i = w.qa.post(oneSided(kOpRead, {{back.at(), 8, back.lkey}}, target.at(), target.rkey));
  w.pump();
  const std::vector<Cqe> done = w.qa.sendCq.drain();
  CHECK(done.size() == 1 && done[0].wqe == i && done[0].status != kWcSuccess);
}

// The bytes are there when the call returns, whatever their length. The peer does not run, nothing is sent, and nothing
// completes.
TEST(direct_now_every_length) {
  DirectConnection w;
  SharedBuffer target(*w.b, kBytes);
  w.meet(target);
  std::vector<uint8_t> bytes = unregistered(kBytes, 5), back(kBytes);
  const uint64_t packets = w.a->counter("sent_pkts") + w.b->counter("sent_pkts");
  Random random(6);
  for (const uint32_t size : {1u, 7u, 8u, 64u, 65u, 4096u, 65'535u, 65'536u, 65'537u, 131'072u, 200'000u, 700'000u}) {
    check::note = "size";
    check::noteNumber = size;
    const uint32_t from = random.below(100), to = 1 + random.below(100);
    std::memset(target.data(), 0xEE, kBytes);
    const uint64_t before = w.a->counter("direct_write");
    const auto at = [&](DirectOperation operation, uint8_t* data) {
      return w.a->engine.direct(w.qa.handle, operation, data, size, target.at(to), target.rkey);
    };
    CHECK(at(DirectOperation::kWrite, bytes.data() + from) == DirectResult::kDone);
    CHECK(w.a->counter("direct_write") > before);
    CHECK(same(target.data() + to, bytes.data() + from, size));
    CHECK(target.data()[to - 1] == 0xEE && target.data()[to + size] == 0xEE);
    const uint64_t reads = w.a->counter("direct_read");
    std::fill(back.begin(), back.end(), 0xDD);
    CHECK(at(DirectOperation::kRead, back.data() + from + 1) == DirectResult::kDone);
    CHECK(w.a->counter("direct_read") > reads);
    CHECK(same(back.data() + from + 1, bytes.data() + from, size));
    CHECK(back[from] == 0xDD && back[from + 1 + size] == 0xDD);
  }
  check::note = "";
  // The placement reaches the last byte of the region.
  CHECK(place(w.qa, bytes, target.at(), target.rkey) == DirectResult::kDone);
  CHECK(same(target.data(), bytes.data(), kBytes));
  w.pump();
  CHECK(w.qa.sendCq.drain().empty() && w.qb.receiveCq.drain().empty());
  CHECK_EQ(w.a->counter("sent_pkts") + w.b->counter("sent_pkts"), packets);
  CHECK(w.qa.state() == kQpsRts && w.qb.state() == kQpsRts);
}

// Placements do not wait for outstanding requests, which end as if nothing had been placed.
TEST(direct_now_before_outstanding_requests) {
  DirectConnection w;
  SharedBuffer target(*w.b, kBytes);
  Buffer own(*w.a, kBytes, kAllAccess, 3), to(*w.b, 64);
  w.meet(target);
  const std::vector<uint8_t> bytes = unregistered(200'000, 7), few = unregistered(8, 8);
  const uint32_t s = w.qa.post({kOpSend, kSendFlagSignaled, {{own.at(), 64, own.lkey}}});
  const uint32_t behind = w.qa.post(oneSided(kOpWrite, {{own.at(64), 8, own.lkey}}, target.at(), target.rkey));
  const auto places = [&](uint64_t offset) {
    std::memset(target.data(), 0xEE, kBytes);
    CHECK(place(w.qa, bytes, target.at(offset), target.rkey) == DirectResult::kDone);
    CHECK(same(target.data() + offset, bytes.data(), bytes.size()));
    CHECK(place(w.qa, few, target.at(), target.rkey) == DirectResult::kDone);
    CHECK(same(target.data(), few.data(), few.size()));
  };
  places(1000);  // the Send has not been executed
  w.pump();
  places(2000);  // the peer has reported that it has no receive
  CHECK(w.advance());
  places(3000);
  CHECK(w.qa.sendCq.drain().empty());
  w.qb.receive({{to.at(), 64, to.lkey}});
  CHECK(w.until([&] { return w.qa.sendCq.written() == w.qa.sendCq.consumer + 2; }));
  const std::vector<Cqe> done = w.qa.sendCq.drain();
  CHECK(done.size() == 2 && done[0].wqe == s && done[1].wqe == behind);
  for (const Cqe& c : done) CHECK_EQ(c.status, kWcSuccess);
  CHECK(same(to.data(), own.data(), 64));
  CHECK(same(target.data(), own.data() + 64, 8));  // placed by the Write, in its order
  CHECK(same(target.data() + 3000, bytes.data(), bytes.size()));
}

// A placement occurs in the middle of a long Write, which then continues where it was.
TEST(direct_now_within_a_write) {
  constexpr uint32_t kLong = 8 * LocalPair::kStepBytes;
  DirectConnection w;
  SharedBuffer target(*w.b, kLong + 8);
  Buffer own(*w.a, kLong, kAllAccess, 3);
  w.meet(target);
  const std::vector<uint8_t> few = unregistered(8, 8);
  const uint32_t i = w.qa.post(oneSided(kOpWrite, {{own.at(), kLong, own.lkey}}, target.at(), target.rkey));
  uint32_t times = 0;
  do {
    std::memset(target.data() + kLong, 0xEE, 8);
    CHECK(place(w.qa, few, target.at(kLong), target.rkey) == DirectResult::kDone);
    CHECK(same(target.data() + kLong, few.data(), few.size()));
    if (w.qa.sendCq.written() == w.qa.sendCq.consumer) times++;
  } while (w.a->step());
  CHECK(times > 0);
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK(same(target.data(), own.data(), kLong) && same(target.data() + kLong, few.data(), few.size()));
}

// A placement that the check refuses changes no byte, and neither side is notified.
TEST(direct_now_is_checked) {
  constexpr uint32_t kInner = 4096;
  struct Case {
    const char* name;
    bool done;
    uint32_t access;
    int64_t offset;
    uint32_t length, rkeyChange;
    bool otherPd;
  };
  constexpr uint32_t kLocal = kAccessLocalWrite, kNoWrite = kAllAccess & ~kAccessRemoteWriteBit;
  const Case cases[] = {
      {"allowed", true, kAllAccess, 0, kInner, 0, false},
      {"last bytes", true, kAllAccess, kInner - 8, 8, 0, false},
      {"one byte too far", false, kAllAccess, kInner - 7, 8, 0, false},
      {"longer than the region", false, kAllAccess, 0, kInner + 1, 0, false},
      {"behind it", false, kAllAccess, kInner, 1, 0, false},
      {"one byte below", false, kAllAccess, -1, 8, 0, false},
      {"another key", false, kAllAccess, 0, 8, 1, false},
      {"without remote rights", false, kLocal, 0, 8, 0, false},
      {"without remote write right", false, kNoWrite, 0, 8, 0, false},
      {"another domain", false, kAllAccess, 0, 8, 0, true},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    SharedBuffer memory(*w.b, 3 * kInner);
    w.meet(memory);
    std::memset(memory.data(), 0xAB, memory.size);
    Handle pd = w.b->pd;
    if (c.otherPd) CHECK(w.b->engine.allocatePd(w.b->kernel, &pd) == Status::kSuccess);
    uint32_t lkey = 0, rkey = 0;
    CHECK(w.b->engine.registerMr(pd, memory.at(kInner), kInner, c.access, &lkey, &rkey) == Status::kSuccess);
    const std::vector<uint8_t> bytes = unregistered(c.length, 4);
    const uint64_t at = memory.at(kInner) + uint64_t(c.offset), writes = w.a->counter("direct_write");
    const uint64_t refused = w.a->counter("direct_refused");
    CHECK(place(w.qa, bytes, at, rkey + c.rkeyChange) == (c.done ? DirectResult::kDone : DirectResult::kRefused));
    CHECK_EQ(w.a->counter("direct_write") - writes, c.done ? 1u : 0u);
    CHECK_EQ(w.a->counter("direct_refused") - refused, c.done ? 0u : 1u);
    if (c.done) CHECK(same(memory.data() + (at - memory.at()), bytes.data(), bytes.size()));
    else CHECK(allAre(memory, 0xAB));
    w.pump();
    CHECK(w.qa.state() == kQpsRts && w.qb.state() == kQpsRts && w.qa.sendCq.drain().empty());
    CHECK(place(w.qa, bytes, memory.at(), memory.rkey) == DirectResult::kDone);
    CHECK(w.b->engine.deregisterMr(pd, lkey) == Status::kSuccess);
  }
  check::note = "";
}

// Reads and atomic operations are tested together. Each needs its own right, an address within the region, and the
// published key.
TEST(direct_now_reads_and_atomics_are_checked) {
  constexpr uint32_t kInner = 4096;
  struct Case {
    const char* name;
    uint32_t access;
    int64_t offset;
    bool reads, changes;
  };
  constexpr uint32_t kRead = kAccessLocalWrite | kAccessRemoteRead, kWrite = kAccessLocalWrite | kAccessRemoteWriteBit;
  const Case cases[] = {
      {"allowed", kAllAccess, 0, true, true},
      {"last bytes", kAllAccess, kInner - 8, true, true},
      {"one byte too far", kAllAccess, kInner - 7, false, false},
      {"one byte below", kAllAccess, -1, false, false},
      {"not aligned", kAllAccess, 4, true, false},
      {"read alone", kRead, 0, true, false},
      {"write alone", kWrite, 0, false, false},
      {"atomic alone", kAccessLocalWrite | kAccessRemoteAtomic, 0, false, true},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    SharedBuffer memory(*w.b, 3 * kInner);
    w.meet(memory);
    std::memset(memory.data(), 1, memory.size);
    uint32_t lkey = 0, rkey = 0;
    CHECK(w.b->engine.registerMr(w.b->pd, memory.at(kInner), kInner, c.access, &lkey, &rkey) == Status::kSuccess);
    const uint64_t at = memory.at(kInner) + uint64_t(c.offset), ones = 0x0101010101010101u;
    const auto read = [&](uint32_t key) {
      std::vector<uint8_t> into(8, 0xEE);
      const DirectResult result = now(w.qa, DirectOperation::kRead, into, at, key);
      CHECK_EQ(into[0], result == DirectResult::kDone ? 1u : 0xEEu);
      return result == DirectResult::kDone;
    };
    CHECK(read(rkey) == c.reads && !read(rkey + 1));
    const Changed added = add(w.qa, 5, at, rkey), other = add(w.qa, 5, at, rkey + 1);
    CHECK((added.result == DirectResult::kDone) == c.changes && other.result == DirectResult::kRefused);
    CHECK_EQ(added.before, c.changes ? ones : 5u);
    CHECK_EQ(other.before, 5u);
    const Changed unequal = exchange(w.qa, ones, 7, at, rkey), equal = exchange(w.qa, ones + 5, 7, at, rkey);
    CHECK((unequal.result == DirectResult::kDone) == c.changes && (equal.result == DirectResult::kDone) == c.changes);
    if (c.changes) {
      CHECK(unequal.before == ones + 5 && equal.before == ones + 5);
      uint64_t there;
      std::memcpy(&there, memory.data() + (at - memory.at()), 8);
      CHECK_EQ(there, 7u);
      CHECK_EQ(w.a->counter("direct_atomic"), 3u);
    } else {
      CHECK(allAre(memory, 1));
    }
    // Operands of any other length are invalid.
    for (const uint32_t length : {1u, 7u, 9u, 16u, 17u}) {
      std::vector<uint8_t> bytes(length, 1);
      CHECK(now(w.qa, DirectOperation::kFetchAdd, bytes, memory.at(), memory.rkey) == DirectResult::kRefused);
      if (length == 16) continue;
      CHECK(now(w.qa, DirectOperation::kCompareExchange, bytes, memory.at(), memory.rkey) == DirectResult::kRefused);
    }
    w.pump();
    CHECK(w.qa.state() == kQpsRts && w.qb.state() == kQpsRts && w.qa.sendCq.drain().empty());
    CHECK(w.b->engine.deregisterMr(w.b->pd, lkey) == Status::kSuccess);
  }
  check::note = "";
}

// Tests everything that ends a key or a queue pair, on either side.
TEST(direct_now_ends_with_its_key_and_queue_pairs) {
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
      {"rights of the peer",
       [](DirectConnection& w, SharedBuffer& m) {
         QpAttributes a;
         a.access = kAccessRemoteRead | kAccessRemoteAtomic;
         CHECK(w.qb.modify(qpmask::kAccess, a) == Status::kSuccess);
         CHECK(place(w.qa, {1}, m.at(), m.rkey) == DirectResult::kRefused);
         a.access = 0;
         CHECK(w.qb.modify(qpmask::kAccess, a) == Status::kSuccess);
       }},
      {"error of the peer",
       [](DirectConnection& w, SharedBuffer&) { CHECK(w.qb.toState(kQpsError) == Status::kSuccess); }},
      {"reset of the peer",
       [](DirectConnection& w, SharedBuffer&) { CHECK(w.qb.toState(kQpsReset) == Status::kSuccess); }},
      {"end of the peer",
       [](DirectConnection& w, SharedBuffer&) { CHECK(w.b->engine.destroyQp(w.qb.handle) == Status::kSuccess); }},
      {"drained", [](DirectConnection& w, SharedBuffer&) { CHECK(w.qa.toState(kQpsSqd) == Status::kSuccess); }},
      {"error", [](DirectConnection& w, SharedBuffer&) { CHECK(w.qa.toState(kQpsError) == Status::kSuccess); }},
      {"reset", [](DirectConnection& w, SharedBuffer&) { CHECK(w.qa.toState(kQpsReset) == Status::kSuccess); }},
      {"ready to receive",
       [](DirectConnection& w, SharedBuffer&) {
         CHECK(w.qa.toState(kQpsReset) == Status::kSuccess);
         bring(w.qa, w.b->gid, w.qb.qpn, {}, true, kQpsRtr);
       }},
      {"end",
       [](DirectConnection& w, SharedBuffer&) { CHECK(w.a->engine.destroyQp(w.qa.handle) == Status::kSuccess); }},
      {"end, and another queue pair",
       [](DirectConnection& w, SharedBuffer&) {
         CHECK(w.a->engine.destroyQp(w.qa.handle) == Status::kSuccess);
         const TestQp next(*w.a);
         CHECK(next.handle != w.qa.handle);
       }},
  };
  const std::vector<uint8_t> bytes = unregistered(8, 4);
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    SharedBuffer memory(*w.b, 4096);
    w.meet(memory);
    CHECK(place(w.qa, bytes, memory.at(), memory.rkey) == DirectResult::kDone);
    c.end(w, memory);
    std::memset(memory.data(), 0xAB, 4096);
    CHECK(place(w.qa, bytes, memory.at(), memory.rkey) == DirectResult::kRefused);
    CHECK(allAre(memory, 0xAB));
    std::vector<uint8_t> read = bytes;
    CHECK(now(w.qa, DirectOperation::kRead, read, memory.at(), memory.rkey) == DirectResult::kRefused);
    CHECK(read == bytes);
    CHECK_EQ(w.direct(*w.a), 1u);
    CHECK(add(w.qa, 1, memory.at(), memory.rkey).result == DirectResult::kRefused);
    CHECK(exchange(w.qa, 0xABABABABABABABABu, 1, memory.at(), memory.rkey).result == DirectResult::kRefused);
    CHECK(allAre(memory, 0xAB));
    CHECK_EQ(w.direct(*w.a), 1u);
  }
  check::note = "";
}

TEST(direct_now_by_windows) {
  DirectConnection w;
  TestQp qc(*w.a), qd(*w.b);
  w.connect(qc, qd);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  std::memset(memory.data(), 0xAB, 4096);
  const std::vector<uint8_t> bytes = unregistered(8, 4);
  Window window(*w.b);
  const auto bind = [&](uint32_t access) {
    Wr r{kOpBindWindow, kSendFlagSignaled, {}};
    const uint32_t next = (window.key & ~0xFFu) | ((window.key + 1) & 0xFF);
    r.remote = memory.at(1024);
    r.rkey = memory.lkey;
    r.access = access;
    r.compare = 1024;
    r.swap = uint64_t(next) << 32 | window.key;
    window.key = next;
    w.qb.post(r);
    w.pump();
    CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  };
  const auto invalidate = [&] {
    Wr r{kOpLocalInvalidate, kSendFlagSignaled, {}};
    r.rkey = window.key;
    w.qb.post(r);
    w.pump();
    CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  };
  bind(kAccessRemoteRead);
  CHECK(place(w.qa, bytes, memory.at(1024), window.key) == DirectResult::kRefused);
  invalidate();
  bind(kAccessRemoteWriteBit);
  CHECK(place(qc, bytes, memory.at(1024), window.key) == DirectResult::kRefused);  // from another queue pair
  CHECK(place(w.qa, bytes, memory.at(1023), window.key) == DirectResult::kRefused);
  CHECK(place(w.qa, bytes, memory.at(2041), window.key) == DirectResult::kRefused);
  CHECK(allAre(memory, 0xAB));
  CHECK(place(w.qa, bytes, memory.at(2040), window.key) == DirectResult::kDone);
  CHECK(same(memory.data() + 2040, bytes.data(), 8));
  std::memset(memory.data(), 0xAB, 4096);
  const uint32_t old = window.key;
  invalidate();
  CHECK(place(w.qa, bytes, memory.at(1024), old) == DirectResult::kRefused);
  bind(kAccessRemoteWriteBit);
  CHECK(place(w.qa, bytes, memory.at(1024), old) == DirectResult::kRefused);
  CHECK(allAre(memory, 0xAB));
  CHECK(place(w.qa, bytes, memory.at(1024), window.key) == DirectResult::kDone);
  CHECK(w.b->engine.destroyQp(w.qb.handle) == Status::kSuccess);
  CHECK(w.b->engine.destroyQp(qd.handle) == Status::kSuccess);
}

// An access of zero bytes only tests whether the peer's memory can be reached. No key is checked.
TEST(direct_now_no_bytes) {
  const std::vector<uint8_t> none, some(8);
  const auto direct = [&](TestQp& qp) { return place(qp, none, 0, 0); };
  DirectConnection w;
  const uint64_t before = w.direct(*w.a);
  CHECK(direct(w.qa) == DirectResult::kDone && direct(w.qb) == DirectResult::kDone);
  for (const DirectOperation operation : {DirectOperation::kFetchAdd, DirectOperation::kCompareExchange})
    CHECK(w.a->engine.direct(w.qa.handle, operation, nullptr, 0, 0, 0) == DirectResult::kRefused);
  CHECK_EQ(w.direct(*w.a), before);
  TestQp unconnected(*w.a);
  CHECK(direct(unconnected) == DirectResult::kRefused);
  for (const Handle handle : {Handle(0), Handle(~Handle(0))})
    CHECK(w.a->engine.direct(handle, DirectOperation::kWrite, nullptr, 0, 0, 0) == DirectResult::kRefused);
  QpShape unreliable;
  unreliable.type = kQptUc;
  TestQp ua(*w.a, unreliable), ub(*w.b, unreliable);
  w.connect(ua, ub);
  SharedBuffer memory(*w.b, 4096);
  w.meet(memory);
  CHECK(direct(ua) == DirectResult::kRefused && place(ua, some, memory.at(), memory.rkey) == DirectResult::kRefused);
  LocalConnection carried;  // the local link, without direct access
  SharedBuffer other(*carried.b, 4096, 3);
  CHECK(direct(carried.qa) == DirectResult::kRefused);
  CHECK(place(carried.qa, some, other.at(), other.rkey) == DirectResult::kRefused);
  Pair wire;
  Buffer far(*wire.b, 64);
  CHECK(direct(wire.qa) == DirectResult::kRefused &&
        place(wire.qa, some, far.at(), far.rkey) == DirectResult::kRefused);
  for (DirectPeer* peer : {&w.pa->peer, &w.pb->peer}) peer->close();  // as when a process ends
  CHECK(direct(w.qa) == DirectResult::kRefused &&
        place(w.qa, some, memory.at(), memory.rkey) == DirectResult::kRefused);
  CHECK(direct(w.qa) == DirectResult::kRefused);
}

// Memory that is not mapped yet is requested once, and none of its bytes change until it is there.
TEST(direct_now_requests_the_memory) {
  DirectConnection w;
  SharedBuffer memory(*w.b, 4096);
  std::memset(memory.data(), 0xAB, 4096);
  const std::vector<uint8_t> bytes = unregistered(4096, 4), few = unregistered(8, 5);
  for (uint32_t n = 1; n <= 3; n++) {
    CHECK(place(w.qa, bytes, memory.at(), memory.rkey) == DirectResult::kNotMapped);
    CHECK_EQ(w.a->counter("direct_unmapped"), n);
    w.pump();
  }
  CHECK(allAre(memory, 0xAB));
  CHECK_EQ(w.direct(*w.a), 0u);
  CHECK_EQ(w.map(*w.a), 1u);
  CHECK(place(w.qa, bytes, memory.at(), memory.rkey) == DirectResult::kDone);
  CHECK(same(memory.data(), bytes.data(), 4096));
  CHECK_EQ(w.a->counter("direct_write"), 1u);
  // A placement that ends beyond the mapping is never written, even in part.
  std::memset(memory.data(), 0xAB, 4096);
  CHECK(place(w.qa, few, memory.at(4096), memory.rkey) == DirectResult::kRefused);
  CHECK(place(w.qa, few, memory.at() - 8, memory.rkey) == DirectResult::kRefused);
  CHECK(place(w.qa, few, UINT64_MAX - 3, memory.rkey) == DirectResult::kRefused);
  CHECK(place(w.qa, few, 0, memory.rkey) == DirectResult::kRefused);
  CHECK(allAre(memory, 0xAB));
  // Memory that peers may only read is not written either.
  SharedBuffer sealed(*w.b, 4096);
  CHECK(w.b->engine.deregisterMr(w.b->pd, sealed.lkey) == Status::kSuccess);
  CHECK(w.b->engine.registerMr(w.b->pd, sealed.at(), 4096, kAccessRemoteRead, &sealed.lkey, &sealed.rkey) ==
        Status::kSuccess);
  std::memset(sealed.data(), 0xAB, 4096);
  for (int n = 0; n < 3; n++) {
    CHECK(place(w.qa, few, sealed.at(), sealed.rkey) == DirectResult::kRefused);
    w.map(*w.a);
  }
  CHECK(allAre(sealed, 0xAB));
}

// The key ends in the middle of the copy, and its owner does not wait. Nothing that was copied counts.
TEST(direct_now_evicted) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(1'000'000);
  SharedBuffer memory(*w.b, 4 * kPage);
  Buffer own(*w.a, 4 * kPage, kAllAccess, 4, kPage);
  w.meet(memory);
  {
    Trap trap(own.data() + 2 * kPage, [&] {
      CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
      std::memset(memory.data(), 0xAB, memory.size);
    });
    CHECK(w.a->engine.direct(w.qa.handle, DirectOperation::kWrite, own.data(), own.size, memory.at(), memory.rkey) ==
          DirectResult::kRefused);
  }
  memory.lkey = 0;
  CHECK(allAre(memory, 0xAB));
  CHECK_EQ(w.a->counter("direct_evicted"), 1u);
  CHECK_EQ(w.direct(*w.a), 0u);
  // The next access works like any other.
  SharedBuffer other(*w.b, 4096);
  w.meet(other);
  CHECK(w.a->engine.direct(w.qa.handle, DirectOperation::kWrite, own.data(), 4096, other.at(), other.rkey) ==
        DirectResult::kDone);
  CHECK(same(other.data(), own.data(), 4096));
}
