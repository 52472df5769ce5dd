// Tests of partitions: which P_Keys match, what is sent and accepted with them, tables that change, and MADs.
#include "objects/pkeys.h"

#include "ud_world.h"

using namespace world;

namespace {

Handle table(Node& n, const std::vector<uint16_t>& keys, const std::vector<Gid>& gids = {}) {
  Handle t = 0;
  CHECK_EQ(uint32_t(n.engine.createPkeyTable(n.kernel, &t)), 0u);
  CHECK_EQ(uint32_t(n.engine.setPkeyTable(t, keys, gids)), 0u);
  return t;
}

PkeyViolations violations(Node& n, Handle t) {
  PkeyViolations v;
  CHECK_EQ(uint32_t(n.engine.queryPkeyTable(n.kernel, t, &v)), 0u);
  return v;
}

QpShape in(Handle t, uint32_t type = kQptRc) {
  QpShape s;
  s.pkeyTable = t;
  s.type = type;
  return s;
}

Link2 hasty() {
  Link2 l;
  l.retries = 1;
  return l;
}

// Two connected QPs, each with a P_Key table.
struct PkeyPair : World {
  Handle ta, tb;
  TestQp qa, qb;
  Buffer from, to;
  PkeyPair(const std::vector<uint16_t>& ka, const std::vector<uint16_t>& kb)
      : ta(table(*a, ka)),
        tb(table(*b, kb)),
        qa(*a, in(ta), 0xA),
        qb(*b, in(tb), 0xB),
        from(*a, 4096, kAllAccess, 3),
        to(*b, 4096) {
    connect(qa, qb, hasty());
  }
  uint32_t sendStatus() {
    qb.receive({{to.at(), 4096, to.lkey}});
    qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 100, from.lkey}}});
    until([&] { return qa.sendCq.written() != qa.sendCq.consumer; });
    Cqe c{};
    CHECK(qa.sendCq.poll(&c));
    return c.status;
  }
};

}  // namespace

TEST(pkeys_that_fit) {
  struct Case {
    uint16_t a, b;
    bool fit;
  };
  for (const Case& c : std::initializer_list<Case>{{0xFFFF, 0xFFFF, true},
                                                   {0xFFFF, 0x7FFF, true},
                                                   {0x7FFF, 0x7FFF, false},
                                                   {0x8001, 0x0001, true},
                                                   {0x0001, 0x0001, false},
                                                   {0x8001, 0x8002, false},
                                                   {0x8001, 0x8001, true},
                                                   {0x8000, 0x8000, false},
                                                   {0x0000, 0x8000, false},
                                                   {0x0000, 0x0000, false}}) {
    check::noteNumber = uint64_t(c.a) << 16 | c.b;
    CHECK_EQ(pkeysFit(c.a, c.b), c.fit);
    CHECK_EQ(pkeysFit(c.b, c.a), c.fit);
  }
}

TEST(pkeys_decide_what_a_connection_accepts) {
  struct Case {
    uint16_t a, b;
    uint32_t status;
  };
  for (const Case& c : std::initializer_list<Case>{{0xFFFF, 0xFFFF, kWcSuccess},
                                                   {0x8123, 0x0123, kWcSuccess},
                                                   {0x0123, 0x8123, kWcSuccess},
                                                   {0x0123, 0x0123, kWcTimeoutRetry},
                                                   {0x8123, 0x8124, kWcTimeoutRetry},
                                                   {0x8123, 0x0000, kWcTimeoutRetry}}) {
    check::note = "keys";
    check::noteNumber = uint64_t(c.a) << 16 | c.b;
    PkeyPair p({c.a}, {c.b});
    p.net.logging = true;
    CHECK_EQ(p.sendStatus(), c.status);
    // Every packet of either side carries its sender's key.
    uint32_t fromB = 0;
    for (const Frame& f : p.net.log) {
      CHECK_EQ(f.bth().pkey, f.source == p.a->gid ? c.a : c.b);
      fromB += f.source == p.b->gid;
    }
    const uint64_t dropped = violations(*p.b, p.tb).badPkeys;
    if (c.status == kWcSuccess) {
      CHECK(fromB > 0 && dropped == 0);
    } else {
      CHECK(fromB == 0 && dropped == 2);  // one packet and one retry; neither side is notified
      CHECK_EQ(p.b->counter("bad_pkey"), 2u);
      CHECK_EQ(p.qb.stateWord(), kQpsRts);
    }
    CHECK_EQ(violations(*p.b, 0).badPkeys, 0u);
  }
}

