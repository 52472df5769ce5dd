// Tests a hostile peer that has agreed on extensions. What it can make this side keep, do and send is bounded, requests
// end, and other connections are unaffected.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#ifdef __linux__
#include <malloc.h>
#endif

#include "objects/fragment_state.h"
#include "path_world.h"

using namespace world;

#if defined(__SANITIZE_ADDRESS__)
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // not every compiler has its header
#endif

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Returns the number of allocated bytes; 0 if the OS does not report it.
uint64_t heapBytes() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#elif defined(__GLIBC__)
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

Link2 agreed(uint32_t mtu = 256) {
  Link2 l;
  l.mtu = mtu;
  l.extensions = extensions::kAll;
  l.ackTimeout = 14;
  return l;
}

// Forges a packet of a peer.
Frame forged(Node& from, Node& to, uint32_t qpn, uint8_t opcode, uint32_t psn, uint32_t payload,
             bool ackRequest = false) {
  Frame f;
  f.source = from.gid;
  f.destination = f.port = to.gid;
  f.bytes.assign(wire::kOpcodes[opcode].headerBytes + payload, 0);
  wire::Bth bth;
  bth.opcode = opcode;
  bth.destinationQpn = qpn;
  bth.psn = psn & wire::kPsnMask;
  bth.ackRequest = ackRequest;
  wire::emitBth(f.bytes.data(), bth);
  if (wire::kOpcodes[opcode].flags & wire::kAeth)
    wire::emitAeth(f.bytes.data() + wire::kBthBytes, wire::kSyndromeAck, 0);
  return f;
}

void arrive(World& w, Frame f) {
  std::lock_guard<std::mutex> lock(w.net.mutex);
  w.net.frames.push_back(std::move(f));
}

// Creates an acknowledgement that reports the kept packets.
Frame report(Node& from, Node& to, uint32_t qpn, uint32_t psn,
             const std::vector<std::pair<uint32_t, uint32_t>>& ranges) {
  Frame f = forged(from, to, qpn, wire::kOpAcknowledge, psn, uint32_t(ranges.size()) * 8);
  wire::emitAeth(f.bytes.data() + wire::kBthBytes, wire::kNakSequence, 0);
  uint8_t* at = f.bytes.data() + wire::kBthBytes + wire::kAethBytes;
  for (const auto& r : ranges) {
    wire::store32(at, r.first);
    wire::store32(at + 4, r.second);
    at += 8;
  }
  return f;
}

}  // namespace

