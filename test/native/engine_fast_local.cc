// Tests that small messages on the fast path of the local link have the same order, checks, statuses and counters as
// all others.
#include <numeric>

#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kMost = LocalSmall::kMostBytes, kInEntry = LocalSmall::kMostInEntry;
constexpr uint32_t kRoom = 2 * LocalPair::kMtu;

// All lengths that fit in an entry, and lengths around other limits.
std::vector<uint32_t> lengths(bool inlined) {
  std::vector<uint32_t> all(kInEntry + 40);
  std::iota(all.begin(), all.end(), 0u);
  if (inlined) return all;
  for (const uint32_t length :
       {256u, 1001u, LocalPair::kReferenceFrom, 9999u, kMost, LocalPair::kMtu, LocalPair::kMtu + 4000u})
    for (const uint32_t more : {0u, 1u}) all.push_back(length - 1 + more);
  return all;
}

struct Small : LocalConnection {
  static QpShape shape() {
    QpShape s;
    s.maxInline = kInEntry + 40;
    return s;
  }
  Buffer from{*a, kRoom, kAllAccess, 1}, to{*b, kRoom};
  explicit Small(const EngineOptions& options = {}) : LocalConnection({}, shape(), options) {
    // The first packet establishes the connection, and does not use the fast path.
    qb.receive({});
    qa.post({kOpSend, 0, {}});
    pump();
    CHECK_EQ(qb.receiveCq.drain().size(), 1u);
    before = a->counter("sent_fast");
  }
  uint64_t before;
  uint64_t fast() { return a->counter("sent_fast") - before; }
  void send(uint32_t length, bool inlined = false, uint32_t flags = kSendFlagSignaled) {
    Wr wr;
    wr.flags = flags | (inlined ? kSendFlagInline : 0);
    if (inlined) wr.inlined.assign(from.data(), from.data() + length);
    else wr.sges = {{from.at(), length, from.lkey}};
    qa.post(wr);
  }
  void write(uint32_t length, uint64_t remote, uint32_t rkey, bool inlined = false) {
    Wr wr;
    wr.opcode = kOpWrite;
    wr.flags = kSendFlagSignaled | (inlined ? kSendFlagInline : 0);
    if (inlined) wr.inlined.assign(from.data(), from.data() + length);
    else wr.sges = {{from.at(), length, from.lkey}};
    wr.remote = remote;
    wr.rkey = rkey;
    qa.post(wr);
  }
  // A header word of B's next entry, which A has written but B has not seen.
  uint8_t* entry() { return segment().rings[0].slots[(pa->position() - 1) % LocalRing::kSlots].body; }
};

}  // namespace

TEST(fast_every_length) {
  for (const bool inlined : {false, true}) {
    for (const uint32_t length : lengths(inlined)) {
      check::note = "length";
      check::noteNumber = length;
      Small w;
      std::memset(w.to.data(), 0xEE, 128 + length);
      w.qb.receive({{w.to.at(64), kRoom - 64, w.to.lkey}});
      const uint64_t bytes = w.b->counter("rcvd_bytes"), packets = w.b->counter("rcvd_pkts");
      w.send(length, inlined, kSendFlagSignaled | (length % 2 ? kSendFlagSolicited : 0));
      w.pump();
      const std::vector<Cqe> got = w.qb.receiveCq.drain();
      CHECK_EQ(got.size(), 1u);
      CHECK_EQ(got[0].status, kWcSuccess);
      CHECK_EQ(got[0].opcode, kOpReceive);
      CHECK_EQ(got[0].length, length);
      CHECK_EQ(got[0].sourceQpn, w.qa.qpn);
      CHECK_EQ(got[0].flags, kCqeFlagReceiveQueue | (length % 2 ? kCqeFlagSolicited : 0u));
      CHECK(std::memcmp(w.to.data() + 64, w.from.data(), length) == 0);
      for (uint32_t i = 0; i < 64; i++) CHECK(w.to.data()[i] == 0xEE && w.to.data()[64 + length + i] == 0xEE);
      CHECK(only(w.qa.sendCq, 1, kOpSend, kWcSuccess));
      const uint32_t came = length > LocalPair::kMtu ? 2 : 1;
      CHECK_EQ(w.b->counter("rcvd_pkts"), packets + came);
      CHECK_EQ(w.b->counter("rcvd_bytes"), bytes + came * wire::kBthBytes + length);
      CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
      CHECK_EQ(w.fast(), length <= kMost ? 1u : 0u);
    }
  }
}

