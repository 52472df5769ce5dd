// Tests of violations: rights, bounds and malformed requests. Each test checks both roles, the NAK on the wire and the
// statuses on both sides. No memory is modified.
#include "world.h"

using namespace world;

// The last NAK that was sent; 0: none.
static uint8_t nak(const Net& net) {
  uint8_t last = 0;
  for (const Frame& f : net.log)
    if (f.bth().opcode == wire::kOpAcknowledge && (f.syndrome() & 0x60)) last = f.syndrome();
  return last;
}

struct Refused {
  uint8_t syndrome;
  uint32_t sendStatus;
};

// Posts at A. Expects the NAK, the status in A's first WQE, a flushed second WQE, and both QPs in ERROR.
static void expectRefused(Pair& p, const Wr& request, Refused expected, uint32_t receiveStatus = kWcFlushed) {
  p.net.logging = true;
  p.qb.receive({});
  p.qa.write(request);
  p.qa.write({kOpWrite, 0});
  p.a->engine.doorbell(p.qa.handle);
  p.pump();
  CHECK_EQ(nak(p.net), expected.syndrome);
  const auto done = p.qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), 2u)) return;
  CHECK_EQ(done[0].status, expected.sendStatus);
  CHECK_EQ(done[0].vendor, expected.syndrome);
  CHECK_EQ(done[1].status, kWcFlushed);
  CHECK_EQ(p.qa.stateWord(), kQpsError);
  CHECK_EQ(p.qb.stateWord(), kQpsError);
  CHECK_EQ(p.a->port.count(QpEvent::kFatal), 1);
  CHECK_EQ(p.b->port.count(QpEvent::kFatal), 1);
  const auto received = p.qb.receiveCq.drain();
  if (CHECK(received.size() >= 1)) CHECK_EQ(received[0].status, receiveStatus);
}

TEST(rights_of_the_qp) {
  const uint32_t ops[] = {kOpWrite, kOpRead, kOpFetchAdd, kOpCompareExchange};
  const uint32_t rights[] = {kAccessRemoteWriteBit, kAccessRemoteRead, kAccessRemoteAtomic, kAccessRemoteAtomic};
  for (int i = 0; i < 4; i++) {
    Link2 l;
    l.access = (kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic) & ~rights[i];
    Pair p(l);
    Buffer a(*p.a, 8), b(*p.b, 8, kAllAccess, 3);
    const uint64_t before = b.words[0];
    expectRefused(p, {ops[i], kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey},
                  {wire::kNakInvalidRequest, kWcRemoteInvalidRequest});
    CHECK_EQ(b.words[0], before);
  }
}

TEST(rights_of_the_region) {
  const uint32_t ops[] = {kOpWrite, kOpRead, kOpFetchAdd};
  for (int op = 0; op < 3; op++) {
    for (uint32_t access = 0; access < 16; access++) {
      if ((access & (kAccessRemoteWriteBit | kAccessRemoteAtomic)) && !(access & kAccessLocalWrite)) continue;
      check::note = "op*100+access";
      check::noteNumber = uint64_t(op * 100) + access;
      Pair p;
      Buffer a(*p.a, 8, kAllAccess, 5), b(*p.b, 8, access, 3);
      CHECK_EQ(b.rkey != 0, (access & 7) != 0);
      const uint64_t before = b.words[0];
      const uint32_t needed[] = {kAccessRemoteWriteBit, kAccessRemoteRead, kAccessRemoteAtomic};
      const Wr r{ops[op], kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.lkey};
      if (access & needed[op]) {
        p.qa.post(r);
        p.pump();
        only(p.qa.sendCq, 0, ops[op], kWcSuccess, op ? 8 : 0);
      } else {
        expectRefused(p, r, {wire::kNakRemoteAccess, kWcRemoteAccess});
        CHECK_EQ(b.words[0], before);
      }
    }
  }
}

