// Tests with concurrent threads of programs, of the kernel, of events and of the device. Every request must complete
// once.
#include <thread>

#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

namespace {

// A queue pair that posts as fast as it may, and counts completions.
struct Traffic {
  TestQp qp;
  TestCq cq;
  uint32_t posted = 0, receivesPosted = 0;
  uint32_t sends = 0, receives = 0;

  void count(const std::vector<Cqe>& cqes) {
    for (const Cqe& cqe : cqes) {
      uint32_t& seen = (cqe.flags() & kCqeFlagReceiveQueue) != 0 ? receives : sends;
      CHECK_EQ(cqe.wqe(), seen);
      ++seen;
    }
  }
  void step() {
    while (posted - sends < 16) {
      write(qp, Wqe());
      ++posted;
    }
    while (receivesPosted - receives < 16) {
      writeReceive(qp);
      ++receivesPosted;
    }
    ringSends(qp.handle);
    ringReceives(qp.handle);
    count(poll(cq));
  }
  bool idle() const { return sends == posted && receives == receivesPosted; }
};

}  // namespace

TEST(verbs_threads_post_poll_arm_and_end) {
  constexpr int kRounds = 12;
  for (int round = 0; round < kRounds; ++round) {
    World w;
    Traffic traffic[2];
    for (Traffic& t : traffic) {
      CHECK(w.make(&t.cq) == Status::kSuccess);
      CHECK(w.make(&t.qp, t.cq, t.cq) == Status::kSuccess);
      CHECK(w.run(t.qp) == Status::kSuccess);
      CHECK(w.host->listenCq(t.cq.handle) == Status::kSuccess);
    }
    w.rdma.flushAfterPolls = round % 3;
    std::atomic<bool> ended{false};
    std::vector<std::thread> threads;
    for (Traffic& t : traffic)
      threads.emplace_back([&t, &ended] {
        while (!ended.load()) t.step();
        // The remaining requests are flushed by the end.
        const auto until = std::chrono::steady_clock::now() + kTimeout;
        while (!t.idle() && std::chrono::steady_clock::now() < until) {
          ringSends(t.qp.handle);
          ringReceives(t.qp.handle);
          t.count(poll(t.cq));
        }
        CHECK(t.idle());
      });
    std::atomic<bool> deviceEnds{false};
    std::thread device([&] {
      while (!deviceEnds.load())
        for (Traffic& t : traffic) {
          w.rdma.completeSends(t.qp.qpn, 5);
          w.rdma.completeReceive(t.qp.qpn, ibv_wc{});
        }
    });
    // The kernel's thread.
    for (int i = 0; i < 40; ++i) {
      for (Traffic& t : traffic) {
        if (armCq(t.cq.handle, i % 2 == 0) != Status::kSuccess) CHECK(false);
        QpAttributes attributes;
        CHECK(w.host->queryQp(t.qp.handle, &attributes) == Status::kSuccess);
      }
      w.events();
    }
    if (round % 2 == 0) {
      for (Traffic& t : traffic) CHECK(w.step(t.qp, kQpsError) == Status::kSuccess);
    } else {
      w.rdma.qpEvent(traffic[0].qp.qpn, kEventQpFatal);
      CHECK(w.step(traffic[1].qp, kQpsError) == Status::kSuccess);
      CHECK(w.await(Event::Kind::kQp).handle == traffic[0].qp.handle);
    }
    ended = true;
    for (std::thread& thread : threads) thread.join();
    deviceEnds = true;
    device.join();
    for (Traffic& t : traffic) {
      CHECK(w.host->destroyQp(t.qp.handle) == Status::kSuccess);
      CHECK(w.host->destroyCq(t.cq.handle) == Status::kSuccess);
    }
  }
}

TEST(verbs_threads_and_a_device_that_goes) {
  for (int round = 0; round < 12; ++round) {
    World w;
    Traffic t;
    CHECK(w.make(&t.cq) == Status::kSuccess);
    CHECK(w.make(&t.qp, t.cq, t.cq) == Status::kSuccess);
    CHECK(w.run(t.qp) == Status::kSuccess);
    std::atomic<bool> ended{false}, begun{false};
    std::thread program([&] {
      while (!ended.load()) {
        t.step();
        begun = begun || t.posted > 64u;
        if (t.posted <= 64) w.rdma.completeSends(t.qp.qpn, 3);
      }
      for (int i = 0; i < 3; ++i) {
        ringSends(t.qp.handle);
        ringReceives(t.qp.handle);
        t.count(poll(t.cq));
        t.count(take(t.cq));
      }
    });
    while (!begun.load()) std::this_thread::yield();
    w.host->closeDevice(*w.device);
    CHECK(w.rdma.alive(fake::kContext) == 0);
    ended = true;
    program.join();
    CHECK(t.idle());
    CHECK(w.host->destroyQp(t.qp.handle) == Status::kSuccess);
  }
}

TEST(verbs_a_shared_queue_moves_while_it_completes) {
  World w;
  TestCq cq;
  TestSrq srq;
  TestQp qp;
  CHECK(w.make(&cq, 1024) == Status::kSuccess);
  CHECK(w.make(&srq, 64) == Status::kSuccess);
  CHECK(w.make(&qp, cq, cq, &srq) == Status::kSuccess);
  CHECK(w.run(qp) == Status::kSuccess);
  uint32_t posted = 0;
  std::atomic<uint32_t> taken{0};
  std::atomic<bool> ended{false};
  std::thread poller([&] {
    while (!ended.load()) taken += static_cast<uint32_t>(poll(cq).size());
  });
  for (int round = 0; round < 60; ++round) {
    while (posted - taken.load() < 32) {
      writeReceive(srq);
      ++posted;
    }
    ringReceives(kSharedBit | srq.handle);
    for (int i = 0; i < 20; ++i) w.rdma.completeReceive(qp.qpn, ibv_wc{});
    SrqAttributes next;
    next.entries = round % 2 == 0 ? 128 : 64;
    next.ringBytes = kSrqHeaderBytes + uint64_t{next.entries} * srq.create.stride;
    const auto memory = w.ring(next.ringBytes);
    next.ringAddress = reinterpret_cast<uintptr_t>(memory->base);
    const uint64_t old = reinterpret_cast<uintptr_t>(srq.memory->base);
    CHECK(w.host->modifySrq(srq.handle, srqmask::kEntries, next) == Status::kSuccess);
    srq.memory = memory;
    srq.create.entries = next.entries;
    Rings::all().release(old);
    w.rings.erase(w.rings.begin() + static_cast<std::ptrdiff_t>(w.rings.size()) - 2);
  }
  while (w.rdma.completeReceive(qp.qpn, ibv_wc{})) {}
  const auto until = std::chrono::steady_clock::now() + kTimeout;
  while (taken.load() != posted && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  ended = true;
  poller.join();
  CHECK_EQ(taken.load(), posted);
  CHECK_EQ(loadWord(srq.words() + kSrqConsumer), posted);
}