// A Write consumes no receive and does not notify the target.
TEST(fast_writes_of_every_length) {
  for (const bool inlined : {false, true}) {
    for (const uint32_t length : lengths(inlined)) {
      check::note = "length";
      check::noteNumber = length;
      Small w;
      std::memset(w.to.data(), 0xEE, 128 + length);
      w.qb.receive({{w.to.at(kRoom - 64), 64, w.to.lkey}});
      const uint64_t bytes = w.b->counter("rcvd_bytes"), packets = w.b->counter("rcvd_pkts");
      w.write(length, w.to.at(64), w.to.rkey, inlined);
      w.pump();
      CHECK_EQ(w.qb.receiveCq.written(), 1u);  // the first receive of Small
      CHECK(std::memcmp(w.to.data() + 64, w.from.data(), length) == 0);
      for (uint32_t i = 0; i < 64; i++) CHECK(w.to.data()[i] == 0xEE && w.to.data()[64 + length + i] == 0xEE);
      CHECK(only(w.qa.sendCq, 1, kOpWrite, kWcSuccess));
      const uint32_t came = length > LocalPair::kMtu ? 2 : 1;
      CHECK_EQ(w.b->counter("rcvd_pkts"), packets + came);
      CHECK_EQ(w.b->counter("rcvd_bytes"), bytes + came * wire::kBthBytes + wire::kRethBytes + length);
      CHECK_EQ(w.fast(), length != 0 && length <= kMost ? 1u : 0u);
    }
  }
}

// Messages that wait for the window use the fast path as well when it opens.
TEST(fast_behind_a_closed_window) {
  EngineOptions options;
  options.window = 16;
  QpShape shape;
  shape.sendEntries = shape.receiveEntries = 256;
  shape.cqEntries = 512;
  LocalConnection w({}, shape, options);
  Buffer from(*w.a, 64), to(*w.b, 64);
  w.qb.receive({});
  w.qa.post({kOpSend, 0, {}});
  w.pump();
  for (uint32_t i = 0; i < 200; i++) w.qb.receive({{to.at(), 8, to.lkey}});
  for (uint32_t i = 0; i < 200; i++) {
    Wr wr;
    wr.flags = i % 8 == 7 ? kSendFlagSignaled : 0;
    wr.sges = {{from.at(), 8, from.lkey}};
    w.qa.write(wr);
  }
  w.a->engine.doorbell(w.qa.handle);
  CHECK_EQ(w.a->counter("sent_fast"), 1 + 2 * 16u);  // on this link, two windows may be in flight
  w.pump();
  CHECK_EQ(w.qb.receiveCq.written(), 201u);
  CHECK_EQ(w.a->counter("sent_fast"), 1 + 200u);
  CHECK_EQ(w.qa.sendCq.written(), 25u);
}