TEST(registration_rules) {
  World w;
  Node& n = *w.a;
  std::vector<uint64_t> words(16);
  const uint64_t at = reinterpret_cast<uint64_t>(words.data());
  uint64_t id, id2;
  uint32_t lkey, rkey;
  CHECK(n.engine.registerMr(n.pd, at, 64, 0, &lkey, &rkey) == Status::kAccessViolation);
  CHECK(n.engine.pinRange(at, 0, &id) == Status::kInvalidParameter);
  CHECK(n.engine.pinRange(UINT64_MAX - 4, 64, &id) == Status::kInvalidParameter);
  CHECK(n.engine.pinRange(at, 64, &id) == Status::kSuccess);
  CHECK(n.engine.registerMr(n.pd, at, 0, 0, &lkey, &rkey) == Status::kInvalidParameter);
  CHECK(n.engine.registerMr(n.pd, at, 65, 0, &lkey, &rkey) == Status::kAccessViolation);
  CHECK(n.engine.registerMr(n.pd, at - 1, 64, 0, &lkey, &rkey) == Status::kAccessViolation);
  CHECK(n.engine.registerMr(n.pd, at + 1, 64, 0, &lkey, &rkey) == Status::kAccessViolation);
  CHECK(n.engine.registerMr(n.pd, at, UINT64_MAX, 0, &lkey, &rkey) == Status::kInvalidParameter);
  CHECK(n.engine.registerMr(n.pd, at, 64, kAccessRemoteWriteBit, &lkey, &rkey) == Status::kInvalidParameter);
  CHECK(n.engine.registerMr(n.pd, at, 64, kAccessRemoteAtomic, &lkey, &rkey) == Status::kInvalidParameter);
  CHECK(n.engine.registerMr(n.pd, at, 64, 0x40, &lkey, &rkey) == Status::kInvalidParameter);
  CHECK(n.engine.registerMr(99, at, 64, 0, &lkey, &rkey) == Status::kInvalidHandle);
  CHECK(n.engine.registerMr(n.pd, at, 64, kAccessRemoteRead | 0x80000000u, &lkey, &rkey) == Status::kSuccess);
  CHECK_EQ(lkey, rkey);
  CHECK(n.engine.deallocatePd(n.pd) == Status::kDeviceBusy);
  CHECK(n.engine.deregisterMr(n.pd, lkey ^ 1) == Status::kInvalidHandle);
  CHECK(n.engine.pinRange(at, 128, &id2) == Status::kSuccess);
  CHECK(n.engine.deregisterMr(n.pd, lkey) == Status::kSuccess);
  CHECK(n.engine.deregisterMr(n.pd, lkey) == Status::kInvalidHandle);
  n.engine.unpinRange(id);
  n.engine.unpinRange(id);
  n.engine.unpinRange(id2);
  CHECK_EQ(n.engine.objectCounts()[6], 0u);
}

TEST(bounds_to_the_byte) {
  struct Case {
    int64_t offset;
    uint32_t length;
    bool good;
  };
  const Case cases[] = {{0, 2000, true},  {0, 2001, false}, {-1, 2000, false}, {1, 1999, true},
                        {1, 2000, false}, {1999, 1, true},  {2000, 1, false},  {2000, 0, true},
                        {-1, 1, false},   {-1000, 0, true}, {-2000, 1, false}};
  for (const uint32_t op : {kOpWrite, kOpRead}) {
    for (const Case& c : cases) {
      check::note = "offset+length";
      check::noteNumber = uint64_t(c.offset + c.length);
      Pair p;
      Buffer a(*p.a, 4096, kAllAccess, 3), b(*p.b, 2000, kAllAccess, 4);
      const Wr r{op, kSendFlagSignaled, {{a.at(), c.length, a.lkey}}, 0, b.at(uint64_t(c.offset)), b.rkey};
      if (c.good) {
        p.qa.post(r);
        p.pump();
        only(p.qa.sendCq, 0, op, kWcSuccess, op == kOpRead ? c.length : 0);
      } else {
        expectRefused(p, r, {wire::kNakRemoteAccess, kWcRemoteAccess});
      }
    }
  }
  // The address range wraps around.
  Pair p;
  Buffer a(*p.a, 64), b(*p.b, 64);
  expectRefused(p, {kOpWrite, 0, {{a.at(), 64, a.lkey}}, 0, UINT64_MAX - 8, b.rkey},
                {wire::kNakRemoteAccess, kWcRemoteAccess});
}