// The table of kept packets has a slot for each PSN up to the farthest one, and all these slots count as kept.
TEST(few_packets_far_behind_a_gap_take_little_memory) {
  EngineOptions options;
  options.longWindowBytes = 1 << 20;
  World w(options);
  std::vector<std::unique_ptr<TestQp>> all;
  for (uint32_t i = 0; i < 60; i++) {
    TestQp& qa = *all.emplace_back(std::make_unique<TestQp>(*w.a));
    TestQp& qb = *all.emplace_back(std::make_unique<TestQp>(*w.b));
    w.connect(qa, qb, agreed());
  }
  const uint64_t before = heapBytes();
  for (uint32_t i = 1; i < all.size(); i += 2)
    arrive(w, forged(*w.a, *w.b, all[i]->qpn, wire::kOpSendOnly, 100 + 65'535, 4));
  w.pump();
  CHECK(heapBytes() - before < 4 * options.longWindowBytes);
  CHECK(w.b->counter("unkept_pkts") > 50);
}

// A peer that makes this side keep as much as possible, for as long as possible, still leaves room for others.
TEST(whoever_keeps_much_leaves_room_for_others) {
  EngineOptions options;
  options.longWindowBytes = 256 << 10;
  World w(options);
  std::vector<std::unique_ptr<TestQp>> all;
  uint64_t kept = 0;
  for (uint32_t i = 0; i < 4; i++) {
    TestQp& qa = *all.emplace_back(std::make_unique<TestQp>(*w.a));
    TestQp& qb = *all.emplace_back(std::make_unique<TestQp>(*w.b));
    w.connect(qa, qb, agreed(4096));
    for (uint32_t n = 1; n < 200; n++) arrive(w, forged(*w.a, *w.b, qb.qpn, wire::kOpSendOnly, 100 + n, 4096));
    w.pump();
    const uint64_t now = w.b->counter("kept_pkts");
    CHECK(now >= kept + (i == 0 ? 60 : 5));
    CHECK(now * 4096 < 2 * options.longWindowBytes);
    kept = now;
  }
}

// A READ takes over the PSNs of packets that have arrived. These packets are discarded, and cause no request.
TEST(kept_packets_that_a_request_covers_are_dropped) {
  Pair p(agreed(1024));
  Buffer source(*p.b, 16'384);
  uint32_t refusals = 0;
  p.net.filter = [&](Frame& f) {
    refusals += f.bth().opcode == wire::kOpAcknowledge && f.syndrome() == wire::kNakSequence;
    return false;
  };
  for (uint32_t n = 3; n < 8; n++) arrive(p, forged(*p.a, *p.b, p.qb.qpn, wire::kOpSendOnly, 100 + n, 4));
  p.pump();
  CHECK_EQ(p.b->counter("kept_pkts"), 5u);
  CHECK(refusals > 0);
  Frame read = forged(*p.a, *p.b, p.qb.qpn, wire::kOpReadRequest, 100, 0);
  wire::emitReth(read.bytes.data() + wire::kBthBytes, {source.at(), source.rkey, 16'384});
  arrive(p, read);
  p.pump();
  refusals = 0;
  p.qb.receive({{source.at(), 64, source.lkey}});
  arrive(p, forged(*p.a, *p.b, p.qb.qpn, wire::kOpSendOnly, 100 + 16, 4, true));
  p.pump();
  CHECK_EQ(p.qb.receiveCq.written(), 1u);
  CHECK_EQ(refusals, 0u);
}

// Each range that overlaps others would cost as much as everything in flight.
TEST(reports_out_of_order_are_refused) {
  for (uint32_t kind = 0; kind < 5; kind++) {
    Pair p(agreed(1024));
    Buffer from(*p.a, 16'384), to(*p.b, 16'384);
    p.net.filter = [](Frame&) { return false; };
    p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 16'384, from.lkey}}, 0, to.at(), to.rkey});
    p.pump();
    const std::vector<std::pair<uint32_t, uint32_t>> ranges[] = {{{101, 103}, {105, 107}},
                                                                 {{101, 107}, {101, 107}},
                                                                 {{105, 107}, {101, 103}},
                                                                 {{101, 103}, {103, 107}},
                                                                 {{101, 116}}};
    arrive(p, report(*p.b, *p.a, p.qa.qpn, 100, ranges[kind]));
    p.pump();
    CHECK_EQ(p.a->counter("malformed_pkts"), kind ? 1u : 0u);
    CHECK_EQ(p.a->counter("lost_pkts"), kind ? 0u : 2u);
  }
}

// A peer that keeps repeating the same response gains nothing: the timeout expires.
TEST(reports_without_news_do_not_put_off_the_end) {
  Pair p(agreed(1024));
  Buffer from(*p.a, 8192), to(*p.b, 8192);
  p.net.filter = [](Frame&) { return false; };
  p.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 8192, from.lkey}}, 0, to.at(), to.rkey});
  const uint64_t end = p.clock.time + 30 * kSecond;  // ten times as long as seven timeouts
  while (p.clock.time < end && p.qa.sendCq.written() == 0) {
    p.clock.time += 5'000'000;
    arrive(p, report(*p.b, *p.a, p.qa.qpn, 100, {{101, 102}}));
    p.pump();
  }
  only(p.qa.sendCq, 0, kOpWrite, kWcTimeoutRetry);
}

// Every second response is missing, and the response to the newest request indicates that all others are lost.
TEST(outstanding_re_requests_are_bounded) {
  EngineOptions options;
  options.window = 1 << 14;
  Pair p(agreed(256), {}, options);
  Buffer from(*p.b, 4 << 20), to(*p.a, 4 << 20);
  uint32_t left = 0;
  p.net.filter = [&](Frame& f) {
    left += f.source == p.a->gid;
    return false;
  };
  p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), 4 << 20, to.lkey}}, 0, from.at(), from.rkey});
  p.pump();
  for (uint32_t i = 1; i < 8000; i += 2) arrive(p, forged(*p.b, *p.a, p.qa.qpn, wire::kOpReadMiddle, 100 + i, 256));
  p.pump();
  CHECK(left < 1200);
  for (uint32_t n = 0; n < 4; n++) {
    left = 0;
    arrive(p, forged(*p.b, *p.a, p.qa.qpn, wire::kOpReadMiddle, 100 + 2000 - 2 * n, 256, true));
    p.pump();
    CHECK(left < 1200);
  }
}