// A silent peer is noticed in time, whatever follows a message on the fast path, even if a later timer is already set.
TEST(fast_and_a_silent_peer) {
  const uint64_t timeout = wire::ackNanoseconds(Link2{}.ackTimeout);
  enum class Behind { kNothing, kRead, kLarge, kMore };
  for (const Behind behind : {Behind::kNothing, Behind::kRead, Behind::kLarge, Behind::kMore}) {
    for (const bool late : {false, true}) {
      check::note = "behind";
      check::noteNumber = uint64_t(behind) * 2 + late;
      Small w;
      while (w.advance()) w.pump();
      CHECK_EQ(w.a->deadline(), UINT64_MAX);
      if (late) {
        // This is the state after a time without the pair: idle connections are probed.
        w.pa->state = LocalPair::State::kRequested;
        CHECK(w.qa.toState(kQpsRts) == Status::kSuccess);
        w.a->step();
        w.pa->state = LocalPair::State::kUp;
        CHECK(w.a->deadline() != UINT64_MAX);
        CHECK(w.a->deadline() > w.clock.time + 2 * timeout);
      }
      CHECK(w.qb.toState(kQpsError) == Status::kSuccess);
      Wr small{kOpWrite, kSendFlagSignaled, {{w.from.at(), 8, w.from.lkey}}, 0, w.to.at(), w.to.rkey};
      Wr next = small;
      if (behind == Behind::kRead) next.opcode = kOpRead;
      if (behind == Behind::kLarge) next.sges[0].length = LocalPair::kMtu + 1;
      const uint32_t count = behind == Behind::kNothing ? 0 : behind == Behind::kMore ? 14 : 1;
      w.qa.write(small);
      for (uint32_t i = 0; i < count; i++) w.qa.write(next);
      const uint64_t posted = w.clock.time;
      w.a->engine.doorbell(w.qa.handle);
      CHECK(w.fast() >= 1);
      CHECK(w.until([&] { return w.a->counter("ack_timeout") != 0; }, 100 * timeout));
      CHECK(w.clock.time >= posted + timeout);
      CHECK(w.clock.time <= posted + 2 * timeout);
      CHECK(w.until([&] { return w.qa.sendCq.written() != 0; }, 100 * timeout));
    }
  }
}

// Operations that are executed locally between messages complete in order.
TEST(fast_and_local_work) {
  Small w;
  Window window(*w.a);
  for (int i = 0; i < 2; i++) w.qb.receive({{w.to.at(), 64, w.to.lkey}});
  w.send(8);
  w.qa.post(window.bind(w.from, 64));
  w.send(8);
  CHECK_EQ(w.fast(), 2u);
  w.pump();
  const std::vector<Cqe> all = w.qa.sendCq.drain();
  CHECK_EQ(all.size(), 3u);
  for (uint32_t i = 0; i < all.size(); i++) {
    CHECK_EQ(all[i].wqe, 1 + i);
    CHECK_EQ(all[i].opcode, i == 1 ? kOpBindWindow : kOpSend);
    CHECK_EQ(all[i].status, kWcSuccess);
  }
}

// The timeout counts from the newest message, although an older one had set the timer.
TEST(fast_timers) {
  Small w;
  const uint64_t timeout = wire::ackNanoseconds(Link2{}.ackTimeout);
  for (int i = 0; i < 8; i++) w.qb.receive({{w.to.at(), 64, w.to.lkey}});
  w.send(8);
  w.pump();
  CHECK(only(w.qa.sendCq, 1, kOpSend, kWcSuccess));
  w.clock.time += timeout;
  w.send(8);
  CHECK_EQ(w.fast(), 2u);
  const uint64_t posted = w.clock.time;
  while (w.a->counter("ack_timeout") == 0 && w.clock.time < posted + 10 * timeout) {
    w.clock.time = std::max<uint64_t>(w.clock.time, std::min(w.a->deadline(), posted + 10 * timeout));
    w.a->step();
  }
  CHECK_EQ(w.a->counter("ack_timeout"), 1u);
  CHECK(w.clock.time >= posted + timeout);
  CHECK(w.clock.time <= posted + 3 * timeout);
  w.pump();
  CHECK(only(w.qa.sendCq, 2, kOpSend, kWcSuccess));
  CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
}