TEST(keys_of_another_domain_or_of_none) {
  for (int kind = 0; kind < 4; kind++) {
    Pair p;
    Buffer a(*p.a, 64), b(*p.b, 64);
    Handle other;
    uint32_t lkey, rkey;
    CHECK(p.b->engine.allocatePd(p.b->kernel, &other) == Status::kSuccess);
    CHECK(p.b->engine.registerMr(other, b.at(), 64, kAllAccess, &lkey, &rkey) == Status::kSuccess);
    const uint32_t keys[] = {rkey, b.rkey ^ 1, b.rkey ^ 0x100, 0};
    expectRefused(p, {kOpWrite, 0, {{a.at(), 8, a.lkey}}, 0, b.at(), keys[kind]},
                  {wire::kNakRemoteAccess, kWcRemoteAccess});
  }
}

TEST(atomic_alignment) {
  Pair p;
  Buffer a(*p.a, 8), b(*p.b, 64);
  expectRefused(p, {kOpFetchAdd, 0, {{a.at(), 8, a.lkey}}, 0, b.at(4), b.rkey},
                {wire::kNakInvalidRequest, kWcRemoteInvalidRequest});
}

TEST(read_and_atomic_without_resources) {
  Link2 l;
  l.depth = 0;
  World w;
  TestQp qa(*w.a), qb(*w.b);
  Link2 mine = l;
  mine.depth = 4;
  bring(qa, qb.node.gid, qb.qpn, mine, true);
  bring(qb, qa.node.gid, qa.qpn, l, false);
  Buffer a(*w.a, 8), b(*w.b, 8);
  qa.post({kOpRead, 0, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  w.pump();
  only(qa.sendCq, 0, kOpRead, kWcRemoteInvalidRequest);
  // The other direction: the local depth is 0.
  Pair p(l);
  Buffer c(*p.a, 8), d(*p.b, 8);
  p.qa.post({kOpRead, 0, {{c.at(), 8, c.lkey}}, 0, d.at(), d.rkey});
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcLocalOp);
}

TEST(more_reads_than_agreed) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  Link2 deep, flat;
  deep.depth = 8;
  flat.depth = 2;
  bring(qa, qb.node.gid, qb.qpn, deep, true);
  bring(qb, qa.node.gid, qa.qpn, flat, false);
  Buffer a(*w.a, 8), b(*w.b, 8);
  for (int i = 0; i < 4; i++) qa.post({kOpRead, 0, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  w.net.logging = true;
  w.pump();
  CHECK_EQ(nak(w.net), wire::kNakInvalidRequest);
  // Two requests had responses before the third was refused.
  const auto done = qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), 2u)) return;
  CHECK(done[0].wqe == 2 && done[0].status == kWcRemoteInvalidRequest);
  CHECK(done[1].wqe == 3 && done[1].status == kWcFlushed);
}

TEST(send_longer_than_the_receive) {
  for (const uint32_t size : {101u, 3000u}) {
    Pair p;
    Buffer a(*p.a, 4096), b(*p.b, 4096);
    p.qb.receive({{b.at(), 100, b.lkey}});
    expectRefused(p, {kOpSend, 0, {{a.at(), size, a.lkey}}}, {wire::kNakInvalidRequest, kWcRemoteInvalidRequest},
                  kWcLocalLength);
    CHECK_EQ(p.b->port.events.back().reason, kWcLocalLength);
  }
}

TEST(receive_into_bad_memory) {
  for (int kind = 0; kind < 4; kind++) {
    Pair p;
    Buffer a(*p.a, 64), b(*p.b, 64), readOnly(*p.b, 64, kAccessRemoteRead);
    const Sge bad[] = {{b.at(), 64, b.lkey ^ 1}, {b.at(1), 64, b.lkey}, {readOnly.at(), 64, readOnly.lkey}, {0, 64, 0}};
    p.qb.receive({bad[kind]});
    expectRefused(p, {kOpSend, 0, {{a.at(), 64, a.lkey}}}, {wire::kNakRemoteOperation, kWcRemoteOp},
                  kWcLocalProtection);
  }
  Pair p;
  Buffer a(*p.a, 64);
  p.qb.receive({});
  p.qb.receiveSlot(0)[kRwSgeCount] = 1000;
  expectRefused(p, {kOpSend, 0, {{a.at(), 64, a.lkey}}}, {wire::kNakRemoteOperation, kWcRemoteOp}, kWcLocalOp);
}

