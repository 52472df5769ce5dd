// Tests when acknowledgements are requested. Not every message whose completion no program waits for needs one, but the
// outcome of every message must become known (IBA 1 §9.7.5.1.2, §9.7.3.5).
#include "world.h"

using namespace world;

namespace {

constexpr uint32_t kSize = 4096;

struct Talk : Pair {
  Buffer from{*a, kSize, kAllAccess, 1}, to{*b, kSize};
  explicit Talk(const Link2& l = {}, const QpShape& shape = {}) : Pair(l, shape) {
    write(true);  // the round trip is known from now on
    pump();
    CHECK(only(qa.sendCq, 0, kOpWrite, kWcSuccess));
    net.logging = true;
  }
  uint32_t write(bool signaled, uint32_t bytes = 8) {
    return qa.post({kOpWrite, signaled ? kSendFlagSignaled : 0u, {{from.at(), bytes, from.lkey}}, 0, to.at(), to.rkey});
  }
  uint32_t ackRequests() const {
    uint32_t n = 0;
    for (const Frame& f : net.log) n += f.source == a->gid && f.bth().ackRequest;
    return n;
  }
  uint32_t responses() const {
    uint32_t n = 0;
    for (const Frame& f : net.log) n += f.source == b->gid;
    return n;
  }
  // Moves the QP to ERROR. Returns the number of WQEs that had not finished and are flushed.
  uint32_t unfinished() {
    qa.toState(kQpsError);
    return uint32_t(qa.sendCq.drain().size());
  }
};

}  // namespace

TEST(no_acknowledgement_is_requested_that_no_program_waits_for) {
  Talk t;
  for (int i = 0; i < 7; i++) t.write(false);
  t.pump();
  CHECK_EQ(t.ackRequests(), 0u);
  CHECK_EQ(t.responses(), 0u);
  t.write(true);
  t.pump();
  CHECK_EQ(t.ackRequests(), 1u);
  CHECK_EQ(t.responses(), 1u);
  CHECK(only(t.qa.sendCq, 8, kOpWrite, kWcSuccess));
  CHECK_EQ(t.unfinished(), 0u);
}

// Sends one message each way per round, with every eighth signaled. Each costs one datagram, plus the acknowledgements
// of the signaled ones.
TEST(exchange_is_one_packet_each_way) {
  Talk t;
  for (int i = 0; i < 64; i++) {
    t.qa.receive({{t.from.at(64), 8, t.from.lkey}});
    t.qb.receive({{t.to.at(64), 8, t.to.lkey}});
  }
  t.qb.post({kOpSend, kSendFlagSignaled, {{t.to.at(), 8, t.to.lkey}}});
  t.pump();
  t.net.log.clear();
  for (uint32_t i = 0; i < 48; i++) {
    TestQp& q = i % 2 ? t.qb : t.qa;
    Buffer& m = i % 2 ? t.to : t.from;
    q.post({kOpSend, i % 16 > 13 ? kSendFlagSignaled : 0u, {{m.at(), 8, m.lkey}}});
    (i % 2 ? t.a : t.b)->engine.progress();
  }
  t.pump();
  CHECK_EQ(t.qb.receiveCq.written(), 24u);
  CHECK_EQ(t.qa.receiveCq.written(), 25u);
  CHECK_EQ(t.net.log.size(), 48u + 6u);
}

// An acknowledgement is requested at half of the queue at the latest; otherwise the queue would fill up with finished
// WQEs.
TEST(queue_full_of_unsignaled_requests_goes_on) {
  QpShape shape;
  shape.sendEntries = 8;
  Talk t({}, shape);
  const uint64_t start = t.clock.time;
  for (int i = 0; i < 100; i++) {
    t.write(false);
    t.pump();
  }
  CHECK_EQ(t.a->counter("ring_fault"), 0u);
  CHECK_EQ(t.ackRequests(), 25u);
  CHECK_EQ(t.clock.time, start);
  CHECK_EQ(t.a->counter("retransmitted_pkts"), 0u);
  CHECK_EQ(t.qb.stateWord(), kQpsRts);
  CHECK_EQ(t.qa.stateWord(), kQpsRts);
}

