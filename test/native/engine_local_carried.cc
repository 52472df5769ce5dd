// Tests of acknowledgements that are carried by packets of the local link, and of what a side reports about the room
// that it has freed.
#include "local_world.h"

using namespace world;

namespace {

struct Exchange : LocalConnection {
  Buffer from{*a, 64, kAllAccess, 1}, to{*b, 64};
  Exchange() {
    for (int i = 0; i < 4; i++) qb.receive({{to.at(), 64, to.lkey}});
    for (int i = 0; i < 4; i++) qa.receive({{from.at(), 64, from.lkey}});
  }
  void ask() { qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}}); }
  void answer() { qb.post({kOpSend, kSendFlagSignaled, {{to.at(), 8, to.lkey}}}); }
  // The third word of B's first entry.
  uint8_t* carried() { return segment().rings[1].slots[0].body + 8; }
};

}  // namespace

TEST(carried_acknowledgement_needs_no_entry) {
  Exchange x;
  x.ask();
  CHECK(x.b->engine.progress());
  CHECK_EQ(x.countersB.get(HostCounter::kLocalTx), 0u);
  x.answer();
  x.b->engine.progress();
  CHECK_EQ(x.countersB.get(HostCounter::kLocalTx), 1u);
  CHECK_EQ(x.b->counter("ack_carried"), 1u);
  CHECK(x.a->engine.progress());
  CHECK_EQ(x.qa.sendCq.written(), 1u);
  CHECK_EQ(x.qa.receiveCq.written(), 1u);
  x.pump();
  CHECK_EQ(x.qb.sendCq.written(), 1u);
  CHECK_EQ(x.a->counter("stale_response") + x.b->counter("stale_response"), 0u);
}

// If there is no response, the acknowledgement leaves by itself, once.
TEST(carried_acknowledgement_does_not_wait_for_ever) {
  Exchange x;
  x.ask();
  x.b->engine.progress();
  x.b->engine.progress();
  CHECK_EQ(x.countersB.get(HostCounter::kLocalTx), 1u);
  x.a->engine.progress();
  CHECK_EQ(x.qa.sendCq.written(), 1u);
  x.answer();
  CHECK_EQ(x.b->counter("ack_carried"), 0u);
}

// A NAK replaces an acknowledgement of earlier packets.
TEST(carried_acknowledgement_gives_way_to_a_nak) {
  Exchange x;
  for (int i = 0; i < 5; i++) x.ask();  // there are receives for four
  x.b->engine.progress();
  x.answer();
  x.pump();
  CHECK_EQ(x.qa.sendCq.written(), 4u);
  CHECK_EQ(x.b->counter("send_rnr_err"), 1u);
  x.qb.receive({{x.to.at(), 64, x.to.lkey}});
  x.clock.time += 700'000'000;
  x.pump();
  CHECK_EQ(x.qa.sendCq.written(), 5u);
}

// The carried acknowledgement is for a PSN that was never sent, in the future or in the past. The packet itself counts,
// and nothing else happens.
TEST(carried_acknowledgement_of_nonsense) {
  for (const uint32_t psn : {0u, 99u, 101u, 4711u, 0xFFFFFFu}) {
    Exchange x;
    x.ask();  // the packet has PSN 100
    x.b->engine.progress();
    x.answer();
    const uint32_t word = psn | LocalEntry::kAcknowledges;
    std::memcpy(x.carried(), &word, sizeof word);
    x.a->engine.progress();
    CHECK_EQ(x.qa.receiveCq.written(), 1u);
    CHECK_EQ(x.qa.sendCq.written(), 0u);
    CHECK_EQ(x.a->counter("stale_response"), 1u);
    CHECK_EQ(x.qa.state(), kQpsRts);
  }
}

// The acknowledgement is for a QP that requested none.
TEST(carried_acknowledgement_that_no_request_waits_for) {
  Exchange x;
  x.answer();
  const uint32_t word = 100 | LocalEntry::kAcknowledges;
  std::memcpy(x.carried(), &word, sizeof word);
  x.a->engine.progress();
  CHECK_EQ(x.qa.receiveCq.written(), 1u);
  CHECK_EQ(x.a->counter("stale_response"), 1u);
}

