// Feeds garbage in at every boundary: packets to the receiver, WQEs into the rings. To be run with sanitizers: nothing
// may crash or access memory outside of registered regions, and another connection must continue.
#include "world.h"

using namespace world;

struct Bystander {
  Pair& p;
  TestQp qa, qb;
  Buffer from, to;
  uint32_t sent = 0;
  explicit Bystander(Pair& pair) : p(pair), qa(*p.a), qb(*p.b), from(*p.a, 3000, kAllAccess, 77), to(*p.b, 3000) {
    p.connect(qa, qb);
  }
  void lives() {
    std::memset(to.data(), 0, 3000);
    qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 3000, from.lkey}}, 0, to.at(), to.rkey});
    p.until([&] { return qa.sendCq.written() == sent + 1; });
    only(qa.sendCq, sent++, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), 3000) == 0);
  }
};

TEST(fuzz_random_packets) {
  Random r(42);
  for (int round = 0; round < 60; round++) {
    check::note = "round";
    check::noteNumber = uint64_t(round);
    Pair p;
    Bystander bystander(p);
    Buffer memory(*p.b, 4096, kAllAccess, 5);
    struct Guard {
      std::vector<uint8_t> bytes = std::vector<uint8_t>(64, 0xEE);
    } guard;
    for (int i = 0; i < 8; i++) p.qb.receive({{memory.at(), 512, memory.lkey}});
    p.qb.post({kOpRead, 0, {{memory.at(512), 3000, memory.lkey}}, 0, 1, 2});
    p.net.frames.clear();
    for (int i = 0; i < 400; i++) {
      Frame f;
      f.source = p.a->gid;
      f.destination = p.b->gid;
      const uint32_t length = r.below(4) ? 12 + r.below(60) : r.below(1200);
      f.bytes.resize(length);
      for (uint8_t& byte : f.bytes) byte = uint8_t(r.next());
      if (length >= 12 && r.below(8)) {
        wire::Bth bth;
        bth.opcode = r.below(5) ? uint8_t(r.below(0x18)) : uint8_t(r.next());
        bth.pad = uint8_t(r.below(3) ? (-length & 3) : r.below(4));
        bth.solicited = r.below(2);
        bth.ackRequest = r.below(2);
        bth.destinationQpn =
            r.below(20) ? p.qb.qpn : p.qb.qpn ^ 0x4000;  // not the bystander: a valid QPN and PSN are never an accident
        const uint32_t near[] = {100, 5000};
        bth.psn = (near[r.below(2)] + r.below(7) - 3) & 0xFFFFFF;
        wire::emitBth(f.bytes.data(), bth);
        if (length >= 28 && r.below(2)) {
          wire::emitReth(f.bytes.data() + 12, {memory.at(r.below(4200)), r.below(4) ? memory.rkey : r.next(),
                                               r.below(3) ? r.below(5000) : r.next()});
        } else if (length >= 16 && r.below(2)) {
          f.bytes[12] = uint8_t(r.below(4) << 5 | r.below(4));
        }
      }
      p.net.frames.push_back(std::move(f));
      if (r.below(4) == 0) p.b->step();
    }
    p.b->step();
    p.net.frames.clear();
    for (const uint8_t byte : guard.bytes) CHECK_EQ(byte, 0xEE);
    bystander.lives();
  }
}