TEST(queue_of_one_always_requests_acknowledgements) {
  QpShape shape;
  shape.sendEntries = 1;
  Talk t({}, shape);
  for (int i = 0; i < 5; i++) {
    t.write(false);
    t.pump();
  }
  CHECK_EQ(t.ackRequests(), 5u);
  CHECK_EQ(t.a->counter("ring_fault"), 0u);
}

TEST(silence_causes_one_acknowledgement_request) {
  Talk t;
  const uint64_t start = t.clock.time;
  for (int i = 0; i < 3; i++) t.write(false);
  CHECK(t.until([&] { return t.responses() == 1; }));
  CHECK(t.clock.time - start < 5'000'000);
  CHECK_EQ(t.ackRequests(), 1u);
  CHECK_EQ(t.a->counter("late_ack_request"), 1u);
  CHECK_EQ(t.b->counter("duplicate_request"), 1u);
  for (int i = 0; i < 50; i++) {
    t.clock.time += 1'000'000;
    t.pump();
  }
  CHECK_EQ(t.ackRequests(), 1u);
  CHECK_EQ(t.a->counter("ack_timeout") + t.a->counter("tail_probe"), 0u);
  CHECK_EQ(t.unfinished(), 0u);
}

// What is lost: the first packet, the last one, all of them, or the response to the request.
TEST(lost_tail_of_unsignaled_requests_is_found) {
  for (int lost = 0; lost < 4; lost++) {
    Talk t;
    const uint64_t start = t.clock.time;
    uint32_t n = 0;
    t.net.filter = [&](Frame& f) {
      if (f.source == t.b->gid) return lost != 3 || n++ != 0;
      if (lost == 3) return true;
      n++;
      return lost == 0 ? n != 1 : lost == 1 ? n != 5 : n > 5;
    };
    std::memset(t.to.data(), 0, kSize);
    for (uint32_t i = 0; i < 5; i++)
      t.qa.post({kOpWrite, 0, {{t.from.at(i * 8), 8, t.from.lkey}}, 0, t.to.at(i * 8), t.to.rkey});
    const uint32_t answers = lost == 3 ? 2 : 1;
    CHECK(t.until([&] { return std::memcmp(t.to.data(), t.from.data(), 40) == 0 && t.responses() >= answers; }));
    CHECK(t.clock.time - start < 80'000'000);  // the timeout is 84 ms
    t.pump();
    CHECK_EQ(t.a->counter("ack_timeout"), 0u);
    CHECK_EQ(t.unfinished(), 0u);
  }
}

TEST(new_message_requests_the_acknowledgement_of_those_that_wait) {
  Talk t;
  t.write(false);
  t.pump();
  t.clock.time += 900'000;
  t.write(false);
  t.pump();
  CHECK_EQ(t.ackRequests(), 0u);
  t.clock.time += 200'000;
  t.write(false);
  t.pump();
  CHECK_EQ(t.ackRequests(), 1u);
  CHECK_EQ(t.a->counter("late_ack_request"), 0u);
  CHECK_EQ(t.unfinished(), 0u);
}

TEST(error_of_an_unsignaled_request_is_reported) {
  Talk t;
  const uint64_t start = t.clock.time;
  t.write(false);
  t.qa.post({kOpWrite, 0, {{t.from.at(), 8, t.from.lkey}}, 0, t.to.at(), t.to.rkey ^ 1});
  t.pump();
  CHECK(only(t.qa.sendCq, 2, kOpWrite, kWcRemoteAccess));
  CHECK_EQ(t.clock.time, start);
}

// The failure is reported when it would be for a signaled request.
TEST(dead_peer_of_an_unsignaled_request_is_reported) {
  Link2 l;
  l.retries = 1;
  Talk t(l);
  const uint64_t start = t.clock.time, timeout = wire::ackNanoseconds(l.ackTimeout) * 5 / 4;
  t.net.filter = [](Frame&) { return false; };
  t.write(false);
  CHECK(t.until([&] { return t.qa.sendCq.written() == 2; }));
  CHECK(only(t.qa.sendCq, 1, kOpWrite, kWcTimeoutRetry));
  CHECK_EQ(t.clock.time - start, timeout * 2);
}