// Requests for overlapping parts of one READ arrive, each a little longer than the one before. Data that is queued for
// a response is not sent twice.
TEST(overlapping_re_requests_are_served_once) {
  constexpr uint32_t kPackets = 1000, kSize = 256;
  EngineOptions options;
  options.window = 1 << 14;
  Pair p(agreed(kSize), {}, options);
  Buffer from(*p.b, kPackets * kSize), to(*p.a, kPackets * kSize);
  p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), kPackets * kSize, to.lkey}}, 0, from.at(), from.rkey});
  p.pump();
  only(p.qa.sendCq, 0, kOpRead, kWcSuccess, kPackets * kSize);
  uint32_t answers = 0;
  p.net.filter = [&](Frame& f) {
    answers += f.source == p.b->gid;
    return f.source != p.b->gid;  // the peer is gone
  };
  for (uint32_t packets = 1; packets < kPackets; packets++) {
    Frame f = forged(*p.a, *p.b, p.qb.qpn, wire::kOpReadRequest, 100, 0);
    wire::Bth bth = f.bth();
    bth.solicited = true;
    wire::emitBth(f.bytes.data(), bth);
    wire::emitReth(f.bytes.data() + wire::kBthBytes, {from.at(), from.rkey, packets * kSize});
    arrive(p, std::move(f));
  }
  p.pump();
  CHECK(answers >= kPackets - 1 && answers < 3 * kPackets);
}

// A READ gets no response, and a SEND behind it is refused. Then the peer reports that it has executed both. When the
// wait is over, there is nothing behind the READ to go back to, so the READ itself is requested again.
TEST(refused_message_that_is_executed_meanwhile_is_not_sent_in_another_place) {
  Pair p(agreed(1024));
  Buffer source(*p.b, 4096), to(*p.a, 4096);
  std::vector<std::pair<uint32_t, uint32_t>> left;  // opcodes and PSNs
  p.net.filter = [&](Frame& f) {
    if (f.source == p.a->gid) left.push_back({f.bth().opcode, f.bth().psn});
    return false;
  };
  p.qa.post({kOpRead, kSendFlagSignaled, {{to.at(), 4096, to.lkey}}, 0, source.at(), source.rkey});
  p.qa.post({kOpSend, kSendFlagSignaled, {{to.at(), 16, to.lkey}}});
  p.pump();
  CHECK_EQ(left.size(), 2u);
  left.clear();
  Frame refusal = forged(*p.b, *p.a, p.qa.qpn, wire::kOpAcknowledge, 104, 0);
  refusal.bytes[wire::kBthBytes] = uint8_t(wire::kClassRnr | 1);
  arrive(p, refusal);
  arrive(p, forged(*p.b, *p.a, p.qa.qpn, wire::kOpAcknowledge, 104, 0));
  p.pump();
  p.until([&] { return p.qa.sendCq.written() != 0; }, kSecond / 20);
  CHECK(!left.empty());
  for (const auto& [opcode, psn] : left)
    CHECK_EQ(opcode, psn < 104 ? uint32_t(wire::kOpReadRequest) : uint32_t(wire::kOpSendOnly));
}

// ── Anything that such a peer may send, on connections with traffic ─────────────────────────────────────────────────

namespace {

// Two connections have the same requests in both directions. The packets of the first are modified, and the second must
// be unaffected.
struct Field {
  static constexpr uint32_t kBytes = 64 << 10, kMessage = 6000, kHistory = 400;
  PathWorld w;
  Random random;
  const uint32_t wildness;  // 0: packets are lost, repeated and fragmented; 2: connections do not live long
  std::unique_ptr<TestQp> qa, qb;
  Flow bystander;
  Buffer memoryA, memoryB, untouchedA, untouchedB;
  std::deque<Frame> history;  // includes frames of earlier connections
  bool attacks = true;
  uint64_t injected = 0;
  uint32_t psns[2][2] = {};  // the newest request and response that `a` and `b` have sent

