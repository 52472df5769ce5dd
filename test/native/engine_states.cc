// The state table walked for every cell, SQD, RESET, flushing, object life, and what creation refuses.
#include <functional>
#include "world.h"

using namespace world;

static const uint32_t kAllBits = 0x20000 * 2 - 1;

// Brings a fresh QP into a state by legal steps; SQE cannot be reached by RC.
static void into(TestQp& qp, Node& peer, uint32_t state) {
  if (state == kQpsReset) return;
  if (state == kQpsError) {
    CHECK(qp.toState(kQpsError) == Status::kSuccess);
    return;
  }
  bring(qp, peer.gid, peer.engine.options().maxQp, {}, true, state == kQpsSqd ? kQpsRts : state);
  if (state == kQpsSqd) CHECK(qp.toState(kQpsSqd) == Status::kSuccess);
}

// What §3.4 of the wire reference says, written down independently of the engine's table.
struct Cell {
  uint32_t from, to, required, optional;
};
static const Cell kCells[] = {
    {kQpsReset, kQpsInit, 4 | 8 | 2, 0},
    {kQpsInit, kQpsInit, 0, 4 | 8 | 2},
    {kQpsInit, kQpsRtr, 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400, 2 | 4 | 0x40000 | 0x80000},
    {kQpsRtr, kQpsRts, 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000, 2 | 0x400},
    {kQpsRts, kQpsRts, 0, 2 | 0x400},
    {kQpsRts, kQpsSqd, 0, 0x20000},
    {kQpsSqd, kQpsSqd, 0, 8 | 0x20 | 0x800 | 0x1000 | 0x2000 | 0x8000 | 0x200 | 2 | 4 | 0x400},
    {kQpsSqd, kQpsRts, 0, 2 | 0x400},
};

TEST(every_transition_with_every_mask_bit) {
  World w;
  const uint32_t states[] = {kQpsReset, kQpsInit, kQpsRtr, kQpsRts, kQpsSqd, kQpsError};
  for (const uint32_t from : states) {
    for (uint32_t to = 0; to <= 8; to++) {
      check::note = "from*10+to";
      check::noteNumber = from * 10 + to;
      const Cell* cell = nullptr;
      for (const Cell& c : kCells)
        if (c.from == from && c.to == to) cell = &c;
      const bool always = to == kQpsReset || to == kQpsError;
      const auto attempt = [&](uint32_t mask, uint32_t current) {
        TestQp qp(*w.a);
        into(qp, *w.b, from);
        QpAttributes a = attributesFor(*w.a, w.b->gid, 5, {}, true);
        a.state = to;
        a.currentState = current;
        const Status s = qp.modify(mask | qpmask::kState, a);
        const uint32_t expected = s == Status::kSuccess ? to : from;
        CHECK_EQ(qp.state(), expected);
        CHECK_EQ(qp.stateWord(), expected);
        return s;
      };
      if (!cell && !always) {
        CHECK(attempt(0, 0) == Status::kInvalidDeviceState);
        CHECK(attempt(kAllBits & ~qpmask::kCurrentState, 0) == Status::kInvalidDeviceState);
        continue;
      }
      const uint32_t required = cell ? cell->required : 0, optional = cell ? cell->optional : 0;
      CHECK(attempt(required, 0) == Status::kSuccess);
      CHECK(attempt(required | optional, 0) == Status::kSuccess);
      CHECK(attempt(required | qpmask::kCurrentState, from) == Status::kSuccess);
      CHECK(attempt(required | qpmask::kCurrentState, from + 1) == Status::kInvalidDeviceState);
      for (uint32_t bit = 2; bit <= 0x100000; bit <<= 1) {
        if (bit == qpmask::kCurrentState) continue;
        if (required & bit) {
          CHECK(attempt(required & ~bit, 0) == Status::kInvalidParameter);
        } else {
          CHECK(attempt(required | bit, 0) == (optional & bit ? Status::kSuccess : Status::kInvalidParameter));
        }
      }
    }
  }
}