// A bad WQE fails when everything before it is done. Everything after it is flushed immediately, in order.
static void expectLocal(const std::function<void(Pair&, Buffer&, Wr&)>& spoil, uint32_t status) {
  Pair p;
  Buffer a(*p.a, 4096), b(*p.b, 4096);
  p.qa.receive({});
  p.qa.receive({});
  p.qa.write({kOpWrite, 0, {{a.at(), 3000, a.lkey}}, 0, b.at(), b.rkey});
  Wr bad{kOpWrite, 0, {{a.at(), 64, a.lkey}}, 0, b.at(), b.rkey};
  spoil(p, a, bad);
  p.qa.write(bad);
  p.qa.write({kOpSend, 0, {{a.at(), 64, a.lkey}}});
  p.a->engine.doorbell(p.qa.handle);
  p.pump();
  const auto done = p.qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), 2u)) return;
  CHECK_EQ(done[0].wqe, 1u);
  CHECK_EQ(done[0].status, status);
  CHECK_EQ(done[1].wqe, 2u);
  CHECK_EQ(done[1].status, kWcFlushed);
  const auto receives = p.qa.receiveCq.drain();
  if (!CHECK_EQ(receives.size(), 2u)) return;
  CHECK(receives[0].wqe == 0 && receives[1].wqe == 1 && receives[1].status == kWcFlushed);
  CHECK_EQ(p.a->port.events.back().reason, status);
  CHECK_EQ(p.qb.stateWord(), kQpsRts);  // the peer has not detected an error
}

TEST(bad_send_requests) {
  expectLocal([](Pair&, Buffer&, Wr& r) { r.opcode = 17; }, kWcLocalOp);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.flags = 0x80; }, kWcLocalOp);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.opcode = kOpRead, r.flags = kSendFlagInline; }, kWcLocalOp);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.opcode = kOpSend, r.flags = kSendFlagImmediate | kSendFlagInvalidate; },
              kWcLocalOp);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.sges.resize(5); }, kWcLocalOp);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.flags = kSendFlagInline, r.inlined.resize(129); }, kWcLocalLength);
  expectLocal([](Pair&, Buffer& a, Wr& r) { r.opcode = kOpFetchAdd, r.sges = {{a.at(), 7, a.lkey}}; }, kWcLocalLength);
  expectLocal(
      [](Pair&, Buffer& a, Wr& r) {
        r.sges = {{a.at(), 1u << 31, a.lkey}, {a.at(), 1, a.lkey}};
      },
      kWcLocalLength);
  expectLocal([](Pair&, Buffer&, Wr& r) { r.sges[0].lkey ^= 0x80; }, kWcLocalProtection);
  expectLocal([](Pair&, Buffer& a, Wr& r) { r.sges[0].address = a.at(4096 - 63); }, kWcLocalProtection);
  expectLocal(
      [](Pair& p, Buffer& a, Wr& r) {
        uint32_t lkey, rkey;
        CHECK(p.a->engine.registerMr(p.a->pd, a.at(), 64, kAccessRemoteRead, &lkey, &rkey) == Status::kSuccess);
        r.opcode = kOpRead;  // into memory that is not locally writable
        r.sges[0].lkey = lkey;
      },
      kWcLocalProtection);
  expectLocal(
      [](Pair& p, Buffer& a, Wr& r) {
        uint32_t lkey, rkey;
        CHECK(p.a->engine.registerMr(p.a->pd, a.at(), 64, kAllAccess, &lkey, &rkey) == Status::kSuccess);
        CHECK(p.a->engine.deregisterMr(p.a->pd, lkey) == Status::kSuccess);
        r.sges[0].lkey = lkey;
      },
      kWcLocalProtection);
}

