// Tests of lost responses of READs and ATOMICs (transport/extensions/lost_responses.h). Only the missing responses are
// requested again, and those behind them are kept. For peers without the agreement, every packet conforms to the
// standard.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "path_world.h"

using namespace world;

namespace {

constexpr uint32_t kMtu = 1024, kMessage = 16 << 10, kPackets = kMessage / kMtu;
constexpr uint64_t kSecond = 1'000'000'000, kRoundTrip = 4'000'000;  // the round trip of quiet()
constexpr uint32_t kFirst = 0xFFFFF0;                                // PSNs wrap

bool isResponse(const Frame& f) {
  const uint32_t op = f.bth().opcode;
  return (op >= wire::kOpReadFirst && op <= wire::kOpReadOnly) || op == wire::kOpAtomicAcknowledge;
}
bool isReadRequest(const Frame& f) {
  const uint32_t op = f.bth().opcode;
  return op == wire::kOpReadRequest || op == wire::kOpCompareSwap || op == wire::kOpFetchAdd;
}

PathShape quiet() {
  PathShape s;
  s.delayNs = 2'000'000;
  s.queue = 4000;
  return s;
}

// Runs Reads between the same buffers at different offsets. The filter sees what happens to the responses of `b`.
struct Reads {
  PathWorld w;
  QpShape shape;
  TestQp qa, qb;
  Buffer source, to;
  uint64_t responses = 0, again = 0;  // responses that have left `b`
  std::function<bool(Frame&)> lose = [](Frame&) { return false; };
  std::map<uint32_t, uint32_t> times;  // by PSN of a response: how often it was sent
  static constexpr uint64_t kBytes = 128 * kMessage;
  static QpShape shaped() {
    QpShape s;
    s.sendEntries = s.receiveEntries = 256;
    s.cqEntries = 512;
    return s;
  }
  explicit Reads(uint32_t taken = extensions::kAll, const PathShape& path = quiet(), uint64_t seed = 1,
                 const EngineOptions& options = {}, uint32_t rnrTimer = 12, uint32_t rnrTimeout = 0)
      : w(path, seed, options),
        shape(shaped()),
        qa(*w.a, shape),
        qb(*w.b, shape),
        source(*w.b, kBytes, kAllAccess, seed + 1),
        to(*w.a, kBytes) {
    Link2 l;
    l.mtu = kMtu;
    l.ackTimeout = 17;  // 0.67 s
    l.rnrTimer = rnrTimer;
    l.rnrTimeout = rnrTimeout;
    if (!rnrTimeout) l.rnrRetries = 7;
    l.extensions = taken;
    l.psnA = kFirst;
    w.connect(qa, qb, l);
    const auto carry = w.net.filter;
    w.net.filter = [this, carry](Frame& f) {
      if (f.source == w.b->gid && isResponse(f)) {
        responses++;
        again += f.bth().ackRequest;
        times[f.bth().psn]++;
      }
      return lose(f) ? false : carry(f);
    };
  }
  void read(uint64_t at, uint32_t length) {
    qa.post({kOpRead, kSendFlagSignaled, {{to.at(at), length, to.lkey}}, 0, source.at(at), source.rkey});
  }
  // Checks that all complete successfully, in order and in time, and that the bytes have arrived.
  bool ends(uint32_t count, uint64_t ns, uint64_t bytes) {
    if (!w.run(ns, [&] { return qa.sendCq.written() == count; })) return false;
    bool good = true;
    uint32_t next = 0;
    for (const Cqe& c : qa.sendCq.drain()) good &= c.status == kWcSuccess && c.wqe == next++;
    return good && std::memcmp(source.data(), to.data(), bytes) == 0;
  }
};

// The n-th response of `b`, counted from the start of the connection.
uint32_t answerPsn(uint32_t n) { return wire::psnAdd(kFirst, n); }

}  // namespace

