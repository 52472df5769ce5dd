// Tests every cell of the state table, SQD, RESET, flushing, object lifetimes, and what creation refuses.
#include <functional>
#include <tuple>

#include "ud_world.h"

using namespace world;

using namespace qpmask;

static const uint32_t kAllBits = 0x20000 * 2 - 1;
static const uint32_t kTypes[] = {kQptRc, kQptUc, kQptUd};

static QpShape shapeOf(uint32_t type) {
  QpShape s;
  s.type = type;
  return s;
}

// Brings a fresh QP into a state with legal steps. RC has no send queue error, so a failed send moves the QP to ERROR.
static void into(TestQp& qp, Node& peer, uint32_t state) {
  if (state == kQpsReset) return;
  if (state == kQpsError) {
    CHECK(qp.toState(kQpsError) == Status::kSuccess);
    return;
  }
  const uint32_t upTo = std::min(state, uint32_t(kQpsRts));
  if (qp.shape.type == kQptUd) bringUd(qp, kKey, upTo);
  else bring(qp, peer.gid, peer.engine.options().maxQp, {}, true, upTo);
  if (state == kQpsSqd) CHECK(qp.toState(kQpsSqd) == Status::kSuccess);
  if (state == kQpsSqError) qp.post({kOpRead, 0});
  CHECK_EQ(qp.state(), state);
}

// What a transition requires and permits, by type, from IBA 1 §11.2.5.2 (the tables of Modify QP). It is written
// independently of the engine's table. The current state may always be given.
constexpr uint32_t kNever = UINT32_MAX;
constexpr uint32_t kInit = kPkeyIndex | kPort | kAccess, kInitUd = kPkeyIndex | kPort | kQkey;
constexpr uint32_t kConnected = kPath | kPathMtu | kDestinationQpn | kReceivePsn;
struct Cell {
  uint32_t from, to;
  struct {
    uint32_t required, optional;
  } of[3];  // RC, UC, UD
};
static const Cell kCells[] = {
    {kQpsReset, kQpsInit, {{kInit, 0}, {kInit, 0}, {kInitUd, 0}}},
    {kQpsInit, kQpsInit, {{0, kInit}, {0, kInit}, {0, kInitUd}}},
    {kQpsInit,
     kQpsRtr,
     {{kConnected | kResponderResources | kMinRnrTimer, kAccess | kPkeyIndex | kRnrTimeout | kExtensions},
      {kConnected, kAccess | kPkeyIndex},
      {0, kPkeyIndex | kQkey}}},
    {kQpsRtr,
     kQpsRts,
     {{kAckTimeout | kRetryCount | kRnrRetry | kSendPsn | kInitiatorDepth, kAccess | kMinRnrTimer},
      {kSendPsn, kAccess},
      {kSendPsn, kQkey}}},
    {kQpsRts, kQpsRts, {{0, kAccess | kMinRnrTimer}, {0, kAccess}, {0, kQkey}}},
    {kQpsRts, kQpsSqd, {{0, kDrainNotify}, {0, kDrainNotify}, {0, kDrainNotify}}},
    {kQpsSqd,
     kQpsSqd,
     {{0, kPort | kPath | kAckTimeout | kRetryCount | kRnrRetry | kInitiatorDepth | kResponderResources | kAccess |
              kPkeyIndex | kMinRnrTimer},
      {0, kPath | kAccess | kPkeyIndex},
      {0, kPkeyIndex | kQkey}}},
    {kQpsSqd, kQpsRts, {{0, kAccess | kMinRnrTimer}, {0, kAccess}, {0, kQkey}}},
    {kQpsSqError, kQpsRts, {{kNever, 0}, {0, kAccess}, {0, kQkey}}},
};

static void everyTransition(World& w, uint32_t type, uint32_t from) {
  for (uint32_t to = 0; to <= 8; to++) {
    check::note = "type*100+from*10+to";
    check::noteNumber = type * 100 + from * 10 + to;
    const Cell* cell = nullptr;
    for (const Cell& c : kCells)
      if (c.from == from && c.to == to) cell = &c;
    const bool always = to == kQpsReset || to == kQpsError;
    const auto attempt = [&](uint32_t mask, uint32_t current) {
      TestQp qp(*w.a, shapeOf(kTypes[type]));
      into(qp, *w.b, from);
      QpAttributes a = attributesFor(*w.a, w.b->gid, 5, {}, true);
      a.state = to;
      a.currentState = current;
      const Status s = qp.modify(mask | kState, a);
      const uint32_t expected = s == Status::kSuccess ? to : from;
      CHECK_EQ(qp.state(), expected);
      CHECK_EQ(qp.stateWord(), expected);
      return s;
    };
    if (!cell && !always) {
      CHECK(attempt(0, 0) == Status::kInvalidDeviceState);
      CHECK(attempt(kAllBits & ~kCurrentState, 0) == Status::kInvalidDeviceState);
      for (uint32_t bit = 2; bit <= 0x100000; bit <<= 1) CHECK(attempt(bit, from) == Status::kInvalidDeviceState);
      continue;
    }
    const uint32_t required = cell ? cell->of[type].required : 0, optional = cell ? cell->of[type].optional : 0;
    CHECK(attempt(required, 0) == Status::kSuccess);
    CHECK(attempt(required | optional, 0) == Status::kSuccess);
    CHECK(attempt(required | kCurrentState, from) == Status::kSuccess);
    CHECK(attempt(required | kCurrentState, from + 1) == Status::kInvalidDeviceState);
    for (uint32_t bit = 2; bit <= 0x100000; bit <<= 1) {
      if (bit == kCurrentState) continue;
      if (required & bit) {
        CHECK(attempt(required & ~bit, 0) == Status::kInvalidParameter);
      } else {
        CHECK(attempt(required | bit, 0) == (optional & bit ? Status::kSuccess : Status::kInvalidParameter));
      }
    }
  }
}

