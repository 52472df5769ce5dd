// Tests of completion queues: overrun, resizing with entries, and the rules of arming and notification.
#include "world.h"

using namespace world;

struct Notified : Pair {
  Buffer a, bb;
  Notified() : a(*Pair::a, 64), bb(*b, 64) {}
  // Produces one receive completion at B.
  void message(bool solicited = false) {
    qb.receive({{bb.at(), 8, bb.lkey}});
    qa.post({kOpSend, solicited ? kSendFlagSolicited : 0, {{a.at(), 8, a.lkey}}});
    pump();
  }
  std::shared_ptr<Sink> wait(uint32_t type = kCqNotifyAny) {
    auto sink = std::make_shared<Sink>();
    CHECK(b->engine.addCqWaiter(qb.receiveCq.handle, type, sink) == Status::kSuccess);
    return sink;
  }
  void arm(bool solicited = false) { CHECK(b->engine.armCq(qb.receiveCq.handle, solicited) == Status::kSuccess); }
};

TEST(unarmed_is_silent) {
  Notified n;
  auto s = n.wait();
  n.message();
  CHECK_EQ(s->calls, 0);
}

TEST(arm_then_entry) {
  Notified n;
  auto s = n.wait();
  n.arm();
  CHECK_EQ(s->calls, 0);
  n.message();
  CHECK_EQ(s->calls, 1);
  CHECK_EQ(s->status, 0u);
  // Each arm raises one event, and an announced entry is not announced again.
  auto t = n.wait();
  n.message();
  CHECK_EQ(t->calls, 0);
  n.arm();
  CHECK_EQ(t->calls, 1);  // the second entry was neither consumed nor announced
  auto u = n.wait();
  n.arm();
  CHECK_EQ(u->calls, 0);  // both entries were announced, though not consumed
  n.qb.receiveCq.drain();
  n.message();
  CHECK_EQ(u->calls, 1);
}

TEST(entry_then_arm) {
  Notified n;
  n.message();
  auto s = n.wait();
  n.arm();
  CHECK_EQ(s->calls, 1);
}

TEST(taken_entries_are_no_news) {
  Notified n;
  n.message();
  n.qb.receiveCq.drain();
  auto s = n.wait();
  n.arm();
  CHECK_EQ(s->calls, 0);
  n.message();
  CHECK_EQ(s->calls, 1);
}

TEST(event_without_waiter_is_kept_until_taken) {
  Notified n;
  n.arm();
  n.message();
  auto errors = n.wait(kCqNotifyErrors), solicited = n.wait(kCqNotifySolicited);
  CHECK_EQ(errors->calls + solicited->calls, 0);  // they do not wait for this entry
  auto s = n.wait();
  CHECK_EQ(s->calls, 1);
  auto t = n.wait();
  CHECK_EQ(t->calls, 0);
  // The event is kept, but its entry is consumed in the meantime.
  Notified m;
  m.arm();
  m.message();
  m.qb.receiveCq.drain();
  auto u = m.wait();
  CHECK_EQ(u->calls, 0);
}

// The waiter passes through the kernel, so it may arrive after its arm, after the event, and after the entry was
// consumed.
TEST(waiter_that_comes_late_is_not_forgotten) {
  Notified n;
  n.arm();
  n.message();
  n.qb.receiveCq.drain();
  auto taken = n.wait();
  CHECK_EQ(taken->calls, 0);
  n.message();
  CHECK_EQ(taken->calls, 1);
  // Two waiters were armed; only the first had arrived at the time of the event.
  Notified m;
  auto first = m.wait();
  m.arm();
  m.arm();
  m.message();
  CHECK_EQ(first->calls, 1);
  m.qb.receiveCq.drain();
  auto second = m.wait();
  CHECK_EQ(second->calls, 0);
  m.message();
  CHECK_EQ(second->calls, 1);
  // Two arms and one event complete two waiters that arrive later, but not a third.
  Notified p;
  p.arm();
  p.arm();
  p.message();
  auto one = p.wait(), two = p.wait(), three = p.wait();
  CHECK_EQ(one->calls + two->calls, 2);
  CHECK_EQ(three->calls, 0);
  // A waiter for ANY whose arm was used up is not assigned an arm for SOLICITED.
  Notified o;
  o.arm();
  o.message();
  o.qb.receiveCq.drain();
  auto solicited = o.wait(kCqNotifySolicited);
  o.arm(true);
  auto any = o.wait();
  o.message(false);
  CHECK_EQ(any->calls, 1);
}

