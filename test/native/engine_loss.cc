// Tests of loss, duplication and reordering: every byte arrives once and in order, or the QP ends in ERROR with the
// right status. Also tests timers, RNR, retry exhaustion, keep-alive and peers that die.
#include "world.h"

using namespace world;

// Runs a random mixture of operations over a bad network, and compares the result with that of a perfect one.
static void mixture(uint64_t seed, const Faults& faults, uint32_t window) {
  check::note = "seed";
  check::noteNumber = seed;
  EngineOptions options;
  options.window = window;
  Link2 l;
  Random r(seed);
  l.mtu = 256u << r.below(3);
  constexpr uint32_t kLengths[] = {264, 1000, kEthernetPacket, kJumboPacket};
  if (seed % 3 == 2) l.extensions = withPackets(kLengths[seed / 3 % 4], seed % 2 ? extensions::kAll : 0);
  l.psnA = r.below(4) == 0 ? 0xFFFFF0 : r.next() & 0xFFFFFF;
  l.psnB = r.next() & 0xFFFFFF;
  l.depth = 1 + r.below(5);
  l.ackTimeout = 8;
  l.rnrRetries = 7;
  Pair p(l, {}, options);
  p.net.random = Random(seed + 1000);
  p.net.faults = faults;
  constexpr uint32_t kSize = 20000;
  Buffer local(*p.a, kSize, kAllAccess, seed + 7), got(*p.a, kSize), remote(*p.b, kSize, kAllAccess, seed + 9),
      inbox(*p.b, 40 * 4096);
  std::vector<uint8_t> model(remote.data(), remote.data() + kSize);
  std::vector<std::vector<uint8_t>> messages;
  uint64_t counter = 0;
  Buffer atom(*p.b, 8), atomOld(*p.a, 64 * 8);
  struct Expect {
    uint32_t opcode, length;
    std::vector<uint8_t> data;
    uint32_t offset;
    uint64_t old;
  };
  std::vector<Expect> expected;
  const uint32_t count = 12 + r.below(20);
  std::vector<uint32_t> readAt;
  uint32_t gotOffset = 0;
  uint32_t receives = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t kind = r.below(5);
    const uint32_t length = r.below(4) == 0 ? r.below(4) : r.below(2000), at = r.below(kSize - 2000);
    if (kind == 0 || kind == 4) {
      if (r.below(2)) p.qb.receive({{inbox.at(receives++ * 4096), 4096, inbox.lkey}});
      messages.emplace_back(local.data() + at, local.data() + at + length);
      p.qa.write({kOpSend, kSendFlagSignaled, {{local.at(at), length, local.lkey}}});
      expected.push_back({kOpSend, 0, {}, 0, 0});
    } else if (kind == 1) {
      const uint32_t to = r.below(kSize - 2000);
      std::memcpy(model.data() + to, local.data() + at, length);
      p.qa.write({kOpWrite, kSendFlagSignaled, {{local.at(at), length, local.lkey}}, 0, remote.at(to), remote.rkey});
      expected.push_back({kOpWrite, 0, {}, 0, 0});
    } else if (kind == 2 && gotOffset + length <= kSize) {
      // The response is compared with the model at this position in the queue, so nothing that follows may overtake it.
      // Fenced writes after it are therefore not needed.
      p.qa.write({kOpRead, kSendFlagSignaled, {{got.at(gotOffset), length, got.lkey}}, 0, remote.at(at), remote.rkey});
      expected.push_back({kOpRead, length, {model.begin() + at, model.begin() + at + length}, gotOffset, 0});
      gotOffset += length;
      Wr fence{kOpWrite, kSendFlagSignaled | kSendFlagFence};
      p.qa.write(fence);
      expected.push_back({kOpWrite, 0, {}, 0, 0});
    } else {
      p.qa.write(
          {kOpFetchAdd, kSendFlagSignaled, {{atomOld.at(i * 8), 8, atomOld.lkey}}, 0, atom.at(), atom.rkey, 0, i + 1});
      expected.push_back({kOpFetchAdd, 8, {}, i, counter});
      counter += i + 1;
    }
  }
  p.a->engine.doorbell(p.qa.handle);
  const uint32_t total = uint32_t(expected.size());
  p.until([&] {
    // Missing receives are posted late, which causes RNR NAKs.
    if (receives < messages.size() && r.below(3) == 0) p.qb.receive({{inbox.at(receives++ * 4096), 4096, inbox.lkey}});
    return p.qa.sendCq.written() == total;
  });
  const auto done = p.qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), total)) return;
  for (uint32_t i = 0; i < total; i++) {
    CHECK_EQ(done[i].wqe, i);
    if (!CHECK_EQ(done[i].status, kWcSuccess)) return;
    CHECK_EQ(done[i].opcode, expected[i].opcode);
    if (expected[i].opcode == kOpRead)
      CHECK(std::equal(expected[i].data.begin(), expected[i].data.end(), got.data() + expected[i].offset));
    if (expected[i].opcode == kOpFetchAdd) CHECK_EQ(atomOld.words[expected[i].offset], expected[i].old);
  }
  CHECK_EQ(atom.words[0], counter);
  CHECK(std::memcmp(remote.data(), model.data(), kSize) == 0);
  const auto inbound = p.qb.receiveCq.drain();
  if (!CHECK_EQ(inbound.size(), messages.size())) return;
  for (uint32_t i = 0; i < messages.size(); i++) {
    CHECK_EQ(inbound[i].wqe, i);
    CHECK_EQ(inbound[i].status, kWcSuccess);
    CHECK_EQ(inbound[i].length, messages[i].size());
    CHECK(std::equal(messages[i].begin(), messages[i].end(), inbox.data() + i * 4096));
  }
}

