// Tests of late receives (rnr.cc). A message is delivered as soon as its receive is posted, and fails if none is
// posted. The tests run over the network and on the local link, with instances of this package and with peers that know
// only the standard.
#include "local_world.h"

using namespace world;

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kBothSides = rnrtimeout::kResponder | rnrtimeout::kRequester;

Link2 rnrTimeoutLink(uint32_t retries = wire::kMostRnrRetries, uint32_t rnrTimeout = kBothSides) {
  Link2 l;
  l.rnrRetries = retries;
  l.rnrTimeout = rnrTimeout;
  return l;
}

// Lets the given time pass, and does everything that is due within it.
template <typename Base>
void pass(Base& p, uint64_t ns) {
  const uint64_t end = p.clock.time + ns;
  for (p.pump(); std::min(p.a->deadline(), p.b->deadline()) <= end; p.pump()) p.advance();
  p.clock.time = end;
  p.pump();
}

bool isRnr(const Frame& f) {
  return f.bth().opcode == wire::kOpAcknowledge && (f.syndrome() & wire::kSyndromeClass) == wire::kClassRnr;
}

// One message whose receive is late. `kind`: a SEND of one packet, of several, or a WRITE with immediate data.
template <typename Base>
void late(uint64_t lateness, uint32_t kind) {
  Base p(rnrTimeoutLink());
  Buffer from(*p.a, 5000, kAllAccess, 3), to(*p.b, 5000);
  const uint32_t length = kind == 0 ? 100 : 5000;
  Wr wr{kOpSend, kSendFlagSignaled, {{from.at(), length, from.lkey}}};
  if (kind == 2) {
    wr.opcode = kOpWrite;
    wr.flags |= kSendFlagImmediate;
    wr.remote = to.at();
    wr.rkey = to.rkey;
  }
  p.qa.post(wr);
  pass(p, lateness);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  CHECK_EQ(p.qb.header()[kQpReceiveBell], 1u);
  const uint64_t posted = p.clock.time, refused = p.a->counter("rcvd_rnr_err");
  CHECK(refused >= 1 && refused <= wire::kMostRnrRetries);
  p.qb.receive({{to.at(), 5000, to.lkey}});
  CHECK(p.until([&] { return p.qb.receiveCq.written() == 1; }));
  CHECK(p.clock.time - posted <= 200'000);
  CHECK(p.until([&] { return p.qa.sendCq.written() == 1; }));
  only(p.qa.sendCq, 0, wr.opcode, kWcSuccess);
  only(p.qb.receiveCq, 0, kind == 2 ? kOpReceiveRdmaWrite : kOpReceive, kWcSuccess, length);
  CHECK(std::memcmp(from.data(), to.data(), length) == 0);
  CHECK_EQ(p.qb.header()[kQpReceiveBell], 0u);
  CHECK_EQ(p.b->counter("late_receive"), 1u);
  CHECK_EQ(p.a->counter("rnr_wait_shortened"), 1u);
  CHECK_EQ(p.a->counter("rcvd_rnr_err"), refused);  // the packet that announces the receive is not an RNR NAK
}

}  // namespace

TEST(late_receive_is_waited_for_and_served_at_once) {
  for (const uint64_t ms : {5, 100, 900, 990})
    for (uint32_t kind = 0; kind < 3; kind++) {
      check::note = "ms*10+kind";
      check::noteNumber = ms * 10 + kind;
      late<Pair>(ms * kMs, kind);
      late<LocalConnection>(ms * kMs, kind);
    }
}

TEST(late_receive_that_never_comes_ends_in_rnr_retry) {
  const auto ends = [](auto& p) {
    p.qa.post({});
    const uint64_t began = p.clock.time;
    CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
    only(p.qa.sendCq, 0, kOpSend, kWcRnrRetry);
    const uint64_t took = p.clock.time - began;
    CHECK(took >= 1000 * kMs && took <= 1200 * kMs);
    CHECK_EQ(p.b->counter("send_rnr_err"), wire::kMostRnrRetries + 1);
    CHECK_EQ(p.qb.stateWord(), kQpsRts);
  };
  Pair wire(rnrTimeoutLink());
  ends(wire);
  LocalConnection local(rnrTimeoutLink());
  ends(local);
}