TEST(batch_counts_entries) {
  Notified n;
  const auto armBatch = [&](uint32_t count) {
    CHECK(n.b->engine.armCqBatch(n.qb.receiveCq.handle, count) == Status::kSuccess);
  };
  auto s = n.wait();
  armBatch(3);
  n.message();
  n.qb.receiveCq.drain();  // the entry has arrived, whether it is consumed or not
  n.message();
  CHECK_EQ(s->calls, 0);
  n.message();
  CHECK_EQ(s->calls, 1);
  n.message();
  auto announced = n.wait();
  armBatch(2);  // one entry has arrived since the event
  CHECK_EQ(announced->calls, 0);
  n.message();
  CHECK_EQ(announced->calls, 1);
  n.qb.receiveCq.drain();
  n.message();
  n.message();
  auto there = n.wait();
  armBatch(2);
  CHECK_EQ(there->calls, 1);
  // The shortest batch counts, and an arm for the next entry fires before it.
  auto both = n.wait();
  armBatch(4);
  armBatch(2);
  n.message();
  CHECK_EQ(both->calls, 0);
  n.arm();
  CHECK_EQ(both->calls, 1);
  // A batch that ended early does not count any more.
  Notified o;
  auto batch = o.wait(), any = o.wait();
  CHECK(o.b->engine.armCqBatch(o.qb.receiveCq.handle, 5) == Status::kSuccess);
  o.arm();
  o.message();
  CHECK_EQ(batch->calls + any->calls, 2);
  auto next = o.wait();
  for (int i = 0; i < 6; i++) o.message();
  CHECK_EQ(next->calls, 0);
  // A batch whose waiter arrives late.
  Notified m;
  CHECK(m.b->engine.armCqBatch(m.qb.receiveCq.handle, 2) == Status::kSuccess);
  m.message();
  auto late = m.wait();
  CHECK_EQ(late->calls, 0);
  m.message();
  CHECK_EQ(late->calls, 1);
}

TEST(batch_leaves_others_their_entries) {
  const auto armBatch = [](Notified& n, uint32_t count) {
    CHECK(n.b->engine.armCqBatch(n.qb.receiveCq.handle, count) == Status::kSuccess);
  };
  // The event used up the arm of a late waiter. That waiter waits for the next entry, not for a batch that was
  // requested since.
  Notified n;
  n.arm();
  n.message();
  n.qb.receiveCq.drain();
  armBatch(n, 5);
  auto any = n.wait();
  CHECK_EQ(any->calls, 0);
  n.message();
  CHECK_EQ(any->calls, 1);
  // A solicited entry in the middle of a batch is reported to a late waiter for solicited entries.
  Notified m;
  m.message();
  m.arm(true);
  m.arm();
  m.qb.receiveCq.drain();
  armBatch(m, 2);
  m.message(true);
  m.message();
  CHECK_EQ(m.wait(kCqNotifySolicited)->calls, 1);
}

TEST(batch_fits_the_queue) {
  Notified n;
  auto s = n.wait();
  CHECK(n.b->engine.armCqBatch(n.qb.receiveCq.handle, 200) == Status::kSuccess);
  n.message();
  n.qb.receiveCq.resize(4);  // only announced entries are consumed: the event must precede the overrun
  for (int i = 0; i < 2; i++) n.message();
  CHECK_EQ(s->calls, 0);
  n.message();
  CHECK_EQ(s->calls, 1);
  // The queue is already full.
  auto full = n.wait();
  n.qb.receiveCq.resize(64);
  CHECK(n.b->engine.armCqBatch(n.qb.receiveCq.handle, 64) == Status::kSuccess);
  for (int i = 0; i < 4; i++) n.message();
  CHECK_EQ(full->calls, 0);
  n.qb.receiveCq.resize(8);
  CHECK_EQ(full->calls, 1);
}

TEST(batch_is_checked) {
  Notified n;
  const Handle cq = n.qb.receiveCq.handle;
  CHECK(n.b->engine.armCqBatch(cq, 0) == Status::kInvalidParameter);
  CHECK(n.b->engine.armCqBatch(cq, 1u << 20) == Status::kInvalidParameter);
  CHECK(n.b->engine.armCqBatch(12345, 1) == Status::kInvalidHandle);
}

