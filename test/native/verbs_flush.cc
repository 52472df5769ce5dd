// Tests of the end of queue pairs: every posted request completes once, in order, whatever the device does.
#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

namespace {

// Checks that each index completes once, in order, with these statuses.
void inOrder(const std::vector<Cqe>& cqes, uint32_t count, uint32_t status) {
  CHECK_EQ(cqes.size(), count);
  for (uint32_t i = 0; i < cqes.size(); ++i) {
    CHECK_EQ(cqes[i].wqe(), i);
    CHECK_EQ(cqes[i].status(), status);
  }
}

void post(Ready& r, int sends, int receives) {
  for (int i = 0; i < sends; ++i) write(r.qp, Wqe());
  for (int i = 0; i < receives; ++i) writeReceive(r.qp);
  ringSends(r.qp.handle);
  ringReceives(r.qp.handle);
}

}  // namespace

TEST(verbs_error_waits_for_the_flush) {
  for (const int polls : {0, 1, 7}) {
    Ready r;
    post(r, 5, 6);
    r.world.rdma.flushAfterPolls = polls;
    CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
    // The completions are in the rings when the call returns, because nothing is fetched here.
    inOrder(take(r.sendCq), 5, kWcFlushed);
    inOrder(take(r.receiveCq), 6, kWcFlushed);
    CHECK_EQ(r.qp.state(), kQpsError);
  }
}

TEST(verbs_error_waits_for_the_flush_of_datagrams) {
  for (const bool destroyed : {false, true}) {
    Ready r(16, kQptUd);
    Path path;
    path.source = path.destination = World::localGid();
    Handle ah = 0;
    CHECK(r.world.host->createAh(r.world.pd, path, 1024, &ah) == Status::kSuccess);
    Wqe wqe;
    wqe.ah = ah;
    wqe.remoteQpn = 0x99;
    for (int i = 0; i < 4; ++i) write(r.qp, wqe);
    ringSends(r.qp.handle);
    if (destroyed) CHECK(r.world.host->destroyAh(ah) == Status::kSuccess);
    r.world.rdma.flushAfterPolls = 7;
    CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
    // If the address is missing, there is no marker behind the requests. Then they complete when the device reports
    // them.
    if (!destroyed) inOrder(take(r.sendCq), 4, kWcFlushed);
    std::vector<Cqe> late;
    for (int i = 0; destroyed && i < 20; ++i)
      for (const Cqe& cqe : poll(r.sendCq)) late.push_back(cqe);
    if (destroyed) inOrder(late, 4, kWcFlushed);
    if (!destroyed) CHECK(r.world.host->destroyAh(ah) == Status::kSuccess);
  }
}

TEST(verbs_a_device_that_does_not_flush_is_not_waited_for) {
  Ready r;
  post(r, 5, 6);
  r.world.rdma.flushAfterPolls = -1;
  const auto begun = std::chrono::steady_clock::now();
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(400));
  inOrder(take(r.sendCq), 5, kWcFlushed);
  inOrder(take(r.receiveCq), 6, kWcFlushed);
  // The device finally reports them, but they have completed already.
  r.world.rdma.completeSends(r.qp.qpn, 6, kIbFlushed);
  CHECK(poll(r.sendCq).empty());
  CHECK(poll(r.receiveCq).empty());
}

TEST(verbs_unsignaled_sends_hold_nothing_up) {
  Ready r;
  Wqe silent;
  silent.flags = 0;
  write(r.qp, silent);
  ringSends(r.qp.handle);
  r.world.rdma.completeSends(r.qp.qpn, 1);
  const auto begun = std::chrono::steady_clock::now();
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::milliseconds(400));
  CHECK(take(r.sendCq).empty());
}

TEST(verbs_posts_in_error_never_go_to_the_device) {
  Ready r;
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  r.world.rdma.takeSends(r.qp.qpn);
  post(r, 0, 2);
  inOrder(take(r.receiveCq), 2, kWcFlushed);
  post(r, 3, 0);
  inOrder(take(r.sendCq), 3, kWcFlushed);
  CHECK(r.world.rdma.takeSends(r.qp.qpn).empty());
  CHECK(r.world.rdma.takeReceives(r.qp.qpn).empty());
}

TEST(verbs_one_failure_does_not_touch_others) {
  Ready r;
  TestQp other;
  CHECK(r.world.make(&other, r.sendCq, r.receiveCq) == Status::kSuccess);
  CHECK(r.world.run(other) == Status::kSuccess);
  post(r, 2, 1);
  write(other, Wqe());
  ringSends(other.handle);
  r.world.rdma.completeSends(r.qp.qpn, 1, kIbRemoteAccess);
  CHECK_EQ(poll(r.sendCq).size(), 2u);
  CHECK_EQ(other.state(), kQpsRts);
  r.world.rdma.completeSends(other.qpn, 1);
  const std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 1u);
  if (!cqes.empty()) CHECK_EQ(cqes[0].status(), kWcSuccess);
}