// All kinds of requests are mixed with small ones and late receives. Everything arrives once and in order.
TEST(fast_keeps_the_order) {
  for (uint64_t seed = 1; seed <= 150; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Small w;
    w.a->link.localOnly = w.b->link.localOnly = seed % 2 != 0;
    Random random(seed);
    constexpr uint32_t kPlace = 1024;  // some payload uses the bulk area, on the fast path or not
    Buffer memory(*w.a, 64 * kPlace, kAllAccess, seed), target(*w.b, 64 * kPlace), written(*w.b, 64);
    struct Message {
      uint32_t place, length;
      bool immediate;
      uint32_t writes;  // before it
    };
    std::vector<Message> sent;
    uint32_t received = 0, posted = 0, completed = 0, writes = 0;
    const auto requests = [&] { return uint32_t(sent.size()) + writes; };
    for (uint32_t round = 0; sent.size() < 300 || completed < requests(); round++) {
      const auto place = uint32_t(sent.size() % 64);
      if (sent.size() < 300 && requests() - completed < 30 && random.chance(0.2)) {
        Wr wr;
        wr.opcode = kOpWrite;
        wr.flags = kSendFlagSignaled | kSendFlagInline;
        writes++;
        wr.inlined.assign(reinterpret_cast<uint8_t*>(&writes), reinterpret_cast<uint8_t*>(&writes) + 4);
        wr.remote = written.at(8);
        wr.rkey = written.rkey;
        if (random.chance(0.5)) w.qa.write(wr);
        else w.qa.post(wr);
      } else if (sent.size() < 300 && requests() - completed < 30 && random.chance(0.6)) {
        const uint32_t length = random.chance(0.7) ? random.below(kInEntry + 1) : random.below(kPlace + 1);
        Wr wr;
        wr.flags = kSendFlagSignaled | (random.chance(0.1) ? kSendFlagFence : 0);
        const bool immediate = random.chance(0.1);
        if (immediate) wr.flags |= kSendFlagImmediate;
        wr.immediate = uint32_t(sent.size());
        const uint64_t at = memory.at(place * kPlace);
        if (length <= kInEntry && random.chance(0.5)) {
          wr.flags |= kSendFlagInline;
          wr.inlined.assign(memory.data() + place * kPlace, memory.data() + place * kPlace + length);
        } else if (random.chance(0.2)) {
          wr.sges = {{at, length / 2, memory.lkey}, {at + length / 2, length - length / 2, memory.lkey}};
        } else {
          wr.sges = {{at, length, memory.lkey}};
        }
        if (random.chance(0.3)) w.qa.write(wr);  // the next doorbell finds several requests
        else w.qa.post(wr);
        sent.push_back({place, length, immediate, writes});
      } else if (posted - received < 40 && random.chance(0.5)) {
        const uint64_t at = target.at(posted % 64 * kPlace);
        if (random.chance(0.2)) w.qb.receive({{at, 1, target.lkey}, {at + 1, kPlace - 1, target.lkey}});
        else w.qb.receive({{at, kPlace, target.lkey}});
        posted++;
      } else if (random.chance(0.5)) {
        w.b->engine.progress();
      } else {
        w.a->engine.progress();
        if (random.chance(0.1)) w.a->engine.doorbell(w.qa.handle);
      }
      // If nothing makes progress, a receive was late and its sender waits.
      if (round % 32 == 31 && !w.a->step() && !w.b->step() && !w.advance()) w.qa.node.engine.doorbell(w.qa.handle);
      Cqe c;
      while (w.qb.receiveCq.poll(&c)) {
        const Message& m = sent[received];
        CHECK_EQ(c.status, kWcSuccess);
        CHECK_EQ(c.length, m.length);
        CHECK_EQ(c.flags & kCqeFlagImmediate, m.immediate ? kCqeFlagImmediate : 0u);
        if (m.immediate) CHECK_EQ(c.immediate, received);
        CHECK(std::memcmp(target.data() + received % 64 * kPlace, memory.data() + m.place * kPlace, m.length) == 0);
        uint32_t number;
        std::memcpy(&number, written.data() + 8, 4);
        CHECK(number >= m.writes);
        received++;
      }
      while (w.qa.sendCq.poll(&c)) {
        CHECK_EQ(c.status, kWcSuccess);
        CHECK_EQ(c.wqe, completed + 1);
        completed++;
      }
      if (round > 100'000) break;
    }
    CHECK_EQ(received, uint32_t(sent.size()));
    CHECK_EQ(completed, requests());
    CHECK(std::memcmp(written.data() + 8, &writes, 4) == 0);
    CHECK(w.fast() > 100);
    CHECK(w.pa->up() && w.pb->up());
  }
}

TEST(fast_without_a_receive) {
  Small w;
  w.qb.receive({{w.to.at(), 64, w.to.lkey}});
  for (int i = 0; i < 3; i++) w.send(8);
  w.pump();
  CHECK_EQ(w.qb.receiveCq.drain().size(), 1u);
  CHECK_EQ(w.b->counter("send_rnr_err"), 1u);
  for (int i = 1; i < 3; i++) w.qb.receive({{w.to.at(64 * uint64_t(i)), 64, w.to.lkey}});
  CHECK(w.until([&] { return w.qa.sendCq.written() == 3; }));
  CHECK_EQ(w.qb.receiveCq.drain().size(), 2u);
  for (int i = 0; i < 3; i++) CHECK(std::memcmp(w.to.data() + 64 * i, w.from.data(), 8) == 0);
}

TEST(fast_protection) {
  {  // The sender uses an invalid key.
    Small w;
    w.qb.receive({{w.to.at(), 64, w.to.lkey}});
    w.qa.post({kOpSend, kSendFlagSignaled, {{w.from.at(), 8, w.from.lkey ^ 1}}});
    w.pump();
    CHECK(only(w.qa.sendCq, 1, kOpSend, kWcLocalProtection));
    CHECK_EQ(w.qa.state(), kQpsError);
    CHECK_EQ(w.qb.receiveCq.written(), 1u);
  }
  {  // The range exceeds the region.
    Small w;
    w.qb.receive({{w.to.at(), 64, w.to.lkey}});
    w.qa.post({kOpSend, kSendFlagSignaled, {{w.from.at(kRoom - 6), 8, w.from.lkey}}});
    w.pump();
    CHECK(only(w.qa.sendCq, 1, kOpSend, kWcLocalProtection));
  }
  {  // The receiver's own receive fails, and the sender is notified.
    Small w;
    w.qb.receive({{w.to.at(kRoom - 6), 64, w.to.lkey}});
    w.send(8);
    w.pump();
    CHECK(only(w.qb.receiveCq, 1, kOpReceive, kWcLocalProtection));
    CHECK(only(w.qa.sendCq, 1, kOpSend, kWcRemoteOp));
    CHECK_EQ(w.b->counter("local_protection_err"), 1u);
  }
  {  // The memory may not be written.
    Small w;
    Buffer readOnly(*w.b, 64, kAccessRemoteRead, 7);
    const std::vector<uint8_t> before(readOnly.data(), readOnly.data() + 64);
    w.qb.receive({{readOnly.at(), 64, readOnly.lkey}});
    w.send(8);
    w.pump();
    CHECK(only(w.qb.receiveCq, 1, kOpReceive, kWcLocalProtection));
    CHECK(std::memcmp(before.data(), readOnly.data(), 64) == 0);
  }
  {  // The receive is too short.
    Small w;
    std::memset(w.to.data(), 0xEE, 16);
    w.qb.receive({{w.to.at(), 7, w.to.lkey}});
    w.send(8);
    w.pump();
    CHECK(only(w.qb.receiveCq, 1, kOpReceive, kWcLocalLength));
    CHECK(only(w.qa.sendCq, 1, kOpSend, kWcRemoteInvalidRequest));
    CHECK_EQ(w.to.data()[0], 0xEE);
  }
  // After a Write to a forbidden address, nothing is written, the sender is notified, and the target's queue pair
  // fails.
  const auto refused = [](uint32_t access, uint64_t offset, uint32_t change, bool right, uint32_t status) {
    Link2 link;
    if (!right) link.access = kAccessRemoteRead | kAccessLocalWrite;
    LocalConnection w(link);
    Buffer from(*w.a, 64, kAllAccess, 1), to(*w.b, 64, access, 7);
    const std::vector<uint8_t> before(to.data(), to.data() + 64);
    w.qb.receive({});
    w.qa.post({kOpSend, 0, {}});
    w.pump();
    w.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 8, from.lkey}}, 0, to.at(offset), to.rkey ^ change});
    CHECK_EQ(w.a->counter("sent_fast"), 2u);
    w.pump();
    CHECK(only(w.qa.sendCq, 1, kOpWrite, status));
    CHECK(std::memcmp(before.data(), to.data(), 64) == 0);
    CHECK_EQ(w.qb.state(), kQpsError);
  };
  refused(kAllAccess, 0, 1u << 8, true, kWcRemoteAccess);
  refused(kAllAccess, 57, 0, true, kWcRemoteAccess);
  refused(kAccessLocalWrite | kAccessRemoteRead, 0, 0, true, kWcRemoteAccess);
  refused(kAllAccess, 0, 0, false, kWcRemoteInvalidRequest);
  {  // There are more inline bytes than the queue pair supports.
    Small w;
    w.send(8, true);
    Wr wr;
    wr.flags = kSendFlagSignaled | kSendFlagInline;
    const uint32_t index = w.qa.write(wr);
    w.qa.sendSlot(index)[kSwSgeCount] = Small::shape().maxInline + 1;
    w.qb.receive({{w.to.at(), 64, w.to.lkey}});
    w.a->engine.doorbell(w.qa.handle);
    w.pump();
    const std::vector<Cqe> all = w.qa.sendCq.drain();
    CHECK_EQ(all.size(), 2u);
    CHECK_EQ(all[1].status, kWcLocalLength);
  }
}