TEST(solicited_only) {
  Notified n;
  auto s = n.wait(kCqNotifySolicited);
  n.arm(true);
  n.message(false);
  CHECK_EQ(s->calls, 0);
  n.message(true);
  CHECK_EQ(s->calls, 1);
  // The solicited entry is already there.
  n.message(true);
  n.message(false);
  auto t = n.wait(kCqNotifySolicited);
  n.arm(true);
  CHECK_EQ(t->calls, 1);
  n.qb.receiveCq.drain();
  n.message(false);
  auto u = n.wait(kCqNotifySolicited);
  n.arm(true);
  CHECK_EQ(u->calls, 0);
}

TEST(any_upgrades_solicited_and_all_complete_together) {
  Notified n;
  auto s = n.wait(kCqNotifySolicited);
  n.arm(true);
  auto t = n.wait(kCqNotifyAny), e = n.wait(kCqNotifyErrors);
  n.arm(false);
  n.arm(true);  // the arm for any entry is not weakened
  n.message(false);
  CHECK_EQ(s->calls, 1);
  CHECK_EQ(t->calls, 1);
  CHECK_EQ(e->calls, 0);
  // The same is true of waiters that arrive late, but not of one that arms after the event.
  Notified m;
  m.arm(true);
  m.arm(false);
  m.message(false);
  auto late = m.wait(kCqNotifySolicited), any = m.wait();
  CHECK_EQ(late->calls, 1);
  CHECK_EQ(any->calls, 1);
  m.arm(true);
  CHECK_EQ(m.wait(kCqNotifySolicited)->calls, 0);
}