TEST(property_lossless) {
  for (uint64_t seed = 1; seed <= 60; seed++) mixture(seed, {}, 128);
}
TEST(property_loss) {
  for (uint64_t seed = 1; seed <= 120; seed++) mixture(seed, {0.03, 0, 0}, seed % 2 ? 128 : 8);
}
TEST(property_duplicates) {
  for (uint64_t seed = 1; seed <= 80; seed++) mixture(seed, {0, 0.2, 0}, 32);
}
TEST(property_reordering) {
  for (uint64_t seed = 1; seed <= 80; seed++) mixture(seed, {0, 0, 0.03}, 32);
}
TEST(property_everything) {
  for (uint64_t seed = 1; seed <= 150; seed++) mixture(seed, {0.02, 0.05, 0.02}, seed % 3 ? 64 : 4);
}

// Each single packet is lost once, in either direction. Only what is needed is retransmitted, and no data is lost.
TEST(every_single_loss_heals) {
  for (uint32_t victim = 0; victim < 40; victim++) {
    check::note = "victim";
    check::noteNumber = victim;
    EngineOptions options;
    options.window = 16;
    Pair p({}, {}, options);
    Buffer from(*p.a, 9000, kAllAccess, 3), to(*p.b, 9000), back(*p.a, 9000);
    uint32_t n = 0;
    p.net.filter = [&](Frame&) { return n++ != victim; };
    p.qb.receive({{to.at(), 9000, to.lkey}});
    p.qa.write({kOpSend, kSendFlagSignaled, {{from.at(), 9000, from.lkey}}});
    p.qa.write({kOpRead, kSendFlagSignaled, {{back.at(), 9000, back.lkey}}, 0, to.at(), to.rkey});
    p.qa.write({kOpFetchAdd, kSendFlagSignaled, {{from.at(), 8, from.lkey}}, 0, to.at(), to.rkey, 0, 1});
    p.qa.write({kOpWrite, kSendFlagSignaled, {{back.at(), 10, back.lkey}}, 0, to.at(100), to.rkey});
    const uint64_t first = from.words[0];
    p.a->engine.doorbell(p.qa.handle);
    CHECK(p.until([&] { return p.qa.sendCq.written() == 4; }));
    for (const Cqe& c : p.qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
    CHECK_EQ(to.words[0], first + 1);
    only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, 9000);
  }
}

TEST(retry_count_seven_means_seven) {
  for (uint32_t retries = 0; retries <= 7; retries += 7) {
    Link2 l;
    l.retries = retries;
    Pair p(l);
    Buffer from(*p.a, 64);
    std::vector<uint64_t> times;
    p.net.filter = [&](Frame&) {
      times.push_back(p.clock.time);
      return false;
    };
    p.qa.receive({});
    p.qa.post({kOpSend, 0, {{from.at(), 64, from.lkey}}});
    p.qa.post({kOpSend, 0, {{from.at(), 64, from.lkey}}});
    CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
    CHECK_EQ(times.size(), 2 * (retries + 1));
    const uint64_t t = 4096ull << 14;
    for (size_t i = 2; i < times.size(); i += 2)
      CHECK(times[i] - times[i - 2] >= t && times[i] - times[i - 2] <= 4 * t);
    CHECK(p.clock.time - times.back() >= t && p.clock.time - times.back() <= 4 * t);
    const auto done = p.qa.sendCq.drain();
    if (!CHECK_EQ(done.size(), 2u)) return;
    CHECK_EQ(done[0].status, kWcTimeoutRetry);
    CHECK_EQ(done[1].status, kWcFlushed);
    only(p.qa.receiveCq, 0, kOpReceive, kWcFlushed);
    CHECK_EQ(p.qa.stateWord(), kQpsError);
    CHECK_EQ(p.a->port.count(QpEvent::kPeerLost), 1);
    CHECK_EQ(p.a->port.events[0].reason, kWcTimeoutRetry);
  }
}

