// Tests that no wake-up is lost, with a device that completes at every moment of arming, polling and notification.
#include <thread>

#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

namespace {

enum class Way { kAny, kSolicited, kBatch };

Status arm(const TestCq& cq, Way way) {
  return way == Way::kBatch ? armCqBatch(cq.handle, 1) : armCq(cq.handle, way == Way::kSolicited);
}

ibv_wc message(Way way) {
  ibv_wc wc{};
  if (way == Way::kSolicited) wc.slid = 0x8000;  // marks the completion as solicited, for the fake
  return wc;
}

// A device that completes a receive at certain moments, counted from the start of the trial.
class Device1 {
 public:
  Device1(Ready& ready, Way way, long first, long second) : r_(ready), way_(way), at_{first, second} {
    r_.world.rdma.onMoment = [this](fake::Moment, ibv_cq*) {
      const long now = moment_.fetch_add(1);
      for (const long at : at_)
        if (at == now) complete();
    };
    r_.world.rdma.hasMoment = true;
  }
  ~Device1() {
    r_.world.rdma.hasMoment = false;
    // The event thread may still be in the hook. Closing joins it.
    r_.world.close();
    r_.world.rdma.onMoment = nullptr;
  }
  // Requests whose moment did not occur complete now.
  void finish() {
    const long now = moment_.fetch_add(1000);
    for (const long at : at_)
      if (at >= now && at >= 0) complete();
  }

 private:
  Ready& r_;
  const Way way_;
  const long at_[2];
  std::atomic<long> moment_{0};
  void complete() { CHECK(r_.world.rdma.completeReceive(r_.qp.qpn, message(way_))); }
};

// Receives `count` messages, sleeping in between as a program does: poll, arm, poll, sleep.
size_t consume(Ready& r, Way way, size_t count, Device1& device) {
  size_t taken = 0;
  bool finished = false;
  while (taken < count) {
    taken += poll(r.receiveCq).size();
    if (taken >= count) break;
    if (!CHECK(arm(r.receiveCq, way) == Status::kSuccess)) break;
    if (!finished) device.finish();
    finished = true;
    if (!CHECK(r.world.await(Event::Kind::kCq).kind == Event::Kind::kCq)) break;
  }
  return taken;
}

}  // namespace

TEST(verbs_no_wake_up_is_lost_at_any_moment) {
  for (const Way way : {Way::kAny, Way::kSolicited, Way::kBatch})
    for (long moment = 0; moment < 14; ++moment) {
      check::note = "moment";
      check::noteNumber = static_cast<uint64_t>(moment);
      Ready r;
      CHECK(r.world.host->listenCq(r.receiveCq.handle) == Status::kSuccess);
      for (int i = 0; i < 4; ++i) writeReceive(r.qp);
      ringReceives(r.qp.handle);
      Device1 device(r, way, moment, -1);
      CHECK_EQ(consume(r, way, 1, device), 1u);
    }
  check::note = "";
}

TEST(verbs_no_wake_up_is_lost_at_any_two_moments) {
  for (const Way way : {Way::kAny, Way::kSolicited})
    for (long first = 0; first < 10; ++first)
      for (long second = first; second < 12; second += 1 + first % 2) {
        check::note = "moments";
        check::noteNumber = static_cast<uint64_t>(first * 100 + second);
        Ready r;
        CHECK(r.world.host->listenCq(r.receiveCq.handle) == Status::kSuccess);
        for (int i = 0; i < 4; ++i) writeReceive(r.qp);
        ringReceives(r.qp.handle);
        Device1 device(r, way, first, second);
        CHECK_EQ(consume(r, way, 2, device), 2u);
      }
  check::note = "";
}