// The end of a queue pair's flush is fetched when another queue pair of the same CQ ends.
TEST(verbs_held_requests_complete_though_another_queue_pair_has_fetched_the_flush) {
  Ready r;
  TestQp other;
  CHECK(r.world.make(&other, r.sendCq, r.receiveCq) == Status::kSuccess);
  CHECK(r.world.run(other) == Status::kSuccess);
  post(r, 2, 0);
  r.world.rdma.flushAfterPolls = 2;
  r.world.rdma.qpEvent(r.qp.qpn, kEventQpFatal);
  r.world.await(Event::Kind::kQp);
  post(r, 1, 0);
  CHECK(take(r.sendCq).empty());
  CHECK(r.world.host->destroyQp(other.handle) == Status::kSuccess);
  // The program does not poll. The event thread may have fetched the flush as well, and then completes the third.
  std::vector<Cqe> all;
  for (const auto end = std::chrono::steady_clock::now() + kTimeout;
       all.size() < 3 && std::chrono::steady_clock::now() < end; std::this_thread::yield())
    for (const Cqe& cqe : take(r.sendCq)) all.push_back(cqe);
  inOrder(all, 3, kWcFlushed);
}

TEST(verbs_reset_begins_anew) {
  Ready r;
  post(r, 4, 4);
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  CHECK(r.world.step(r.qp, kQpsReset) == Status::kSuccess);
  CHECK_EQ(r.qp.state(), kQpsReset);
  take(r.sendCq);
  take(r.receiveCq);
  CHECK(r.world.run(r.qp) == Status::kSuccess);
  r.world.rdma.takeSends(r.qp.qpn);
  const uint32_t next = write(r.qp, Wqe());
  ringSends(r.qp.handle);
  CHECK_EQ(r.world.rdma.takeSends(r.qp.qpn).size(), 1u);
  r.world.rdma.completeSends(r.qp.qpn, 1);
  const std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 1u);
  if (!cqes.empty()) CHECK_EQ(cqes[0].wqe(), next);
  if (!cqes.empty()) CHECK_EQ(cqes[0].status(), kWcSuccess);
  // It ends as before.
  write(r.qp, Wqe());
  ringSends(r.qp.handle);
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  CHECK_EQ(r.world.rdma.state(r.qp.qpn), 6);
  CHECK_EQ(take(r.sendCq).size(), 1u);
}

TEST(verbs_receives_before_init_are_handed_over_then) {
  World w;
  TestCq cq;
  TestQp qp;
  CHECK(w.make(&cq) == Status::kSuccess);
  CHECK(w.make(&qp, cq, cq) == Status::kSuccess);
  writeReceive(qp);
  ringReceives(qp.handle);
  CHECK(w.rdma.takeReceives(qp.qpn).empty());
  CHECK(w.step(qp, kQpsInit) == Status::kSuccess);
  CHECK_EQ(w.rdma.takeReceives(qp.qpn).size(), 1u);
}

TEST(verbs_a_device_that_goes_flushes_all) {
  Ready r;
  post(r, 3, 2);
  r.world.rdma.flushAfterPolls = -1;
  r.world.host->closeDevice(*r.world.device);
  inOrder(take(r.sendCq), 3, kWcFlushed);
  inOrder(take(r.receiveCq), 2, kWcFlushed);
  CHECK(r.world.rdma.left().empty() || r.world.rdma.alive(fake::kContext) == 0);
  // Its owners notice, and destroy their objects.
  VerbsHca& host = *r.world.host;
  Handle other = 0;
  uint32_t key = 0;
  CHECK(host.allocateMw(r.world.pd, &other, &key) == Status::kDeviceRemoved);
  CHECK(r.world.step(r.qp, kQpsError) == Status::kSuccess);
  post(r, 1, 0);
  CHECK_EQ(take(r.sendCq).size(), 1u);
  CHECK(host.destroyQp(r.qp.handle) == Status::kSuccess);
  CHECK(host.destroyCq(r.sendCq.handle) == Status::kSuccess);
  CHECK(host.destroyCq(r.receiveCq.handle) == Status::kSuccess);
  CHECK(host.deallocatePd(r.world.pd) == Status::kSuccess);
  CHECK(host.destroyQp(r.qp.handle) == Status::kInvalidHandle);
}

TEST(verbs_nonsense_in_a_ring_fails_its_queue_pair) {
  Ready r;
  storeWord(r.qp.words() + kQpSendProducer, 1000);
  ringSends(r.qp.handle);
  CHECK_EQ(r.qp.state(), kQpsError);
  CHECK(r.world.await(Event::Kind::kQp).reason == kWcLocalOp);
  TestSrq srq;
  CHECK(r.world.make(&srq) == Status::kSuccess);
  storeWord(srq.words() + kSrqProducer, 1000);
  ringReceives(kSharedBit | srq.handle);
  const Seen event = r.world.await(Event::Kind::kSrq);
  CHECK_EQ(event.handle, srq.handle);
  CHECK_EQ(event.event, static_cast<uint32_t>(SrqEvent::kFatal));
  for (const Handle stale : {0u, 5u, 0x7FFFFFFFu, r.qp.handle + (1u << 18)}) {
    ringSends(stale);
    ringReceives(stale);
    ringReceives(kSharedBit | stale);
    nd::verbs::progress(stale);
    CHECK(armCq(stale, false) == Status::kInvalidHandle);
  }
}