// Without a timeout or without retries, an acknowledgement cannot be requested later.
TEST(acknowledgement_is_requested_at_once_without_retries) {
  for (int what = 0; what < 2; what++) {
    Link2 l;
    (what ? l.retries : l.ackTimeout) = 0;
    Talk t(l);
    t.write(false);
    t.pump();
    CHECK_EQ(t.ackRequests(), 1u);
    CHECK_EQ(t.unfinished(), 0u);
  }
}

// Work that waits for earlier requests to finish does not wait for a timer.
TEST(local_work_after_unsignaled_requests_is_not_late) {
  for (int signaled = 0; signaled < 2; signaled++) {
    Talk t;
    const uint64_t start = t.clock.time;
    Window window(*t.a);
    t.write(false);
    t.qa.post(window.bind(t.from, 64));
    t.pump();
    CHECK(only(t.qa.sendCq, 2, kOpBindWindow, kWcSuccess));
    t.write(false);
    Wr invalidate{kOpLocalInvalidate, signaled ? kSendFlagSignaled : 0u, {}};
    invalidate.rkey = window.key;
    t.qa.post(invalidate);
    t.pump();
    if (signaled) CHECK(only(t.qa.sendCq, 4, kOpLocalInvalidate, kWcSuccess));
    CHECK_EQ(t.unfinished(), 0u);
    CHECK_EQ(t.clock.time, start);
    CHECK_EQ(t.a->counter("late_ack_request"), 2u);
  }
}

// Neither unbinding a window nor the requests that follow it wait for an acknowledgement.
TEST(window_ends_before_the_requests_ahead_of_it_are_acknowledged) {
  Talk t;
  Window window(*t.a);
  Buffer shown(*t.a, kSize);
  t.qa.post(window.bind(shown, 64));
  t.pump();
  CHECK(only(t.qa.sendCq, 1, kOpBindWindow, kWcSuccess));
  CHECK(t.a->engine.deregisterMr(t.a->pd, shown.lkey) == Status::kDeviceBusy);
  t.net.log.clear();
  t.write(true);
  Wr invalidate{kOpLocalInvalidate, kSendFlagSignaled, {}};
  invalidate.rkey = window.key;
  t.qa.post(invalidate);
  t.write(true);
  t.a->engine.progress();
  CHECK_EQ(t.net.log.size(), 2u);
  CHECK_EQ(t.responses(), 0u);
  CHECK(t.a->engine.deregisterMr(t.a->pd, shown.lkey) == Status::kSuccess);
  t.pump();
  const auto ended = t.qa.sendCq.drain();
  CHECK_EQ(ended.size(), 3u);
  for (uint32_t n = 0; n < ended.size(); n++) CHECK(ended[n].wqe == 2 + n && ended[n].status == kWcSuccess);
}

TEST(request_that_cannot_be_sent_fails_without_delay) {
  Talk t;
  const uint64_t start = t.clock.time;
  t.write(false);
  t.pump();
  t.qa.post({kOpWrite, 0, {{t.from.at(), 8, t.from.lkey ^ 1}}, 0, t.to.at(), t.to.rkey});
  t.pump();
  CHECK(only(t.qa.sendCq, 2, kOpWrite, kWcLocalProtection));
  CHECK_EQ(t.clock.time, start);
}

TEST(send_queue_drains_without_delay) {
  Talk t;
  const uint64_t start = t.clock.time;
  for (int i = 0; i < 3; i++) t.write(false);
  t.pump();
  QpAttributes a;
  a.state = kQpsSqd;
  CHECK(t.qa.modify(qpmask::kState | qpmask::kDrainNotify, a) == Status::kSuccess);
  t.pump();
  CHECK_EQ(t.a->port.count(QpEvent::kSendQueueDrained), 1);
  CHECK_EQ(t.clock.time, start);
}

