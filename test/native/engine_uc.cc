// Tests of unreliable connections: there are no acknowledgements, gaps drop messages, and local errors end in SQ ERROR.
#include "world.h"

using namespace world;

namespace {

QpShape uc() {
  QpShape s;
  s.type = kQptUc;
  return s;
}

Link2 smallMtu() {
  Link2 l;
  l.mtu = 256;
  return l;
}

struct UcPair : Pair {
  Buffer from, to;
  explicit UcPair(const EngineOptions& o = {})
      : Pair(smallMtu(), uc(), o), from(*a, 100'000, kAllAccess, 3), to(*b, 100'000) {}
  Wr send(uint32_t offset, uint32_t length, uint32_t flags = kSendFlagSignaled) {
    return {kOpSend, flags, {{from.at(offset), length, from.lkey}}, 0x1234};
  }
  Wr write(uint32_t offset, uint32_t length, uint32_t flags = kSendFlagSignaled) {
    return {kOpWrite, flags, {{from.at(offset), length, from.lkey}}, 0x1234, to.at(offset), to.rkey};
  }
  void receive(uint32_t offset, uint32_t length) { qb.receive({{to.at(offset), length, to.lkey}}); }
};

}  // namespace

TEST(uc_transfers_without_acknowledgements) {
  EngineOptions o;
  o.window = 4;  // the window has no effect here
  UcPair p(o);
  p.net.logging = true;
  p.receive(50'000, 5000);
  p.receive(60'000, 0);
  p.qa.post(p.write(0, 40'000));
  p.qa.post(p.send(1000, 3000, kSendFlagSignaled | kSendFlagImmediate | kSendFlagSolicited));
  p.qa.post(p.write(0, 0, kSendFlagImmediate));
  // Requests complete as soon as they are sent. The peer has not run yet.
  while (p.a->step()) {}
  const auto sent = p.qa.sendCq.drain();
  if (CHECK_EQ(sent.size(), 2u)) CHECK(sent[0].status == kWcSuccess && sent[1].wqe == 1);
  p.pump();
  CHECK_EQ(p.net.log.size(), 157u + 12 + 1);
  for (const Frame& f : p.net.log) {
    CHECK(f.destination == p.b->gid);
    CHECK_EQ(f.bth().opcode & 0xE0, 0x20);
    CHECK(!f.bth().ackRequest);
  }
  CHECK_EQ(p.net.log[0].bth().opcode, 0x26u);
  CHECK_EQ(p.net.log[157 + 11].bth().opcode, 0x23u);
  CHECK_EQ(p.net.log.back().bth().opcode, 0x2Bu);
  CHECK(std::memcmp(p.from.data(), p.to.data(), 40'000) == 0);
  CHECK(std::memcmp(p.from.data() + 1000, p.to.data() + 50'000, 3000) == 0);
  const auto got = p.qb.receiveCq.drain();
  if (!CHECK_EQ(got.size(), 2u)) return;
  CHECK(got[0].opcode == kOpReceive && got[0].length == 3000 && got[0].immediate == 0x1234);
  CHECK_EQ(got[0].flags, kCqeFlagReceiveQueue | kCqeFlagImmediate | kCqeFlagSolicited);
  CHECK(got[1].opcode == kOpReceiveRdmaWrite && got[1].wqe == 1 && got[1].length == 0);
  // There are no timers, neither for retries nor for keep-alive.
  CHECK_EQ(p.a->deadline(), UINT64_MAX);
  CHECK_EQ(p.b->deadline(), UINT64_MAX);
}

// The loss of any packet costs exactly the message that it belongs to, whose receive serves the next message.
TEST(uc_gap_drops_the_message) {
  for (uint32_t victim = 0; victim < 12; victim++) {
    check::note = "victim";
    check::noteNumber = victim;
    UcPair p;
    for (uint32_t i = 0; i < 3; i++) p.receive(50'000 + i * 1000, 1000);
    uint32_t n = 0;
    p.net.filter = [&](Frame&) { return n++ != victim; };
    for (uint32_t i = 0; i < 3; i++) p.qa.post(p.send(i * 1000, 1000));
    p.pump();
    const uint32_t lost = victim / 4;
    const auto got = p.qb.receiveCq.drain();
    if (!CHECK_EQ(got.size(), 2u)) continue;
    for (uint32_t i = 0; i < 2; i++) {
      CHECK(got[i].status == kWcSuccess && got[i].wqe == i && got[i].length == 1000);
      const uint32_t message = i < lost ? i : i + 1;
      CHECK(std::memcmp(p.to.data() + 50'000 + i * 1000, p.from.data() + message * 1000, 1000) == 0);
    }
    CHECK_EQ(p.qb.stateWord(), kQpsRts);
    CHECK_EQ(p.qa.sendCq.drain().size(), 3u);
  }
}

TEST(uc_write_with_a_gap_completes_nothing) {
  UcPair p;
  p.receive(0, 0);
  uint32_t n = 0;
  p.net.filter = [&](Frame&) { return n++ != 1; };
  p.qa.post(p.write(0, 1000, kSendFlagImmediate));
  p.pump();
  CHECK_EQ(p.qb.receiveCq.written(), 0u);
  CHECK(std::memcmp(p.to.data(), p.from.data(), 256) == 0);
  CHECK_EQ(p.to.data()[600], 0);  // the packets that follow a gap are not placed
  CHECK_EQ(p.b->counter("dropped_message"), 1u);
  p.qa.post(p.write(0, 1000, kSendFlagImmediate));
  p.pump();
  only(p.qb.receiveCq, 0, kOpReceiveRdmaWrite, kWcSuccess, 1000);
}

TEST(uc_without_a_receive_drops) {
  UcPair p;
  p.net.logging = true;
  p.qa.post(p.send(0, 1000));
  p.pump();
  CHECK_EQ(p.net.log.size(), 4u);  // there is no RNR NAK
  CHECK_EQ(p.b->counter("dropped_message"), 1u);
  p.receive(0, 1000);
  p.qa.post(p.send(0, 700));
  p.pump();
  only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, 700);
}

TEST(uc_refuses_in_silence) {
  UcPair p;
  Buffer readOnly(*p.b, 1000, kAccessRemoteRead);
  p.net.logging = true;
  Wr bad = p.write(0, 600);
  bad.rkey = readOnly.rkey;
  bad.remote = readOnly.at();
  p.qa.post(bad);
  bad = p.write(0, 600);
  bad.remote = p.to.at(99'999);
  p.qa.post(bad);
  p.pump();
  CHECK_EQ(p.net.log.size(), 6u);
  CHECK_EQ(readOnly.words[0], 0u);
  CHECK_EQ(p.qb.stateWord(), kQpsRts);
  CHECK_EQ(p.b->port.count(QpEvent::kFatal), 0);
  p.qa.post(p.write(0, 600));
  p.pump();
  CHECK(std::memcmp(p.to.data(), p.from.data(), 600) == 0);
}

TEST(uc_receive_that_cannot_take_it) {
  UcPair p;
  p.receive(0, 500);
  p.receive(0, 500);
  p.qa.post(p.send(0, 501));
  p.pump();
  const auto got = p.qb.receiveCq.drain();
  if (!CHECK_EQ(got.size(), 2u)) return;
  CHECK(got[0].status == kWcLocalLength && got[1].status == kWcFlushed);
  CHECK_EQ(p.qb.stateWord(), kQpsError);
  CHECK_EQ(p.b->port.count(QpEvent::kFatal), 1);
}

TEST(uc_send_errors_end_in_sq_error) {
  struct Case {
    uint32_t status;
    std::function<void(Wr&)> spoil;
  };
  const Case cases[] = {
      {kWcLocalProtection, [](Wr& w) { w.sges[0].lkey ^= 1; }},
      {kWcLocalOp, [](Wr& w) { w.opcode = kOpRead; }},
      {kWcLocalOp, [](Wr& w) { w.opcode = kOpFetchAdd; }},
      {kWcLocalOp, [](Wr& w) { w.opcode = kOpBindWindow; }},
      {kWcLocalOp, [](Wr& w) { w.opcode = kOpLocalInvalidate; }},
      {kWcLocalOp, [](Wr& w) { w.flags |= kSendFlagInvalidate; }},
      {kWcLocalOp, [](Wr& w) { w.opcode = 9; }},
  };
  for (const Case& c : cases) {
    UcPair p;
    p.receive(50'000, 1000);
    p.receive(51'000, 1000);
    p.qa.receive({{p.from.at(90'000), 1000, p.from.lkey}});
    Wr bad = p.send(0, 8, 0);
    c.spoil(bad);
    p.qa.write(p.send(0, 1000));
    p.qa.write(bad);
    p.qa.write(p.send(0, 1000, 0));
    p.a->engine.doorbell(p.qa.handle);
    p.pump();
    CHECK_EQ(p.qa.stateWord(), kQpsSqError);
    auto done = p.qa.sendCq.drain();
    if (!CHECK_EQ(done.size(), 3u)) continue;
    CHECK(done[0].status == kWcSuccess && done[1].status == c.status && done[2].status == kWcFlushed);
    CHECK_EQ(p.a->port.events.size(), 0u);
    p.qa.post(p.send(0, 10, 0));
    only(p.qa.sendCq, 3, kOpSend, kWcFlushed);
    // The QP continues to receive.
    p.qb.post({kOpSend, 0, {{p.to.at(), 100, p.to.lkey}}});
    p.pump();
    only(p.qa.receiveCq, 0, kOpReceive, kWcSuccess, 100);
    CHECK_EQ(p.qb.stateWord(), kQpsRts);
    // Sending continues after the QP is moved back to RTS.
    CHECK(p.qa.toState(kQpsRts) == Status::kSuccess);
    p.qa.post(p.send(2000, 900));
    p.pump();
    only(p.qa.sendCq, 4, kOpSend, kWcSuccess);
    const auto got = p.qb.receiveCq.drain();
    if (!CHECK_EQ(got.size(), 2u)) continue;
    CHECK(got[1].length == 900 && std::memcmp(p.to.data() + 51'000, p.from.data() + 2000, 900) == 0);
  }
}

// A message fails in the middle, at its second SGE.
TEST(uc_message_that_breaks_off) {
  UcPair p;
  p.receive(50'000, 2000);
  p.qa.post({kOpSend, 0, {{p.from.at(), 512, p.from.lkey}, {p.from.at(), 512, p.from.lkey ^ 1}}});
  p.pump();
  only(p.qa.sendCq, 0, kOpSend, kWcLocalProtection);
  CHECK(p.qa.toState(kQpsRts) == Status::kSuccess);
  p.qa.post(p.send(2000, 900));
  p.pump();
  only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, 900);
  CHECK(std::memcmp(p.to.data() + 50'000, p.from.data() + 2000, 900) == 0);
}

TEST(uc_and_rc_do_not_mix) {
  Pair rc;
  TestQp stranger(*rc.a, uc());
  bring(stranger, rc.b->gid, rc.qb.qpn, {}, true);
  Buffer from(*rc.a, 100), to(*rc.b, 100);
  stranger.post({kOpWrite, 0, {{from.at(), 100, from.lkey}}, 0, to.at(), to.rkey});
  rc.pump();
  CHECK_EQ(rc.b->counter("wrong_transport"), 1u);
  TestQp target(*rc.b, uc()), sender(*rc.a);
  bring(target, rc.a->gid, sender.qpn, {}, false);
  bring(sender, rc.b->gid, target.qpn, {}, true);
  sender.post({kOpWrite, 0, {{from.at(), 100, from.lkey}}, 0, to.at(), to.rkey});
  rc.pump();
  CHECK_EQ(rc.b->counter("wrong_transport"), 2u);
  CHECK_EQ(rc.b->counter("rcvd_pkts"), 2u);
}

// Despite loss, duplication and reordering, messages that arrive are complete and in sending order.
TEST(fuzz_uc) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Random r(seed);
    UcPair p;
    p.net.random = Random(seed);
    p.net.faults = {0.05, 0.02, r.below(2) ? 0.03 : 0.0};
    p.net.filter = [&](Frame& f) {
      if (r.below(40) == 0) f.bytes[r.below(5)] ^= uint8_t(1u << r.below(8));  // opcode, pad, P_Key
      if (r.below(60) == 0) f.bytes.resize(r.below(uint32_t(f.bytes.size()) + 1));
      return true;
    };
    uint32_t received = 0;
    for (int i = 0; i < 40; i++) {
      p.receive(50'000, 1100);
      p.qa.post(r.below(3) ? p.send(r.below(500), 1 + r.below(1000), 0) : p.write(r.below(500), r.below(1000), 0));
      if (r.below(2)) p.pump();
      for (const Cqe& c : p.qb.receiveCq.drain()) {
        CHECK(c.wqe == received);
        received++;
        CHECK(c.length <= 1100);
      }
    }
    p.pump();
    CHECK(p.qa.stateWord() == kQpsRts);
    CHECK_EQ(p.qa.sendCq.written(), 0u);
  }
}
