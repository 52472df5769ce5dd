// Tests of a full ring. Packets that find no room wait, and queue pairs that share the ring use it round-robin,
// whatever they send.
#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kDepth = 200, kRounds = 1000;

// Runs the given number of queue pairs, each with as much to do as it can hold. Returns what each of them gets done.
std::vector<uint32_t> streams(uint32_t count, uint32_t opcode, uint32_t bytes) {
  QpShape shape;
  shape.sendEntries = 256;
  shape.cqEntries = 512;
  LocalWorld w;
  Buffer mine(*w.a, bytes), theirs(*w.b, bytes);
  std::vector<std::unique_ptr<TestQp>> ends;
  std::vector<uint32_t> posted(count), done(count);
  for (uint32_t i = 0; i < count; i++) {
    ends.push_back(std::make_unique<TestQp>(*w.a, shape));
    ends.push_back(std::make_unique<TestQp>(*w.b, shape));
    w.connect(*ends[2 * i], *ends[2 * i + 1]);
  }
  const Wr wr{opcode, kSendFlagSignaled, {{mine.at(), bytes, mine.lkey}}, 0, theirs.at(), theirs.rkey};
  for (uint32_t round = 0; round < kRounds; round++) {
    for (uint32_t i = 0; i < count; i++) {
      done[i] += uint32_t(ends[2 * i]->sendCq.drain().size());
      for (; posted[i] - done[i] < kDepth; posted[i]++) ends[2 * i]->post(wr);
    }
    w.a->engine.progress();
    w.b->engine.progress();
  }
  return done;
}

}  // namespace

TEST(turns_are_taken_in_a_full_ring) {
  for (const uint32_t opcode : {kOpWrite, kOpRead}) {
    for (const uint32_t bytes : {100u, 4000u, 200'000u, 1u << 20}) {
      for (const uint32_t count : {2u, 3u, 5u}) {
        check::note = "bytes";
        check::noteNumber = bytes;
        const std::vector<uint32_t> done = streams(count, opcode, bytes);
        uint32_t all = 0;
        for (const uint32_t n : done) all += n;
        for (const uint32_t n : done) CHECK(2 * count * n >= all);
      }
    }
  }
}

// A queue pair that waits for room for its data can still send acknowledgements, because an entry without data finds
// room.
TEST(turns_of_data_are_none_of_acknowledgements) {
  LocalConnection w;
  constexpr uint32_t kLarge = 2u << 20;
  Buffer a(*w.a, kLarge), b(*w.b, kLarge);
  const auto write = [](Buffer& from, Buffer& to, uint32_t bytes) {
    return Wr{kOpWrite, kSendFlagSignaled, {{from.at(), bytes, from.lkey}}, 0, to.at(), to.rkey};
  };
  w.qb.post(write(b, a, kLarge));
  CHECK(w.pb->stalled);
  w.qa.post(write(a, b, 8));
  w.b->step();
  CHECK(w.pb->stalled);
  for (int i = 0; i < 4; i++) w.a->step();  // runs the packets behind the data that has found room
  only(w.qa.sendCq, 0, kOpWrite, kWcSuccess);
  w.pump();
  only(w.qb.sendCq, 0, kOpWrite, kWcSuccess);
  CHECK(!w.pb->stalled);
}

// Small messages, which take the fast path, wait for their turn as well.
TEST(turns_are_kept_by_the_fast_path) {
  QpShape shape;
  shape.sendEntries = 1024;
  LocalWorld w;
  constexpr uint32_t kCount = 4, kFillers = 8;
  Buffer mine(*w.a, 8), theirs(*w.b, 8 * (kCount + 1));
  mine.data()[0] = 1;
  std::vector<std::unique_ptr<TestQp>> ends;
  for (uint32_t i = 0; i < kCount + kFillers; i++) {
    ends.push_back(std::make_unique<TestQp>(*w.a, shape));
    ends.push_back(std::make_unique<TestQp>(*w.b, shape));
    w.connect(*ends[2 * i], *ends[2 * i + 1]);
  }
  const auto write = [&](uint32_t i, uint32_t place) {
    ends[2 * i]->post({kOpWrite, 0, {{mine.at(), 8, mine.lkey}}, 0, theirs.at(8 * place), theirs.rkey});
  };
  const auto came = [&](uint32_t place) { return theirs.data()[8 * place] == 1; };
  const auto take = [&] {
    while (w.b->step()) {}
  };
  for (uint32_t i = 0; i < kCount + kFillers; i++) write(i, kCount);
  w.pump();
  // The last queue pair in line has packets in flight that are acknowledged, so it runs at the same time as the first.
  for (uint32_t i = 0; i < 10; i++) write(kCount - 1, kCount);
  for (uint32_t i = 0; i < LocalRing::kSlots && !w.pa->stalled; i++) write(kCount + i % kFillers, kCount);
  CHECK(w.pa->stalled);
  for (uint32_t i = 0; i < kCount; i++) write(i, i);
  take();
  w.a->step();  // the filler's turn
  for (uint32_t turn = 0; turn < kCount; turn++) {
    take();
    for (uint32_t i = 0; i < kCount; i++) CHECK_EQ(came(i), i < turn);
    w.a->step();
  }
  w.pump();
  CHECK(came(kCount - 1) && !w.pa->stalled);
}

// The same applies to the data of a queue pair that waits in line to respond to a Read.
TEST(turns_are_kept_by_the_fast_path_beside_responses) {
  LocalWorld w;
  TestQp fillA(*w.a), fillB(*w.b), qa(*w.a), qb(*w.b);
  w.connect(fillA, fillB);
  w.connect(qa, qb);
  constexpr uint32_t kLarge = 2u << 20, kRead = 4000;
  Buffer a(*w.a, kLarge), b(*w.b, kLarge + kRead + 8);
  a.data()[0] = 1;
  fillA.post({kOpWrite, kSendFlagSignaled, {{a.at(8), kLarge - 8, a.lkey}}, 0, b.at(), b.rkey});
  CHECK(w.pa->stalled);
  qb.post({kOpRead, kSendFlagSignaled, {{b.at(kLarge), kRead, b.lkey}}, 0, a.at(), a.rkey});
  w.a->step();
  qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(kLarge + kRead), b.rkey});
  while (w.b->step()) {}
  CHECK_EQ(b.data()[kLarge + kRead], 0);
  w.pump();
  CHECK_EQ(b.data()[kLarge + kRead], 1);
  only(fillA.sendCq, 0, kOpWrite, kWcSuccess);
  only(qb.sendCq, 0, kOpRead, kWcSuccess, kRead);
  only(qa.sendCq, 0, kOpWrite, kWcSuccess);
}