TEST(connecting_is_the_three_steps_and_ends_at_the_one_that_is_refused) {
  World w;
  const std::array<uint32_t, 3> steps{kCells[0].required, kCells[2].required, kCells[3].required};
  const QpAttributes attributes = attributesFor(*w.a, w.b->gid, 5, {}, true);
  for (const uint32_t from : {kQpsReset, kQpsInit, kQpsRtr, kQpsRts, kQpsSqd, kQpsError}) {
    check::note = "from";
    check::noteNumber = from;
    TestQp qp(*w.a);
    into(qp, *w.b, from);
    const bool may = from == kQpsReset || from == kQpsInit;
    CHECK(w.a->engine.connectQp(qp.handle, steps, attributes) ==
          (may ? Status::kSuccess : Status::kInvalidDeviceState));
    const uint32_t expected = may ? kQpsRts : from;
    CHECK_EQ(qp.state(), expected);
    CHECK_EQ(qp.stateWord(), expected);
  }
  for (uint32_t step = 0; step < steps.size(); step++) {
    check::note = "step";
    check::noteNumber = step;
    TestQp qp(*w.a);
    std::array<uint32_t, 3> masks = steps;
    masks[step] &= masks[step] - 1;
    CHECK(w.a->engine.connectQp(qp.handle, masks, attributes) == Status::kInvalidParameter);
    CHECK_EQ(qp.state(), step);
  }
  CHECK(w.a->engine.connectQp(0, steps, attributes) == Status::kInvalidHandle);
}

TEST(attribute_values_are_checked) {
  World w;
  const auto rejects = [&](uint32_t from, uint32_t to, uint32_t mask, const std::function<void(QpAttributes&)>& spoil) {
    TestQp qp(*w.a);
    into(qp, *w.b, from);
    QpAttributes a = attributesFor(*w.a, w.b->gid, 5, {}, true);
    a.state = to;
    spoil(a);
    CHECK(qp.modify(mask, a) == Status::kInvalidParameter);
    CHECK_EQ(qp.state(), from);
  };
  rejects(kQpsReset, kQpsInit, kInitMask, [](QpAttributes& a) { a.port = 2; });
  rejects(kQpsReset, kQpsInit, kInitMask, [](QpAttributes& a) { a.pkeyIndex = 1; });
  rejects(kQpsReset, kQpsInit, kInitMask, [](QpAttributes& a) { a.access = 0x100; });
  for (const uint32_t mtu : {0u, 128u, 255u, 1000u, 8192u})
    rejects(kQpsInit, kQpsRtr, kRtrMask, [=](QpAttributes& a) { a.pathMtu = mtu; });
  constexpr uint32_t kBits = 1u << extensions::kPacketBytesShift;
  for (const uint32_t word :
       {extensions::kAll + 1, 0xFFFFu, 0xFFFFFFFFu, withPackets(8), withPackets(252), withPackets(1428),
        withPackets(kJumboPacket + 4), withPackets(extensions::kPacketBytesLongest + extensions::kPacketBytesStep),
        withPackets(0xFFF8), kEthernetPacket * kBits, kEthernetPacket * kBits | extensions::kRecovery})
    rejects(kQpsInit, kQpsRtr, kRtrMask, [=](QpAttributes& a) { a.extensions = word; });
  rejects(kQpsInit, kQpsRtr, kRtrMask, [](QpAttributes& a) { a.destinationQpn = 1u << 24; });
  rejects(kQpsInit, kQpsRtr, kRtrMask, [](QpAttributes& a) { a.receivePsn = 1u << 24; });
  rejects(kQpsInit, kQpsRtr, kRtrMask, [](QpAttributes& a) { a.responderResources = 129; });
  rejects(kQpsInit, kQpsRtr, kRtrMask, [](QpAttributes& a) { a.minRnrTimer = 32; });
  rejects(kQpsRtr, kQpsRts, kRtsMask, [](QpAttributes& a) { a.sendPsn = 1u << 24; });
  rejects(kQpsRtr, kQpsRts, kRtsMask, [](QpAttributes& a) { a.initiatorDepth = 129; });
  rejects(kQpsRtr, kQpsRts, kRtsMask, [](QpAttributes& a) { a.ackTimeout = 32; });
  rejects(kQpsRtr, kQpsRts, kRtsMask, [](QpAttributes& a) { a.retryCount = 8; });
  rejects(kQpsRtr, kQpsRts, kRtsMask, [](QpAttributes& a) { a.rnrRetry = 8; });
}