// A queue pair that ends acknowledges what it has accepted, including postponed acknowledgements, so the peer's
// requests do not fail.
TEST(last_acknowledgement_comes_with_the_end_of_a_local_connection) {
  for (const uint32_t flags : {0u, uint32_t(kSendFlagSignaled)}) {
    for (int how = 0; how < 3; how++) {
      Exchange x;
      TestQp other(*x.b), mine(*x.a);
      x.connect(mine, other);
      x.pump();
      mine.post({kOpWrite, flags, {{x.from.at(), 8, x.from.lkey}}, 0, x.to.at(), x.to.rkey});
      x.b->engine.progress();
      CHECK_EQ(x.to.data()[7], x.from.data()[7]);
      if (how == 0) CHECK(other.toState(kQpsError) == Status::kSuccess);
      if (how == 1) CHECK(other.toState(kQpsReset) == Status::kSuccess);
      if (how == 2) CHECK(x.b->engine.destroyQp(other.handle) == Status::kSuccess);
      x.pump();
      CHECK(mine.toState(kQpsError) == Status::kSuccess);
      const std::vector<Cqe> all = mine.sendCq.drain();
      CHECK_EQ(all.size(), flags ? size_t(1) : size_t(0));
      for (const Cqe& c : all) CHECK_EQ(c.status, kWcSuccess);
    }
  }
}

TEST(room_is_reported_in_large_pieces) {
  Exchange x;
  const auto told = [&] { return __atomic_load_n(&x.segment().sides[1].consumed, __ATOMIC_ACQUIRE) & 0xFFFFFFFF; };
  struct Nobody final : PacketSink {
    void onPacket(const PacketMeta&, const uint8_t*, uint32_t) override {}
    void onPeerProcessGone(uint32_t, bool) override {}
  } nobody;
  const auto pass = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; i++) x.pa->putUnpulled(x.qa.qpn, x.qb.qpn, 1, false);
    x.pb->receive(nobody, count);
    x.pb->flush(false);
  };
  pass(10);
  CHECK_EQ(told(), 0u);
  x.pb->flush();  // there is nothing else to do
  CHECK_EQ(told(), 10u);
  pass(10);
  CHECK_EQ(told(), 10u);
  x.pa->wantSpace();
  x.pb->flush(false);
  CHECK_EQ(told(), 20u);
  x.pa->resume();
  pass(300);
  CHECK(told() >= 20 + LocalRing::kSlots / 4);
}

// A sleeping peer is not woken for each READ while this side has enough responses left to copy, but it is woken in time
// before they are all copied. Anything else wakes it immediately.
TEST(reads_wake_a_sleeping_peer_before_their_responses_run_out) {
  for (const bool urgent : {false, true}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    constexpr uint32_t kBytes = LocalPair::kMtu * LocalPair::kReferencePackets, kReads = 12;
    Buffer to(*w.a, kBytes), from(*w.b, kBytes, kAllAccess, 3);
    Wr read{kOpRead, kSendFlagSignaled, {{to.at(), kBytes, to.lkey}}};
    read.remote = from.at();
    read.rkey = from.rkey;
    LocalSide& peer = w.segment().sides[1];
    const auto wakes = [&] { return w.countersA.get(HostCounter::kLocalWakes); };

    peer.asleep = 1;
    w.qa.post(read);  // there are no responses to wait behind
    CHECK_EQ(wakes(), 1u);
    CHECK_EQ(peer.asleep, 0u);
    for (uint32_t i = 1; i < kReads; i++) w.qa.post(read);
    w.b->step();
    peer.asleep = 1;
    for (uint32_t done = 1; done <= kReads; done++) {
      CHECK(eventually([&] {
        w.a->step();
        return w.qa.sendCq.written() >= done;
      }));
      CHECK_EQ(w.qa.sendCq.written(), done);
      if (done == 1) w.qa.post(read);
      if (done == 1 && urgent) w.qa.post({kOpSend, kSendFlagSignaled, {{to.at(), 8, to.lkey}}});
      const uint32_t left = kReads - done;
      CHECK_EQ(wakes(), urgent || left <= 4 ? 2u : 1u);
    }
    CHECK_EQ(peer.asleep, 0u);
  }
}
