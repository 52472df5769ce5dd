// Tests of shared receive queues: which queue pair gets which receive, the limit, an empty queue, flushing, moving to
// another ring, and garbage in the ring.
#include "world.h"

using namespace world;

namespace {

// Two connections from A to one shared receive queue at B.
struct Shared : World {
  TestSrq srq;
  TestQp qa1, qa2, qb1, qb2;
  Buffer from, to;
  explicit Shared(uint32_t entries = 8, uint32_t type = kQptRc, const Link2& l = {})
      : srq(*b, entries),
        qa1(*a, shape(type, 0), 0xA1),
        qa2(*a, shape(type, 0), 0xA2),
        qb1(*b, shape(type, srq.handle), 0xB1),
        qb2(*b, shape(type, srq.handle), 0xB2),
        from(*a, 8192, kAllAccess, 3),
        to(*b, 16384) {
    connect(qa1, qb1, l);
    connect(qa2, qb2, l);
  }
  static QpShape shape(uint32_t type, Handle queue) {
    QpShape s;
    s.type = type;
    s.srq = queue;
    return s;
  }
  // WQE i scatters into `to` at offset 1000 × i.
  void receives(uint32_t n, uint32_t length = 1000) {
    for (uint32_t i = 0; i < n; i++) {
      const uint64_t at = to.at(uint64_t(srq.producer % 16) * 1000);
      srq.receive({{at, length, to.lkey}});
    }
  }
  Wr send(uint32_t offset, uint32_t length) {
    return {kOpSend, kSendFlagSignaled, {{from.at(offset), length, from.lkey}}};
  }
};

constexpr uint32_t kSharedFlags = kCqeFlagReceiveQueue | kCqeFlagSharedReceive;

}  // namespace

TEST(srq_messages_take_wqes_as_they_begin) {
  Link2 l;
  l.mtu = 256;
  Shared s(8, kQptRc, l);
  s.receives(3);
  // The first message starts, and stays incomplete while the second arrives and completes.
  std::vector<Frame> late;
  bool holding = true;
  s.net.filter = [&](Frame& f) {
    if (holding && f.bth().destinationQpn == s.qb1.qpn && f.bth().psn != 100) {
      late.push_back(f);
      return false;
    }
    return true;
  };
  s.qa1.post(s.send(0, 600));
  s.pump();
  CHECK_EQ(s.srq.taken(), 1u);
  CHECK_EQ(s.qb1.receiveCq.written(), 0u);
  // Its slot may be reused immediately.
  std::memset(s.srq.slot(0), 0xEE, s.srq.stride);
  s.qa2.post(s.send(1000, 200));
  s.pump();
  CHECK_EQ(s.srq.taken(), 2u);
  holding = false;
  for (const Frame& f : late) s.net.frames.push_back(f);
  s.pump();
  const auto first = s.qb1.receiveCq.drain(), second = s.qb2.receiveCq.drain();
  if (!CHECK_EQ(first.size(), 1u) || !CHECK_EQ(second.size(), 1u)) return;
  CHECK(first[0].wqe == 0 && first[0].token == 0xB1 && first[0].length == 600 && first[0].flags == kSharedFlags);
  CHECK(second[0].wqe == 1 && second[0].token == 0xB2 && second[0].length == 200 && second[0].flags == kSharedFlags);
  CHECK(first[0].status == kWcSuccess && second[0].status == kWcSuccess);
  CHECK(std::memcmp(s.to.data(), s.from.data(), 600) == 0);
  CHECK(std::memcmp(s.to.data() + 1000, s.from.data() + 1000, 200) == 0);
  CHECK_EQ(s.srq.taken(), 2u);
}

TEST(srq_write_with_immediate_consumes_one) {
  Shared s;
  s.receives(1);
  s.qa1.post({kOpWrite,
              kSendFlagSignaled | kSendFlagImmediate,
              {{s.from.at(), 50, s.from.lkey}},
              0xABCD,
              s.to.at(9000),
              s.to.rkey});
  s.qa1.post({kOpWrite, kSendFlagSignaled, {{s.from.at(), 50, s.from.lkey}}, 0, s.to.at(9000), s.to.rkey});
  s.pump();
  const auto done = s.qb1.receiveCq.drain();
  if (!CHECK_EQ(done.size(), 1u)) return;
  CHECK(done[0].opcode == kOpReceiveRdmaWrite && done[0].wqe == 0 && done[0].immediate == 0xABCD);
  CHECK_EQ(done[0].flags, kSharedFlags | kCqeFlagImmediate);
  CHECK_EQ(s.srq.taken(), 1u);
}