TEST(creation_refuses) {
  World w;
  TestQp good(*w.a);
  Handle qp;
  uint32_t qpn;
  Port otherPort;
  KernelId other = 0;
  Handle otherPd = 0;
  CHECK(w.a->engine.attachKernel(&otherPort, &other) == Status::kSuccess);
  CHECK(w.a->engine.allocatePd(other, &otherPd) == Status::kSuccess);
  const auto answer = [&](const std::function<void(QpCreate&)>& spoil) {
    QpCreate r = good.request();
    spoil(r);
    return w.a->engine.createQp(r, &qp, &qpn);
  };
  CHECK(answer([](QpCreate& r) { r.srq = 5; }) == Status::kInvalidHandle);
  CHECK(answer([](QpCreate& r) { r.type = 2; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.pd++; }) == Status::kInvalidHandle);
  CHECK(answer([](QpCreate& r) { r.sendCq ^= 1u << 20; }) == Status::kInvalidHandle);
  CHECK(answer([](QpCreate& r) { r.receiveCq = 0; }) == Status::kInvalidHandle);
  CHECK(answer([&](QpCreate& r) { r.pd = otherPd; }) == Status::kInvalidHandle);  // the CQs are another kernel's
  CHECK(answer([](QpCreate& r) { r.sendEntries = 48; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.sendEntries = 1u << 15; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.sendStride = 72; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.sendStride = 64; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.sendSge = 33; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.maxInline = 4096; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.receiveStride = 16; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.ringBytes -= 64; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.ringAddress += 64; }) == Status::kAccessViolation);
  CHECK(answer([](QpCreate& r) { r.ringAddress += 8; }) == Status::kInvalidParameter);
  CHECK(answer([](QpCreate& r) { r.ringBytes += 1u << 20; }) == Status::kAccessViolation);
  Handle cq;
  CHECK(w.a->engine.createCq(w.a->kernel, good.ring, good.ringBytes, 3, &cq) == Status::kInvalidParameter);
  CHECK(w.a->engine.createCq(w.a->kernel, good.ring, good.ringBytes, 1u << 20, &cq) == Status::kInvalidParameter);
  CHECK(w.a->engine.createCq(w.a->kernel, 4096, 1u << 16, 4, &cq) == Status::kAccessViolation);
  CHECK(w.a->engine.createCq(8, good.ring, good.ringBytes, 4, &cq) == Status::kInvalidHandle);
  CHECK(w.a->engine.destroyCq(good.sendCq.handle) == Status::kDeviceBusy);
  CHECK(w.a->engine.deallocatePd(w.a->pd) == Status::kDeviceBusy);
  CHECK(w.a->engine.destroyQp(good.handle ^ 1u << 20) == Status::kInvalidHandle);
  w.a->engine.doorbell(0);
  w.a->engine.doorbell(0xFFFFFFFF);
}

TEST(limits_and_reuse_of_handles) {
  EngineOptions options;
  options.maxQp = 100;
  World w(options);
  std::vector<std::unique_ptr<TestQp>> all;
  std::set<uint32_t> qpns;
  for (int i = 0; i < 100; i++) {
    all.push_back(std::make_unique<TestQp>(*w.a));
    qpns.insert(all.back()->qpn);
    CHECK_EQ(all.back()->qpn >> 16, 1u);
    CHECK((all.back()->qpn & 0xFFFF) >= 2);
  }
  CHECK_EQ(qpns.size(), 100u);
  Handle qp;
  uint32_t qpn;
  CHECK(w.a->engine.createQp(all[0]->request(), &qp, &qpn) == Status::kInsufficientResources);
  const Handle old = all[5]->handle;
  CHECK(w.a->engine.destroyQp(old) == Status::kSuccess);
  CHECK(w.a->engine.createQp(all[0]->request(), &qp, &qpn) == Status::kSuccess);
  CHECK(qp != old);
  QpAttributes a;
  CHECK(w.a->engine.queryQp(old, &a) == Status::kInvalidHandle);
  CHECK(w.a->engine.destroyQp(qp) == Status::kSuccess);
  all.clear();
  const auto counts = w.a->engine.objectCounts();
  CHECK_EQ(counts[3] + counts[4] + counts[5], 0u);
}