TEST(error_completions_are_solicited) {
  Notified n;
  n.qb.receive({});
  auto s = n.wait(kCqNotifySolicited), e = n.wait(kCqNotifyErrors);
  n.arm(true);
  CHECK(n.qb.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(s->calls, 1);
  CHECK_EQ(e->calls, 0);  // a failed request does not fail the queue
}

TEST(waiters_can_leave) {
  Notified n;
  auto s = n.wait();
  CHECK(n.b->engine.removeCqWaiter(n.qb.receiveCq.handle, s.get()) == Status::kSuccess);
  CHECK(n.b->engine.removeCqWaiter(n.qb.receiveCq.handle, s.get()) == Status::kInvalidHandle);
  n.arm();
  n.message();
  CHECK_EQ(s->calls, 0);
  auto t = n.wait();  // the event was kept
  CHECK_EQ(t->calls, 1);
  CHECK(n.b->engine.addCqWaiter(n.qb.receiveCq.handle, 3, t) == Status::kInvalidParameter);
  CHECK(n.b->engine.addCqWaiter(12345, 1, t) == Status::kInvalidHandle);
  CHECK(n.b->engine.armCq(12345, false) == Status::kInvalidHandle);
}

TEST(a_listener_is_notified_of_every_event) {
  Notified n;
  const std::vector<std::pair<Handle, CqEvent>>& told = n.b->port.cqEvents;
  const Handle cq = n.qb.receiveCq.handle;
  CHECK(n.b->engine.listenCq(12345) == Status::kInvalidHandle);
  n.arm();
  n.message();  // the event is kept without a waiter
  CHECK(told.empty());
  CHECK(n.b->engine.listenCq(cq) == Status::kSuccess);
  CHECK_EQ(told.size(), 1u);
  n.message();
  CHECK_EQ(told.size(), 1u);  // the queue is not armed
  auto s = n.wait();
  n.arm();
  CHECK_EQ(told.size(), 2u);  // the second entry is announced; a waiter is notified as well
  CHECK_EQ(s->calls, 1);
  n.qb.receiveCq.drain();
  n.arm();
  n.message();
  CHECK_EQ(told.size(), 3u);
  for (const auto& [handle, event] : told) CHECK(handle == cq && event == CqEvent::kCompletion);
  auto late = n.wait();
  CHECK_EQ(late->calls, 0);  // the listener was notified, so nothing is kept
}

TEST(entries_consumed_before_a_listener_comes_cause_no_event) {
  Notified n;
  n.arm();
  n.message();
  n.qb.receiveCq.drain();
  CHECK(n.b->engine.listenCq(n.qb.receiveCq.handle) == Status::kSuccess);
  CHECK(n.b->port.cqEvents.empty());
}

TEST(destroying_a_cq_cancels_its_waiters) {
  World w;
  auto cq = std::make_unique<TestCq>(*w.a, 8);
  auto s = std::make_shared<Sink>();
  CHECK(w.a->engine.addCqWaiter(cq->handle, kCqNotifyAny, s) == Status::kSuccess);
  cq.reset();
  CHECK_EQ(s->calls, 1);
  CHECK_EQ(s->status, uint32_t(Status::kCancelled));
}

TEST(overrun_kills_the_cq_and_its_qps_only) {
  QpShape small;
  small.cqEntries = 4;
  World w;
  TestQp qa(*w.a), qb(*w.b, small), other(*w.b), otherPeer(*w.a);
  w.connect(qa, qb);
  w.connect(otherPeer, other);
  Buffer a(*w.a, 8), b(*w.b, 8);
  auto any = std::make_shared<Sink>(), errors = std::make_shared<Sink>();
  CHECK(w.b->engine.addCqWaiter(qb.receiveCq.handle, kCqNotifyAny, any) == Status::kSuccess);
  CHECK(w.b->engine.addCqWaiter(qb.receiveCq.handle, kCqNotifyErrors, errors) == Status::kSuccess);
  for (int i = 0; i < 6; i++) qb.receive({});
  qb.write({kOpRead, 0});
  w.net.filter = [](Frame& f) { return f.bth().opcode != wire::kOpReadRequest; };  // the READ stays outstanding
  for (int i = 0; i < 4; i++) qa.post({});
  w.pump();
  CHECK(!qb.receiveCq.dead());
  CHECK_EQ(qb.receiveCq.written(), 4u);
  qa.post({});
  w.pump();
  CHECK(qb.receiveCq.dead());
  CHECK_EQ(qb.receiveCq.written(), 4u);
  CHECK_EQ(qb.stateWord(), kQpsError);
  CHECK_EQ(any->status, uint32_t(Status::kBufferOverflow));
  CHECK_EQ(errors->status, uint32_t(Status::kBufferOverflow));
  CHECK((w.b->port.cqEvents == std::vector<std::pair<Handle, CqEvent>>{{qb.receiveCq.handle, CqEvent::kOverrun}}));
  CHECK(w.b->engine.armCq(qb.receiveCq.handle, false) == Status::kBufferOverflow);
  only(qb.sendCq, 0, kOpRead, kWcFlushed);  // the end is reported in its other queue
  CHECK_EQ(other.stateWord(), kQpsRts);
  auto late = std::make_shared<Sink>();
  CHECK(w.b->engine.addCqWaiter(qb.receiveCq.handle, kCqNotifyAny, late) == Status::kSuccess);
  CHECK_EQ(late->status, uint32_t(Status::kBufferOverflow));
  Handle qp;
  uint32_t qpn;
  CHECK(w.b->engine.createQp(qb.request(), &qp, &qpn) == Status::kInvalidDeviceState);
}

TEST(overrun_while_flushing) {
  QpShape small;
  small.cqEntries = 4;
  Pair p({}, small);
  for (int i = 0; i < 10; i++) p.qa.receive({});
  CHECK(p.qa.toState(kQpsError) == Status::kSuccess);
  CHECK(p.qa.receiveCq.dead());
  CHECK_EQ(p.qa.receiveCq.drain().size(), 4u);
}

TEST(consumer_counter_garbage_hurts_only_itself) {
  Pair p;
  Buffer a(*p.a, 8);
  __atomic_store_n(p.qb.receiveCq.words() + kCqConsumer, 0x12345678u, __ATOMIC_RELEASE);
  p.qb.receive({});
  p.qa.post({});
  p.pump();
  CHECK(p.qb.receiveCq.dead());
  CHECK_EQ(p.qb.stateWord(), kQpsError);
}

TEST(resize_keeps_the_entries) {
  QpShape shape;
  shape.cqEntries = 8;
  Pair p({}, shape);
  Buffer a(*p.a, 64), b(*p.b, 64);
  uint32_t expected = 0, posted = 0;
  const auto post = [&](uint32_t n) {
    for (uint32_t i = 0; i < n; i++, posted++) {
      p.qb.receive({});
      p.qa.post({kOpSend, 0});
    }
    p.pump();
  };
  const auto take = [&](uint32_t n) {
    Cqe c{};
    for (uint32_t i = 0; i < n; i++) {
      CHECK(p.qb.receiveCq.poll(&c));
      CHECK_EQ(c.wqe, expected++);
    }
  };
  post(7);
  take(5);
  post(5);  // 7 entries are queued, across the ring's end
  p.qb.receiveCq.resize(4, Status::kBufferOverflow);
  p.qb.receiveCq.resize(32);
  take(3);
  post(20);
  take(20);
  p.qb.receiveCq.resize(4);
  take(4);
  post(3);
  take(3);
  CHECK_EQ(expected, posted);
  CHECK(!p.qb.receiveCq.dead());
}
