// Tests every operation at the sizes where segmentation changes, and its packets on the wire.
#include "world.h"

using namespace world;

static const uint32_t kSizes[] = {0, 1, 3, 1023, 1024, 1025, 2047, 2048, 2049, 100 * 1024 + 7};

TEST(send_every_size) {
  for (const uint32_t size : kSizes) {
    check::note = "size";
    check::noteNumber = size;
    Pair p;
    Buffer from(*p.a, size, 0, 3), to(*p.b, size + 8);
    p.qb.receive({{to.at(), size, to.lkey}});
    p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), size, from.lkey}}});
    p.pump();
    only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
    only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, size);
    CHECK(std::memcmp(from.data(), to.data(), size) == 0);
    CHECK_EQ(to.data()[size], 0);
  }
}

TEST(write_and_read_every_size) {
  for (const uint32_t size : kSizes) {
    check::note = "size";
    check::noteNumber = size;
    Pair p;
    Buffer from(*p.a, size, kAllAccess, 5), to(*p.b, size + 8), back(*p.a, size + 8);
    p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), size, from.lkey}}, 0, to.at(), to.rkey});
    p.pump();
    only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), size) == 0);
    CHECK_EQ(to.data()[size], 0);
    p.qa.post({kOpRead, kSendFlagSignaled, {{back.at(), size, back.lkey}}, 0, to.at(), to.rkey});
    p.pump();
    only(p.qa.sendCq, 1, kOpRead, kWcSuccess, size);
    CHECK(std::memcmp(from.data(), back.data(), size) == 0);
    CHECK_EQ(back.data()[size], 0);
    CHECK_EQ(p.qb.receiveCq.written(), 0u);
    CHECK_EQ(p.a->counter("retransmitted_pkts"), 0u);
  }
}

TEST(immediate_solicited_and_write_immediate) {
  Pair p;
  Buffer from(*p.a, 5000, 0, 9), to(*p.b, 8192);
  p.qb.receive({{to.at(), 8192, to.lkey}});
  p.qb.receive({});
  p.qa.post({kOpSend, kSendFlagImmediate | kSendFlagSolicited, {{from.at(), 5000, from.lkey}}, 0x01020304});
  p.qa.post({kOpWrite,
             kSendFlagImmediate | kSendFlagSignaled,
             {{from.at(), 3000, from.lkey}},
             0xCAFEBABE,
             to.at(4000),
             to.rkey});
  p.pump();
  only(p.qa.sendCq, 1, kOpWrite, kWcSuccess);
  const auto got = p.qb.receiveCq.drain();
  if (!CHECK_EQ(got.size(), 2u)) return;
  CHECK_EQ(got[0].opcode, kOpReceive);
  CHECK_EQ(got[0].flags, kCqeFlagReceiveQueue | kCqeFlagImmediate | kCqeFlagSolicited);
  CHECK_EQ(got[0].immediate, 0x01020304u);
  CHECK_EQ(got[0].length, 5000u);
  CHECK_EQ(got[0].token, 0xBu);
  CHECK_EQ(got[0].sourceQpn, p.qa.qpn);
  CHECK_EQ(got[1].opcode, kOpReceiveRdmaWrite);
  CHECK_EQ(got[1].flags, kCqeFlagReceiveQueue | kCqeFlagImmediate);
  CHECK_EQ(got[1].immediate, 0xCAFEBABEu);
  CHECK_EQ(got[1].length, 3000u);
  CHECK(std::memcmp(to.data() + 4000, from.data(), 3000) == 0);
}

TEST(gather_scatter_and_zero_length_elements) {
  Pair p;
  Buffer from(*p.a, 4000, 0, 11), to(*p.b, 4000);
  p.qb.receive({{to.at(), 1, to.lkey}, {to.at(1), 1500, to.lkey}, {0, 0, 0xBAD}, {to.at(1501), 2499, to.lkey}});
  p.qa.post(
      {kOpSend,
       kSendFlagSignaled,
       {{from.at(), 1025, from.lkey}, {123, 0, 0}, {from.at(1025), 975, from.lkey}, {from.at(2000), 2000, from.lkey}}});
  p.pump();
  only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
  only(p.qb.receiveCq, 0, kOpReceive, kWcSuccess, 4000);
  CHECK(std::memcmp(from.data(), to.data(), 4000) == 0);
}