TEST(domains_queues_regions_and_windows_are_limited) {
  EngineOptions options;
  options.maxPd = options.maxCq = options.maxSrq = options.maxMr = options.maxMw = 3;
  World w(options);
  Engine& e = w.a->engine;
  // Until it is refused; one that is given back makes room for another.
  const auto fill = [](const char* what, const std::function<Status(Handle*)>& create,
                       const std::function<Status(Handle)>& destroy) {
    check::note = what;
    std::vector<Handle> made;
    Handle handle = 0;
    Status status = Status::kSuccess;
    while (made.size() < 10 && (status = create(&handle)) == Status::kSuccess) made.push_back(handle);
    CHECK(status == Status::kInsufficientResources);
    CHECK(!made.empty() && made.size() <= 3);
    CHECK(destroy(made.back()) == Status::kSuccess);
    CHECK(create(&made.back()) == Status::kSuccess);
    CHECK(create(&handle) == Status::kInsufficientResources);
    for (const Handle one : made) CHECK(destroy(one) == Status::kSuccess);
  };
  fill(
      "domains", [&](Handle* made) { return e.allocatePd(w.a->kernel, made); },
      [&](Handle made) { return e.deallocatePd(made); });
  TestCq cq(*w.a, 8);
  const uint64_t bytes = kCqHeaderBytes + uint64_t(cq.entries) * kCqeBytes;
  fill(
      "completion queues", [&](Handle* made) { return e.createCq(w.a->kernel, cq.ring, bytes, cq.entries, made); },
      [&](Handle made) { return e.destroyCq(made); });
  TestSrq srq(*w.a);
  fill(
      "shared receive queues", [&](Handle* made) { return e.createSrq(srq.request(), made); },
      [&](Handle made) { return e.destroySrq(made); });
  Buffer memory(*w.a, 64);
  uint32_t rkey = 0;
  const auto deregister = [&](Handle made) { return e.deregisterMr(w.a->pd, made); };
  fill(
      "regions", [&](Handle* made) { return e.registerMr(w.a->pd, memory.at(), 64, kAccessLocalWrite, made, &rkey); },
      deregister);
  fill(
      "regions for fast registration", [&](Handle* made) { return e.allocateMr(w.a->pd, 64, made); }, deregister);
  fill(
      "windows", [&](Handle* made) { return e.allocateMw(w.a->pd, made, &rkey); },
      [&](Handle made) { return e.deallocateMw(made); });
}

TEST(flush_is_complete_when_modify_returns) {
  Pair p;
  Buffer a(*p.a, 4096), b(*p.b, 4096);
  p.net.filter = [](Frame&) { return false; };
  for (int i = 0; i < 40; i++) p.qa.post({i % 3 ? kOpWrite : kOpRead, 0, {{a.at(), 100, a.lkey}}, 0, b.at(), b.rkey});
  for (int i = 0; i < 50; i++) p.qa.receive({});
  CHECK(p.qa.toState(kQpsError) == Status::kSuccess);
  const auto sends = p.qa.sendCq.drain();
  const auto receives = p.qa.receiveCq.drain();
  if (!CHECK_EQ(sends.size(), 40u) || !CHECK_EQ(receives.size(), 50u)) return;
  for (uint32_t i = 0; i < 40; i++) {
    CHECK(sends[i].wqe == i && sends[i].status == kWcFlushed && sends[i].token == 0xA);
    CHECK_EQ(sends[i].opcode, i % 3 ? kOpWrite : kOpRead);
  }
  for (uint32_t i = 0; i < 50; i++)
    CHECK(receives[i].wqe == i && receives[i].status == kWcFlushed && (receives[i].flags & kCqeFlagReceiveQueue));
  CHECK(p.a->port.events.empty());  // asked for: no news
  // Later posts are flushed too, both kinds.
  p.qa.receive({});
  p.qa.post({kOpSend, 0});
  only(p.qa.sendCq, 40, kOpSend, kWcFlushed);
  only(p.qa.receiveCq, 50, kOpReceive, kWcFlushed);
  p.pump();
  CHECK(p.a->deadline() == UINT64_MAX);
}

