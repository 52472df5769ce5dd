// Tests when acknowledgements leave. A thread that polls postpones them until its next poll, so that the program's
// reply and the acknowledgement share a datagram. No peer waits for a thread that does not poll again. An
// acknowledgement that arrives late is tested as well.
#include "world.h"

using namespace world;

namespace {

uint32_t count(const std::vector<Frame>& frames, uint8_t opcode) {
  uint32_t n = 0;
  for (const Frame& f : frames) n += f.bth().opcode == opcode;
  return n;
}

struct Exchange : Pair {
  Buffer from{*a, 64, kAllAccess, 1}, to{*b, 64};
  Exchange() {
    net.logging = true;
    for (int i = 0; i < 4; i++) qb.receive({{to.at(), 64, to.lkey}});
    for (int i = 0; i < 4; i++) qa.receive({{from.at(), 64, from.lkey}});
  }
  void ask() { qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}}); }
  uint32_t acks() { return count(net.log, wire::kOpAcknowledge); }
};

}  // namespace

TEST(acknowledgement_waits_for_the_next_poll) {
  Exchange x;
  x.ask();
  CHECK(x.b->engine.progress());
  CHECK_EQ(x.qb.receiveCq.written(), 1u);  // the program already has its completion
  CHECK_EQ(x.acks(), 0u);
  x.b->engine.progress();
  CHECK_EQ(x.acks(), 1u);
  x.b->engine.progress();
  CHECK_EQ(x.acks(), 1u);
  x.a->engine.progress();
  CHECK_EQ(x.qa.sendCq.written(), 1u);
}

// The reply leaves first: it is longer, and a shorter packet may end a run.
TEST(acknowledgement_leaves_with_the_reply) {
  Exchange x;
  x.ask();
  x.b->engine.progress();
  x.qb.post({kOpSend, kSendFlagSignaled, {{x.to.at(), 8, x.to.lkey}}});
  if (!CHECK_EQ(x.net.log.size(), 3u)) return;
  CHECK_EQ(uint32_t(x.net.log[1].bth().opcode), 0x04u);
  CHECK_EQ(uint32_t(x.net.log[2].bth().opcode), uint32_t(wire::kOpAcknowledge));
  x.b->engine.progress();
  CHECK_EQ(x.acks(), 1u);
}

TEST(acknowledgements_of_two_polls_are_one) {
  Exchange x;
  x.ask();
  x.b->engine.progress();
  x.ask();
  x.b->engine.progress();
  CHECK_EQ(x.acks(), 1u);
  x.pump();
  CHECK_EQ(x.qa.sendCq.written(), 2u);
}

// If a thread polls once and leaves, the engine's thread is woken to check, and sends the acknowledgements that are
// due.
TEST(acknowledgement_of_a_poller_that_went) {
  Exchange x;
  x.pump();
  CHECK_EQ(x.b->deadline() > x.clock.time, true);
  std::atomic<int> wakes{0};
  x.b->engine.setWake([](void* n) { (*static_cast<std::atomic<int>*>(n))++; }, &wakes);
  x.ask();
  x.b->engine.progress();
  CHECK(wakes > 0);
  CHECK_EQ(x.b->deadline(), 0u);
  x.b->step();
  CHECK_EQ(x.acks(), 1u);
  x.b->engine.setWake(nullptr, nullptr);
}

TEST(queue_pair_ends_while_it_owes) {
  World w;
  {
    TestQp qa(*w.a), qb(*w.b), other(*w.b);
    w.connect(qa, qb);
    Buffer from(*w.a, 64), to(*w.b, 64);
    qb.receive({{to.at(), 64, to.lkey}});
    qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}});
    w.b->engine.progress();
  }
  w.b->engine.progress();
  CHECK_EQ(w.b->deadline(), UINT64_MAX);
}

// A READ response has overtaken the acknowledgement of the SEND before it, which it implies. That acknowledgement
// arrives in the middle of the response and changes nothing. (Linux's rxe, after 6.1, then forgets that it is in the
// middle of a response.)
TEST(late_acknowledgement_amid_a_read_response) {
  Pair p;
  Buffer a(*p.a, 9000, kAllAccess, 3), b(*p.b, 9000, kAllAccess, 4);
  p.qb.receive({});
  std::vector<Frame> late;
  uint32_t middles = 0;
  p.net.filter = [&](Frame& f) {
    const uint8_t opcode = f.bth().opcode;
    if (opcode == wire::kOpAcknowledge) {
      late.push_back(f);
      return false;
    }
    if (opcode == wire::kOpReadMiddle && middles++ == 3)
      for (const Frame& one : late) p.net.frames.push_back(one);
    return true;
  };
  const uint64_t before = p.clock.time;
  p.qa.write({kOpSend, kSendFlagSignaled});
  p.a->engine.doorbell(p.qa.handle);
  while (p.b->step()) {}
  CHECK_EQ(late.size(), 1u);
  p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(), 9000, a.lkey}}, 0, b.at(), b.rkey});
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
  CHECK(std::memcmp(a.data(), b.data(), 9000) == 0);
  CHECK_EQ(p.a->counter("stale_response"), 1u);
  CHECK_EQ(p.a->counter("retransmitted_pkts"), 0u);
  CHECK_EQ(p.clock.time - before, 0u);
}

// A timeout that is shorter than the delay of an acknowledgement is not a reason to give up on the peer.
TEST(acknowledgement_that_is_put_off_is_no_timeout) {
  for (const uint32_t code : {1u, 4u, 8u}) {
    World w;
    TestQp qa(*w.a), qb(*w.b);
    Link2 l;
    l.ackTimeout = code;
    l.retries = 0;
    w.connect(qa, qb, l);
    Buffer from(*w.a, 64), to(*w.b, 64);
    qb.receive({{to.at(), 64, to.lkey}});
    const uint64_t start = w.clock.time;
    qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}});
    w.b->engine.progress();
    for (; w.clock.time < start + 1'000'000; w.clock.time += 50'000) w.a->step();
    w.b->step();
    w.pump();
    CHECK(only(qa.sendCq, 0, kOpSend, kWcSuccess));
    CHECK_EQ(w.a->counter("ack_timeout"), 0u);
  }
}
