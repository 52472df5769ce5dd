// Tests that errors and unusual events on a connection are reported in the same way on the local link and over the
// network, with the same completions and events on both sides, and the same bytes.
#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kBytes = 400'000;

// Records what two peers with memory do.
struct Ends {
  World& w;
  TestQp &qa, &qb;
  TestSrq* srq;
  uint32_t length;
  Buffer a{*w.a, kBytes, kAllAccess, 1}, b{*w.b, kBytes, kAllAccess, 2};
  std::string log;
  Link2 link;

  void record(TestCq& cq, const char* whose) {
    for (const Cqe& c : cq.drain()) {
      log += whose;
      for (const uint32_t n : {c.wqe, c.opcode, c.status, c.status ? 0 : c.length, c.flags,
                               c.flags & kCqeFlagInvalidated ? 0 : c.immediate, c.vendor})
        log += " " + std::to_string(n);
      log += "\n";
    }
  }
  void record(Node& node, const char* whose) {
    for (const Event& e : node.port.events)
      log += whose + std::to_string(e.token) + " " + std::to_string(uint32_t(e.event)) + " " +
             std::to_string(e.reason) + "\n";
    node.port.events.clear();
    for (const Port::SrqNews& e : node.port.srqEvents) log += whose + std::to_string(uint32_t(e.event)) + "\n";
    node.port.srqEvents.clear();
  }
  // Runs until nothing is left to do.
  void settle() {
    w.until([] { return false; }, 30'000'000'000ull);
    record(qa.sendCq, "a sent");
    record(qa.receiveCq, "a received");
    record(qb.sendCq, "b sent");
    record(qb.receiveCq, "b received");
    record(*w.a, "a event ");
    record(*w.b, "b event ");
    uint64_t sum = 0;
    for (Buffer* memory : {&a, &b})
      for (uint64_t i = 0; i < kBytes; i += 8) sum = sum * 31 + *reinterpret_cast<const uint64_t*>(memory->at(i));
    log += std::to_string(sum) + " " + std::to_string(qa.state()) + " " + std::to_string(qb.state()) + "\n";
  }
  Wr wr(uint32_t opcode, uint32_t rkey, uint32_t flags = kSendFlagSignaled) {
    const uint32_t n = opcode == kOpCompareExchange || opcode == kOpFetchAdd ? 8 : length;
    return {opcode, flags, {{a.at(), n, a.lkey}}, 7, b.at(), rkey};
  }
  void anew() {
    for (TestQp* qp : {&qa, &qb}) CHECK(qp->toState(kQpsReset) == Status::kSuccess);
    w.connect(qa, qb, link);
  }
  void receive(uint32_t bytes = kBytes) {
    const std::vector<Sge> sges = {{b.at(), bytes, b.lkey}};
    if (srq) srq->receive(sges);
    else qb.receive(sges);
  }
};

// Keep-alive is off. Only the network needs it; the local link knows whether the peer is alive.
EngineOptions quiet() {
  EngineOptions options;
  options.keepAliveNs = 0;
  return options;
}
struct Wire : World {
  Wire() : World(quiet()) {}
};
struct Carried : LocalWorld {
  Carried() : LocalWorld(quiet()) {}
};
struct ByReference : LocalWorld {
  ByReference() : LocalWorld(quiet(), Payload::kByReference) {}
};

using Deed = void (*)(Ends&);

template <typename Base>
std::string story(Deed deed, uint32_t length, bool shared) {
  Base w;
  Link2 link;
  link.rnrTimer = 1;
  link.rnrRetries = 2;
  link.retries = 2;
  std::unique_ptr<TestSrq> srq;
  QpShape shape;
  TestQp qa(*w.a, shape, 0xA);
  if (shared) {
    srq = std::make_unique<TestSrq>(*w.b, 8);
    shape.srq = srq->handle;
  }
  TestQp qb(*w.b, shape, 0xB);
  w.connect(qa, qb, link);
  Ends ends{w, qa, qb, srq.get(), length};
  ends.link = link;
  deed(ends);
  ends.settle();
  return ends.log;
}

void same(Deed deed, std::vector<uint32_t> lengths = {0, 8, 3000, 70'000, 300'000}) {
  for (const uint32_t length : lengths) {
    for (const bool shared : {false, true}) {
      check::note = "length";
      check::noteNumber = length;
      const std::string wire = story<Wire>(deed, length, shared);
      for (const std::string& local :
           {story<Carried>(deed, length, shared), story<ByReference>(deed, length, shared)}) {
        if (CHECK(local == wire)) continue;
        const auto other = std::mismatch(local.begin(), local.end(), wire.begin(), wire.end());
        const size_t before = local.rfind('\n', size_t(other.first - local.begin()));
        std::fprintf(stderr, "locally, from the first difference:\n%s\nover the network:\n%s\n", local.c_str() + before,
                     wire.c_str() + before);
      }
    }
  }
}

}  // namespace

