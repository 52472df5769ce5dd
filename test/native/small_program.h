// A random program of work requests between two queue pairs, most of them small. Tests use it to compare the fast paths
// of small messages (fast_path.cc) with the usual path. The same seed does the same on any path.
#pragma once
#include <map>

#include "world.h"

namespace world {

// Everything that is visible of a run.
struct Outcome {
  std::vector<std::vector<uint8_t>> frames;
  std::vector<std::vector<uint32_t>> completions;
  std::vector<uint32_t> events;
  std::vector<uint8_t> memory;
  std::map<std::string, uint64_t> counters;
  uint64_t fast = 0, single = 0;
};

// Runs in a World, or a class derived from it.
template <typename Base>
struct SmallProgram : Base {
  static constexpr uint32_t kArena = 8192, kRemote = 4096;
  using Base::a;
  using Base::b;
  using Base::clock;
  using Base::connect;
  Random random;
  Handle table;
  TestSrq srq{*b, 64};
  TestQp qa, qb;
  // The buffers are aligned, so that a flipped bit of an address leads to the same offset, or outside, wherever they
  // are.
  Buffer ma{*a, kArena, kAllAccess, 3, kArena}, mb{*b, kArena, kAllAccess, 4, kArena};
  Link2 l;

  // `depth`: that of the send queues. `ackTimeout`: 10 is 4 ms, 0 is unlimited.
  SmallProgram(uint64_t seed, const EngineOptions& options, uint32_t depth, uint32_t ackTimeout, uint32_t type = kQptRc)
      : Base(options),
        random(seed),
        table(tableOf(*a)),
        qa(*a, shapeOf(seed, depth, type, table, 0), 0xA),
        qb(*b, shapeOf(seed, depth, type, 0, seed % 7 == 0 ? srq.handle : 0), 0xB) {
    l.ackTimeout = ackTimeout;
    l.rnrTimer = 1;
    l.mtu = 256;
    l.rnrRetries = seed % 4 == 0 ? 2 : 7;
    l.pkeyIndexA = 1;
    connect(qa, qb, l);
  }
  virtual ~SmallProgram() = default;
  // Disturbs packets in flight in one of kKinds ways.
  static constexpr uint32_t kKinds = 5;
  virtual void disturb(uint32_t kind) = 0;
  // Whether the program continues.
  virtual bool goesOn() const { return true; }

  static Handle tableOf(Node& n) {
    Handle t = 0;
    CHECK(n.engine.createPkeyTable(n.kernel, &t) == Status::kSuccess);
    CHECK(n.engine.setPkeyTable(t, {0x8999, wire::kDefaultPkey}, {}) == Status::kSuccess);
    return t;
  }
  static QpShape shapeOf(uint64_t seed, uint32_t depth, uint32_t type, Handle t, Handle shared) {
    QpShape s;
    s.type = type;
    s.sendEntries = depth;
    s.sendSge = s.receiveSge = 2;
    s.maxInline = 40;
    s.signalAll = seed % 5 == 0;
    s.pkeyTable = t;
    s.srq = shared;
    return s;
  }

  // A memory window of each side, bound or not when everything posted is done.
  struct TurnedWindow : Window {
    Buffer& memory;
    bool bound = false;
    TurnedWindow(Node& n, Buffer& m) : Window(n), memory(m) {}
    Wr request(uint32_t flags) {
      Wr r = bound ? Wr{kOpLocalInvalidate} : bind(memory, 64);
      r.flags = flags;
      if (bound) r.rkey = key;
      bound = !bound;
      return r;
    }
  };
  std::unique_ptr<TurnedWindow> wa = std::make_unique<TurnedWindow>(*a, ma),
                                wb = std::make_unique<TurnedWindow>(*b, mb);