TEST(inline_data_needs_no_key) {
  Pair p;
  Buffer to(*p.b, 256);
  std::vector<uint8_t> bytes(128);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = uint8_t(i * 7);
  p.qb.receive({{to.at(), 256, to.lkey}});
  Wr r;
  r.flags = kSendFlagSignaled | kSendFlagInline;
  r.inlined = bytes;
  p.qa.post(r);
  r.opcode = kOpWrite;
  r.remote = to.at(128);
  r.rkey = to.rkey;
  p.qa.post(r);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
  CHECK(std::memcmp(to.data(), bytes.data(), 128) == 0);
  CHECK(std::memcmp(to.data() + 128, bytes.data(), 128) == 0);
}

TEST(atomics) {
  Pair p;
  Buffer result(*p.a, 64), target(*p.b, 64);
  target.words[1] = 40;
  p.qa.post({kOpFetchAdd, kSendFlagSignaled, {{result.at(), 8, result.lkey}}, 0, target.at(8), target.rkey, 0, 2});
  p.qa.post({kOpCompareExchange,
             kSendFlagSignaled,
             {{result.at(8), 8, result.lkey}},
             0,
             target.at(8),
             target.rkey,
             0,
             42,
             0x1122334455667788ull});
  p.qa.post({kOpCompareExchange,
             kSendFlagSignaled,
             {{result.at(16), 4, result.lkey}, {result.at(20), 4, result.lkey}},
             0,
             target.at(8),
             target.rkey,
             0,
             42,
             9});
  p.pump();
  const auto done = p.qa.sendCq.drain();
  if (!CHECK_EQ(done.size(), 3u)) return;
  for (const Cqe& c : done) CHECK(c.status == kWcSuccess && c.length == 8);
  CHECK_EQ(result.words[0], 40);
  CHECK_EQ(result.words[1], 42);
  CHECK_EQ(result.words[2], 0x1122334455667788ll);
  CHECK_EQ(target.words[1], 0x1122334455667788ll);
  CHECK_EQ(target.words[0] | target.words[2], 0);
}