TEST(srq_empty_sends_an_rnr_nak) {
  Shared s;
  s.net.logging = true;
  s.qa1.post(s.send(0, 100));
  s.pump();
  uint32_t rnr = 0;
  for (const Frame& f : s.net.log) rnr += f.bth().opcode == wire::kOpAcknowledge && (f.syndrome() & 0xE0) == 0x20;
  CHECK_EQ(rnr, 1u);
  CHECK_EQ(s.b->counter("send_rnr_err"), 1u);
  CHECK_EQ(s.qb1.stateWord(), kQpsRts);
  s.receives(1);
  s.until([&] { return s.qa1.sendCq.written() == 1; });
  only(s.qa1.sendCq, 0, kOpSend, kWcSuccess);
  only(s.qb1.receiveCq, 0, kOpReceive, kWcSuccess, 100);
}

TEST(srq_limit_event_comes_once) {
  Shared s;
  auto& events = s.b->port.srqEvents;
  CHECK(s.srq.limit(9) == Status::kInvalidParameter);
  s.receives(4);
  CHECK(s.srq.limit(3) == Status::kSuccess);
  CHECK_EQ(events.size(), 0u);
  const auto one = [&] {
    s.qa1.post(s.send(0, 10));
    s.pump();
  };
  one();
  CHECK_EQ(events.size(), 0u);  // 3 receives are left, which is not fewer than 3
  SrqAttributes a;
  CHECK(s.b->engine.querySrq(s.srq.handle, &a) == Status::kSuccess);
  CHECK(a.limit == 3 && a.entries == 8 && a.sge == 2);
  one();
  if (!CHECK_EQ(events.size(), 1u)) return;
  CHECK(events[0].srq == s.srq.handle && events[0].event == SrqEvent::kLimit);
  one();
  CHECK_EQ(events.size(), 1u);
  CHECK(s.b->engine.querySrq(s.srq.handle, &a) == Status::kSuccess && a.limit == 0);
  // If the limit is armed while there are fewer receives, the event is raised immediately.
  CHECK(s.srq.limit(2) == Status::kSuccess);
  CHECK_EQ(events.size(), 2u);
  CHECK(s.srq.limit(2) == Status::kSuccess);
  CHECK_EQ(events.size(), 3u);
  // Receives that were posted since the HCA last polled count as well. A limit of 0 disarms.
  s.receives(1);
  CHECK(s.srq.limit(2) == Status::kSuccess);
  CHECK_EQ(events.size(), 3u);
  CHECK(s.srq.limit(0) == Status::kSuccess);
  one();
  one();
  CHECK_EQ(events.size(), 3u);
}