// Each header word gets a wrong value in turn. The message is not delivered.
TEST(fast_path_with_nonsense_words) {
  struct Wrong {
    uint32_t at, mask;
    const char* counter;
  };
  const Wrong all[] = {
      {12 + 1, 0x10, nullptr},                                     // the pad is refused
      {12 + 3, 0x01, "bad_pkey"},   {12 + 5, 0x7F, "unknown_qp"},  // a QPN of another process
      {12 + 7, 0x40, "unknown_qp"}, {12 + 9, 0x80, "duplicate_request"}, {12 + 11, 0x08, "out_of_seq_request"},
      {4, 0x01, "wrong_address"},  // source QPN
  };
  for (const Wrong& wrong : all) {
    check::note = wrong.counter ? wrong.counter : "pad";
    Small w;
    std::memset(w.to.data(), 0xEE, 64);
    w.qb.receive({{w.to.at(), 64, w.to.lkey}});
    w.send(8);
    w.entry()[wrong.at] ^= uint8_t(wrong.mask);
    w.b->engine.progress();
    for (const Cqe& c : w.qb.receiveCq.drain()) CHECK_EQ(c.status, kWcFlushed);  // where the pad is refused
    CHECK_EQ(w.to.data()[0], 0xEE);
    if (wrong.counter) CHECK_EQ(w.b->counter(wrong.counter), 1u);
    CHECK(w.pb->up());
  }
  // A Write whose RETH length differs from the packet's.
  for (const uint32_t length : {0u, 7u, 9u, 0x80000008u}) {
    Small w;
    std::memset(w.to.data(), 0xEE, 64);
    w.write(8, w.to.at(), w.to.rkey);
    const uint32_t word = __builtin_bswap32(length);
    std::memcpy(w.entry() + 12 + 12 + 12, &word, 4);
    w.b->engine.progress();
    CHECK_EQ(w.to.data()[0], 0xEE);
    w.pump();
    CHECK(only(w.qa.sendCq, 1, kOpWrite, kWcRemoteInvalidRequest));
    CHECK(w.pb->up());
  }
  // Tests a length that reaches into slots that do not exist, and one that no entry can have.
  for (const uint32_t length : {100u, 130u, LocalRing::kEntryBytes}) {
    Small w;
    std::memset(w.to.data(), 0xEE, 512);
    w.qb.receive({{w.to.at(), 512, w.to.lkey}});
    w.send(8);
    const uint32_t word = LocalEntry::word(length, LocalKind::kInline, 0);
    std::memcpy(w.entry(), &word, 4);
    w.b->engine.progress();
    CHECK_EQ(w.to.data()[0], 0xEE);
    CHECK(!w.pb->up());
  }
}