// A ring that the peer does not read fills up. The rest waits, and is sent when there is room.
TEST(turns_in_a_full_ring) {
  EngineOptions options;
  options.window = 4096;
  LocalConnection w(
      {},
      [] {
        QpShape s;
        s.sendEntries = s.receiveEntries = 2048;
        s.cqEntries = 4096;
        return s;
      }(),
      options);
  Buffer from(*w.a, 2048 * 8), to(*w.b, 2048 * 8);
  for (uint32_t i = 0; i < 2000; i++) {
    std::memcpy(from.data() + i * 8, &i, 4);
    w.qb.receive({{to.at(i * 8), 8, to.lkey}});
  }
  for (uint32_t i = 0; i < 2000; i++) {
    Wr wr;
    wr.flags = i % 100 == 99 ? kSendFlagSignaled : 0;
    wr.sges = {{from.at(i * 8), 8, from.lkey}};
    w.qa.post(wr);
    w.a->step();
  }
  CHECK(w.countersA.get(HostCounter::kLocalTx) <= LocalRing::kSlots);
  CHECK(w.countersA.get(HostCounter::kLocalTx) >= LocalRing::kSlots - 2 * LocalRing::kEntrySlots);
  CHECK(w.countersA.get(HostCounter::kLocalStalls) > 0);
  w.pump();
  CHECK_EQ(w.qb.receiveCq.written(), 2000u);
  CHECK_EQ(w.qa.sendCq.written(), 20u);
  CHECK(std::memcmp(from.data(), to.data(), 2000 * 8) == 0);
}

// The same test with the bulk area, which wraps several times.
TEST(turns_in_a_full_bulk_area) {
  constexpr uint32_t kCount = 100, kLength = 39'001;
  LocalConnection w({}, [] {
    QpShape s;
    s.sendEntries = s.receiveEntries = 128;
    s.cqEntries = 256;
    return s;
  }());
  Buffer from(*w.a, kCount * kLength, kAllAccess, 5), to(*w.b, kCount * kLength);
  w.qb.receive({});
  w.qa.post({kOpSend, 0, {}});
  w.pump();
  for (uint32_t i = 0; i < kCount; i++) w.qb.receive({{to.at(i * kLength), kLength, to.lkey}});
  for (uint32_t i = 0; i < kCount; i++)
    w.qa.write({kOpSend, i % 10 == 9 ? kSendFlagSignaled : 0, {{from.at(i * kLength), kLength, from.lkey}}});
  w.a->engine.doorbell(w.qa.handle);
  w.a->step();
  const uint64_t first = w.countersA.get(HostCounter::kLocalTx);
  CHECK(first > 20 && first <= 1 + LocalRing::kBulkBytes / kLength);
  CHECK(w.countersA.get(HostCounter::kLocalStalls) > 0);
  w.pump();
  CHECK_EQ(w.qb.receiveCq.written(), 1 + kCount);
  CHECK_EQ(w.qa.sendCq.written(), kCount / 10);
  CHECK(std::memcmp(from.data(), to.data(), kCount * kLength) == 0);
  // Messages that found no room took the slow path once there was some.
  CHECK_EQ(w.a->counter("sent_fast") + w.countersA.get(HostCounter::kLocalStalls), 1 + kCount);
}