  static EngineOptions optionsFor(uint64_t seed) {
    EngineOptions o;
    o.window = seed % 2 ? 32 : 128;
    o.longWindowBytes = 256 << 10;
    return o;
  }
  static PathShape pathFor(uint64_t seed) {
    PathShape s;
    s.delayNs = seed % 3 ? 200'000 : 20'000;
    s.queue = 4000;
    return s;
  }
  explicit Field(uint64_t seed)
      : w(pathFor(seed), seed, optionsFor(seed)),
        random(seed),
        wildness(uint32_t(seed % 3)),
        bystander(w, agreed(1024), 9000, kOpWrite, seed),
        memoryA(*w.a, kBytes, kAllAccess, seed),
        memoryB(*w.b, kBytes, kAllAccess, seed),
        untouchedA(*w.a, kBytes, kAllAccess, 3),
        untouchedB(*w.b, kBytes, kAllAccess, 3) {
    const auto carry = w.net.filter;
    w.net.filter = [this, carry](Frame& f) {
      if (!attacks || !isOurs(f)) return carry(f);
      const bool fromA = f.source == w.a->gid;
      psns[fromA ? 0 : 1][(wire::kOpcodes[f.bytes[0]].flags & wire::kResponse) != 0] = f.bth().psn;
      history.push_back(f);
      if (history.size() > kHistory) history.pop_front();
      for (uint32_t n = random.below(4) ? 0 : random.below(4); n != 0; n--)
        inject(random.below(3 - wildness) == 0 && wildness != 0 ? invented()
                                                                : history[random.below(uint32_t(history.size()))]);
      if (random.below(6) == 0) return false;
      if (wildness == 2 && random.below(6) == 0) change(f);
      return random.below(12) ? carry(f) : (inject(f), false);
    };
  }
  bool isOurs(const Frame& f) const {
    const uint32_t to = f.bth().destinationQpn;
    return to == qa->qpn || to == qb->qpn;
  }
  void put(Frame f) {
    injected++;
    PathWorld::Way& way = f.source == w.a->gid ? w.there : w.back;
    PathWorld::put(way, {w.clock.time + w.shape.delayNs, std::move(f)});
  }
  void inject(Frame f) {
    for (uint32_t n = wildness == 0 ? 0 : random.below(wildness == 2 ? 3 : 40) % 3; n != 0; n--) change(f);
    if (random.below(4)) return put(std::move(f));
    // Sends a packet in fragments, some of them lost, modified, duplicated or out of order.
    const uint32_t total = uint32_t(f.bytes.size()), unit = random.below(8) ? FragmentAssembly::kUnit : 4,
                   size = unit * (1 + random.below(total / unit + 1));
    for (uint32_t at = 0; at < total; at += size) {
      Frame part = f;
      const uint32_t n = std::min(size, total - at);
      part.bytes.assign(wire::kBthBytes + 4, 0);
      wire::Bth bth = f.bth();
      bth.opcode = wire::kOpFragment;
      bth.pad = 0;
      if (random.below(20) == 0) bth.psn ^= 1 + random.below(4);
      wire::emitBth(part.bytes.data(), bth);
      wire::store16(part.bytes.data() + 12, random.below(30) ? at : random.next());
      wire::store16(part.bytes.data() + 14, random.below(30) ? total : random.next());
      part.bytes.insert(part.bytes.end(), f.bytes.begin() + at, f.bytes.begin() + at + n);
      if (random.below(30) == 0) continue;
      if (random.below(30) == 0) put(part);
      put(std::move(part));
    }
  }
  Frame invented() {
    const bool toB = random.below(2);
    Node &from = toB ? *w.a : *w.b, &to = toB ? *w.b : *w.a;
    const uint32_t qpn = (toB ? qb : qa)->qpn, own = psns[toB ? 0 : 1][0], other = psns[toB ? 1 : 0][0];
    const auto near = [&](uint32_t psn) { return wire::psnAdd(psn, random.below(80) - 40); };
    if (random.below(wildness == 2 ? 3 : 10) != 0) {
      std::vector<std::pair<uint32_t, uint32_t>> ranges;
      uint32_t at = near(other);
      for (uint32_t n = random.below(random.below(10) ? 6 : 500); n != 0; n--) {
        const uint32_t last = wire::psnAdd(at, random.below(6));
        ranges.push_back({at, last});
        at = random.below(40) ? wire::psnAdd(last, 2 + random.below(6)) : near(other);
      }
      Frame f = report(from, to, qpn, near(other), ranges);
      const uint8_t syndromes[] = {wire::kNakSequence, wire::kSyndromeAck, wire::kSyndromeAck,
                                   uint8_t(wire::kClassRnr | random.below(4))};
      f.bytes[wire::kBthBytes] = syndromes[random.below(4)];
      return f;
    }
    static constexpr uint8_t kKinds[] = {wire::kOpReadRequest, wire::kOpReadRequest, wire::kOpReadMiddle,
                                         wire::kOpReadMiddle,  wire::kOpReadOnly,    wire::kOpAtomicAcknowledge,
                                         wire::kOpFetchAdd,    wire::kOpAcknowledge, wire::kOpSendOnly,
                                         wire::kOpWriteOnly};
    const uint8_t opcode = kKinds[random.below(sizeof kKinds)];
    const wire::OpInfo& op = wire::kOpcodes[opcode];
    const uint32_t payload = op.flags & wire::kCarriesData ? (random.below(4) ? 1024 : 4 * random.below(1100)) : 0;
    Frame f = forged(from, to, qpn, opcode, near(op.flags & wire::kResponse ? other : own), payload, random.below(2));
    if (random.below(2)) f.bytes[1] |= 0x80;
    const Buffer& memory = toB ? memoryB : memoryA;
    if (op.flags & (wire::kReth | wire::kAtomic) && !(op.flags & wire::kResponse))
      wire::emitReth(f.bytes.data() + wire::kBthBytes,
                     {const_cast<Buffer&>(memory).at(8 * random.below(kBytes / 8)), memory.rkey,
                      op.flags & wire::kWrite ? payload : 1024 * random.below(8) + random.below(2)});
    return f;
  }
  void change(Frame& f) {
    wire::Bth bth = f.bth();
    switch (random.below(9)) {
      case 0:
        bth.psn = wire::psnAdd(bth.psn, random.below(3)   ? random.below(9) - 4
                                        : random.below(2) ? 1u << random.below(24)
                                                          : random.next()) &
                  wire::kPsnMask;
        break;
      case 1: bth.solicited = !bth.solicited; break;
      case 2: bth.ackRequest = !bth.ackRequest; break;
      case 3:
        bth.opcode = random.below(4)   ? uint8_t(random.below(0x18))
                     : random.below(2) ? uint8_t(wire::kOpCnp)
                                       : uint8_t(wire::kOpFragment);
        break;
      case 4: bth.pad = uint8_t(random.below(4)); break;
      case 5:
        f.bytes.resize(
            std::max<size_t>(wire::kBthBytes, f.bytes.size() - std::min<size_t>(f.bytes.size(), 4 * random.below(20))));
        break;
      case 6: f.bytes.resize(f.bytes.size() + 4 * random.below(20), 0x5A); break;
      default:  // every field but the key
        for (uint32_t n = 0; n < 2; n++) {
          const size_t at = wire::kBthBytes + random.below(40);
          if (at < f.bytes.size() && (at < 20 || at >= 24)) f.bytes[at] ^= uint8_t(1u << random.below(8));
        }
    }
    wire::emitBth(f.bytes.data(), bth);
  }
  void post(TestQp& qp, Buffer& own, Buffer& far) {
    const uint32_t kind = random.below(5), length = kind == 3 ? 8 : 1 + random.below(kMessage);
    const uint64_t at = 8 * random.below((kBytes - kMessage) / 8), to = 8 * random.below((kBytes - kMessage) / 8);
    const uint32_t opcodes[] = {kOpWrite, kOpSend, kOpRead, kOpFetchAdd, kOpRead};
    qp.post({opcodes[kind], kSendFlagSignaled, {{own.at(at), length, own.lkey}}, 0, far.at(to), far.rkey, 0, 1});
  }
  // Checks that completions are in order, and that all after the first failed one are flushed. Returns whether one
  // failed.
  bool drain(TestQp& qp, uint32_t* next) {
    bool failed = false;
    for (const Cqe& c : qp.sendCq.drain()) {
      CHECK_EQ(c.wqe, (*next)++);
      if (failed) CHECK_EQ(c.status, kWcFlushed);
      failed |= c.status != kWcSuccess;
    }
    return failed;
  }
  static bool same(Buffer& buffer) {
    Random bytes(3);
    for (uint64_t i = 0; i < kBytes; i++)
      if (buffer.data()[i] != uint8_t(bytes.next())) return false;
    return true;
  }
  void connection() {
    Link2 l = agreed(1024);
    l.psnA = random.next() & wire::kPsnMask;
    l.psnB = random.next() & wire::kPsnMask;
    l.ackTimeout = 12;
    if (random.below(2)) l.extensions |= 1432u << extensions::kPacketBytesShift;
    else l.extensions &= ~extensions::kLongPackets;
    w.connect(*qa, *qb, l);
    uint32_t nextA = qa->sendProducer, nextB = qb->sendProducer;
    attacks = true;
    for (uint32_t i = 0; i < 8; i++) bystander.post();
    for (uint32_t round = 0; round < 12; round++) {
      for (uint32_t i = 0; i < 3; i++) {
        // There are too few receives, so messages are refused and retried.
        if (random.below(3)) qa->receive({{memoryA.at(8 * random.below(1000)), kMessage, memoryA.lkey}});
        if (random.below(3)) qb->receive({{memoryB.at(8 * random.below(1000)), kMessage, memoryB.lkey}});
        post(*qa, memoryA, memoryB);
        post(*qb, memoryB, memoryA);
      }
      w.run(2'000'000);
      bystander.turn();
    }
    attacks = false;
    // Every outstanding request ends, either with its responses or after the remaining timeouts.
    CHECK(w.run(120 * kSecond, [&] {
      bystander.turn(false);
      return qa->sendCq.written() == qa->sendProducer && qb->sendCq.written() == qb->sendProducer;
    }));
    const bool failedA = drain(*qa, &nextA), failedB = drain(*qb, &nextB);
    if (failedA) CHECK_EQ(qa->stateWord(), kQpsError);
    if (failedB) CHECK_EQ(qb->stateWord(), kQpsError);
    qa->receiveCq.drain();
    qb->receiveCq.drain();
    w.run(kSecond, [&] {
      bystander.turn(false);
      return bystander.qa.sendCq.written() == bystander.qa.sendProducer;
    });
    CHECK(!bystander.failed);
    CHECK(std::memcmp(bystander.from.data(), bystander.to.data(), bystander.bytes) == 0);
    std::memset(bystander.to.data(), 0, bystander.bytes);
    CHECK(same(untouchedA) && same(untouchedB));
  }
};

}  // namespace