TEST(srq_flush_leaves_unconsumed_receives) {
  Link2 l;
  l.mtu = 256;
  Shared s(8, kQptRc, l);
  s.receives(4);
  bool holding = true;
  s.net.filter = [&](Frame& f) { return !holding || f.bth().destinationQpn != s.qb1.qpn || f.bth().psn == 100; };
  s.qa1.post(s.send(0, 600));
  s.pump();
  CHECK(s.qb1.toState(kQpsError) == Status::kSuccess);
  only(s.qb1.receiveCq, 0, kOpReceive, kWcFlushed);
  CHECK_EQ(s.b->port.count(QpEvent::kLastWqe), 1);
  CHECK_EQ(s.b->port.events.back().qp, s.qb1.handle);
  s.b->engine.doorbell(s.qb1.handle);
  CHECK_EQ(s.qb1.receiveCq.written(), 1u);
  s.qa2.post(s.send(0, 100));
  s.pump();
  only(s.qb2.receiveCq, 1, kOpReceive, kWcSuccess, 100);
  CHECK_EQ(s.srq.taken(), 2u);
  // The QP holds no receive.
  CHECK(s.qb2.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(s.qb2.receiveCq.written(), 1u);
  CHECK_EQ(s.b->port.count(QpEvent::kLastWqe), 2);
}

TEST(srq_errors_of_a_taken_wqe) {
  struct Case {
    uint32_t length, lkeyFlip, status;
  };
  for (const Case& c : {Case{50, 0, kWcLocalLength}, Case{1000, 1, kWcLocalProtection}}) {
    Shared s;
    s.srq.receive({{s.to.at(), c.length, s.to.lkey ^ c.lkeyFlip}});
    s.receives(1);
    s.qa1.post(s.send(0, 100));
    s.pump();
    CHECK_EQ(s.qb1.stateWord(), kQpsError);
    only(s.qb1.receiveCq, 0, kOpReceive, c.status);
    CHECK_EQ(s.qb2.stateWord(), kQpsRts);
    s.qa2.post(s.send(0, 100));
    s.pump();
    only(s.qb2.receiveCq, 1, kOpReceive, kWcSuccess, 100);
  }
  Shared s;
  s.receives(1);
  s.srq.slot(0)[kRwSgeCount] = 100'000;
  s.qa1.post(s.send(0, 100));
  s.pump();
  only(s.qb1.receiveCq, 0, kOpReceive, kWcLocalOp);
}

// Keys are checked against the protection domain of the queue.
TEST(srq_uses_its_own_domain) {
  World w;
  Handle other;
  CHECK(w.b->engine.allocatePd(w.b->kernel, &other) == Status::kSuccess);
  Buffer to(*w.b, 100), from(*w.a, 100, kAllAccess, 4);
  const Handle first = w.b->pd;
  TestSrq srq(*w.b);
  w.b->pd = other;
  {
    QpShape shape;
    shape.srq = srq.handle;
    TestQp qa(*w.a), qb(*w.b, shape);
    w.b->pd = first;
    w.connect(qa, qb);
    srq.receive({{to.at(), 100, to.lkey}});
    qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 100, from.lkey}}});
    w.pump();
    only(qb.receiveCq, 0, kOpReceive, kWcSuccess, 100);
  }
}

TEST(srq_moves_to_another_ring) {
  Shared s(4);
  s.receives(4);
  s.qa1.post(s.send(0, 10));
  s.qa1.post(s.send(0, 10));
  s.pump();
  s.receives(2);  // receives 2 to 5 wait; the ring has wrapped
  CHECK(s.srq.resize(2) == Status::kBufferOverflow);
  CHECK(s.srq.resize(3) == Status::kInvalidParameter);
  CHECK(s.srq.resize(16) == Status::kSuccess);
  CHECK_EQ(s.srq.taken(), 2u);
  CHECK_EQ(s.srq.words()[kSrqProducer], 6u);
  s.receives(8);
  for (uint32_t i = 0; i < 12; i++) s.qa2.post(s.send(i * 100, 100));
  s.pump();
  const auto done = s.qb2.receiveCq.drain();
  if (!CHECK_EQ(done.size(), 12u)) return;
  for (uint32_t i = 0; i < 12; i++) {
    CHECK(done[i].wqe == i + 2 && done[i].status == kWcSuccess && done[i].length == 100);
    CHECK(std::memcmp(s.to.data() + (i + 2) * 1000, s.from.data() + i * 100, 100) == 0);
  }
}