// The peer counts as the standard specifies: six retries, each after the requested time.
TEST(late_receive_times_add_up_for_a_peer_that_counts) {
  Pair p(rnrTimeoutLink(wire::kMostRnrRetries, rnrtimeout::kResponder));
  Buffer to(*p.b, 64);
  p.qa.post({kOpSend, kSendFlagSignaled});
  pass(p, 1000 * kMs);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  p.qb.receive({{to.at(), 64, to.lkey}});
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
}

// The announcement of a receive does not use up the last retry of such a peer, which would count it.
TEST(late_receive_is_announced_while_a_retry_is_left) {
  for (uint32_t naks = 1; naks <= wire::kMostRnrRetries + 1; naks++) {
    check::note = "naks";
    check::noteNumber = naks;
    Pair p(rnrTimeoutLink(wire::kRnrForEver));
    p.net.logging = true;
    Buffer to(*p.b, 64);
    p.qa.post({kOpSend, kSendFlagSignaled});
    CHECK(p.until([&] { return p.b->counter("send_rnr_err") == naks; }));
    p.qb.receive({{to.at(), 64, to.lkey}});
    CHECK_EQ(p.b->counter("late_receive"), naks == wire::kMostRnrRetries ? 0u : 1u);
    CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
    only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
    uint64_t asked = 0;
    uint32_t told = 0;
    for (const Frame& f : p.net.log) {
      if (!isRnr(f)) continue;
      const uint64_t ns = wire::rnrNanoseconds(f.syndrome());
      told += ns == wire::rnrNanoseconds(wire::kRnrShortest);
      asked += ns;
    }
    CHECK_EQ(told, naks == wire::kMostRnrRetries ? 0u : 1u);
    if (naks == wire::kMostRnrRetries) CHECK(asked >= 1000 * kMs);
  }
}