TEST(agreed_peer_may_send_anything) {
  const char* const wanted = std::getenv("SEEDS");
  const uint64_t first = wanted ? 1000 : 1, seeds = wanted ? uint64_t(std::atoll(wanted)) : check::seeds(120);
  uint64_t injected = 0, kept = 0, reports = 0, questions = 0, fragments = 0, refusals = 0;
  for (uint64_t seed = first; seed < first + seeds; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Field f(seed);
    uint64_t before = 0;
    // The same two queue pairs are connected repeatedly, and now and then a new one is used.
    for (uint32_t n = 0; n < 6; n++) {
      if (n % 3 == 0) {
        f.qa = std::make_unique<TestQp>(*f.w.a);
        f.qb = std::make_unique<TestQp>(*f.w.b);
      }
      if (n == 1) before = heapBytes();
      f.connection();
      for (TestQp* qp : {f.qa.get(), f.qb.get()}) CHECK_EQ(uint32_t(qp->toState(kQpsReset)), 0u);
    }
    // The test owns the frames in flight and the history.
    CHECK(heapBytes() < before + (4 << 20));
    injected += f.injected;
    for (Node* node : {f.w.a.get(), f.w.b.get()}) {
      kept += node->counter("kept_pkts");
      reports += node->counter("rcvd_report");
      fragments += node->counter("rcvd_fragment");
      questions += node->counter("retransmitted_pkts");
      refusals += node->counter("rcvd_rnr_err");
    }
  }
  check::note = "";
  CHECK(injected > 500 * seeds && kept > 50 * seeds && reports > 10 * seeds && fragments > 100 * seeds &&
        questions > 50 * seeds && refusals > seeds);
  if (std::getenv("FIGURES"))
    std::printf("injected %u, kept %u, reports %u, fragments %u, again %u, refused %u\n", unsigned(injected),
                unsigned(kept), unsigned(reports), unsigned(fragments), unsigned(questions), unsigned(refusals));
}