// The first response of a request is lost, one in the middle, the last, or a run of them. As many are retransmitted as
// were lost, and no timeout is needed.
TEST(lost_responses_alone_are_re_requested) {
  const std::vector<std::vector<uint32_t>> cases = {
      {0}, {5}, {kPackets - 1}, {3, 4, 5}, {0, kPackets, 2 * kPackets}, {7, 9, 30, 31, 40}};
  for (const auto& lost : cases) {
    Reads r;
    r.lose = [&](Frame& f) {
      if (f.source != r.w.b->gid || !isResponse(f) || r.times[f.bth().psn] > 1) return false;
      for (uint32_t n : lost)
        if (f.bth().psn == answerPsn(n)) return true;
      return false;
    };
    for (uint32_t i = 0; i < 8; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(8, kSecond / 10, 8 * kMessage));
    CHECK_EQ(r.responses, 8 * kPackets + lost.size());
    CHECK_EQ(r.again, uint64_t(lost.size()));
    CHECK_EQ(r.w.a->counter("lost_pkts"), uint64_t(lost.size()));
    CHECK(r.w.a->counter("kept_pkts") > 0);
    CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
  }
}

// Nothing follows the lost responses, so a probe detects the loss.
TEST(lost_tail_of_responses_is_found_without_a_timeout) {
  for (uint32_t tail : {1u, 4u, kPackets, 3 * kPackets}) {
    Reads r;
    r.lose = [&](Frame& f) {
      return f.source == r.w.b->gid && isResponse(f) && r.times[f.bth().psn] == 1 &&
             wire::psnDiff(f.bth().psn, answerPsn(8 * kPackets - tail)) >= 0;
    };
    for (uint32_t i = 0; i < 8; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(8, kSecond / 10, 8 * kMessage));
    CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
    CHECK(r.responses <= 8 * kPackets + tail + 2);
  }
}

// The re-request or the response to it is lost. Later re-requests are served, or a probe detects the loss.
TEST(lost_re_requests_are_repeated) {
  for (bool question : {true, false}) {
    Reads r;
    uint32_t asked = 0, answered = 0;
    r.lose = [&](Frame& f) {
      if (isResponse(f) && f.bth().psn == answerPsn(5)) return ++answered == 1 || (!question && answered == 2);
      return question && isReadRequest(f) && f.bth().psn == answerPsn(5) && ++asked == 1;
    };
    for (uint32_t i = 0; i < 64; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(64, kSecond, 64 * kMessage));
    CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
    CHECK(r.responses <= 64 * kPackets + 4);
  }
}

// The response to a re-request is lost, and the responses to three later ones arrive. Then it is requested again; a
// probe would take two more round trips.
TEST(a_re_request_is_repeated_when_three_later_ones_are_served) {
  Reads r;
  r.lose = [&](Frame& f) {
    if (!isResponse(f)) return false;
    const uint32_t sent = r.times[f.bth().psn];
    if (f.bth().psn == answerPsn(5)) return sent <= 2;
    for (uint32_t n : {20u, 40u, 60u, 80u})
      if (f.bth().psn == answerPsn(n)) return sent == 1;
    return false;
  };
  for (uint32_t i = 0; i < 8; i++) r.read(i * kMessage, kMessage);
  CHECK(r.ends(8, 4 * kRoundTrip, 8 * kMessage));
  CHECK_EQ(r.responses, 8 * kPackets + 6);
}

// A READ request that has not arrived is retransmitted whole, however the responses to other re-requests reveal its
// loss, because a part of it would be mistaken for the whole. The request is lost twice. The last response before it is
// also lost, and re-requested after it.
TEST(a_request_that_has_not_arrived_is_never_repeated_in_part) {
  for (uint32_t lost : {1u, 2u, 3u}) {
    Reads r;
    uint32_t asked = 0;
    bool whole = true;
    r.lose = [&](Frame& f) {
      if (isResponse(f)) return f.bth().psn == answerPsn(kPackets - 1) && r.times[f.bth().psn] == 1;
      if (!isReadRequest(f) || f.bth().psn != answerPsn(kPackets)) return false;
      if (r.times.count(f.bth().psn) == 0)
        whole &= wire::parseReth(f.bytes.data() + wire::kBthBytes).length == kMessage;
      return ++asked <= lost;
    };
    for (uint32_t i = 0; i < 8; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(8, kSecond / 10, 8 * kMessage));
    CHECK(whole);
    CHECK(asked > lost);
    CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
  }
}