// Real traffic with flipped bits that the ICRC appears to have missed.
TEST(fuzz_flipped_bits) {
  for (uint64_t seed = 1; seed <= 150; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Random r(seed);
    Link2 l;
    l.ackTimeout = 8;
    Pair p(l);
    Bystander bystander(p);
    const uint32_t victimA = p.qa.qpn, victimB = p.qb.qpn;
    p.net.filter = [&](Frame& f) {
      const uint32_t qpn = f.bth().destinationQpn;
      if ((qpn == victimA || qpn == victimB) && r.below(5) == 0) {
        const uint32_t headers = std::min<uint32_t>(uint32_t(f.bytes.size()), 40);
        for (uint32_t n = 1 + r.below(3); n > 0; n--) {
          // The QPN is not changed: that would only make another QP the victim.
          uint32_t at = r.below(headers);
          if (at >= 5 && at <= 7) at = 0;
          f.bytes[at] ^= uint8_t(1u << r.below(8));
        }
        if (r.below(6) == 0) f.bytes.resize(r.below(uint32_t(f.bytes.size())));
      }
      return true;
    };
    Buffer a(*p.a, 8192, kAllAccess, 3), b(*p.b, 8192, kAllAccess, 4);
    for (int i = 0; i < 6; i++) p.qb.receive({{b.at(), 2048, b.lkey}});
    for (int i = 0; i < 24; i++) {
      const uint32_t op = r.below(5);
      p.qa.write(
          {op, kSendFlagSignaled, {{a.at(), op > 2 ? 8 : r.below(2048), a.lkey}}, 0, b.at(8 * r.below(700)), b.rkey});
    }
    p.a->engine.doorbell(p.qa.handle);
    p.until([&] { return p.qa.sendCq.written() == 24; }, 20'000'000'000ull);
    // Either the traffic went through or it failed. In both cases all completions are there, in order.
    if (p.qa.stateWord() == kQpsError) CHECK_EQ(p.qa.sendCq.written(), 24u);
    uint32_t next = 0;
    bool failed = false;
    for (const Cqe& c : p.qa.sendCq.drain()) {
      CHECK_EQ(c.wqe, next++);
      if (failed) CHECK_EQ(c.status, kWcFlushed);
      failed |= c.status != kWcSuccess;
    }
    p.net.filter = nullptr;
    bystander.lives();
  }
}

TEST(fuzz_rings) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Random r(seed);
    Link2 l;
    l.ackTimeout = 8;
    Pair p(l);
    Bystander bystander(p);
    Buffer a(*p.a, 4096, kAllAccess, 3), b(*p.b, 4096, kAllAccess, 4);
    for (int round = 0; round < 6; round++) {
      for (TestQp* qp : {&p.qa, &p.qb}) {
        Buffer& mine = qp == &p.qa ? a : b;
        Buffer& theirs = qp == &p.qa ? b : a;
        for (int i = 0; i < 6; i++) {
          if (r.below(2)) qp->receive({{mine.at(r.below(4096)), r.below(4096), mine.lkey}});
          uint32_t* w = qp->sendSlot(qp->sendProducer);
          qp->write({r.below(7),
                     kSendFlagSignaled,
                     {{mine.at(r.below(4096)), r.below(2000), mine.lkey}},
                     0,
                     theirs.at(r.below(4096)),
                     theirs.rkey});
          // Corrupts a few words of a WQE, before or while it is executed.
          for (uint32_t n = r.below(3); n > 0; n--)
            w[r.below(qp->sendStride / 4)] = r.below(2) ? r.next() : r.below(64);
        }
        if (r.below(3) == 0) qp->receiveSlot(r.next())[r.below(qp->receiveStride / 4)] = r.next();
        if (r.below(30) == 0) qp->header()[r.below(2)] = r.next();
        qp->node.engine.doorbell(qp->handle);
      }
      p.a->step();
      if (r.below(2)) p.qa.sendSlot(r.next())[r.below(p.qa.sendStride / 4)] = r.next();
      p.b->step();
      p.qa.sendCq.drain();
      p.qa.receiveCq.drain();
      p.qb.sendCq.drain();
      p.qb.receiveCq.drain();
    }
    p.until([] { return false; }, 5'000'000'000ull);
    bystander.lives();
  }
}

TEST(fuzz_commands) {
  Random r(7);
  World w;
  std::vector<Handle> handles;
  std::vector<std::unique_ptr<TestQp>> qps;
  for (int i = 0; i < 4; i++) qps.push_back(std::make_unique<TestQp>(*w.a));
  for (auto& q : qps) handles.insert(handles.end(), {q->handle, q->sendCq.handle});
  Engine& e = w.a->engine;
  for (int i = 0; i < 20'000; i++) {
    const Handle h = r.below(3) ? handles[r.below(uint32_t(handles.size()))] : r.next();
    uint32_t lkey, rkey;
    switch (r.below(8)) {
      case 0: {
        QpAttributes a = attributesFor(*w.a, w.b->gid, r.next() & 0xFFFFFF, {}, true);
        a.state = r.below(9);
        if (r.below(4) == 0) a.pathMtu = r.next();
        const uint32_t masks[] = {kInitMask, kRtrMask, kRtsMask, r.next(), 1};
        e.modifyQp(h, masks[r.below(5)], a);
        break;
      }
      case 1:
        e.armCq(h, r.below(2));
        e.armCqBatch(h, r.below(4));
        break;
      case 2: e.registerMr(h, r.next(), r.next(), r.next(), &lkey, &rkey); break;
      case 3: e.resizeCq(h, qps[0]->ring + r.below(512), r.next(), 1u << r.below(32)); break;
      case 4: e.doorbell(h); break;
      case 5: {
        QpCreate c = qps[0]->request();
        uint32_t* fields = reinterpret_cast<uint32_t*>(&c);
        fields[r.below(sizeof c / 4)] = r.next();
        *reinterpret_cast<uint8_t*>(&c.signalAll) = uint8_t(r.below(2));  // the value stays a valid bool
        Handle made;
        uint32_t qpn;
        if (e.createQp(c, &made, &qpn) == Status::kSuccess) e.destroyQp(made);
        break;
      }
      case 6: e.addCqWaiter(h, r.below(4), std::make_shared<Sink>()); break;
      default: w.a->step();
    }
  }
}