// Tests the states of the queue pair itself. Messages that are queued when it ends are flushed, and none of them
// arrives.
TEST(fast_and_the_end) {
  Small w;
  for (int i = 0; i < 4; i++) w.qb.receive({{w.to.at(), 64, w.to.lkey}});
  for (int i = 0; i < 4; i++) w.send(8);
  CHECK_EQ(uint32_t(w.qb.toState(kQpsError)), 0u);
  w.b->engine.progress();
  CHECK_EQ(w.b->counter("wrong_qp_state"), 4u);
  for (const Cqe& c : w.qb.receiveCq.drain()) CHECK_EQ(c.status, kWcFlushed);
  CHECK_EQ(uint32_t(w.qa.toState(kQpsError)), 0u);
  const std::vector<Cqe> flushed = w.qa.sendCq.drain();
  CHECK_EQ(flushed.size(), 4u);
  for (const Cqe& c : flushed) CHECK_EQ(c.status, kWcFlushed);
}

// More messages are in flight than are retransmitted at a time, and the peer accepts none of them at first.
TEST(fast_two_windows_that_come_too_early) {
  EngineOptions options;
  options.window = 16;
  QpShape shape;
  shape.sendEntries = shape.receiveEntries = 64;
  LocalConnection w({}, shape, options);
  Buffer from(*w.a, 64), to(*w.b, 64);
  w.qb.receive({});
  w.qa.post({kOpSend, 0, {}});
  w.pump();
  for (uint32_t i = 0; i < 50; i++) {
    Wr wr;
    wr.sges = {{from.at(), 1 + i % 32, from.lkey}};
    w.qa.write(wr);
  }
  w.a->engine.doorbell(w.qa.handle);
  w.pump();
  CHECK(w.b->counter("send_rnr_err") > 0);
  for (uint32_t i = 0; i < 50; i++) w.qb.receive({{to.at(), 64, to.lkey}});
  CHECK(w.until([&] { return w.qa.sendCq.written() == 50; }));
  const std::vector<Cqe> got = w.qb.receiveCq.drain();
  CHECK_EQ(got.size(), 51u);
  for (uint32_t i = 1; i < got.size(); i++) CHECK(got[i].status == kWcSuccess && got[i].length == 1 + (i - 1) % 32);
  const std::vector<Cqe> sent = w.qa.sendCq.drain();
  for (uint32_t i = 0; i < sent.size(); i++) CHECK(sent[i].status == kWcSuccess && sent[i].wqe == 1 + i);
}