// The peer keeps requesting short waits, as other implementations do. This side's deadline replaces the retry count,
// and the cost is one packet per wait.
TEST(late_receive_of_a_peer_with_a_short_timer) {
  Pair p(rnrTimeoutLink(wire::kMostRnrRetries, rnrtimeout::kRequester));
  Buffer from(*p.a, 20'000, kAllAccess, 3), to(*p.b, 20'000);
  p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 20'000, from.lkey}}});
  pass(p, 900 * kMs);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  const uint64_t naks = p.b->counter("send_rnr_err");
  CHECK(naks > 100);
  CHECK(p.a->counter("retransmitted_pkts") <= naks);
  p.qb.receive({{to.at(), 20'000, to.lkey}});
  CHECK_EQ(p.b->counter("late_receive"), 0u);  // the application has set the timer itself
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
  CHECK(std::memcmp(from.data(), to.data(), 20'000) == 0);
}

// A smaller count was chosen by the application, and applies.
TEST(late_receive_and_a_count_of_its_own) {
  Pair p(rnrTimeoutLink(2));
  p.qa.post({});
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpSend, kWcRnrRetry);
  CHECK_EQ(p.b->counter("send_rnr_err"), 3u);
}

// Other connections of the same two processes continue while a message waits. Nothing of the message is kept, and its
// queue pair ends with only the doorbell of ERROR.
TEST(late_receive_delays_no_other_queue_pair) {
  LocalConnection p(rnrTimeoutLink());
  TestQp other(*p.a), otherPeer(*p.b);
  p.connect(other, otherPeer);
  Buffer from(*p.a, 65'536, kAllAccess, 3), to(*p.b, 65'536);
  for (uint32_t i = 0; i < 8; i++) p.qa.post({kOpSend, 0, {{from.at(), 65'536, from.lkey}}});
  p.pump();
  for (uint32_t i = 0; i < 1000; i++) {
    otherPeer.receive({{to.at(), 65'536, to.lkey}});
    other.post({kOpSend, kSendFlagSignaled, {{from.at(), 65'536, from.lkey}}});
    p.pump();
    only(other.sendCq, i, kOpSend, kWcSuccess);
    only(otherPeer.receiveCq, i, kOpReceive, kWcSuccess, 65'536);
  }
  CHECK_EQ(p.b->counter("send_rnr_err"), 1u);
  CHECK(p.qb.toState(kQpsReset) == Status::kSuccess);
  CHECK_EQ(p.qb.header()[kQpReceiveBell], 0u);
  CHECK(p.qb.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(p.qb.header()[kQpReceiveBell], 1u);
}

// For a shared receive queue, the senders that have waited longest are notified first, as many as there are receives.
TEST(late_receive_of_a_shared_queue) {
  for (const bool ends : {false, true}) {
    World w;
    TestSrq srq(*w.b);
    QpShape shape;
    shape.srq = srq.handle;
    TestQp a1(*w.a), a2(*w.a), a3(*w.a);
    auto b1 = std::make_unique<TestQp>(*w.b, shape);
    TestQp b2(*w.b, shape), b3(*w.b, shape);
    w.connect(a1, *b1, rnrTimeoutLink(wire::kRnrForEver));
    w.connect(a2, b2, rnrTimeoutLink(wire::kRnrForEver));
    w.connect(a3, b3, rnrTimeoutLink(wire::kRnrForEver));
    Buffer to(*w.b, 64);
    for (TestQp* qp : {&a1, &a2, &a3}) {
      qp->post({kOpSend, kSendFlagSignaled});
      w.pump();
    }
    const auto bell = [&] { return srq.words()[kSrqReceiveBell]; };
    CHECK_EQ(bell(), b1->handle);
    if (ends) b1.reset();
    CHECK_EQ(bell(), ends ? b2.handle : b1->handle);
    srq.receive({{to.at(), 64, to.lkey}});
    pass(w, 100'000);
    TestQp& first = ends ? b2 : *b1;
    CHECK_EQ(first.receiveCq.drain().size(), 1u);
    CHECK_EQ(bell(), ends ? b3.handle : b2.handle);
    srq.receive({{to.at(), 64, to.lkey}});
    if (!ends) srq.receive({{to.at(), 64, to.lkey}});
    pass(w, 100'000);
    CHECK_EQ(b2.receiveCq.written(), 1u);
    CHECK_EQ(b3.receiveCq.written(), 1u);
    CHECK_EQ(bell(), 0u);
  }
}

// Random messages meet receives that are up to 0.9 s late, and a network that loses, duplicates and reorders packets.
// Nothing fails, and everything arrives once, in order.
TEST(late_receive_property) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    const auto run = [&](auto& p) {
      Random r(seed);
      Buffer from(*p.a, 1 << 16, kAllAccess, seed), to(*p.b, 1 << 16);
      const uint32_t most = 60;
      std::vector<uint32_t> offsets, lengths;
      uint32_t posted = 0, received = 0, taken = 0;
      while (taken < most) {
        for (uint32_t n = r.below(4); n > 0 && posted < most && posted - p.qa.sendCq.written() < 8; n--, posted++) {
          offsets.push_back(r.below(30'000));
          lengths.push_back(r.below(3) ? r.below(200) : r.below(9000));
          p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(offsets.back()), lengths.back(), from.lkey}}});
        }
        pass(p, r.below(4) ? r.below(2'000'000) : r.below(900) * kMs);
        for (uint32_t n = 1 + r.below(3); n > 0 && received < most && received - taken < 4; n--, received++)
          p.qb.receive({{to.at(received % 4 * 10'000), 10'000, to.lkey}});
        pass(p, 200 * kMs);
        for (const Cqe& c : p.qb.receiveCq.drain()) {
          CHECK_EQ(c.status, kWcSuccess);
          if (!CHECK(taken < posted) || c.status != kWcSuccess) return;
          CHECK_EQ(c.length, lengths[taken]);
          CHECK(std::memcmp(to.data() + taken % 4 * 10'000, from.data() + offsets[taken], lengths[taken]) == 0);
          taken++;
        }
        if (!CHECK_EQ(p.qa.stateWord(), kQpsRts)) return;
      }
      CHECK(p.until([&] { return p.qa.sendCq.written() == most; }));
      CHECK(p.b->counter("late_receive") > 0);
    };
    Link2 l = rnrTimeoutLink();
    Pair p(l);
    p.net.faults = {seed % 3 ? 0.02 : 0, seed % 2 ? 0.02 : 0, seed % 5 ? 0 : 0.02};
    run(p);
    LocalConnection local(l);
    run(local);
  }
}