TEST(timeout_zero_never_fires) {
  Link2 l;
  l.ackTimeout = 0;
  EngineOptions options;
  options.keepAliveNs = 0;
  Pair p(l, {}, options);
  p.net.filter = [](Frame&) { return false; };
  p.qa.post({});
  p.pump();
  CHECK(p.a->deadline() == UINT64_MAX);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
}

TEST(rnr_finite_ends_in_rnr_retry) {
  Link2 l;
  l.rnrRetries = 3;
  l.rnrTimer = 14;  // 1.28 ms
  Pair p(l);
  std::vector<uint64_t> times;
  p.net.filter = [&](Frame& f) {
    if (f.bth().opcode == 0x04) times.push_back(p.clock.time);
    return true;
  };
  p.qa.post({});
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpSend, kWcRnrRetry);
  CHECK_EQ(times.size(), 4u);
  for (size_t i = 1; i < times.size(); i++) CHECK(times[i] - times[i - 1] >= 1'280'000);
  CHECK_EQ(p.a->port.count(QpEvent::kFatal), 1);
  CHECK_EQ(p.qb.receiveCq.written(), 0u);
  CHECK_EQ(p.b->counter("send_rnr_err"), 4u);
}

TEST(rnr_seven_waits_for_ever_and_a_late_receive_is_served) {
  Link2 l;
  l.rnrRetries = 7;
  Pair p(l);
  Buffer from(*p.a, 5000, 0, 3), to(*p.b, 5000);
  p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 5000, from.lkey}}});
  p.until([&] { return p.b->counter("send_rnr_err") >= 50; });
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  p.qb.receive({{to.at(), 5000, to.lkey}});
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
  only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, 5000);
  CHECK(std::memcmp(from.data(), to.data(), 5000) == 0);
}

// WRITE with immediate needs a receive only for its last packet.
TEST(rnr_on_write_immediate) {
  Pair p;
  Buffer from(*p.a, 2500, 0, 3), to(*p.b, 2500);
  p.qa.post({kOpWrite, kSendFlagSignaled | kSendFlagImmediate, {{from.at(), 2500, from.lkey}}, 7, to.at(), to.rkey});
  p.pump();
  CHECK_EQ(p.qa.sendCq.written(), 0u);
  p.qb.receive({});
  CHECK(p.until([&] { return p.qa.sendCq.written() > 0; }));
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  only(p.qb.receiveCq, 0, kOpReceiveRdmaWrite, kWcSuccess, 2500);
  CHECK(std::memcmp(from.data(), to.data(), 2500) == 0);
}

TEST(keep_alive_holds_an_idle_connection_and_notices_a_dead_peer) {
  EngineOptions options;
  options.keepAliveNs = 1'000'000'000;
  Pair p({}, {}, options);
  p.qa.receive({});
  p.qa.post({kOpWrite, kSendFlagSignaled});
  CHECK(p.until([&] { return p.qa.sendCq.written() == 1; }));
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  CHECK(p.until([&] { return p.a->counter("keep_alive") >= 3; }));
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
  CHECK_EQ(p.qb.stateWord(), kQpsRts);
  CHECK_EQ(p.a->counter("retransmitted_pkts"), 0u);
  // Afterwards work continues as if the loss had not happened.
  Buffer from(*p.a, 3000, kAllAccess, 3), to(*p.b, 3000);
  p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 3000, from.lkey}}, 0, to.at(), to.rkey});
  CHECK(p.until([&] { return p.qa.sendCq.written() == 2; }));
  only(p.qa.sendCq, 1, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(from.data(), to.data(), 3000) == 0);
  p.net.filter = [](Frame&) { return false; };
  CHECK(p.until([&] { return p.qa.receiveCq.written() > 0; }));
  only(p.qa.receiveCq, 0, kOpReceive, kWcFlushed);
  CHECK_EQ(p.a->port.count(QpEvent::kPeerLost), 1);
  CHECK_EQ(p.qa.stateWord(), kQpsError);
}