TEST(every_transition_with_every_mask_bit) {
  World w;
  for (uint32_t type = 0; type < 3; type++)
    for (uint32_t from = kQpsReset; from <= kQpsError; from++)
      if (kTypes[type] != kQptRc || from != kQpsSqError) everyTransition(w, type, from);
}

TEST(connecting_is_the_three_steps_and_ends_at_the_one_that_is_refused) {
  World w;
  QpAttributes attributes = attributesFor(*w.a, w.b->gid, w.b->engine.options().maxQp, {}, true);
  attributes.path.flowLabel = 0x12345;
  attributes.path.trafficClass = 0x60;
  attributes.path.hopLimit = 3;
  attributes.path.scopeId = 7;
  const auto fields = [](const Path& p) {
    return std::tie(p.source, p.destination, p.flowLabel, p.trafficClass, p.hopLimit, p.scopeId);
  };
  for (uint32_t type = 0; type < 2; type++) {
    const QpShape shape = shapeOf(kTypes[type]);
    const auto required = [&](uint32_t cell) { return kCells[cell].of[type].required; };
    const std::array<uint32_t, 3> steps{required(0), required(2), required(3)};
    TestQp stepped(*w.a, shape);
    into(stepped, *w.b, kQpsRts);
    QpAttributes expected, found;
    CHECK(w.a->engine.queryQp(stepped.handle, &expected) == Status::kSuccess);
    for (uint32_t from = kQpsReset; from <= kQpsError; from++) {
      if (kTypes[type] == kQptRc && from == kQpsSqError) continue;
      check::note = "type*10+from";
      check::noteNumber = type * 10 + from;
      TestQp qp(*w.a, shape);
      into(qp, *w.b, from);
      const bool may = from == kQpsReset || from == kQpsInit;
      CHECK(w.a->engine.connectQp(qp.handle, steps, attributes) ==
            (may ? Status::kSuccess : Status::kInvalidDeviceState));
      CHECK_EQ(qp.state(), may ? uint32_t(kQpsRts) : from);
      CHECK_EQ(qp.stateWord(), may ? uint32_t(kQpsRts) : from);
      if (!may) continue;
      CHECK(w.a->engine.queryQp(qp.handle, &found) == Status::kSuccess);
      QpAttributes::each(
          [&](const char*, auto member, double, uint32_t) { return CHECK_EQ(found.*member, expected.*member); });
      CHECK(fields(found.path) == fields(attributes.path));
    }
    for (uint32_t step = 0; step < steps.size(); step++) {
      check::note = "type*10+step";
      check::noteNumber = type * 10 + step;
      TestQp qp(*w.a, shape);
      std::array<uint32_t, 3> masks = steps;
      masks[step] &= masks[step] - 1;
      CHECK(w.a->engine.connectQp(qp.handle, masks, attributes) == Status::kInvalidParameter);
      CHECK_EQ(qp.state(), step);
    }
    CHECK(w.a->engine.connectQp(0, steps, attributes) == Status::kInvalidHandle);
  }
}