// An atomic whose response is lost is executed once, and keeps its position in the order.
TEST(lost_responses_of_atomics_are_re_requested) {
  Reads r;
  Buffer word(*r.w.b, 64), old(*r.w.a, 64);
  r.lose = [&](Frame& f) { return f.bth().opcode == wire::kOpAtomicAcknowledge && r.times[f.bth().psn] == 1; };
  for (uint32_t i = 0; i < 8; i++) {
    r.read(i * kMessage, kMessage);
    r.qa.post({kOpFetchAdd, kSendFlagSignaled, {{old.at(i * 8), 8, old.lkey}}, 0, word.at(), word.rkey, 0, 3});
  }
  CHECK(r.ends(16, kSecond / 10, 8 * kMessage));
  for (uint32_t i = 0; i < 8; i++) CHECK_EQ(old.words[i], uint64_t(3 * i));
  CHECK_EQ(word.words[0], 24u);
  CHECK_EQ(r.responses, 8 * kPackets + 16);
  CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
}

// A message behind the lost responses finds no receive. Only the responses are re-requested during the wait, and the
// message is retransmitted when the wait is over. The wait is longer than fetching what is missing, shorter than a
// round trip, or ends early.
TEST(lost_responses_alone_are_re_requested_before_a_refused_message) {
  constexpr uint64_t kMs = 1'000'000;
  struct {
    uint32_t timer, rnrTimeout;
    uint64_t receiveAt;
    uint32_t most;  // copies of the message
  } const cases[] = {
      {20, 0, 25 * kMs, 5}, {12, 0, 10 * kMs, 6}, {24, rnrtimeout::kRequester | rnrtimeout::kResponder, 5 * kMs, 4}};
  for (const auto& c : cases) {
    Reads r(extensions::kAll, quiet(), 1, {}, c.timer, c.rnrTimeout);
    Buffer from(*r.w.a, kMessage, kAllAccess, 5), receives(*r.w.b, kMessage);
    uint32_t copies = 0;
    r.lose = [&](Frame& f) {
      copies += f.bth().opcode == wire::kOpSendOnly;
      return isResponse(f) && (f.bth().psn == answerPsn(5) || f.bth().psn == answerPsn(40)) &&
             r.times[f.bth().psn] == 1;
    };
    for (uint32_t i = 0; i < 4; i++) r.read(i * kMessage, kMessage);
    r.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 1000, from.lkey}}});
    for (uint32_t i = 4; i < 8; i++) r.read(i * kMessage, kMessage);
    r.w.run(c.receiveAt);
    CHECK(r.w.b->counter("send_rnr_err") > 0);
    CHECK(r.qa.sendCq.written() <= 4);
    r.qb.receive({{receives.at(), kMessage, receives.lkey}});
    CHECK(r.ends(9, kSecond, 8 * kMessage));
    CHECK(std::memcmp(from.data(), receives.data(), 1000) == 0);
    uint64_t early = 0;
    for (uint32_t n = 0; n < 4 * kPackets; n++) early += r.times[answerPsn(n)];
    CHECK_EQ(early, 4 * kPackets + 2u);
    CHECK(copies <= c.most);
    CHECK_EQ(r.w.a->counter("rnr_wait_shortened"), c.rnrTimeout ? 1u : 0u);
    CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
  }
}