// The ring is shared, so a queue pair that streams leaves room for those with little to send.
TEST(fast_streams_leave_room_for_others) {
  for (const uint32_t streams : {1u, 2u}) {
    check::note = "streams";
    check::noteNumber = streams;
    QpShape shape;
    shape.sendEntries = shape.receiveEntries = 1024;
    shape.cqEntries = 4096;
    LocalConnection w({}, shape);
    TestQp a2(*w.a, shape, 0xC), b2(*w.b, shape, 0xD), a3(*w.a, shape, 0xE), b3(*w.b, shape, 0xF);
    w.connect(a2, b2);
    w.connect(a3, b3);
    Buffer from(*w.a, 4096, kAllAccess, 3), to(*w.b, 4096);
    const auto write = [&](TestQp& qp, uint32_t length) {
      Wr wr;
      wr.opcode = kOpWrite;
      wr.sges = {{from.at(), length, from.lkey}};
      wr.remote = to.at();
      wr.rkey = to.rkey;
      qp.write(wr);
    };
    for (TestQp* qp : {&w.qa, &a2, &a3}) {
      write(*qp, 8);
      w.a->engine.doorbell(qp->handle);
      w.pump();
    }
    const uint32_t before = w.pa->position();
    for (int i = 0; i < 1000; i++) {
      write(w.qa, 100);
      if (streams > 1) write(a2, 100);
    }
    w.a->engine.doorbell(w.qa.handle);
    w.a->engine.doorbell(a2.handle);
    for (int i = 0; i < 100; i++) w.a->engine.progress();  // the peer consumes nothing
    const uint32_t ahead = w.pa->position() - before;
    CHECK(ahead > LocalRing::kSlots / 4);
    CHECK(ahead <= LocalRing::kSlots * 3 / 4);
    write(a3, 8);
    w.a->engine.doorbell(a3.handle);
    CHECK(w.pa->position() - before > ahead);
    CHECK(w.until([&] { return w.qa.sendCq.written() == 1001 && a2.sendCq.written() == 1 + (streams - 1) * 1000; }));
  }
}