// With a barrier in all threads posters do not fence: what one posts until then is seen, and later the state is.
static TestQp* posting;
static uint32_t barriers, stateThen;
TEST(a_receive_posted_while_the_queue_pair_fails) {
  Pair p;
  posting = nullptr;
  CHECK_EQ(p.qa.unfencedWord(), 0u);
  p.a->engine.setBarrier([] {
    barriers++;
    if (!posting) return;
    stateThen = posting->stateWord();
    posting->writeReceive({});
  });
  CHECK_EQ(p.qa.unfencedWord(), 1u);
  TestQp later(*p.a);
  CHECK_EQ(later.unfencedWord(), 1u);
  posting = &p.qa;
  barriers = 0;
  p.qa.receive({});
  CHECK(p.qa.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(barriers, 1u);
  CHECK_EQ(stateThen, kQpsError);
  CHECK_EQ(p.qa.receiveCq.drain().size(), 2u);
  CHECK(p.qa.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(barriers, 1u);  // it is in ERROR already
}

TEST(reset_forgets_and_the_qp_can_be_used_again) {
  Pair p;
  Buffer a(*p.a, 4096, kAllAccess, 3), b(*p.b, 4096);
  p.net.filter = [](Frame&) { return false; };
  for (int i = 0; i < 5; i++) p.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 100, a.lkey}}, 0, b.at(), b.rkey});
  p.qa.receive({});
  CHECK(p.qa.toState(kQpsReset) == Status::kSuccess);
  CHECK(p.qb.toState(kQpsReset) == Status::kSuccess);
  CHECK_EQ(p.qa.sendCq.written() + p.qa.receiveCq.written(), 0u);
  p.net.filter = nullptr;
  p.pump();
  p.connect(p.qa, p.qb);
  p.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 100, a.lkey}}, 0, b.at(), b.rkey});
  p.pump();
  only(p.qa.sendCq, 5, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(a.data(), b.data(), 100) == 0);
}

TEST(sqd_drains_holds_and_goes_on) {
  EngineOptions options;
  options.window = 4;
  Pair p({}, {}, options);
  Buffer a(*p.a, 20'000, kAllAccess, 3), b(*p.b, 20'000);
  p.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 10'000, a.lkey}}, 0, b.at(), b.rkey});  // begun, not finished
  p.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 5, a.lkey}}, 0, b.at(15'000), b.rkey});
  QpAttributes attributes;
  attributes.state = kQpsSqd;
  CHECK(p.qa.modify(qpmask::kState | qpmask::kDrainNotify, attributes) == Status::kSuccess);
  attributes.retryCount = 3;
  CHECK(p.qa.modify(qpmask::kRetryCount, attributes) == Status::kInvalidDeviceState);
  CHECK_EQ(p.a->port.count(QpEvent::kSendQueueDrained), 0);
  p.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 5, a.lkey}}, 0, b.at(15'000), b.rkey});
  p.pump();
  CHECK_EQ(p.a->port.count(QpEvent::kSendQueueDrained), 1);
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  CHECK(p.qa.modify(qpmask::kRetryCount, attributes) == Status::kSuccess);
  // Requests of the peer are served meanwhile.
  p.qb.post({kOpRead, kSendFlagSignaled, {{b.at(), 8, b.lkey}}, 0, a.at(), a.rkey});
  p.pump();
  only(p.qb.sendCq, 0, kOpRead, kWcSuccess, 8);
  CHECK_EQ(p.qa.sendCq.written(), 1u);
  CHECK(p.qa.toState(kQpsRts) == Status::kSuccess);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
  QpAttributes now;
  CHECK(p.a->engine.queryQp(p.qa.handle, &now) == Status::kSuccess);
  CHECK_EQ(now.retryCount, 3u);
  CHECK_EQ(p.a->port.count(QpEvent::kSendQueueDrained), 1);
}