// A passive side is in RTS before its REP leaves. Until it knows that the peer is in RTS as well, silence means
// nothing.
TEST(keep_alive_begins_when_the_connection_is_established) {
  EngineOptions options;
  options.keepAliveNs = 1'000'000'000;
  const auto fiveSeconds = [](World& w) {
    const uint64_t end = w.clock.time + 5'000'000'000;
    while (w.clock.time < end && w.advance()) w.pump();
    CHECK(w.clock.time >= end);
  };
  for (const bool byPacket : {false, true}) {
    World w(options);
    TestQp qa(*w.a), qb(*w.b);
    bring(qb, qa.node.gid, qa.qpn, {}, false);  // the peer is not even in INIT
    fiveSeconds(w);
    CHECK_EQ(w.b->counter("keep_alive"), 0u);
    CHECK_EQ(qb.stateWord(), kQpsRts);
    CHECK_EQ(w.b->port.count(QpEvent::kPeerLost), 0);
    const uint64_t established = w.clock.time;
    if (byPacket) {
      bring(qa, qb.node.gid, qb.qpn, {}, true);
      qa.post({kOpWrite, kSendFlagSignaled});
      w.pump();
      only(qa.sendCq, 0, kOpWrite, kWcSuccess);
      CHECK_EQ(w.b->port.count(QpEvent::kCommunicationEstablished), 1);
    } else {
      Path path;
      path.source = w.b->gid;
      path.destination = w.a->gid;
      const uint8_t mad[256] = {};
      CHECK(w.b->engine.setDreqOnExit(qb.handle, path, mad) == Status::kSuccess);
    }
    // The probe is due a whole interval from now. A peer that is silent then is lost.
    w.net.filter = [](Frame&) { return false; };
    CHECK(w.until([&] { return w.b->counter("keep_alive") > 0; }));
    CHECK(w.clock.time - established >= options.keepAliveNs);
    CHECK(w.clock.time - established <= 2 * options.keepAliveNs);
    CHECK(w.until([&] { return qb.stateWord() == kQpsError; }));
    CHECK_EQ(w.b->port.count(QpEvent::kPeerLost), 1);
  }
}

TEST(peer_process_gone) {
  World w;
  w.a->link.local = w.b->link.local = true;
  TestQp qa(*w.a), qb(*w.b), wire(*w.a);
  w.connect(qa, qb);
  CHECK(w.a->link.watched.count(2) == 1);
  Buffer from(*w.a, 64);
  qa.receive({});
  w.net.filter = [](Frame&) { return false; };
  qa.post({kOpSend, 0, {{from.at(), 64, from.lkey}}});
  qa.post({kOpSend, 0, {{from.at(), 64, from.lkey}}});
  w.a->link.gone = {3};  // the slot belongs to another process
  w.pump();
  CHECK_EQ(qa.stateWord(), kQpsRts);
  const uint64_t ended = w.clock.time;
  w.a->link.gone = {2};
  w.pump();
  CHECK_EQ(w.clock.time, ended);  // immediately, without waiting for a timer
  const auto done = qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), 2u)) return;
  CHECK_EQ(done[0].status, kWcTimeoutRetry);
  CHECK_EQ(done[1].status, kWcFlushed);
  only(qa.receiveCq, 0, kOpReceive, kWcFlushed);
  CHECK_EQ(w.a->port.count(QpEvent::kPeerLost), 1);
  // The peer is gone before the connection is established.
  w.a->link.peerAlive = false;
  TestQp qc(*w.a);
  bring(qc, qb.node.gid, qb.qpn, {}, true, kQpsRtr);
  CHECK_EQ(qc.stateWord(), kQpsError);
  CHECK_EQ(w.a->port.count(QpEvent::kPeerLost), 2);
}

// A peer that ends has sent its DREQ before, which may take a moment longer to arrive.
TEST(peer_process_ends_in_order) {
  World w;
  w.a->link.local = w.b->link.local = true;
  TestQp qa(*w.a), qb(*w.b);
  w.connect(qa, qb);
  qa.receive({});
  const uint64_t ended = w.clock.time;
  w.a->link.ended = {2};
  w.pump();
  CHECK_EQ(qa.stateWord(), kQpsRts);
  CHECK_EQ(w.a->port.count(QpEvent::kPeerLost), 0);
  while (qa.stateWord() == kQpsRts && w.advance()) w.pump();
  CHECK(w.clock.time - ended >= 100'000'000);
  CHECK_EQ(qa.stateWord(), kQpsError);  // no DREQ arrived
  only(qa.receiveCq, 0, kOpReceive, kWcFlushed);
  CHECK_EQ(w.a->port.count(QpEvent::kPeerLost), 1);
}

