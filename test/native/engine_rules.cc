// Tests of transport rules that matter only when packets arrive in an unlucky order, or when rights are limited.
#include "objects/qp.h"
#include "world.h"

using namespace world;

// A retransmitted READ is at the responder together with the next READ. The requester has received the response
// meanwhile, so it has no more READs in flight than agreed.
TEST(repeated_reads_do_not_count_against_the_depth) {
  for (uint32_t depth = 1; depth <= 3; depth++) {
    Link2 l;
    l.depth = depth;
    Pair p(l);
    Buffer to(*p.a, 64), from(*p.b, 64, kAllAccess, 7);
    const auto read = [&](uint32_t i) {
      p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(i * 8), 8, to.lkey}}, 0, from.at(i * 8), from.rkey});
    };
    p.net.logging = true;
    for (uint32_t i = 0; i < depth; i++) read(i);
    const std::vector<Frame> first = p.net.log;
    CHECK_EQ(first.size(), depth);
    p.pump();
    CHECK_EQ(p.qa.sendCq.drain().size(), depth);
    for (const Frame& f : first) p.net.send(f);
    for (uint32_t i = 0; i < depth; i++) read(depth + i);
    p.pump();
    const auto done = p.qa.sendCq.drain();
    CHECK_EQ(done.size(), depth);
    for (const Cqe& c : done) CHECK_EQ(c.status, kWcSuccess);
    CHECK_EQ(p.qb.stateWord(), kQpsRts);
    CHECK(std::memcmp(to.data(), from.data(), depth * 16) == 0);
    CHECK_EQ(p.b->counter("duplicate_request"), depth);
  }
}

// A late copy of a READ that was served may arrive when its memory is gone. The connection continues.
TEST(late_copy_of_a_read_of_memory_that_went_away) {
  Pair p;
  Buffer to(*p.a, 64), from(*p.b, 64, kAllAccess, 7), gone(*p.b, 64, kAllAccess, 9);
  const auto read = [&](Buffer& b) {
    p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), 8, to.lkey}}, 0, b.at(), b.rkey});
  };
  p.net.logging = true;
  read(gone);
  const Frame late = p.net.log[0];
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcSuccess, 8);
  CHECK(p.b->engine.deregisterMr(p.b->pd, gone.lkey) == Status::kSuccess);
  gone.lkey = 0;
  p.net.send(late);
  p.pump();
  CHECK_EQ(p.b->counter("duplicate_request"), 1u);
  read(from);
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcSuccess, 8);
  CHECK(std::memcmp(to.data(), from.data(), 8) == 0);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  CHECK_EQ(p.qb.stateWord(), kQpsRts);
}

// A READ that is retransmitted because its response was lost fails like any READ of such memory.
TEST(repeated_read_of_memory_that_went_away) {
  Pair p;
  Buffer to(*p.a, 64), gone(*p.b, 64, kAllAccess, 9);
  uint32_t lost = 0;
  p.net.filter = [&](Frame& f) { return f.source != p.b->gid || lost++ != 0; };
  p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), 8, to.lkey}}, 0, gone.at(), gone.rkey});
  p.pump();
  CHECK_EQ(lost, 1u);
  CHECK(p.b->engine.deregisterMr(p.b->pd, gone.lkey) == Status::kSuccess);
  gone.lkey = 0;
  CHECK(p.until([&] { return p.qa.stateWord() == kQpsError; }));
  const auto done = p.qa.sendCq.drain();
  CHECK_EQ(done.size(), 1u);
  if (done.size() == 1) CHECK_EQ(done[0].status, kWcRemoteAccess);
}

// More new READs in flight than agreed are still refused, whether or not one of them is a retransmission.
TEST(reads_beyond_the_depth_are_refused) {
  for (bool repeated : {false, true}) {
    Link2 l;
    l.depth = 1;
    Pair p(l);
    Buffer to(*p.a, 64), from(*p.b, 64, kAllAccess, 7);
    p.net.logging = true;
    p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), 8, to.lkey}}, 0, from.at(), from.rkey});
    Frame f = p.net.log[0];
    if (repeated) {
      p.pump();
      p.net.send(f);
    }
    for (uint32_t i = 1; i <= 2; i++) {
      wire::store24(f.bytes.data() + 9, l.psnA + i);
      p.net.send(f);
    }
    p.b->step();
    CHECK_EQ(p.qb.stateWord(), kQpsError);
  }
}

TEST(keep_alive_needs_no_right_to_write) {
  EngineOptions options;
  options.keepAliveNs = 1'000'000'000;
  Link2 l;
  l.access = kAccessRemoteRead;
  Pair p(l, {}, options);
  Buffer to(*p.a, 8), from(*p.b, 8, kAllAccess, 3);
  const Wr read{kOpRead, kSendFlagSignaled, {{to.at(), 8, to.lkey}}, 0, from.at(), from.rkey};
  p.qa.post(read);
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcSuccess, 8);
  CHECK(p.until([&] { return p.a->counter("keep_alive") >= 3; }));
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  CHECK_EQ(p.qb.stateWord(), kQpsRts);
  p.qa.post(read);
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcSuccess, 8);
  // Requests that consume a receive or refer to memory do need the right.
  for (const bool immediate : {true, false}) {
    Pair q(l);
    Buffer target(*q.b, 8), source(*q.a, 8);
    q.qb.receive({});
    Wr w{kOpWrite, kSendFlagSignaled | (immediate ? kSendFlagImmediate : 0u)};
    if (!immediate) w.sges = {{source.at(), 8, source.lkey}};
    w.remote = target.at();
    w.rkey = target.rkey;
    q.qa.post(w);
    q.pump();
    only(q.qa.sendCq, 0, kOpWrite, kWcRemoteInvalidRequest);
    only(q.qb.receiveCq, 0, kOpReceive, kWcFlushed);
  }
}

// A connection keeps no memory for served READs and ATOMICs before the first.
TEST(responses_are_kept_in_order_from_the_first_on) {
  static_assert(sizeof(Qp) + 16 * sizeof(SendEntry) <= 4096, "a queue pair of depth 16 at rest");
  Fifo<uint32_t> fifo;
  CHECK(fifo.full());
  fifo.reset(3);
  CHECK_EQ(fifo.capacity(), 3u);
  CHECK(!fifo.hasMemory() && !fifo.full());
  for (uint32_t round = 0; round < 5; round++) {
    for (uint32_t i = 0; i < 3; i++) fifo.push(10 * round + i);
    CHECK(fifo.full() && fifo.hasMemory());
    for (uint32_t i = 0; i < 3; i++) CHECK_EQ(fifo[i], 10 * round + i);
    fifo.popBack();
    fifo.pop();
    CHECK_EQ(fifo.size(), 1u);
    CHECK_EQ(fifo[0], 10 * round + 1);
    fifo.pop();
    fifo.push(7);
    fifo.pop();
  }
  fifo.reset(2);
  CHECK(!fifo.hasMemory() && fifo.size() == 0);
}