TEST(pkeys_of_responses_are_checked) {
  PkeyPair p({0x8123}, {0x8123});
  // B's responses have a key that A does not have.
  p.net.filter = [&](Frame& f) {
    if (f.source == p.b->gid) f.bytes[3] = 0x24;
    return true;
  };
  CHECK_EQ(p.sendStatus(), kWcTimeoutRetry);
  CHECK_EQ(violations(*p.a, p.ta).badPkeys, 2u);
}

TEST(pkeys_of_every_packet_kind) {
  PkeyPair p({0x8123}, {0x8123});
  p.net.logging = true;
  Wr read{kOpRead, kSendFlagSignaled, {{p.from.at(), 3000, p.from.lkey}}};
  read.remote = p.to.at();
  read.rkey = p.to.rkey;
  Wr add{kOpFetchAdd, kSendFlagSignaled, {{p.from.at(), 8, p.from.lkey}}};
  add.remote = p.to.at();
  add.rkey = p.to.rkey;
  p.qa.post(read);
  p.qa.post(add);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
  CHECK(p.until([&] { return p.a->counter("keep_alive") > 0; }));
  std::set<uint32_t> kinds;
  for (const Frame& f : p.net.log) {
    CHECK_EQ(f.bth().pkey, 0x8123);
    kinds.insert(f.bth().opcode);
  }
  for (const uint32_t opcode : {0x0Cu, 0x0Du, 0x0Fu, 0x12u, 0x14u, 0x0Au, 0x11u}) CHECK_EQ(kinds.count(opcode), 1u);
}

TEST(pkeys_change_at_once) {
  PkeyPair p({0xFFFF, 0x8123}, {0xFFFF});
  CHECK_EQ(p.sendStatus(), kWcSuccess);
  QpAttributes q;
  CHECK(p.b->engine.queryQp(p.qb.handle, &q) == Status::kSuccess && q.pkeyIndex == 0);
  CHECK(p.b->engine.setPkeyTable(p.tb, {0x8123}, {}) == Status::kSuccess);
  p.qb.receive({{p.to.at(), 4096, p.to.lkey}});
  p.qa.post({kOpSend, kSendFlagSignaled, {{p.from.at(), 100, p.from.lkey}}});
  p.pump();
  CHECK_EQ(violations(*p.b, p.tb).badPkeys, 1u);
  // The key is restored before the retries are used up.
  CHECK(p.b->engine.setPkeyTable(p.tb, {0x8123, 0xFFFF}, {}) == Status::kSuccess);
  CHECK(p.a->engine.setPkeyTable(p.ta, {0x8123, 0xFFFF}, {}) == Status::kSuccess);
  CHECK(p.until([&] { return p.qa.sendCq.written() == 2; }));
  Cqe c{};
  CHECK(p.qa.sendCq.poll(&c) && c.status == kWcSuccess);
}

// A QP whose table entry is gone or empty sends nothing.
TEST(pkeys_without_an_entry) {
  for (const std::vector<uint16_t>& keys : {std::vector<uint16_t>{0xFFFF}, {0xFFFF, 0}, {0xFFFF, 0x8000}}) {
    UdWorld w;
    const Handle t = table(*w.a, {0xFFFF, 0x8005});
    TestQp qp(*w.a, in(t, kQptUd));
    bringUd(qp, kKey, kQpsRts, 1);
    CHECK(w.a->engine.setPkeyTable(t, keys, {}) == Status::kSuccess);
    w.net.logging = true;
    qp.post(w.send(0, 10, w.qb.qpn));
    only(qp.sendCq, 0, kOpSend, kWcSuccess);
    CHECK_EQ(w.net.log.size(), 0u);
    CHECK(w.a->engine.setPkeyTable(t, {0xFFFF, 0x8005}, {}) == Status::kSuccess);
    qp.post(w.send(0, 10, w.qb.qpn));
    if (CHECK_EQ(w.net.log.size(), 1u)) CHECK_EQ(w.net.log[0].bth().pkey, 0x8005);
  }
}

