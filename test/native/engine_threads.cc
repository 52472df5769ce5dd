// Tests of concurrent posters, pollers and engine threads, meant for ThreadSanitizer.
#include <thread>
#include <time.h>

#include "world.h"

using namespace world;

struct RealClock final : Clock {
  uint64_t now() const override {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
  }
};

TEST(threads_post_poll_and_progress) {
  RealClock clock;
  Net net;
  Node a(net, clock, 1, {}), b(net, clock, 2, {});
  constexpr uint32_t kPairs = 3, kMessages = 400, kDepth = 16;
  Link2 l;
  l.ackTimeout = 17;
  l.rnrRetries = 7;
  std::vector<std::unique_ptr<TestQp>> qa, qb;
  std::vector<std::unique_ptr<Buffer>> from, to;
  for (uint32_t i = 0; i < kPairs; i++) {
    qa.push_back(std::make_unique<TestQp>(a));
    qb.push_back(std::make_unique<TestQp>(b));
    bring(*qa[i], b.gid, qb[i]->qpn, l, true);
    bring(*qb[i], a.gid, qa[i]->qpn, l, false);
    from.push_back(std::make_unique<Buffer>(a, kDepth * 2048, kAllAccess, i + 1));
    to.push_back(std::make_unique<Buffer>(b, kDepth * 2048));
  }
  std::atomic<uint32_t> bad{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kPairs; i++) {
    threads.emplace_back([&, i] {
      uint32_t posted = 0, done = 0;
      Cqe c{};
      while (done < kMessages) {
        if (posted < kMessages && posted - done < kDepth) {
          const uint32_t slot = posted % kDepth;
          qa[i]->post({kOpSend, kSendFlagSignaled, {{from[i]->at(slot * 2048), 2000, from[i]->lkey}}});
          posted++;
        }
        while (qa[i]->sendCq.poll(&c)) {
          if (c.status != kWcSuccess || c.wqe != done) bad++;
          done++;
        }
        a.engine.progress();
      }
    });
    threads.emplace_back([&, i] {
      uint32_t posted = 0, done = 0;
      Cqe c{};
      while (done < kMessages) {
        for (; posted < kMessages && posted - done < kDepth; posted++)
          qb[i]->receive({{to[i]->at((posted % kDepth) * 2048), 2048, to[i]->lkey}});
        while (qb[i]->receiveCq.poll(&c)) {
          if (c.status != kWcSuccess || c.length != 2000) bad++;
          // The data belongs to this side until it posts the receive again.
          if (std::memcmp(to[i]->data() + (done % kDepth) * 2048, from[i]->data() + (done % kDepth) * 2048, 2000))
            bad++;
          done++;
        }
        b.engine.progress();
      }
    });
  }
  // Commands and notifications run at the same time as the traffic.
  std::thread commands([&] {
    uint64_t words[8];
    while (!stop) {
      TestQp extra(a);
      bring(extra, b.gid, 0x20005, l, true);
      uint64_t id;
      uint32_t lkey, rkey;
      if (a.engine.pinRange(reinterpret_cast<uint64_t>(words), 64, &id) == Status::kSuccess) {
        if (a.engine.registerMr(a.pd, reinterpret_cast<uint64_t>(words), 64, kAllAccess, &lkey, &rkey) !=
            Status::kSuccess)
          bad++;
        auto sink = std::make_shared<Sink>();
        a.engine.addCqWaiter(extra.sendCq.handle, kCqNotifyAny, sink);
        a.engine.armCq(extra.sendCq.handle, false);
        extra.write({});
        extra.toState(kQpsError);
        if (sink->calls != 1) bad++;
        a.engine.unpinRange(id);
        a.engine.deregisterMr(a.pd, lkey);
      }
      a.engine.counters();
      a.engine.owner().marked();
    }
  });
  std::thread driver([&] {
    while (!stop) {
      a.step();
      b.step();
      a.deadline();
    }
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  commands.join();
  driver.join();
  CHECK_EQ(bad.load(), 0u);
  for (uint32_t i = 0; i < kPairs; i++) CHECK_EQ(qa[i]->stateWord(), kQpsRts);
}

// A thread that polls without result yields to others, which may include the one that it waits for. It does not yield
// while packets arrive, or if it does other work between its polls.
TEST(polling_without_result_yields) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  w.connect(qa, qb);
  w.pump();
  const auto pollFor = [&](uint64_t microseconds, uint64_t apart) {
    const uint64_t before = w.a->counter("poller_yield"), end = w.clock.time + microseconds * 1000;
    for (; w.clock.time < end; w.clock.time += apart * 1000) w.a->engine.progress();
    return w.a->counter("poller_yield") - before;
  };
  w.clock.time += 1'000'000;
  CHECK_EQ(pollFor(50, 1), 0u);
  CHECK_EQ(pollFor(10, 1), 10u);
  CHECK_EQ(w.a->engine.owner().marked(), w.clock.time - 1000);
  // A packet restarts the time until the thread yields.
  qb.post({kOpWrite, kSendFlagSignaled});
  CHECK(w.a->engine.progress());
  CHECK_EQ(pollFor(50, 1), 0u);
  CHECK_EQ(pollFor(1, 1), 1u);
  w.clock.time += 25'000;
  CHECK_EQ(pollFor(1000, 25), 0u);
}

// Sleeping threads are notified of waiting work: an earlier timer, leftovers of a bounded step, or a waiter.
TEST(wake_is_called_when_the_engine_must_look_again) {
  World w;
  TestQp qa(*w.a), qb(*w.b);
  static int wakes;
  wakes = 0;
  w.a->engine.setWake([](void* n) { ++*static_cast<int*>(n); }, &wakes);
  w.connect(qa, qb);
  CHECK(wakes > 0);  // woken for the keep-alive
  w.pump();
  const uint64_t idle = w.a->deadline();
  CHECK(idle > w.clock.time && idle != UINT64_MAX);
  wakes = 0;
  Buffer a(*w.a, 1u << 20), b(*w.b, 1u << 20);
  qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
  CHECK_EQ(wakes, 1);  // the ACK timer is earlier
  CHECK(w.a->deadline() < idle);
  w.pump();
  wakes = 0;
  for (int i = 0; i < 10; i++) {
    qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 8, a.lkey}}, 0, b.at(), b.rkey});
    w.pump();
  }
  CHECK_EQ(wakes, 0);  // the timer stays set, so requests cause no wake-ups
  w.a->deadline();
  qa.post({kOpWrite, kSendFlagSignaled, {{a.at(), 1u << 20, a.lkey}}, 0, b.at(), b.rkey});
  CHECK_EQ(wakes, 1);
  CHECK_EQ(w.a->deadline(), 0u);
  w.pump();
  wakes = 0;
  CHECK(w.a->engine.addCqWaiter(qa.sendCq.handle, kCqNotifyAny, std::make_shared<Sink>()) == Status::kSuccess);
  CHECK_EQ(wakes, 1);
}