TEST(psn_wraps) {
  Link2 l;
  l.psnA = 0xFFFFFE;
  l.psnB = 0xFFFFF0;
  Pair p(l);
  Buffer from(*p.a, 300'000, kAllAccess, 4), to(*p.b, 300'000), back(*p.a, 300'000);
  p.qa.post({kOpWrite, 0, {{from.at(), 300'000, from.lkey}}, 0, to.at(), to.rkey});
  p.qa.post({kOpRead, kSendFlagSignaled, {{back.at(), 300'000, back.lkey}}, 0, to.at(), to.rkey});
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcSuccess, 300'000);
  CHECK(std::memcmp(from.data(), back.data(), 300'000) == 0);
  CHECK_EQ(p.a->counter("retransmitted_pkts"), 0u);
}

// The window bounds what is in flight. The AckReq bit (A) is set at least once per quarter of the window, and READs are
// split to fit.
TEST(window_and_ack_requests) {
  EngineOptions options;
  options.window = 16;
  Pair p({}, {}, options);
  Buffer from(*p.a, 64 * 1024, kAllAccess, 4), to(*p.b, 64 * 1024);
  p.net.logging = true;
  p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 64 * 1024, from.lkey}}, 0, to.at(), to.rkey});
  CHECK_EQ(p.net.log.size(), 16u);  // the whole window, and no more without responses
  uint32_t sinceAck = 0;
  for (const Frame& f : p.net.log) {
    sinceAck = f.bth().ackRequest ? 0 : sinceAck + 1;
    CHECK(sinceAck < 4);
  }
  p.pump();
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  p.net.log.clear();
  p.qa.post({kOpRead, kSendFlagSignaled, {{from.at(), 64 * 1024, from.lkey}}, 0, to.at(), to.rkey});
  uint32_t asked = 0;
  for (const Frame& f : p.net.log) {
    CHECK_EQ(f.bth().opcode, wire::kOpReadRequest);
    asked += wire::load32(f.bytes.data() + 24);
  }
  CHECK_EQ(asked, 16u * 1024);
  p.pump();
  only(p.qa.sendCq, 1, kOpRead, kWcSuccess, 64 * 1024);
}

// One acknowledgement covers everything that arrived in one poll.
TEST(acknowledgements_are_coalesced) {
  Pair p;
  Buffer from(*p.a, 64, 0, 4), to(*p.b, 64);
  for (int i = 0; i < 8; i++)
    p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 64, from.lkey}}, 0, to.at(), to.rkey});
  p.net.logging = true;
  p.b->step();
  CHECK_EQ(p.net.log.size(), 1u);
  CHECK_EQ(p.net.log[0].bth().opcode, wire::kOpAcknowledge);
  CHECK_EQ(p.net.log[0].bth().psn, 107u);
  CHECK_EQ(wire::load32(p.net.log[0].bytes.data() + 12), 0x1F000008u);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 8u);
}

TEST(read_depth_is_respected) {
  Link2 l;
  l.depth = 2;
  Pair p(l);
  Buffer here(*p.a, 4096), there(*p.b, 4096, kAllAccess, 8);
  p.net.logging = true;
  for (int i = 0; i < 10; i++)
    p.qa.post({kOpRead, kSendFlagSignaled, {{here.at(), 100, here.lkey}}, 0, there.at(), there.rkey});
  CHECK_EQ(p.net.log.size(), 2u);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 10u);
  CHECK_EQ(p.qa.stateWord(), kQpsRts);
}

TEST(fence_waits_for_reads_and_atomics) {
  Pair p;
  Buffer here(*p.a, 64), there(*p.b, 64, kAllAccess, 8);
  p.net.logging = true;
  p.qa.post({kOpRead, kSendFlagSignaled, {{here.at(), 8, here.lkey}}, 0, there.at(), there.rkey});
  p.qa.post({kOpWrite, kSendFlagSignaled | kSendFlagFence, {{here.at(), 8, here.lkey}}, 0, there.at(8), there.rkey});
  CHECK_EQ(p.net.log.size(), 1u);
  p.pump();
  CHECK_EQ(p.qa.sendCq.drain().size(), 2u);
  CHECK_EQ(here.words[0], there.words[0]);
  CHECK_EQ(there.words[1], there.words[0]);  // the write carried the data that the read fetched
}

TEST(unsignaled_requests_are_silent_and_signal_all_is_not) {
  Pair p;
  Buffer from(*p.a, 64, 0, 4), to(*p.b, 64);
  for (int i = 0; i < 5; i++) p.qa.post({kOpWrite, 0, {{from.at(), 64, from.lkey}}, 0, to.at(), to.rkey});
  p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 64, from.lkey}}, 0, to.at(), to.rkey});
  p.pump();
  only(p.qa.sendCq, 5, kOpWrite, kWcSuccess);
  QpShape shape;
  shape.signalAll = true;
  Pair q({}, shape);
  Buffer f2(*q.a, 64, 0, 4), t2(*q.b, 64);
  for (int i = 0; i < 5; i++) q.qa.post({kOpWrite, 0, {{f2.at(), 64, f2.lkey}}, 0, t2.at(), t2.rkey});
  q.pump();
  CHECK_EQ(q.qa.sendCq.drain().size(), 5u);
}

// A huge transfer neither holds the lock nor delays another QP.
TEST(rounds_are_bounded_and_fair) {
  EngineOptions options;
  options.window = 4096;
  Pair p({}, {}, options);
  TestQp qa2(*p.a), qb2(*p.b);
  p.connect(qa2, qb2);
  Buffer big(*p.a, 8u << 20, kAllAccess, 3), to(*p.b, 8u << 20);
  p.net.logging = true;
  p.qa.post({kOpWrite, kSendFlagSignaled, {{big.at(), 8u << 20, big.lkey}}, 0, to.at(), to.rkey});
  CHECK(p.net.log.size() <= 64);
  CHECK(p.a->deadline() == 0);  // there is more to do
  p.net.log.clear();
  p.a->step();
  CHECK(p.net.log.size() <= 160);
  qa2.post({kOpWrite, kSendFlagSignaled, {{big.at(), 8, big.lkey}}, 0, to.at(), to.rkey});
  Cqe c{};
  int steps = 0;
  for (; steps < 20 && !qa2.sendCq.poll(&c); steps++) {
    p.a->step();
    p.b->step();
  }
  CHECK(steps < 20);
  CHECK_EQ(p.qa.sendCq.written(), 0u);
  p.pump();
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(big.data(), to.data(), 8u << 20) == 0);
}