  // The number of work requests of each side that it knows to be finished.
  struct Books {
    uint32_t sends = 0, receives = 0;
  };
  Books booksA, booksB;
  Books& booksOf(const TestQp& qp) { return &qp == &qa ? booksA : booksB; }
  TestQp& pick(bool first) { return first ? qa : qb; }
  Buffer& memoryOf(const TestQp& qp) { return &qp == &qa ? ma : mb; }

  Wr request(TestQp& qp, Buffer& mine, Buffer& theirs) {
    Wr r;
    const bool reliable = qp.shape.type == kQptRc;  // unreliable ones only send and write
    if (random.below(25) == 0 && reliable)
      return (&qp == &qa ? wa : wb)->request(random.below(2) ? kSendFlagSignaled : 0);
    const uint32_t kind = random.below(reliable ? 20 : 17);
    uint32_t length = random.below(8) ? random.below(17) : random.below(130);
    r.opcode = kind < 12 ? kOpSend : kind < 17 ? kOpWrite : kind == 17 ? kOpRead : kind == 18 ? kOpFetchAdd : kOpSend;
    r.flags = (random.below(4) ? 0 : kSendFlagSignaled) | (random.below(8) ? 0 : kSendFlagSolicited) |
              (random.below(30) ? 0 : kSendFlagFence);
    r.remote = theirs.at(kRemote + 8 * random.below(200));
    r.rkey = random.below(1000) ? theirs.rkey : theirs.rkey ^ 1;
    const uint64_t from = mine.at(8 * random.below(64));
    if (r.opcode == kOpRead) {
      r.sges = {{from, random.below(2400), mine.lkey}};
    } else if (r.opcode == kOpFetchAdd) {
      r.sges = {{from, 8, mine.lkey}};
      r.compare = 5;
    } else if (length <= qp.shape.maxInline && random.below(3) == 0) {
      r.flags |= kSendFlagInline;
      if (random.below(500) == 0) length = qp.shape.maxInline + 1;
      r.inlined.assign(reinterpret_cast<uint8_t*>(from), reinterpret_cast<uint8_t*>(from) + length);
    } else if (random.below(12) == 0) {
      r.sges = {{from, length, mine.lkey}, {from + 512, 5, mine.lkey}};
    } else {
      const uint32_t whole = kind == 19 ? 300 + random.below(900) : length;
      r.sges = {{from, whole, random.below(1000) ? mine.lkey : mine.lkey ^ 1}};
    }
    return r;
  }
  void receives(TestQp& qp) {
    Buffer& mine = memoryOf(qp);
    const uint64_t to = mine.at(1024 + 64 * random.below(40));
    std::vector<Sge> sges = {{to, random.below(1000) ? 1300 : 4u, mine.lkey}};
    if (random.below(300) == 0) sges = {};
    else if (random.below(20) == 0) sges = {{to, 16, mine.lkey}, {to + 64, 1300, mine.lkey}};
    if (qp.shape.srq) {
      if (srq.producer - srq.taken() < srq.entries) srq.receive(sges);
    } else if (qp.receiveProducer - booksOf(qp).receives < qp.shape.receiveEntries) {
      qp.receive(sges);
    }
  }
  // Both sides start afresh, as after a failure.
  void revive() {
    for (TestQp* qp : {&qa, &qb}) {
      CHECK(qp->toState(kQpsReset) == Status::kSuccess);
      drain(*qp);
      booksOf(*qp) = {qp->sendProducer, qp->receiveProducer};
    }
    wa = std::make_unique<TurnedWindow>(*a, ma);
    wb = std::make_unique<TurnedWindow>(*b, mb);
    CHECK(a->engine.setPkeyTable(table, {0x8999, wire::kDefaultPkey}, {}) == Status::kSuccess);
    connect(qa, qb, l);
  }
  void posts(bool first) {
    TestQp& qp = pick(first);
    TestQp& peer = pick(!first);
    for (uint32_t n = random.below(8) ? 1 : 2 + random.below(3); n > 0; n--) {
      if (qp.sendProducer - booksOf(qp).sends >= qp.shape.sendEntries) break;
      if (random.below(20)) receives(peer);
      Wr r = request(qp, memoryOf(qp), memoryOf(peer));
      if (qp.sendProducer % 16 == 15) r.flags |= kSendFlagSignaled;
      qp.write(r);
    }
    qp.node.engine.doorbell(qp.handle);
  }
  void state(TestQp& qp) {
    QpAttributes drains;
    drains.state = kQpsSqd;
    if (qp.state() == kQpsSqd) qp.toState(kQpsRts);
    else if (random.below(100) == 0) qp.toState(kQpsError);
    else if (random.below(4) == 0) qp.modify(qpmask::kState | qpmask::kDrainNotify, drains);
  }
  void act() {
    const bool first = random.below(2);
    const uint32_t what = random.below(40);
    switch (what) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: disturb(what); break;
      case 5: state(pick(first)); break;
      case 6: {
        const uint16_t keys[] = {0x7FFF, 0x8123, 0};
        const uint16_t key = random.below(6) ? wire::kDefaultPkey : keys[random.below(3)];
        CHECK(a->engine.setPkeyTable(table, {0x8999, key}, {}) == Status::kSuccess);
        break;
      }
      case 7:
        if (random.below(3) == 0) this->advance();
        break;
      case 8: clock.time += 1000 * random.below(300); break;
      case 9: receives(pick(first)); break;
      case 10:
      case 11:
      case 12:
      case 13:
      case 14:
      case 15: posts(first); break;
      case 16: (first ? *a : *b).step(); break;
      default:
        clock.time += random.below(2000);
        (first ? *a : *b).engine.progress();
        drain(first ? qa : qb);
        break;
    }
  }
  Outcome seen;
  void drain(TestQp& qp) {
    for (TestCq* cq : {&qp.sendCq, &qp.receiveCq})
      for (const Cqe& c : cq->drain()) {
        if (!(c.flags & kCqeFlagSharedReceive))
          (c.flags & kCqeFlagReceiveQueue ? booksOf(qp).receives : booksOf(qp).sends) = c.wqe + 1;
        seen.completions.push_back({qp.token, c.token, c.wqe, c.opcode, c.status, c.length, c.flags, c.immediate,
                                    c.sourceQpn == qa.qpn   ? 1u
                                    : c.sourceQpn == qb.qpn ? 2u
                                                            : c.sourceQpn,
                                    c.vendor, c.pkeyIndex});
      }
  }
  void run(uint32_t steps) {
    for (uint32_t i = 0; i < steps && goesOn(); i++) {
      act();
      const uint32_t failed = (qa.state() == kQpsError) + (qb.state() == kQpsError);
      // A side that has not failed learns of the other's failure from its silence, or never.
      if (failed == 2 || (failed == 1 && random.below(30) == 0)) revive();
    }
  }
  // Runs until nothing is in flight any more, and records the result.
  Outcome outcome() {
    this->until([] { return false; }, 3'000'000'000ull);
    drain(qa);
    drain(qb);
    for (Node* n : {&*a, &*b}) {
      for (const Event& e : n->port.events)
        seen.events.insert(seen.events.end(), {e.token, uint32_t(e.event), e.reason});
      const auto values = n->engine.counters();
      for (size_t i = 0; i < values.size(); i++)
        seen.counters[(n == &*a ? "a " : "b ") + std::string(Engine::counterNames()[i])] = values[i];
      seen.fast += std::exchange(seen.counters[n == &*a ? "a sent_fast" : "b sent_fast"], 0);
      seen.single += std::exchange(seen.counters[n == &*a ? "a rcvd_fast" : "b rcvd_fast"], 0);
    }
    for (Buffer* m : {&ma, &mb}) seen.memory.insert(seen.memory.end(), m->data(), m->data() + kArena);
    return seen;
  }
};

}  // namespace world
