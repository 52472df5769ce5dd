// Queue pairs that share a pair's ring: when it is full they have it in turn, whatever they send.
#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kDepth = 200, kRounds = 1000;

// So many queue pairs with as much to do as they can take. What each of them gets done.
std::vector<uint32_t> streams(uint32_t count, uint32_t opcode, uint32_t bytes) {
  QpShape shape;
  shape.sendEntries = 256;
  shape.cqEntries = 512;
  LocalWorld w({}, false);
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

// Who waits for room for its data acknowledges meanwhile: an entry without data finds room.
TEST(turns_of_data_are_none_of_acknowledgements) {
  LocalConnection w({}, {}, {}, false);
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
  for (int i = 0; i < 4; i++) w.a->step();  // behind the data that has found room
  only(w.qa.sendCq, 0, kOpWrite, kWcSuccess);
  w.pump();
  only(w.qb.sendCq, 0, kOpWrite, kWcSuccess);
  CHECK(!w.pb->stalled);
}