TEST(dreq_on_exit_is_sent_when_the_kernel_dies) {
  World w;
  auto qa = std::make_unique<TestQp>(*w.a);
  TestQp qb(*w.b), never(*w.a);
  w.connect(*qa, qb);
  uint8_t mad[256];
  for (int i = 0; i < 256; i++) mad[i] = uint8_t(i);
  Path path;
  path.source = w.a->gid;
  path.destination = w.b->gid;
  CHECK(w.a->engine.setDreqOnExit(qa->handle, path, mad) == Status::kSuccess);
  CHECK(w.a->engine.setDreqOnExit(never.handle, path, mad) == Status::kSuccess);  // not connected, so it sends nothing
  CHECK(w.a->engine.setDreqOnExit(0x7777, path, mad) == Status::kInvalidHandle);
  w.net.logging = true;
  w.a->engine.detachKernel(w.a->kernel);
  if (!CHECK_EQ(w.net.log.size(), 1u)) return;
  const Frame& f = w.net.log[0];
  CHECK_EQ(f.bytes.size(), 12u + 8 + 256);
  CHECK_EQ(f.bth().opcode, 0x64);
  CHECK_EQ(f.bth().destinationQpn, 1u);
  CHECK_EQ(wire::load32(f.bytes.data() + 12), 0x80010000u);
  CHECK_EQ(wire::load32(f.bytes.data() + 16), 1u);
  CHECK(std::memcmp(f.bytes.data() + 20, mad, 256) == 0);
  const auto counts = w.a->engine.objectCounts();
  CHECK_EQ(counts[0] + counts[1] + counts[2] + counts[3] + counts[4], 0u);
}

// A loss that the peer's responses reveal is repaired immediately, not when the timer fires.
TEST(loss_that_shows_is_repaired_without_the_timer) {
  for (const uint32_t op : {kOpWrite, kOpRead}) {
    for (const uint32_t victim : {0u, 2u, 5u}) {
      Pair p;
      Buffer a(*p.a, 9000, kAllAccess, 3), b(*p.b, 9000, kAllAccess, 4);
      uint32_t n = 0;
      p.net.filter = [&](Frame& f) {
        const bool data = f.bth().opcode >= 0x06 && f.bth().opcode != wire::kOpReadRequest && f.bth().opcode < 0x11;
        return !data || n++ != victim;
      };
      const uint64_t before = p.clock.time;
      p.qa.post({op, kSendFlagSignaled, {{a.at(), 9000, a.lkey}}, 0, b.at(), b.rkey});
      p.pump();
      only(p.qa.sendCq, 0, op, kWcSuccess, op == kOpRead ? 9000 : 0);
      CHECK(std::memcmp(a.data(), b.data(), 9000) == 0);
      CHECK_EQ(p.clock.time - before, 0u);
      CHECK_EQ(p.a->counter("ack_timeout"), 0u);
      // Every response behind the gap reveals the loss, but only one retransmission follows.
      CHECK(p.a->counter(op == kOpRead ? "completer_retry_err" : "rcvd_seq_err") >= 1);
      CHECK(p.a->counter("retransmitted_pkts") <= 9);
    }
  }
}

// Responses are sent in request order. The acknowledgement of a SEND behind a long READ waits for the READ's last
// response, and a READ response implies the acknowledgement of earlier requests.
TEST(responses_leave_in_request_order) {
  Pair p;
  Buffer a(*p.a, 64 * 1024), b(*p.b, 64 * 1024, kAllAccess, 4);
  p.qb.receive({});
  p.qb.receive({});
  p.qa.write({kOpSend, 0});
  p.qa.write({kOpRead, kSendFlagSignaled, {{a.at(), 30 * 1024, a.lkey}}, 0, b.at(), b.rkey});
  p.qa.write({kOpSend, kSendFlagSignaled});
  p.a->engine.doorbell(p.qa.handle);
  p.net.logging = true;
  while (p.b->step()) {}
  if (!CHECK_EQ(p.net.log.size(), 31u)) return;
  for (uint32_t i = 0; i < 31; i++) CHECK_EQ(p.net.log[i].bth().psn, 101 + i);
  CHECK_EQ(p.net.log[0].bth().opcode, wire::kOpReadFirst);
  CHECK_EQ(p.net.log[30].bth().opcode, wire::kOpAcknowledge);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
}