// The program infers from a reply that its message arrived, and frees the memory. This must not cause a failure.
TEST(freed_memory_is_not_needed_to_request_an_acknowledgement) {
  Talk t;
  const uint32_t wqe = [&] {
    Buffer gone(*t.a, 64);
    return t.qa.post({kOpWrite, 0, {{gone.at(), 8, gone.lkey}}, 0, t.to.at(), t.to.rkey});
  }();
  CHECK(t.until([&] { return t.responses() == 1; }));
  CHECK_EQ(t.a->counter("keep_alive"), 1u);
  t.write(true);
  t.pump();
  CHECK(only(t.qa.sendCq, wqe + 1, kOpWrite, kWcSuccess));
}

// A queue pair that ends acknowledges what it has accepted, so the peer's requests do not fail.
TEST(last_acknowledgement_comes_with_the_end) {
  for (int how = 0; how < 3; how++) {
    Talk t;
    {
      TestQp other(*t.b), mine(*t.a);
      t.connect(mine, other);
      mine.post({kOpWrite, kSendFlagSignaled, {{t.from.at(), 8, t.from.lkey}}, 0, t.to.at(), t.to.rkey});
      t.pump();
      CHECK(only(mine.sendCq, 0, kOpWrite, kWcSuccess));
      mine.post({kOpWrite, 0, {{t.from.at(), 8, t.from.lkey}}, 0, t.to.at(), t.to.rkey});
      t.pump();
      t.net.log.clear();
      if (how == 0) CHECK(other.toState(kQpsError) == Status::kSuccess);
      if (how == 1) CHECK(other.toState(kQpsReset) == Status::kSuccess);
      if (how == 2) CHECK(t.b->engine.destroyQp(other.handle) == Status::kSuccess);
      t.pump();
      CHECK_EQ(t.responses(), 1u);
      mine.toState(kQpsError);
      CHECK_EQ(mine.sendCq.drain().size(), size_t(0));
    }
  }
}

// Faults of every kind occur amid requests that no program waits for. All requests arrive, in order.
TEST(unsignaled_requests_survive_faults) {
  for (uint32_t seed = 1; seed <= 20; seed++) {
    Talk t;
    t.net.random = Random(seed);
    t.net.faults = {0.1, 0.1, 0.1};
    for (uint32_t value = 1; value <= 300; value++) {
      std::memcpy(t.from.data(), &value, 4);
      t.qa.post({kOpWrite, kSendFlagInline, {}, 0, t.to.at(), t.to.rkey, 0, 0, 0, {t.from.data(), t.from.data() + 4}});
      if (value % 20 != 0) continue;
      CHECK(t.until([&] { return std::memcmp(t.to.data(), &value, 4) == 0; }));
    }
    t.net.faults = {};
    t.write(true);
    CHECK(t.until([&] { return t.qa.sendCq.written() == 2; }));
    CHECK_EQ(t.qa.sendCq.drain().back().status, kWcSuccess);
    CHECK_EQ(t.a->counter("ring_fault"), 0u);
  }
}

// The same test while a longer message is half sent. Nothing is sent between its packets.
TEST(memory_that_went_away_amid_a_longer_message) {
  Talk t;
  constexpr uint32_t kLong = 60 * 1024;
  Buffer from(*t.a, kLong, kAllAccess, 7), to(*t.b, kLong);
  {
    Buffer gone(*t.a, 8);
    t.qa.post({kOpWrite, 0, {{gone.at(), 8, gone.lkey}}, 0, t.to.at(), t.to.rkey});
  }
  const uint32_t wqe = t.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), kLong, from.lkey}}, 0, to.at(), to.rkey});
  CHECK(t.net.log.size() > 10 && t.net.log.size() < 60);
  CHECK_EQ(t.ackRequests(), 0u);
  t.clock.time += 4'000'000;
  t.pump();
  CHECK_EQ(t.a->counter("late_ack_request"), 1u);
  CHECK(only(t.qa.sendCq, wqe, kOpWrite, kWcSuccess));
  CHECK(std::memcmp(from.data(), to.data(), kLong) == 0);
  CHECK_EQ(t.b->counter("send_fatal_nak"), 0u);
}
