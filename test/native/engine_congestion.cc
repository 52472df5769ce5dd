// Tests of congestion control: ECN marks and CNPs (IBA 1 annex A17 §17.9), how the window shrinks and grows, and losses
// at the end of a transmission, which only a probe can detect before the timeout.
#include "world.h"

using namespace world;

namespace {

constexpr uint32_t kSize = 200'000;

struct Stream : Pair {
  Buffer from{*a, kSize, kAllAccess, 1}, to{*b, kSize};
  uint32_t posted = 0;
  explicit Stream(const EngineOptions& options = {}, const Link2& l = {}) : Pair(l, {}, options) { net.logging = true; }
  void write(uint32_t bytes) {
    qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), bytes, from.lkey}}, 0, to.at(), to.rkey});
    posted++;
  }
  bool done() { return qa.sendCq.written() == posted; }
  uint32_t count(uint8_t opcode) const {
    uint32_t n = 0;
    for (const Frame& f : net.log) n += f.bth().opcode == opcode;
    return n;
  }
  // Returns the number of packets that `a` sends before the first response. This is its window, if there is enough to
  // send.
  uint32_t burst() {
    uint32_t n = 0;
    net.filter = [&](Frame& f) {
      n += f.source == a->gid;
      return true;
    };
    write(kSize);
    while (a->step()) continue;
    net.filter = nullptr;
    pump();
    CHECK(done());
    qa.sendCq.drain();
    net.log.clear();
    return n;
  }
  void notify(uint32_t qpn, uint32_t payload = wire::kCnpReservedBytes) {
    wire::Bth bth;
    bth.opcode = wire::kOpCnp;
    bth.destinationQpn = qpn;
    Frame f;
    f.source = b->gid;
    f.destination = a->gid;
    f.bytes.resize(wire::kBthBytes + payload);
    wire::emitBth(f.bytes.data(), bth);
    f.bytes[wire::kBthCongestionByte] = wire::kBecn;
    net.send(std::move(f));
    pump();
  }
};

}  // namespace

TEST(mark_causes_one_notification_in_50_us) {
  Stream s;
  s.net.ecn = wire::kCongestionExperienced;
  for (int i = 0; i < 5; i++) {
    s.write(8);
    s.pump();
    s.clock.time += 20'000;
  }
  CHECK_EQ(s.b->counter("rcvd_ecn_marked"), 5u);
  CHECK_EQ(s.b->counter("sent_cnp"), 2u);  // at 0 and 60 µs
  CHECK_EQ(s.a->counter("rcvd_cnp"), 2u);
  CHECK_EQ(s.a->counter("sent_cnp"), 2u);  // acknowledgements are marked as well; a CNP triggers no CNP
  for (const Frame& f : s.net.log) {
    if (f.bth().opcode != wire::kOpCnp || f.source != s.b->gid) continue;
    CHECK_EQ(f.bytes.size(), size_t(wire::kBthBytes + wire::kCnpReservedBytes));
    CHECK_EQ(uint32_t(f.bytes[wire::kBthCongestionByte]), uint32_t(wire::kBecn));
    CHECK_EQ(f.bth().destinationQpn, s.qa.qpn);
    CHECK_EQ(uint32_t(f.trafficClass & wire::kEcnMask), 0u);
  }
}

TEST(unmarked_packets_cause_no_notification) {
  for (uint8_t ecn : {0, 1, 2}) {
    Stream s;
    s.net.ecn = ecn;
    s.write(kSize);
    s.pump();
    CHECK_EQ(s.count(wire::kOpCnp), 0u);
  }
}

TEST(connections_are_marked_by_option_and_keep_their_dscp) {
  for (bool ecn : {false, true}) {
    EngineOptions options;
    options.ecn = ecn;
    World w(options);
    TestQp qa(*w.a), qb(*w.b);
    Link2 l;
    l.trafficClass = 0xA1;  // the program cannot set the ECN bits
    w.connect(qa, qb, l);
    w.net.logging = true;
    Buffer from(*w.a, 64), to(*w.b, 64);
    qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 64, from.lkey}}, 0, to.at(), to.rkey});
    w.pump();
    CHECK_EQ(w.net.log.size(), 2u);
    for (const Frame& f : w.net.log) CHECK_EQ(uint32_t(f.trafficClass), ecn ? 0xA2u : 0xA0u);
  }
}

TEST(notifications_shrink_the_window_and_it_recovers) {
  Stream s;
  CHECK_EQ(s.burst(), 128u);
  s.notify(s.qa.qpn);
  CHECK_EQ(s.burst(), 64u);  // the first mark halves it, because nothing is known about the path yet
  uint32_t before = 64;
  for (int i = 0; i < 40; i++) {
    s.clock.time += 50'000;
    s.notify(s.qa.qpn);
  }
  CHECK_EQ(s.a->counter("rcvd_cnp"), 41u);
  before = s.burst();
  CHECK(before < 40 && before >= 4);
  uint32_t rounds = 0;
  for (uint32_t now = before; now < 128 && rounds < 300; rounds++) {
    now = s.burst();
    CHECK(now >= before);
    before = now;
  }
  CHECK_EQ(before, 128u);
  CHECK_EQ(s.burst(), 128u);  // the window grows no larger
}