TEST(srq_life) {
  World w;
  TestSrq srq(*w.b);
  Engine& e = w.b->engine;
  Handle made;
  const auto answer = [&](const std::function<void(SrqCreate&)>& spoil) {
    SrqCreate r = srq.request();
    spoil(r);
    return e.createSrq(r, &made);
  };
  CHECK(answer([](SrqCreate& r) { r.pd++; }) == Status::kInvalidHandle);
  CHECK(answer([](SrqCreate& r) { r.entries = 0; }) == Status::kInvalidParameter);
  CHECK(answer([](SrqCreate& r) { r.entries = 3; }) == Status::kInvalidParameter);
  CHECK(answer([](SrqCreate& r) { r.stride -= 16; }) == Status::kInvalidParameter);
  CHECK(answer([](SrqCreate& r) { r.sge = 33; }) == Status::kInvalidParameter);
  CHECK(answer([](SrqCreate& r) { r.ringBytes--; }) == Status::kInvalidParameter);
  CHECK(answer([](SrqCreate& r) { r.ringAddress += 1 << 20; }) == Status::kAccessViolation);
  SrqAttributes a;
  CHECK(e.querySrq(srq.handle + 1, &a) == Status::kInvalidHandle);
  CHECK(e.modifySrq(srq.handle + 1, 0, a) == Status::kInvalidHandle);
  CHECK(e.modifySrq(srq.handle, 4, a) == Status::kInvalidParameter);
  CHECK(e.destroySrq(srq.handle + 1) == Status::kInvalidHandle);
  CHECK_EQ(e.srqCount(), 1u);
  {
    QpShape shape;
    shape.srq = srq.handle;
    TestQp qp(*w.b, shape);
    CHECK(e.destroySrq(srq.handle) == Status::kDeviceBusy);
    QpCreate both = qp.request();
    both.receiveEntries = 4;
    uint32_t qpn;
    CHECK(e.createQp(both, &made, &qpn) == Status::kInvalidParameter);
  }
  CHECK(e.deallocatePd(w.b->pd) == Status::kDeviceBusy);
  CHECK(e.destroySrq(srq.handle) == Status::kSuccess);
  CHECK(e.deallocatePd(w.b->pd) == Status::kSuccess);
  CHECK_EQ(e.srqCount(), 0u);
}

TEST(srq_goes_with_its_kernel) {
  Shared s;
  s.receives(2);
  s.b->engine.detachKernel(s.b->kernel);
  CHECK_EQ(s.b->engine.srqCount(), 0u);
  s.qa1.post(s.send(0, 10));
  s.pump();
}

TEST(srq_garbage_producer) {
  Shared s;
  s.receives(2);
  __atomic_store_n(s.srq.words() + kSrqProducer, 1000u, __ATOMIC_RELEASE);
  s.qa1.post(s.send(0, 10));
  s.pump();
  CHECK_EQ(s.qb1.stateWord(), kQpsError);
  CHECK_EQ(s.qb2.stateWord(), kQpsRts);
  if (CHECK_EQ(s.b->port.srqEvents.size(), 1u)) CHECK(s.b->port.srqEvents[0].event == SrqEvent::kFatal);
  CHECK(s.srq.resize(16) == Status::kInvalidDeviceState);
}

TEST(fuzz_srq) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Random r(seed);
    Shared s(8, r.below(2) ? kQptRc : kQptUc);
    TestQp bystanderA(*s.a), bystanderB(*s.b);
    s.connect(bystanderA, bystanderB);
    for (int round = 0; round < 30; round++) {
      if (s.srq.producer - s.srq.taken() < s.srq.entries)
        s.srq.receive({{s.to.at(r.below(9000)), r.below(3000), r.below(9) ? s.to.lkey : r.next()}});
      if (r.below(3) == 0) s.srq.slot(r.next())[r.below(s.srq.stride / 4)] = r.below(2) ? r.next() : r.below(8);
      if (r.below(40) == 0) s.srq.words()[r.below(2) ? kSrqProducer : kSrqConsumer] = r.next();
      if (r.below(10) == 0) s.srq.resize(1u << r.below(6));
      if (r.below(6) == 0) s.srq.limit(r.below(9));
      (r.below(2) ? s.qa1 : s.qa2).post(s.send(r.below(4000), r.below(3000)));
      if (r.below(2)) s.b->step();
      for (TestQp* qp : {&s.qa1, &s.qa2, &s.qb1, &s.qb2}) {
        qp->sendCq.drain();
        for (const Cqe& c : qp->receiveCq.drain()) CHECK_EQ(c.flags & kSharedFlags, kSharedFlags);
      }
    }
    s.until([] { return false; }, 2'000'000'000ull);
    Buffer to(*s.b, 100);
    bystanderA.post({kOpWrite, kSendFlagSignaled, {{s.from.at(), 100, s.from.lkey}}, 0, to.at(), to.rkey});
    s.until([&] { return bystanderA.sendCq.written() == 1; });
    only(bystanderA.sendCq, 0, kOpWrite, kWcSuccess);
  }
}