// What waits in SQD begins under the attributes that were set there, even if it was looked at before.
TEST(sqd_attributes_are_of_what_begins_after) {
  Pair p;
  Buffer a(*p.a, 64), b(*p.b, 64);
  p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  p.qa.post({kOpRead, kSendFlagSignaled | kSendFlagFence, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  CHECK(p.qa.toState(kQpsSqd) == Status::kSuccess);
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcSuccess, 8);
  QpAttributes attributes;
  CHECK(p.qa.modify(qpmask::kInitiatorDepth, attributes) == Status::kSuccess);  // the peer takes none any more
  CHECK(p.qa.toState(kQpsRts) == Status::kSuccess);
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcLocalOp);
}

// Fewer resources are for what is asked after: what was asked before is answered, and what is asked beyond them is not.
TEST(sqd_resources_are_of_what_is_asked_after) {
  for (const uint32_t resources : {0u, 1u}) {
    Pair p;
    Buffer a(*p.a, 64'000), b(*p.b, 16'000, kAllAccess, 3);
    const auto read = [&](uint32_t i) {
      p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(i * 16'000), 16'000, a.lkey}}, 0, b.at(), b.rkey});
    };
    for (uint32_t i = 0; i < 4; i++) read(i);
    p.b->step();  // begins to answer the first
    CHECK(p.qb.toState(kQpsSqd) == Status::kSuccess);
    QpAttributes attributes;
    attributes.responderResources = resources;
    CHECK(p.qb.modify(qpmask::kResponderResources, attributes) == Status::kSuccess);
    p.pump();
    for (const Cqe& c : p.qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
    CHECK_EQ(p.qa.sendCq.consumer, 4u);
    for (uint32_t i = 0; i < 4; i++) CHECK(std::memcmp(a.data() + i * 16'000, b.data(), 16'000) == 0);
    for (uint32_t i = 0; i <= resources; i++) read(i);
    p.pump();
    CHECK_EQ(p.qa.sendCq.drain().back().status, kWcRemoteInvalidRequest);
  }
}

// A repetition that is still to be answered takes no resource from what is asked anew, if these became fewer, too.
TEST(sqd_fewer_resources_and_a_repetition) {
  Pair p;
  Buffer a(*p.a, 64'000), b(*p.b, 16'000, kAllAccess, 3);
  const auto read = [&](uint32_t i) {
    p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(i * 16'000), 16'000, a.lkey}}, 0, b.at(), b.rkey});
  };
  Frame asked;
  p.net.filter = [&](Frame& f) {
    if (f.bth().opcode == wire::kOpReadRequest) asked = f;
    return true;
  };
  for (uint32_t i = 0; i < 4; i++) read(i);
  p.b->step();
  CHECK(p.qb.toState(kQpsSqd) == Status::kSuccess);
  QpAttributes attributes;
  attributes.responderResources = 1;
  CHECK(p.qb.modify(qpmask::kResponderResources, attributes) == Status::kSuccess);
  p.pump();
  p.net.send(Frame(asked));
  read(0);
  p.pump();
  for (const Cqe& c : p.qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
  CHECK_EQ(p.qa.sendCq.consumer, 5u);
}

TEST(established_event_and_receives_posted_in_init) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  bring(qa, qb.node.gid, qb.qpn, {}, true);
  bring(qb, qa.node.gid, qa.qpn, {}, false, kQpsInit);
  Buffer a(*w.a, 8, 0, 3), b(*w.b, 8);
  qb.receive({{b.at(), 8, b.lkey}});
  QpAttributes attributes = attributesFor(*w.b, w.a->gid, qa.qpn, {}, false);
  attributes.state = kQpsRtr;
  CHECK(qb.modify(kRtrMask, attributes) == Status::kSuccess);
  qa.post({kOpSend, kSendFlagSignaled, {{a.at(), 8, a.lkey}}});
  qa.post({kOpWrite, kSendFlagSignaled});
  w.pump();
  CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 1);
  only(qb.receiveCq, 0, kOpReceive, kWcSuccess, 8);
}

// A passive side is in RTS before its REP leaves, and still waits for word that the active side is there.
TEST(established_event_in_rts) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  w.connect(qa, qb);
  w.pump();
  CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 0);
  for (int i = 0; i < 3; i++) qa.post({kOpWrite, kSendFlagSignaled});
  w.pump();
  CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 1);
  CHECK_EQ(w.a->port.count(QpEvent::kCommunicationEstablished), 1);  // the acknowledgement
}