TEST(attribute_values_are_checked) {
  World w;
  constexpr uint32_t kBits = 1u << extensions::kPacketBytesShift;
  const struct {
    uint32_t from, to, mask;
    uint32_t QpAttributes::*member;
    std::vector<uint32_t> bad, good;
  } ranges[] = {
      {kQpsReset, kQpsInit, kInitMask, &QpAttributes::port, {0, 2, 255}, {1}},
      {kQpsReset, kQpsInit, kInitMask, &QpAttributes::pkeyIndex, {1}, {0}},
      {kQpsReset, kQpsInit, kInitMask, &QpAttributes::access, {0x20, 0x80, 0x100}, {0, 0x1F}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::pathMtu, {0, 128, 255, 1000, 8192}, {256, 512, 1024, 2048, 4096}},
      {kQpsInit,
       kQpsRtr,
       kRtrMask,
       &QpAttributes::extensions,
       {extensions::kAll + 1, 0xFFFF, 0xFFFFFFFF, withPackets(8), withPackets(252), withPackets(1428),
        withPackets(kJumboPacket + 4), withPackets(extensions::kPacketBytesLongest + extensions::kPacketBytesStep),
        withPackets(0xFFF8), kEthernetPacket * kBits, kEthernetPacket * kBits | extensions::kRecovery},
       {0, extensions::kAll & ~extensions::kLongPackets, withPackets(kJumboPacket)}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::destinationQpn, {1u << 24, UINT32_MAX}, {2, 0xFFFFFE}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::receivePsn, {1u << 24, UINT32_MAX}, {0, 0xFFFFFF}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::responderResources, {129}, {0, 128}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::minRnrTimer, {32}, {0, 31}},
      {kQpsInit, kQpsRtr, kRtrMask, &QpAttributes::rnrTimeout, {4}, {0, 3}},
      {kQpsRtr, kQpsRts, kRtsMask, &QpAttributes::sendPsn, {1u << 24}, {0, 0xFFFFFF}},
      {kQpsRtr, kQpsRts, kRtsMask, &QpAttributes::initiatorDepth, {129}, {0, 128}},
      {kQpsRtr, kQpsRts, kRtsMask, &QpAttributes::ackTimeout, {32}, {0, 31}},
      {kQpsRtr, kQpsRts, kRtsMask, &QpAttributes::retryCount, {8}, {0, 7}},
      {kQpsRtr, kQpsRts, kRtsMask, &QpAttributes::rnrRetry, {8}, {0, 7}},
  };
  check::note = "range";
  check::noteNumber = 0;
  for (const auto& range : ranges) {
    const auto attempt = [&](uint32_t value, bool good) {
      TestQp qp(*w.a);
      into(qp, *w.b, range.from);
      QpAttributes a = attributesFor(*w.a, w.b->gid, 5, {}, true), found;
      a.state = range.to;
      a.*range.member = value;
      CHECK(qp.modify(range.mask, a) == (good ? Status::kSuccess : Status::kInvalidParameter));
      CHECK_EQ(qp.state(), good ? range.to : range.from);
      CHECK(w.a->engine.queryQp(qp.handle, &found) == Status::kSuccess);
      if (good) CHECK_EQ(found.*range.member, value);
    };
    for (const uint32_t value : range.bad) attempt(value, false);
    for (const uint32_t value : range.good) attempt(value, true);
    check::noteNumber++;
  }
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
  CHECK(answer([&](QpCreate& r) { r.pd = otherPd; }) == Status::kInvalidHandle);  // the CQs belong to another kernel
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
  // Objects are created until creation is refused. A destroyed object makes room for another.
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
  CHECK(p.a->port.events.empty());  // the change was requested, so it is not an event
  // Later posts of both kinds are flushed too.
  p.qa.receive({});
  p.qa.post({kOpSend, 0});
  only(p.qa.sendCq, 40, kOpSend, kWcFlushed);
  only(p.qa.receiveCq, 50, kOpReceive, kWcFlushed);
  p.pump();
  CHECK(p.a->deadline() == UINT64_MAX);
}

// With a barrier in all threads, posters need no fence. What a thread posts before the barrier is seen, and after it
// the thread sees the state.
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
  CHECK_EQ(barriers, 1u);  // the QP is in ERROR already
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
  // Meanwhile requests of the peer are served.
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

// Requests that wait in SQD start with the attributes that were set there, even if they were examined before.
TEST(sqd_attributes_apply_to_what_begins_after) {
  Pair p;
  Buffer a(*p.a, 64), b(*p.b, 64);
  p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  p.qa.post({kOpRead, kSendFlagSignaled | kSendFlagFence, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  CHECK(p.qa.toState(kQpsSqd) == Status::kSuccess);
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcSuccess, 8);
  QpAttributes attributes;
  CHECK(p.qa.modify(qpmask::kInitiatorDepth, attributes) == Status::kSuccess);  // the peer accepts no requests any more
  CHECK(p.qa.toState(kQpsRts) == Status::kSuccess);
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcLocalOp);
}

// A reduced limit applies to later requests. Earlier ones are served, but later ones beyond the limit are not.
TEST(sqd_resources_apply_to_later_requests) {
  for (const uint32_t resources : {0u, 1u}) {
    Pair p;
    Buffer a(*p.a, 64'000), b(*p.b, 16'000, kAllAccess, 3);
    const auto read = [&](uint32_t i) {
      p.qa.post({kOpRead, kSendFlagSignaled, {{a.at(i * 16'000), 16'000, a.lkey}}, 0, b.at(), b.rkey});
    };
    for (uint32_t i = 0; i < 4; i++) read(i);
    p.b->step();  // starts the response to the first
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

// A retransmission that is still to be served uses no resource of new requests, even if the resources are fewer
// now.
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

// A passive side is in RTS before its REP leaves, and still waits for a sign that the active side is there.
TEST(established_event_in_rts) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  w.connect(qa, qb);
  w.pump();
  CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 0);
  for (int i = 0; i < 3; i++) qa.post({kOpWrite, kSendFlagSignaled});
  w.pump();
  CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 1);
  CHECK_EQ(w.a->port.count(QpEvent::kCommunicationEstablished), 1);  // caused by the acknowledgement
}