// READs and all other requests meet every fault of a network, in both directions.
TEST(whatever_happens_to_responses_each_byte_arrives_once) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    PathShape path = quiet();
    path.loss = seed % 3 * 0.02;
    path.reorder = seed / 3 % 2 * 0.03;
    path.duplicate = seed / 6 % 2 * 0.05;
    Reads r(seed % 2 ? uint32_t(extensions::kAll) : withPackets(kEthernetPacket), path, seed);
    Buffer from(*r.w.a, Reads::kBytes, kAllAccess, seed + 7), writes(*r.w.b, Reads::kBytes),
        receives(*r.w.b, Reads::kBytes);
    Buffer word(*r.w.b, 64), old(*r.w.a, 128 * 8);
    Random random(seed), fate(seed + 100);
    std::deque<Frame> held;
    r.lose = [&](Frame& f) {
      if (f.source != r.w.b->gid) return false;
      if (fate.chance(seed % 5 * 0.02)) return true;
      if (fate.chance(seed / 5 % 3 * 0.02)) {
        held.push_back(f);
        return true;
      }
      if (!held.empty() && fate.chance(0.3)) {
        PathWorld::put(r.w.back, {r.w.clock.time + r.w.shape.delayNs, std::move(held.front())});
        held.pop_front();
      }
      return false;
    };
    std::vector<uint32_t> kinds, lengths;
    uint64_t sum = 0;
    bool good = true;
    for (uint32_t i = 0; i < 128; i++) {
      const uint32_t kind = random.below(6), length = 1 + random.below(kMessage);
      const uint64_t at = uint64_t(i) * kMessage;
      kinds.push_back(kind);
      lengths.push_back(length);
      if (kind == 0)
        r.qa.post({kOpWrite, kSendFlagSignaled, {{from.at(at), length, from.lkey}}, 0, writes.at(at), writes.rkey});
      else if (kind == 1) {
        r.qb.receive({{receives.at(at), kMessage, receives.lkey}});
        r.qa.post({kOpSend, kSendFlagSignaled, {{from.at(at), length, from.lkey}}});
      } else if (kind == 2)
        r.qa.post({kOpFetchAdd, kSendFlagSignaled, {{old.at(i * 8), 8, old.lkey}}, 0, word.at(), word.rkey, 0, i + 1});
      else r.read(at, length);
    }
    if (!CHECK(r.w.run(60 * kSecond, [&] { return r.qa.sendCq.written() == 128; })))
      std::printf("seed %u\n", unsigned(seed));
    uint32_t next = 0;
    for (const Cqe& c : r.qa.sendCq.drain()) good &= c.status == kWcSuccess && c.wqe == next++;
    for (uint32_t i = 0; i < 128; i++) {
      const uint64_t at = uint64_t(i) * kMessage;
      if (kinds[i] == 2) {
        good &= old.words[i] == sum;
        sum += i + 1;
      } else if (kinds[i] < 2) {
        good &= std::memcmp(from.data() + at, (kinds[i] ? receives : writes).data() + at, lengths[i]) == 0;
      } else {
        good &= std::memcmp(r.source.data() + at, r.to.data() + at, lengths[i]) == 0;
      }
    }
    if (!CHECK(good && word.words[0] == sum)) std::printf("seed %u\n", unsigned(seed));
  }
}

// Responses that overtake others by up to two do not indicate a loss.
TEST(responses_that_overtake_are_not_a_loss) {
  for (uint32_t overtake : {1u, 2u, 3u, 6u}) {
    Reads r;
    Frame late;
    uint32_t n = 0;
    r.lose = [&](Frame& f) {
      if (f.source != r.w.b->gid || !isResponse(f)) return false;
      const uint32_t at = n++;
      if (at == 5) {
        late = f;
        return true;
      }
      if (at == 5 + overtake) {
        PathWorld::put(r.w.back, {r.w.clock.time + r.w.shape.delayNs, f});
        PathWorld::put(r.w.back, {r.w.clock.time + r.w.shape.delayNs, late});
        return true;
      }
      return false;
    };
    r.read(0, kMessage);
    CHECK(r.ends(1, kSecond / 10, kMessage));
    CHECK_EQ(r.w.a->counter("lost_pkts"), overtake < 3 ? 0u : 1u);
    CHECK_EQ(r.w.a->counter("retransmitted_pkts"), 0u);  // the response arrives before anything is re-requested
  }
}