TEST(pkeys_of_datagrams) {
  UdWorld w;
  const Handle ta = table(*w.a, {0xFFFF, 0x8005}), tb = table(*w.b, {0x8006, 0x0005});
  TestQp qa(*w.a, in(ta, kQptUd)), q6(*w.b, in(tb, kQptUd)), q5(*w.b, in(tb, kQptUd));
  bringUd(qa, kKey, kQpsRts, 1);
  bringUd(q6);
  bringUd(q5, kKey, kQpsRts, 1);
  for (TestQp* qp : {&w.qb, &q6, &q5}) {
    w.receive(*qp, 0, 500);
    CHECK(w.b->engine.attachMulticast(qp->handle, group(1), 2) == Status::kSuccess);
  }
  Wr all = w.send(0, 10, wire::kMulticastQpn);
  all.ah = UdWorld::handle(*w.a, group(1));
  qa.post(all);
  w.pump();
  CHECK_EQ(w.qb.receiveCq.written() + q6.receiveCq.written(), 0u);
  Cqe c{};
  if (CHECK(q5.receiveCq.poll(&c))) CHECK(c.status == kWcSuccess && c.pkeyIndex == 1);
  CHECK_EQ(violations(*w.b, tb).badPkeys, 1u);
  CHECK_EQ(violations(*w.b, 0).badPkeys, 1u);
  // The P_Key is checked first, then the Q_Key.
  Wr wrong = w.send(0, 10, q5.qpn);
  wrong.remoteQkey++;
  qa.post(wrong);
  w.pump();
  CHECK_EQ(violations(*w.b, tb).badQkeys, 1u);
  wrong.remoteQpn = q6.qpn;
  qa.post(wrong);
  w.pump();
  CHECK(violations(*w.b, tb).badPkeys == 2 && violations(*w.b, tb).badQkeys == 1);
}

TEST(pkey_index_is_checked) {
  World w;
  const Handle t = table(*w.a, {0xFFFF, 0x8001, 0});
  TestQp qp(*w.a, in(t)), plain(*w.a);
  QpAttributes a = attributesFor(*w.a, w.b->gid, 0x20010, {}, true);
  a.state = kQpsInit;
  a.pkeyIndex = 1;
  CHECK(plain.modify(kInitMask, a) == Status::kInvalidParameter);
  CHECK_EQ(plain.stateWord(), kQpsReset);
  for (const uint32_t index : {3u, 4u, 0xFFFFu}) {
    a.pkeyIndex = index;
    CHECK(qp.modify(kInitMask, a) == Status::kInvalidParameter);
  }
  a.pkeyIndex = 2;
  CHECK(qp.modify(kInitMask, a) == Status::kSuccess);
  a.pkeyIndex = 1;
  CHECK(qp.modify(kRtrMask | qpmask::kPkeyIndex, [&] {
    a.state = kQpsRtr;
    return a;
  }()) == Status::kSuccess);
  QpAttributes q;
  CHECK(w.a->engine.queryQp(qp.handle, &q) == Status::kSuccess && q.pkeyIndex == 1);
}