// However many marks arrive together, they all report the same queue.
TEST(notifications_of_one_moment_count_once) {
  Stream s;
  for (int i = 0; i < 100; i++) s.notify(s.qa.qpn);
  CHECK_EQ(s.a->counter("rcvd_cnp"), 100u);
  CHECK_EQ(s.burst(), 64u);
}

// A long queue makes the round trip long, and a connection learns of the queue once per round trip. Each of these
// reports counts, and none is forgotten before the next. (If the share recovered with the clock, no window of less than
// 26 packets would shrink.)
TEST(notifications_a_long_round_trip_apart_reduce_small_windows) {
  constexpr uint64_t kRoundTrip = 20'000'000;
  Stream s;
  for (int i = 0; i < 12; i++) {
    s.write(8);
    while (s.a->step()) continue;
    s.clock.time += kRoundTrip;
    s.pump();
    s.notify(s.qa.qpn);
  }
  CHECK(s.done());
  s.qa.sendCq.drain();
  s.net.log.clear();
  CHECK_EQ(s.burst(), 4u);
}

TEST(notification_that_is_not_the_peers_has_no_effect) {
  Stream s;
  s.notify(0x123456);
  CHECK_EQ(s.a->counter("unknown_qp"), 1u);
  s.notify(s.qa.qpn, 12);
  CHECK_EQ(s.a->counter("unknown_qp"), 2u);
  s.b->gid.raw[15] = 99;
  s.notify(s.qa.qpn);
  CHECK_EQ(s.a->counter("wrong_address"), 1u);
  CHECK_EQ(s.a->counter("rcvd_cnp"), 0u);
}

TEST(loss_halves_the_window_and_it_recovers) {
  Stream s;
  uint32_t n = 0;
  s.net.filter = [&](Frame& f) { return f.source != s.a->gid || n++ != 20; };
  s.write(kSize);
  s.pump();
  s.net.filter = nullptr;
  CHECK(s.done());
  const uint32_t after = s.burst();
  CHECK(after >= 64 && after < 75);
  for (int i = 0; i < 100; i++) s.burst();
  CHECK_EQ(s.burst(), 128u);
}

// Whether the newest packet, all packets, or only the acknowledgement is lost, the loss is detected long before the
// timeout, once the round trip is known.
TEST(lost_tail_is_found_by_a_probe) {
  for (int what = 0; what < 3; what++) {
    Stream s;
    s.write(8);
    s.pump();
    const uint64_t start = s.clock.time;
    const uint32_t last = 10 * 1024;
    uint32_t n = 0;
    s.net.filter = [&](Frame& f) {
      if (what == 2) return f.source == s.a->gid || n++ != 0;
      if (f.source != s.a->gid) return true;
      n++;
      return what == 0 ? n != 10 : n > 10;
    };
    s.write(last);
    CHECK(s.until([&] { return s.done(); }));
    for (const Cqe& c : s.qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
    CHECK(std::memcmp(s.from.data(), s.to.data(), last) == 0);
    CHECK_EQ(s.a->counter("ack_timeout"), 0u);
    CHECK_EQ(s.a->counter("tail_probe"), 1u);
    CHECK(s.clock.time - start < 5'000'000);  // the timeout is 84 ms
    CHECK_EQ(s.a->counter("retransmitted_pkts"), what == 0 ? 2u : what == 1 ? 10u : 1u);
  }
}

// Probes are not retries and do not postpone the end. The peer still gets its full number of retries, within the
// configured time.
TEST(probes_neither_use_up_retries_nor_delay_the_end) {
  for (uint32_t retries : {0u, 2u}) {
    Link2 l;
    l.retries = retries;
    Stream s({}, l);
    s.write(8);
    s.pump();
    const uint64_t start = s.clock.time, timeout = wire::ackNanoseconds(l.ackTimeout) * 5 / 4;
    s.net.filter = [](Frame&) { return false; };
    s.write(8);
    CHECK(s.until([&] { return s.done(); }));
    const std::vector<Cqe> all = s.qa.sendCq.drain();
    CHECK_EQ(all.back().status, kWcTimeoutRetry);
    CHECK_EQ(s.a->counter("ack_timeout"), retries + 1u);
    CHECK_EQ(s.a->counter("tail_probe"), retries ? 4u : 0u);
    CHECK_EQ(s.clock.time - start, timeout * (retries + 1));
  }
}

TEST(no_probe_while_the_peer_requests_a_wait) {
  Stream s;
  s.write(8);
  s.pump();
  s.qa.post({kOpSend, kSendFlagSignaled, {{s.from.at(), 8, s.from.lkey}}});
  s.posted++;
  s.pump();  // the receiver replies with an RNR NAK
  for (int i = 0; i < 50; i++) {
    s.pump();
    s.advance();
  }
  CHECK_EQ(s.a->counter("tail_probe"), 0u);
  s.qb.receive({{s.to.at(), 8, s.to.lkey}});
  CHECK(s.until([&] { return s.done(); }));
}