// A peer that has not agreed, or has agreed on less, gets the standard's packets, and goes back N.
TEST(peers_without_the_agreement_go_back) {
  for (uint32_t taken :
       {0u, uint32_t(extensions::kAll & ~extensions::kLostResponses), uint32_t(extensions::kLostResponses)}) {
    Reads r(taken);
    uint32_t marked = 0;
    r.lose = [&](Frame& f) {
      if (isReadRequest(f)) marked += f.bth().solicited;
      return isResponse(f) && f.bth().psn == answerPsn(5) && r.times[f.bth().psn] == 1;
    };
    for (uint32_t i = 0; i < 8; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(8, kSecond, 8 * kMessage));
    CHECK_EQ(marked, 0u);
    CHECK_EQ(r.again, 0u);
    CHECK_EQ(r.w.a->counter("kept_pkts"), 0u);
    CHECK(r.responses > 8 * kPackets + 4);
  }
}

// A response that cannot be kept is lost, and arrives again later.
TEST(kept_responses_are_bounded) {
  EngineOptions options;
  options.longWindowBytes = 8 << 10;
  options.window = 64;
  Reads r(extensions::kAll, quiet(), 1, options);
  r.lose = [&](Frame& f) { return isResponse(f) && f.bth().psn == answerPsn(1) && r.times[f.bth().psn] == 1; };
  for (uint32_t i = 0; i < 16; i++) r.read(i * kMessage, kMessage);
  CHECK(r.ends(16, 10 * kSecond, 16 * kMessage));
  CHECK(r.w.a->counter("unkept_pkts") > 0);
  CHECK_EQ(r.w.a->counter("ack_timeout"), 0u);
}

// A queue pair that ends in the middle of a gap leaves nothing behind. The sanitizer would detect leaks.
TEST(ends_in_a_gap_free_what_is_kept) {
  EngineOptions options;
  options.longWindowBytes = 160 << 10;  // twice as much for all: two of these connections keep that much, three do not
  PathWorld w(quiet(), 1, options);
  Buffer source(*w.b, 8 * kMessage, kAllAccess, 1), to(*w.a, 8 * kMessage);
  const auto carry = w.net.filter;
  std::vector<std::unique_ptr<TestQp>> alive;
  uint32_t responses = 0;
  w.net.filter = [&](Frame& f) { return isResponse(f) && ++responses == 2 ? false : carry(f); };
  uint64_t kept = 0;
  for (uint32_t how : {0u, 1u, 2u, 0u, 1u, 2u}) {
    // The connections are not destroyed, because that would free everything.
    TestQp &qa = *alive.emplace_back(std::make_unique<TestQp>(*w.a, Reads::shaped())),
           &qb = *alive.emplace_back(std::make_unique<TestQp>(*w.b, Reads::shaped()));
    Link2 l;
    l.mtu = kMtu;
    l.extensions = extensions::kAll;
    w.connect(qa, qb, l);
    responses = 0;
    for (uint32_t i = 0; i < 8; i++)
      qa.post({kOpRead,
               kSendFlagSignaled,
               {{to.at(i * kMessage), kMessage, to.lkey}},
               0,
               source.at(i * kMessage),
               source.rkey});
    w.run(kRoundTrip + kRoundTrip / 2);
    CHECK(w.a->counter("kept_pkts") > kept + 100);
    kept = w.a->counter("kept_pkts");
    QpAttributes a;
    a.state = how == 0 ? kQpsError : kQpsReset;
    if (how < 2) CHECK(w.a->engine.modifyQp(qa.handle, qpmask::kState, a) == Status::kSuccess);
    w.run(kSecond / 10);
    CHECK_EQ(qa.sendCq.written(), how == 1 ? 0u : 8u);
  }
  CHECK_EQ(w.a->counter("unkept_pkts"), 0u);
}