TEST(pkey_tables) {
  EngineOptions o;
  o.maxPkeys = 3;
  o.maxPkeyTables = 2;
  World w(o);
  Engine& e = w.a->engine;
  Port otherPort;
  KernelId other = 0;
  CHECK(e.attachKernel(&otherPort, &other) == Status::kSuccess);
  const Handle t = table(*w.a, {1, 2, 3});
  Handle h = 0, foreign = 0;
  CHECK(e.createPkeyTable(other, &foreign) == Status::kSuccess);
  CHECK(e.createPkeyTable(other, &h) == Status::kInsufficientResources);
  CHECK(e.createPkeyTable(63, &h) == Status::kInvalidHandle);
  CHECK(e.setPkeyTable(t, {}, {}) == Status::kInvalidParameter);
  CHECK(e.setPkeyTable(t, {1, 2, 3, 4}, {}) == Status::kInvalidParameter);
  CHECK(e.setPkeyTable(0x7777777, {1}, {}) == Status::kInvalidHandle);
  CHECK(e.setPkeyTable(0, {1}, {}) == Status::kInvalidHandle);  // the default table is unchanged
  PkeyViolations v;
  CHECK(e.queryPkeyTable(w.a->kernel, foreign, &v) == Status::kInvalidHandle);
  CHECK(e.queryPkeyTable(63, 0, &v) == Status::kInvalidHandle);
  {
    TestCq cq(*w.a, 4);
    QpCreate r;
    r.pd = w.a->pd;
    r.sendCq = r.receiveCq = cq.handle;
    r.pkeyTable = foreign;
    uint32_t qpn;
    CHECK(e.createQp(r, &h, &qpn) == Status::kInvalidHandle);
    TestQp qp(*w.a, in(t));
    CHECK(e.destroyPkeyTable(t) == Status::kDeviceBusy);
  }
  CHECK(e.destroyPkeyTable(t) == Status::kSuccess);
  CHECK(e.destroyPkeyTable(t) == Status::kInvalidHandle);
  CHECK(e.destroyPkeyTable(0) == Status::kInvalidHandle);
  CHECK_EQ(e.pkeyTableCount(), 1u);
  e.detachKernel(other);
  CHECK_EQ(e.pkeyTableCount(), 0u);
}

TEST(pkeys_of_mads) {
  World w;
  Engine& e = w.b->engine;
  const Gid own = w.b->gid, second = Node::address(77), elsewhere = Node::address(88);
  const Handle t = table(*w.b, {0x8005, 0x0006}, {own, second}), shared = table(*w.b, {0x8007}, {second});
  const auto accepts = [&](const Gid& gid, uint16_t key) {
    std::lock_guard<EngineLock> lock(e.lock());
    return e.acceptsGsiPkey(w.b->kernel, gid, key);
  };
  CHECK(accepts(own, 0x8005) && accepts(own, 0x0005) && accepts(own, 0x8006));
  CHECK(!accepts(own, 0x0006) && !accepts(own, 0xFFFF) && !accepts(own, 0x8007) && !accepts(own, 0));
  CHECK(violations(*w.b, t).badPkeys == 4 && violations(*w.b, shared).badPkeys == 0);
  CHECK(accepts(second, 0x8007) && accepts(second, 0x8005) && !accepts(second, 0x8008));
  // Tests an address without a table, and one without a kernel.
  CHECK(accepts(elsewhere, 0xFFFF) && accepts(elsewhere, 0x7FFF) && !accepts(elsewhere, 0x8005));
  CHECK_EQ(violations(*w.b, 0).badPkeys, 1u);
}

TEST(pkey_of_a_will) {
  PkeyPair p({0xFFFF, 0x8123}, {0xFFFF});
  TestQp qp(*p.a, in(p.ta));
  QpAttributes a = attributesFor(*p.a, p.b->gid, p.qb.qpn, {}, true);
  a.state = kQpsInit;
  a.pkeyIndex = 1;
  CHECK(qp.modify(kInitMask, a) == Status::kSuccess);
  a.state = kQpsRtr;
  CHECK(qp.modify(kRtrMask, a) == Status::kSuccess);
  const uint8_t mad[256] = {1, 7, 2, 3};
  CHECK(p.a->engine.setDreqOnExit(qp.handle, a.path, mad) == Status::kSuccess);
  CHECK(p.a->engine.setDreqOnExit(p.qa.handle, a.path, mad) == Status::kSuccess);
  p.net.logging = true;
  p.a->engine.detachKernel(p.a->kernel);
  std::multiset<uint32_t> keys;
  for (const Frame& f : p.net.log)
    if (f.bth().destinationQpn == wire::kGsiQpn) keys.insert(f.bth().pkey);
  CHECK((keys == std::multiset<uint32_t>{0x8123, 0xFFFF}));
}