// The event thread is late with an event whose completion was polled since. Meanwhile the program has armed the next
// one, but the device was not armed again, because it already was.
TEST(verbs_a_late_event_arms_again) {
  Ready r;
  CHECK(r.world.host->listenCq(r.receiveCq.handle) == Status::kSuccess);
  for (int i = 0; i < 4; ++i) writeReceive(r.qp);
  ringReceives(r.qp.handle);
  CHECK(armCq(r.receiveCq.handle, false) == Status::kSuccess);
  const std::thread::id program = std::this_thread::get_id();
  std::atomic<bool> told{false}, armed{false}, completed{false};
  r.world.rdma.onMoment = [&](fake::Moment moment, ibv_cq*) {
    if (std::this_thread::get_id() == program) return;
    if (moment == fake::Moment::kAfterEvent && !told.exchange(true))
      while (!armed.load()) std::this_thread::yield();
    // The completion comes after the queue was checked and before the device is armed.
    if (moment == fake::Moment::kBeforeArm && armed.load() && !completed.exchange(true))
      CHECK(r.world.rdma.completeReceive(r.qp.qpn, ibv_wc{}));
  };
  r.world.rdma.hasMoment = true;
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, ibv_wc{}));
  while (!told.load()) std::this_thread::yield();
  CHECK_EQ(poll(r.receiveCq).size(), 1u);
  // The polled completion was one for which the first arm waited.
  r.world.events();
  CHECK(armCq(r.receiveCq.handle, false) == Status::kSuccess);
  armed = true;
  CHECK(r.world.await(Event::Kind::kCq).handle == r.receiveCq.handle);
  CHECK_EQ(take(r.receiveCq).size(), 1u);
  r.world.rdma.hasMoment = false;
  r.world.close();
  r.world.rdma.onMoment = nullptr;
}

TEST(verbs_a_batch_notifies_with_its_last) {
  Ready r;
  CHECK(r.world.host->listenCq(r.receiveCq.handle) == Status::kSuccess);
  for (int i = 0; i < 8; ++i) writeReceive(r.qp);
  ringReceives(r.qp.handle);
  CHECK(armCqBatch(r.receiveCq.handle, 0) == Status::kInvalidParameter);
  CHECK(armCqBatch(r.receiveCq.handle, 65) == Status::kInvalidParameter);
  CHECK(armCqBatch(r.receiveCq.handle, 3) == Status::kSuccess);
  for (int i = 0; i < 2; ++i) CHECK(r.world.rdma.completeReceive(r.qp.qpn, ibv_wc{}));
  nd::verbs::progress(r.receiveCq.handle);
  CHECK(r.world.events().empty());
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, ibv_wc{}));
  CHECK(r.world.await(Event::Kind::kCq).handle == r.receiveCq.handle);
  CHECK_EQ(take(r.receiveCq).size(), 3u);
}

TEST(verbs_unsolicited_entries_wake_no_waiter_for_solicited_ones) {
  Ready r;
  CHECK(r.world.host->listenCq(r.receiveCq.handle) == Status::kSuccess);
  for (int i = 0; i < 4; ++i) writeReceive(r.qp);
  ringReceives(r.qp.handle);
  CHECK(armCq(r.receiveCq.handle, true) == Status::kSuccess);
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, ibv_wc{}));
  nd::verbs::progress(r.receiveCq.handle);
  CHECK(r.world.events().empty());
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, message(Way::kSolicited)));
  CHECK(r.world.await(Event::Kind::kCq).handle == r.receiveCq.handle);
  CHECK_EQ(take(r.receiveCq).size(), 2u);
}

TEST(verbs_errors_are_noticed_without_polling) {
  Ready r;
  write(r.qp, Wqe());
  ringSends(r.qp.handle);
  r.world.rdma.completeSends(r.qp.qpn, 1, kIbRetryExceeded);
  const Seen event = r.world.await(Event::Kind::kQp);
  CHECK_EQ(event.handle, r.qp.handle);
  CHECK_EQ(event.event, static_cast<uint32_t>(QpEvent::kPeerLost));
  CHECK_EQ(r.qp.state(), kQpsError);
}