// Re-requests for something never requested, with another key, beyond the request, or for half a packet get no
// response.
TEST(nonsensical_re_requests_get_no_response) {
  for (uint32_t kind = 0; kind < 6; kind++) {
    Reads r;
    uint32_t changed = 0;
    r.lose = [&](Frame& f) {
      if (isResponse(f) && f.bth().psn == answerPsn(5) && r.times[f.bth().psn] == 1) return true;
      if (!isReadRequest(f) || !f.bth().solicited || changed != 0) return false;
      changed = 1;
      wire::Reth reth = wire::parseReth(f.bytes.data() + wire::kBthBytes);
      if (kind == 0) reth.rkey ^= 0x100;
      if (kind == 1) reth.address -= kMtu;
      if (kind == 2) reth.length = kMessage;
      if (kind == 3) reth.length = 100;
      if (kind == 4) reth.length = 0;
      if (kind == 5) reth.address += uint64_t(1) << 40;
      wire::emitReth(f.bytes.data() + wire::kBthBytes, reth);
      return false;
    };
    for (uint32_t i = 0; i < 4; i++) r.read(i * kMessage, kMessage);
    CHECK(r.ends(4, kSecond / 2, 4 * kMessage));
    CHECK_EQ(changed, 1u);
    CHECK_EQ(r.w.b->counter("malformed_pkts"), 1u);
    CHECK_EQ(r.again, 1u);
  }
}

// A hostile peer sends responses of other kinds and other lengths behind a gap. The queue pair fails or continues, and
// nothing is written elsewhere.
TEST(nonsensical_responses_do_no_harm) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    Reads r;
    Random random(seed);
    r.lose = [&](Frame& f) {
      if (f.source != r.w.b->gid || !isResponse(f)) return false;
      if (f.bth().psn == answerPsn(1) && r.times[f.bth().psn] == 1) return true;
      if (!random.chance(0.1)) return false;
      wire::Bth bth = f.bth();
      bth.ackRequest = random.chance(0.5);
      if (random.chance(0.3)) bth.psn = wire::psnAdd(bth.psn, random.below(40));
      if (random.chance(0.3)) bth.opcode = uint8_t(wire::kOpReadFirst + random.below(6));
      wire::emitBth(f.bytes.data(), bth);
      if (random.chance(0.3)) f.bytes.resize(std::max<size_t>(32, f.bytes.size() - 4 * random.below(200)));
      return false;
    };
    Buffer behind(*r.w.a, 4096);
    for (uint32_t i = 0; i < 16; i++) r.read(i * kMessage, kMessage);
    CHECK(r.w.run(60 * kSecond, [&] { return r.qa.sendCq.written() == 16; }));
    for (uint64_t at = 16 * kMessage; at < Reads::kBytes; at++)
      if (r.to.data()[at] != 0) {
        CHECK(!"written where nothing was requested");
        break;
      }
  }
}

// The same READs run over a path that loses responses. With the agreement, little more is sent than was requested;
// without it, whole windows are sent again.
TEST(losses_of_responses_cost_what_is_lost) {
  uint64_t sent[2], took[2];
  for (uint32_t with : {0u, 1u}) {
    Reads r(with ? extensions::kAll : extensions::kAll & ~extensions::kLostResponses);
    Random fate(5);
    r.lose = [&](Frame& f) { return f.source == r.w.b->gid && fate.chance(0.02); };
    for (uint32_t i = 0; i < 128; i++) r.read(i * kMessage, kMessage);
    const uint64_t start = r.w.clock.time;
    CHECK(r.ends(128, 60 * kSecond, Reads::kBytes));
    sent[with] = r.responses;
    took[with] = r.w.clock.time - start;
  }
  CHECK(sent[1] <= 128 * kPackets * 104 / 100);
  CHECK(sent[0] > 128 * kPackets * 130 / 100);
  CHECK(took[1] * 2 < took[0]);
  if (std::getenv("FIGURES"))
    std::printf("sent %u and %u, ms %u and %u\n", unsigned(sent[0]), unsigned(sent[1]), unsigned(took[0] / 1000000),
                unsigned(took[1] / 1000000));
}