TEST(same_atomics) {
  same([](Ends& e) {
    for (const uint32_t opcode : {kOpFetchAdd, kOpCompareExchange}) {
      for (const uint32_t off : {0u, 8u, 4u, 1u}) {  // the last two offsets are not aligned
        Wr r = e.wr(opcode, e.b.rkey);
        r.remote += off;
        r.compare = off ? 5 : *reinterpret_cast<const uint64_t*>(e.b.data());
        r.swap = 9;
        e.qa.post(r);
        e.qa.post(r);
        e.settle();
        if (e.qa.state() != kQpsRts) e.anew();
      }
      Wr r = e.wr(opcode, e.b.rkey);
      r.remote = e.b.at(kBytes - 4);
      e.qa.post(r);
      e.settle();
      e.anew();
      r = e.wr(opcode, e.b.rkey);
      r.sges[0].length = 16;
      e.qa.post(r);
      e.settle();
      e.anew();
    }
  });
}

TEST(same_windows) {
  same([](Ends& e) {
    for (const uint32_t access : {uint32_t(kAccessRemoteRead), uint32_t(kAccessRemoteWriteBit)}) {
      Window window(*e.w.b);
      e.qb.post(window.bind(e.b, 350'000, access));
      e.settle();
      e.qa.post(e.wr(kOpRead, window.key));
      e.qa.post(e.wr(kOpWrite, window.key));
      e.settle();
      if (e.qa.state() != kQpsRts) e.anew();
    }
    Window window(*e.w.b);
    e.qb.post(window.bind(e.b, 350'000, kAccessRemoteRead | kAccessRemoteWriteBit));
    e.settle();
    for (int i = 0; i < 3; i++) e.receive();
    e.qa.post(e.wr(kOpWrite, window.key));
    Wr last = e.wr(kOpSend, 0, kSendFlagSignaled | kSendFlagInvalidate);
    last.immediate = window.key;
    e.qa.post(last);
    e.qa.post(e.wr(kOpWrite, window.key));
    e.settle();
    e.anew();
    e.qa.post(last);  // the window no longer exists
    e.settle();
    e.anew();
    last.immediate = e.b.rkey;  // the key is not that of a window
    e.receive();
    e.qa.post(last);
  });
}

// The memory that is read or written becomes invalid.
TEST(same_invalidation_beside_reads) {
  same([](Ends& e) {
    for (const uint32_t fence : {uint32_t(kSendFlagFence), 0u}) {
      Window window(*e.w.b);
      e.qb.post(window.bind(e.b, 350'000));
      e.settle();
      e.receive();
      e.qa.write(e.wr(kOpRead, window.key));
      Wr last = e.wr(kOpSend, 0, kSendFlagSignaled | kSendFlagInvalidate | fence);
      last.immediate = window.key;
      e.qa.post(last);
      e.settle();
      e.anew();
    }
  });
}

TEST(same_receivers_that_are_not_ready) {
  same([](Ends& e) {
    if (e.srq) CHECK(e.srq->limit(2) == Status::kSuccess);
    for (int i = 0; i < 4; i++) e.receive();
    for (int i = 0; i < 3; i++) e.qa.post(e.wr(kOpSend, 0, kSendFlagSignaled | kSendFlagSolicited));
    e.qa.post(e.wr(kOpWrite, e.b.rkey, kSendFlagSignaled | kSendFlagImmediate));
    e.settle();
    for (const uint32_t opcode : {uint32_t(kOpSend), uint32_t(kOpWrite)}) {
      e.qa.post(e.wr(opcode, e.b.rkey, kSendFlagImmediate));
      e.qa.post(e.wr(kOpSend, 0));
      e.w.pump();  // the message is refused once
      e.receive();
      e.receive();
      e.settle();
      e.qa.post(e.wr(opcode, e.b.rkey, kSendFlagImmediate));
      e.settle();  // the message is refused for ever
      e.anew();
    }
    e.receive(1);
    e.qa.post(e.wr(kOpSend, 0));
    e.qa.post(e.wr(kOpSend, 0));
    e.settle();
    e.anew();
    e.receive();
    e.qa.post(e.wr(kOpSend, 0, kSendFlagInvalidate));  // invalidates key 7, which does not exist
  });
}

TEST(same_rights) {
  same([](Ends& e) {
    for (const uint32_t opcode : {uint32_t(kOpRead), uint32_t(kOpWrite), uint32_t(kOpFetchAdd)}) {
      for (const uint32_t access : {0u, kAllAccess & ~kAccessMwBind}) {
        e.link.access = access;
        e.anew();
        e.qa.post(e.wr(opcode, e.b.rkey));
        e.qa.post(e.wr(opcode, e.b.rkey + 1));
        e.settle();
      }
      Buffer narrow(*e.w.b, 500'000, kAccessRemoteRead);
      e.anew();
      Wr r = e.wr(opcode, narrow.rkey);
      r.remote = narrow.at();
      e.qa.post(r);
      r.remote = narrow.at(499'999);
      e.qa.post(r);
      e.settle();
    }
  });
}

// One side or both start afresh, fail or end while messages are in flight.
TEST(same_ends) {
  same(
      [](Ends& e) {
        for (const uint32_t opcode : {uint32_t(kOpRead), uint32_t(kOpWrite), uint32_t(kOpSend)}) {
          for (const uint32_t state : {uint32_t(kQpsReset), uint32_t(kQpsError)}) {
            for (TestQp* qp : {&e.qa, &e.qb}) {
              e.receive();
              e.qa.post(e.wr(opcode, e.b.rkey));
              e.qa.post(e.wr(opcode, e.b.rkey));
              CHECK(qp->toState(state) == Status::kSuccess);
              e.settle();
              e.anew();
              e.qa.post(e.wr(kOpWrite, e.b.rkey));
              e.settle();
            }
          }
        }
      },
      {0, 8, 3000});  // of larger ones, the part that has been sent depends on time
}

// The memory that a response references is copied before a refusal behind it ends the queue pair, unless the peer is
// slow.
TEST(same_refusals_wait_for_what_is_named) {
  for (const bool lives : {true, false}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    Buffer a(*w.a, kBytes), b(*w.b, kBytes, kAllAccess, 3);
    w.qa.post({kOpRead, kSendFlagSignaled, {{a.at(), kBytes, a.lkey}}, 0, b.at(), b.rkey});
    w.qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey + 1});
    const uint64_t began = w.clock.time;
    while (w.b->step()) {}
    CHECK_EQ(w.qb.state(), kQpsRts);
    if (lives) {
      w.pump();
    } else {
      for (uint32_t woken = 0; woken < 200 && w.qb.state() == kQpsRts; woken++) {
        w.clock.time = w.b->deadline();
        while (w.b->step()) {}
      }
    }
    CHECK(w.until([&] { return w.qb.state() == kQpsError; }, 200'000'000));
    CHECK(w.clock.time <= began + (lives ? 2'000'000 : 101'000'000));
    CHECK(w.until([&] { return w.qa.state() == kQpsError; }));
    const std::vector<Cqe> all = w.qa.sendCq.drain();
    CHECK_EQ(all.size(), 2u);
    if (!lives) continue;
    CHECK_EQ(all[0].status, kWcSuccess);
    CHECK_EQ(all[1].status, kWcRemoteAccess);
    CHECK(std::memcmp(a.data(), b.data(), kBytes) == 0);
  }
}