// An invalid producer index ends the QP and affects nothing else.
TEST(producer_counter_garbage) {
  for (const uint32_t value : {65u, 0x80000000u, 0xFFFFFFFFu}) {
    Pair p;
    p.qa.write({});
    __atomic_store_n(p.qa.header() + kQpSendProducer, value, __ATOMIC_RELEASE);
    p.a->engine.doorbell(p.qa.handle);
    p.pump();
    CHECK_EQ(p.qa.stateWord(), kQpsError);
    CHECK_EQ(p.a->counter("ring_fault"), 1u);
    Pair q;
    Buffer a(*q.a, 8);
    __atomic_store_n(q.qb.header() + kQpReceiveProducer, value, __ATOMIC_RELEASE);
    q.qa.post({kOpSend, 0, {{a.at(), 8, a.lkey}}});
    q.pump();
    only(q.qa.sendCq, 0, kOpSend, kWcRemoteOp);
    CHECK_EQ(q.qb.stateWord(), kQpsError);
  }
}

// The region is deregistered in the middle of transfers. Nothing is accessed afterwards, and both peers are notified.
TEST(deregistration_under_way) {
  for (const uint32_t op : {kOpWrite, kOpRead}) {
    EngineOptions options;
    options.window = 8;
    Pair p({}, {}, options);
    auto a = std::make_unique<Buffer>(*p.a, 100'000, kAllAccess, 3);
    Buffer b(*p.b, 100'000, kAllAccess, 4);
    p.qa.post({op, 0, {{a->at(), 100'000, a->lkey}}, 0, b.at(), b.rkey});
    p.a->step(), p.b->step(), p.a->step(), p.b->step();
    CHECK_EQ(p.qa.sendCq.written(), 0u);
    p.b->engine.unpinRange(b.range);
    const std::vector<uint64_t> before = b.words;
    p.pump();
    only(p.qa.sendCq, 0, op, kWcRemoteAccess);
    CHECK(before == b.words);
  }
  EngineOptions options;
  options.window = 8;
  for (const uint32_t op : {kOpWrite, kOpRead}) {
    Pair p({}, {}, options);
    Buffer a(*p.a, 100'000, kAllAccess, 3), b(*p.b, 100'000, kAllAccess, 4);
    p.qa.post({op, 0, {{a.at(), 100'000, a.lkey}}, 0, b.at(), b.rkey});
    p.a->step(), p.b->step(), p.a->step(), p.b->step();
    CHECK_EQ(p.qa.sendCq.written(), 0u);
    CHECK(p.a->engine.deregisterMr(p.a->pd, a.lkey) == Status::kSuccess);
    const std::vector<uint64_t> before = a.words;
    CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
    only(p.qa.sendCq, 0, op, kWcLocalProtection);
    CHECK(before == a.words);
  }
}

// ── Windows ─────────────────────────────────────────────────────────────────────────────────────

struct Windowed : Pair {
  Buffer memory, remote;
  Handle mw = 0;
  uint32_t key = 0;
  explicit Windowed(uint32_t mrAccess = kAccessLocalWrite | kAccessMwBind)
      : memory(*b, 4096, mrAccess, 3), remote(*a, 4096, kAllAccess, 4) {
    CHECK(b->engine.allocateMw(b->pd, &mw, &key) == Status::kSuccess);
  }
  uint32_t nextKey() const { return (key & ~0xFFu) | ((key + 1) & 0xFF); }
  // A request to bind the window, for B, which owns the memory.
  Wr bindRequest(uint32_t access, uint64_t offset = 1000, uint64_t length = 1000) {
    Wr r{kOpBindWindow, kSendFlagSignaled};
    r.remote = memory.at(offset);
    r.rkey = memory.lkey;
    r.access = access;
    r.compare = length;
    r.swap = uint64_t(nextKey()) << 32 | key;
    return r;
  }
  bool bind(const Wr& r, uint32_t status = kWcSuccess) {
    const uint32_t wqe = qb.post(r);
    pump();
    const bool ok = only(qb.sendCq, wqe, r.opcode, status);
    if (status == kWcSuccess) key = nextKey();
    return ok;
  }
  uint32_t access(uint32_t op, uint64_t offset, uint32_t length) {
    qa.post({op, kSendFlagSignaled, {{remote.at(), length, remote.lkey}}, 0, memory.at(offset), key});
    pump();
    const auto done = qa.sendCq.drain();
    return CHECK_EQ(done.size(), 1u) ? done[0].status : 99;
  }
};

TEST(window_rights_and_bounds) {
  const uint32_t rights[] = {0, kAccessRemoteRead, kAccessRemoteWriteBit, kAccessRemoteAtomic, 7};
  for (const uint32_t right : rights) {
    for (const uint32_t op : {kOpRead, kOpWrite, kOpFetchAdd}) {
      Windowed w;
      w.bind(w.bindRequest(right));
      const uint32_t need = op == kOpRead    ? kAccessRemoteRead
                            : op == kOpWrite ? kAccessRemoteWriteBit
                                             : kAccessRemoteAtomic;
      CHECK_EQ(w.access(op, 1000, 8), right & need ? kWcSuccess : kWcRemoteAccess);
    }
  }
  for (const auto& [offset, length, good] : {std::tuple<uint64_t, uint32_t, bool>{1000, 1000, true},
                                             {1000, 1001, false},
                                             {999, 1, false},
                                             {1999, 1, true},
                                             {2000, 1, false}}) {
    Windowed w;
    w.bind(w.bindRequest(7));
    CHECK_EQ(w.access(kOpWrite, offset, length), good ? kWcSuccess : kWcRemoteAccess);
  }
}

TEST(window_bind_errors) {
  const auto refused = [](uint32_t mrAccess, const std::function<void(Windowed&, Wr&)>& spoil) {
    Windowed w(mrAccess);
    Wr r = w.bindRequest(7);
    spoil(w, r);
    w.bind(r, kWcMwBind);
    CHECK_EQ(w.qb.stateWord(), kQpsError);
    CHECK(w.b->engine.deregisterMr(w.b->pd, w.memory.lkey) == Status::kSuccess);
  };
  const uint32_t good = kAccessLocalWrite | kAccessMwBind;
  refused(kAccessLocalWrite, [](Windowed&, Wr&) {});
  refused(kAccessMwBind, [](Windowed&, Wr&) {});
  refused(good, [](Windowed&, Wr& r) { r.compare = 0; });
  refused(good, [](Windowed&, Wr& r) { r.compare = 3097; });
  refused(good, [](Windowed&, Wr& r) { r.remote -= 1001; });
  refused(good, [](Windowed&, Wr& r) { r.compare = UINT64_MAX; });
  refused(good, [](Windowed&, Wr& r) { r.rkey ^= 1; });
  refused(good, [](Windowed& w, Wr& r) { r.rkey = w.key; });
  refused(good, [](Windowed&, Wr& r) { r.access = kAccessMwBind; });
  refused(good, [](Windowed& w, Wr& r) { r.swap = uint64_t(w.key) << 32 | w.key; });
  refused(good, [](Windowed& w, Wr& r) { r.swap = uint64_t(w.nextKey() ^ 0x100) << 32 | w.key; });
  refused(good, [](Windowed& w, Wr& r) { r.swap = uint64_t(w.nextKey()) << 32 | (w.key ^ 2); });
  refused(good, [](Windowed& w, Wr& r) {
    Handle pd;
    CHECK(w.b->engine.allocatePd(w.b->kernel, &pd) == Status::kSuccess);
    uint32_t other;
    Handle mw;
    CHECK(w.b->engine.allocateMw(pd, &mw, &other) == Status::kSuccess);
    r.swap = uint64_t((other & ~0xFFu) | ((other + 1) & 0xFF)) << 32 | other;
  });
  // Bound already.
  Windowed w;
  w.bind(w.bindRequest(7));
  w.bind(w.bindRequest(7), kWcMwBind);
}

TEST(window_life) {
  {
    Windowed w;  // the region is busy while the window is bound; deallocation ends the window
    w.bind(w.bindRequest(7));
    CHECK(w.b->engine.deregisterMr(w.b->pd, w.memory.lkey) == Status::kDeviceBusy);
    CHECK(w.b->engine.deallocateMw(w.mw) == Status::kSuccess);
    CHECK(w.b->engine.deallocateMw(w.mw) == Status::kInvalidHandle);
    CHECK_EQ(w.access(kOpWrite, 1000, 8), kWcRemoteAccess);
    CHECK(w.b->engine.deregisterMr(w.b->pd, w.memory.lkey) == Status::kSuccess);
  }
  {
    Windowed w;  // the window also ends with its QP
    w.bind(w.bindRequest(7));
    CHECK(w.qb.toState(kQpsError) == Status::kSuccess);
    CHECK(w.b->engine.deregisterMr(w.b->pd, w.memory.lkey) == Status::kSuccess);
  }
  {
    Windowed w;  // the window is invalidated by its owner and bound again under a new key
    w.bind(w.bindRequest(7));
    CHECK_EQ(w.access(kOpWrite, 1000, 8), kWcSuccess);
    Wr invalidate{kOpLocalInvalidate, kSendFlagSignaled};
    invalidate.rkey = w.key;
    w.qb.post(invalidate);
    w.pump();
    only(w.qb.sendCq, 1, kOpLocalInvalidate, kWcSuccess);
    const uint32_t old = w.key;
    w.bind(w.bindRequest(kAccessRemoteRead));
    CHECK_EQ(w.access(kOpRead, 1000, 8), kWcSuccess);
    w.key = old;
    CHECK_EQ(w.access(kOpRead, 1000, 8), kWcRemoteAccess);
  }
  {
    Windowed w;  // invalidating an unbound window is an error
    Wr invalidate{kOpLocalInvalidate, kSendFlagSignaled};
    invalidate.rkey = w.key;
    w.bind(invalidate, kWcMwBind);
    CHECK_EQ(w.qb.stateWord(), kQpsError);
  }
  {
    Windowed w;  // regions cannot be invalidated
    Wr invalidate{kOpLocalInvalidate, kSendFlagSignaled};
    invalidate.rkey = w.memory.lkey;
    w.bind(invalidate, kWcMwBind);
  }
  {
    Windowed w;  // if the range that backs the region ends, so does the window
    w.bind(w.bindRequest(7));
    w.b->engine.unpinRange(w.memory.range);
    CHECK_EQ(w.access(kOpWrite, 1000, 8), kWcRemoteAccess);
  }
}

TEST(window_belongs_to_its_qp) {
  Windowed w;
  TestQp qa2(*w.a), qb2(*w.b);
  w.connect(qa2, qb2);
  w.bind(w.bindRequest(7));
  qa2.post({kOpWrite, kSendFlagSignaled, {{w.remote.at(), 8, w.remote.lkey}}, 0, w.memory.at(1000), w.key});
  w.pump();
  only(qa2.sendCq, 0, kOpWrite, kWcRemoteAccess);
  CHECK_EQ(w.access(kOpWrite, 1000, 8), kWcSuccess);
}

TEST(remote_invalidate) {
  Windowed w;
  w.bind(w.bindRequest(7));
  w.qb.receive({});
  Wr r{kOpSend, kSendFlagSignaled | kSendFlagInvalidate | kSendFlagSolicited};
  r.immediate = w.key;
  w.qa.post(r);
  w.pump();
  only(w.qa.sendCq, 0, kOpSend, kWcSuccess);
  const auto got = w.qb.receiveCq.drain();
  if (!CHECK_EQ(got.size(), 1u)) return;
  CHECK_EQ(got[0].flags, kCqeFlagReceiveQueue | kCqeFlagInvalidated | kCqeFlagSolicited);
  CHECK_EQ(got[0].immediate, w.key);
  CHECK(w.b->engine.deregisterMr(w.b->pd, w.memory.lkey) == Status::kSuccess);
  // Using the same key once more is an error on both sides.
  w.qb.receive({});
  w.qa.post(r);
  w.pump();
  only(w.qa.sendCq, 1, kOpSend, kWcRemoteAccess);
  only(w.qb.receiveCq, 1, kOpReceive, kWcLocalAccess);
}
