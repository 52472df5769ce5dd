// Tests of paths that lose long packets (class Fragments of transport/extensions/fragments.h). A connection of two
// peers that have agreed on fragments continues with them, and returns to whole packets when the path allows it. For
// other peers, every packet conforms to the standard.
#include <cstdio>
#include <utility>

#include "objects/fragment_state.h"
#include "path_world.h"

using namespace world;

namespace {

constexpr uint32_t kMtu = 4096, kMessage = 100'000, kMessages = 24;
constexpr uint64_t kSecond = 1'000'000'000, kMs = 1'000'000;
constexpr uint32_t kFirst = 0xFFFFF0;  // PSNs wrap

constexpr uint32_t kJumbo = withPackets(kJumboPacket), kEthernet = withPackets(kEthernetPacket);

bool isFragment(const Frame& f) { return f.bytes[0] == wire::kOpFragment; }

// Sends messages of three kinds over a path that loses packets longer than `longest` (BTH to ICRC). Each direction has
// its own limit.
struct Narrow {
  PathWorld w;
  TestQp qa, qb;
  Buffer from, writes, receives, source, reads;
  uint32_t longest = UINT32_MAX, longestBack = UINT32_MAX;
  uint64_t swallowed = 0, fragments = 0;
  uint32_t bytes = kMessage;  // length of a message; the following ones are shorter
  size_t longestCome = 0;
  static PathShape quiet() {
    PathShape s;
    s.delayNs = kMs;
    s.queue = 4000;
    return s;
  }
  static QpShape shaped() {
    QpShape s;
    s.sendEntries = s.receiveEntries = 64;
    s.cqEntries = 256;
    return s;
  }
  static constexpr uint64_t kBytes = uint64_t(kMessage) * kMessages;
  explicit Narrow(uint32_t taken, const PathShape& path = quiet(), uint64_t seed = 1, uint32_t mtu = kMtu,
                  uint32_t psnB = Link2().psnB)
      : w(path, seed),
        qa(*w.a, shaped()),
        qb(*w.b, shaped()),
        from(*w.a, kBytes, kAllAccess, seed + 1),
        writes(*w.b, kBytes),
        receives(*w.b, kBytes),
        source(*w.b, kBytes, kAllAccess, seed + 2),
        reads(*w.a, kBytes) {
    Link2 l;
    l.mtu = mtu;
    l.ackTimeout = 15;
    l.extensions = taken;
    l.psnA = kFirst;
    l.psnB = psnB;
    w.connect(qa, qb, l);
    const auto carry = w.net.filter;
    w.net.filter = [this, carry](Frame& f) {
      fragments += isFragment(f);
      CHECK_EQ(f.bytes.size() % 4, 0u);
      if (f.bytes.size() + 4 <= (f.source == w.a->gid ? longest : longestBack)) {
        longestCome = std::max(longestCome, f.bytes.size());
        return carry(f);
      }
      swallowed++;
      return false;
    };
  }
  uint32_t lengthOf(uint32_t i) const { return bytes - i % 5 * (bytes / 101 | 1); }
  // Runs WRITE, SEND and READ alternately, or one of them alone. Returns 0, the status of a failed request, or a value
  // that means that not all have ended.
  uint32_t run(uint32_t only = UINT32_MAX, uint32_t count = kMessages) {
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t kind = only == UINT32_MAX ? i % 3 : only;
      const uint64_t at = uint64_t(i) * kMessage;
      if (kind == 1) qb.receive({{receives.at(at), kMessage, receives.lkey}});
      Wr r{kind == 1 ? kOpSend : kind == 2 ? kOpRead : kOpWrite, kSendFlagSignaled, {}};
      // Odd lengths need padding, and place the checksum where no fragment ends.
      r.sges = {{kind == 2 ? reads.at(at) : from.at(at), lengthOf(i), kind == 2 ? reads.lkey : from.lkey}};
      if (kind != 1) {
        r.remote = kind == 2 ? source.at(at) : writes.at(at);
        r.rkey = kind == 2 ? source.rkey : writes.rkey;
      }
      qa.post(r);
    }
    const uint32_t before = qa.sendCq.written();
    if (!w.run(60 * kSecond, [&] { return qa.sendCq.written() == before + count; })) return UINT32_MAX;
    for (const Cqe& c : qa.sendCq.drain())
      if (c.status != kWcSuccess) return c.status;
    qb.receiveCq.drain();
    bool same = true;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t kind = only == UINT32_MAX ? i % 3 : only;
      const uint64_t at = uint64_t(i) * kMessage;
      const uint8_t* sent = (kind == 2 ? source : from).data() + at;
      const uint8_t* came = (kind == 2 ? reads : kind == 1 ? receives : writes).data() + at;
      same &= std::memcmp(sent, came, lengthOf(i)) == 0;
    }
    CHECK(same);
    return 0;
  }
};

}  // namespace

// A tunnel of 1,280 bytes on a path of jumbo frames, in one direction or both.
TEST(connection_goes_on_where_long_packets_vanish) {
  for (uint32_t ways : {1u, 2u, 3u})
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t kind = i % 4 == 3 ? UINT32_MAX : i % 4;
      Narrow n(i < 4 ? uint32_t(extensions::kAll) : kJumbo);
      if (ways & 1) n.longest = 1252;
      if (ways & 2) n.longestBack = 1252;
      const uint64_t start = n.w.clock.time;
      if (!CHECK_EQ(n.run(kind), 0u)) std::printf("ways %u, kind %u\n", ways, kind);
      CHECK(n.w.clock.time - start < 2 * kSecond);
      if (n.swallowed == 0) continue;  // no long packets are sent in that direction
      CHECK(n.fragments > 0);
      CHECK(n.swallowed < 300);  // packets in flight, twice, and probes
      CHECK_EQ(n.w.b->counter("qp_fatal"), 0u);
    }
}

// The length is quartered again if the first quarter is too long as well. Also tests a path whose MTU is small from the
// start.
TEST(fragments_become_as_short_as_the_path_needs) {
  const std::pair<uint32_t, uint32_t> cases[] = {
      {4096, extensions::kAll}, {1024, extensions::kAll}, {4096, kJumbo}, {1024, kEthernet}};
  for (const auto& [mtu, taken] : cases) {
    Narrow n(taken, Narrow::quiet(), 1, mtu);
    n.longest = n.longestBack = 548;  // an MTU of 576
    CHECK_EQ(n.run(), 0u);
    CHECK(n.w.a->counter("black_hole") >= (mtu == 1024 && taken == extensions::kAll ? 1u : 2u));
  }
}

// Packets that are shorter than a quarter of the connection's MTU, yet still too long.
TEST(short_packets_may_be_too_long_as_well) {
  for (uint32_t kind : {0u, 1u, 2u}) {
    Narrow n(extensions::kAll);
    n.longest = n.longestBack = 548;
    n.bytes = 700;
    CHECK_EQ(n.run(kind), 0u);
    CHECK(n.fragments > 0);
  }
}

// Concurrent READs whose responses are too long even in quarters, with a peer that re-requests each response
// individually and with one that goes back.
TEST(concurrent_responses_become_as_short_as_needed) {
  for (uint32_t taken : {uint32_t(extensions::kAll), uint32_t(extensions::kAll & ~extensions::kLostResponses)})
    for (uint32_t bytes : {700u, 4096u, kMessage}) {
      Narrow n(taken);
      n.longest = n.longestBack = 548;
      n.bytes = bytes;
      if (!CHECK_EQ(n.run(2, 3), 0u)) std::printf("taken %u, %u bytes\n", taken, bytes);
      CHECK(n.fragments > 0);
    }
}

// Long packets are lost for a while, and then get through again. A probe detects this.
TEST(packets_leave_whole_again_when_the_path_allows_it) {
  const std::pair<uint32_t, uint32_t> cases[] = {{kMtu, extensions::kAll}, {kMtu, kJumbo}, {1024, kEthernet}};
  for (const auto& [mtu, taken] : cases) {
    Narrow n(taken, Narrow::quiet(), 1, mtu);
    n.longest = n.longestBack = 1252;
    CHECK_EQ(n.run(0), 0u);
    CHECK_EQ(n.w.a->counter("black_hole"), 1u);
    n.longest = n.longestBack = UINT32_MAX;
    n.w.run(30 * kSecond);
    CHECK_EQ(n.run(0), 0u);  // the run includes a probe
    const uint64_t before = n.fragments;
    n.longestCome = 0;
    CHECK_EQ(n.run(0), 0u);
    CHECK_EQ(n.fragments, before);
    const uint32_t agreed = extensions::packetBytes(taken);
    CHECK_EQ(n.longestCome, (agreed ? agreed : mtu) + wire::kBthBytes + wire::kRethBytes);
  }
}

// A router forwards packets of 4 KiB, but no jumbo frames. The first probe gets through, the second does not.
TEST(packets_become_as_long_as_the_path_takes) {
  Narrow n(kJumbo);
  n.longest = n.longestBack = 1252;
  CHECK_EQ(n.run(0), 0u);
  n.longest = n.longestBack = 4200;
  for (uint32_t i = 0; i < 20; i++) {
    n.w.run(30 * kSecond);
    CHECK_EQ(n.run(0), 0u);
  }
  n.longestCome = 0;
  CHECK_EQ(n.run(), 0u);
  CHECK(n.longestCome > 4096 && n.longestCome <= 4200);
}

// A probe may be lost for another reason than its length.
TEST(lost_probe_is_followed_by_another) {
  Narrow n(extensions::kAll);
  n.longest = n.longestBack = 1252;
  CHECK_EQ(n.run(0), 0u);
  n.w.run(30 * kSecond);
  const uint64_t before = n.swallowed;
  const auto carry = n.w.net.filter;
  n.longest = n.longestBack = UINT32_MAX;
  n.w.net.filter = [&](Frame& f) {
    if (isFragment(f) || f.bytes.size() < kMtu || n.swallowed != before) return carry(f);
    n.swallowed++;
    return false;
  };
  CHECK_EQ(n.run(0), 0u);
  CHECK_EQ(n.swallowed, before + 1);
  const uint64_t fragments = n.fragments;
  CHECK_EQ(n.run(0), 0u);
  CHECK_EQ(n.fragments, fragments);
}

// Lost probes cost one packet each, and become rare.
TEST(probes_become_rare) {
  Narrow n(extensions::kAll);
  n.longest = n.longestBack = 1252;
  CHECK_EQ(n.run(0), 0u);
  const uint64_t before = n.swallowed;
  for (uint32_t i = 0; i < 300; i++) {
    n.w.run(kSecond);
    CHECK_EQ(n.run(0, 2), 0u);
  }
  CHECK(n.swallowed > before);
  CHECK(n.swallowed - before <= 20);  // three probes each after 5, 10, 20, 40, 80 and 160 seconds
  CHECK_EQ(n.w.a->counter("black_hole"), 1u);
}

// After a short outage of a path, packets are whole again within a round trip.
TEST(outage_leaves_no_fragments) {
  Narrow n(extensions::kAll);
  CHECK_EQ(n.run(0), 0u);
  n.longest = n.longestBack = 0;
  bool up = false;
  const uint64_t end = n.w.clock.time + kSecond / 2;
  n.qa.post({kOpWrite, kSendFlagSignaled, {{n.from.at(), kMessage, n.from.lkey}}, 0, n.writes.at(), n.writes.rkey});
  CHECK(n.w.run(10 * kSecond, [&] {
    if (!up && n.w.clock.time >= end) {
      n.longest = n.longestBack = UINT32_MAX;
      up = true;
    }
    return n.qa.sendCq.written() == kMessages + 1;
  }));
  n.qa.sendCq.drain();
  CHECK(n.w.a->counter("black_hole") > 0);
  CHECK_EQ(n.run(0), 0u);
  const uint64_t before = n.fragments;
  CHECK_EQ(n.run(0), 0u);
  CHECK_EQ(n.fragments, before);
}

TEST(peers_without_the_agreement_get_no_fragment) {
  for (uint32_t taken : {0u, uint32_t(extensions::kLongWindow | extensions::kRecovery)}) {
    Narrow n(taken);
    n.longest = n.longestBack = 1252;
    CHECK_EQ(n.run(0), uint32_t(kWcTimeoutRetry));
    CHECK_EQ(n.fragments, 0u);
    CHECK_EQ(n.w.a->counter("black_hole"), 0u);
  }
}

// Other behavior of the network, by seed.
TEST(whatever_happens_to_fragments_each_byte_comes) {
  for (uint64_t seed = 1; seed <= 24; seed++) {
    PathShape path = Narrow::quiet();
    path.loss = seed % 3 * 0.01;
    path.reorder = seed / 3 % 2 * 0.02;
    path.duplicate = seed / 6 % 2 * 0.02;
    Narrow n(seed % 4 == 3 ? seed % 8 == 3 ? kEthernet : kJumbo : uint32_t(extensions::kAll), path, seed);
    (seed % 2 ? n.longest : n.longestBack) = 1252;
    if (seed % 5 == 0) n.longest = n.longestBack = 548;
    if (!CHECK_EQ(n.run(), 0u)) std::printf("seed %u\n", unsigned(seed));
    CHECK_EQ(n.w.b->counter("qp_fatal"), 0u);
  }
}

// A packet longer than any valid one.
TEST(fragments_have_the_room_of_one_packet) {
  Narrow n(extensions::kAll);
  for (uint32_t offset = 0; offset < 9216; offset += 3072) {
    Frame f;
    f.source = n.w.a->gid;
    f.destination = n.w.b->gid;
    f.bytes.resize(16 + 3072);
    wire::Bth bth;
    bth.opcode = wire::kOpFragment;
    bth.destinationQpn = n.qb.qpn;
    wire::emitBth(f.bytes.data(), bth);
    wire::store16(f.bytes.data() + 12, offset);
    wire::store16(f.bytes.data() + 14, 9216);
    {
      std::lock_guard<std::mutex> lock(n.w.net.mutex);
      n.w.net.frames.push_back(std::move(f));
    }
    n.w.pump();
  }
  CHECK_EQ(n.w.b->counter("malformed_pkts"), 3u);
  CHECK_EQ(n.run(), 0u);
}

// Fragments that no instance of this package sends have no effect, and the connection continues.
TEST(nonsensical_fragments_are_ignored) {
  Random random(7);
  for (uint32_t taken : {0u, uint32_t(extensions::kAll)}) {
    Narrow n(taken);
    for (uint32_t i = 0; i < 3000; i++) {
      Frame f;
      f.source = n.w.a->gid;
      f.destination = n.w.b->gid;
      f.bytes.resize(wire::kBthBytes + random.below(4200) / (1 + random.below(100)) * 4 / 4);
      for (uint8_t& byte : f.bytes) byte = uint8_t(random.next());
      wire::Bth bth;
      bth.opcode = wire::kOpFragment;
      bth.destinationQpn = random.below(8) ? n.qb.qpn : 0xABCDEF;
      bth.psn = random.below(2) ? 0xFFFFF0 + random.below(4) : uint32_t(random.next()) & wire::kPsnMask;
      wire::emitBth(f.bytes.data(), bth);
      if (f.bytes.size() >= 16) {
        wire::store16(f.bytes.data() + 12, random.below(2) ? 0 : random.below(5000));
        if (random.below(2)) wire::store16(f.bytes.data() + 14, uint32_t(f.bytes.size()) - 16 + random.below(3));
      }
      {
        std::lock_guard<std::mutex> lock(n.w.net.mutex);
        n.w.net.frames.push_back(std::move(f));
      }
      n.w.pump();
    }
    CHECK_EQ(n.run(), 0u);
    CHECK_EQ(n.w.b->counter("qp_fatal"), 0u);
    CHECK(taken ? n.w.b->counter("malformed_pkts") > 0 : n.w.b->counter("unknown_opcode") > 0);
  }
}

// Everything at the same time: fragments of a packet that arrive in one attempt count in the next.
TEST(connection_lives_where_long_packets_vanish_and_others_are_lost) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    PathShape path = Narrow::quiet();
    path.loss = path.reorder = path.duplicate = 0.02;
    Narrow n(seed % 2 ? uint32_t(extensions::kAll) : kJumbo, path, seed);
    (seed / 2 % 2 ? n.longest : n.longestBack) = 1252;
    if (!CHECK_EQ(n.run(), 0u)) std::printf("seed %u\n", unsigned(seed));
  }
}

// A SEND of `b` and its response to a READ have the same PSN and length, and parts of both are lost.
TEST(fragments_of_requests_and_of_responses_are_distinguished) {
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Narrow n(extensions::kAll, Narrow::quiet(), seed, kMtu, kFirst);
    n.longestBack = 1252;
    Random fate(seed);
    const auto carry = n.w.net.filter;
    n.w.net.filter = [&](Frame& f) { return !(isFragment(f) && fate.chance(0.05)) && carry(f); };
    Buffer sent(*n.w.b, Narrow::kBytes, kAllAccess, seed + 3), come(*n.w.a, Narrow::kBytes);
    for (uint64_t at = 0; at < Narrow::kBytes; at += kMessage) {
      n.qa.receive({{come.at(at), kMessage, come.lkey}});
      n.qb.post({kOpSend, kSendFlagSignaled, {{sent.at(at), kMessage, sent.lkey}}});
    }
    CHECK_EQ(n.run(2), 0u);
    CHECK(n.w.run(60 * kSecond, [&] { return n.qb.sendCq.written() == kMessages; }));
    for (const Cqe& c : n.qb.sendCq.drain()) CHECK_EQ(c.status, uint32_t(kWcSuccess));
    CHECK(std::memcmp(sent.data(), come.data(), Narrow::kBytes) == 0);
    CHECK(n.fragments > 0);
  }
}

// Fragments of four packets may arrive mixed; one that is more than two seconds late may belong to another packet.
TEST(fragments_are_of_one_packet) {
  FragmentAssemblies all;
  constexpr uint64_t kNow = 10 * kSecond, kLast = FragmentAssemblies::kLastNs;
  const auto come = [&](uint32_t psn, uint32_t total, uint64_t now) -> FragmentAssembly& {
    FragmentAssembly& a = all.of(0, psn, total, now);
    a.at = now;
    return a;
  };
  FragmentAssembly& first = come(1, 1000, kNow);
  CHECK_EQ(first.missing, 4u);
  first.missing = 1;
  for (uint32_t psn = 2; psn <= 4; psn++) CHECK(&come(psn, 1000, kNow + psn) != &first);
  CHECK(&come(1, 1000, kNow + kLast) == &first);
  CHECK_EQ(first.missing, 1u);
  CHECK_EQ(come(1, 1000, kNow + 2 * kLast + 1).missing, 4u);
  CHECK_EQ(come(1, 1004, kNow + 2 * kLast + 2).missing, 4u);
  // A fragment of another kind belongs to another packet.
  FragmentAssemblies kinds;
  FragmentAssembly& request = kinds.of(0, 1, 1000, kNow);
  for (uint8_t kind = 1; kind <= 2; kind++) CHECK(&kinds.of(kind, 1, 1000, kNow) != &request);
  // The oldest packet is evicted.
  FragmentAssemblies full;
  FragmentAssembly& oldest = full.of(0, 1, 1000, kNow);
  for (uint32_t psn = 2; psn <= 4; psn++) full.of(0, psn, 1000, kNow + psn).at = kNow + psn;
  CHECK(&full.of(0, 5, 1000, kNow + 5) == &oldest);
}

// Every third fragment is overtaken by five others. No packet is lost because of that.
TEST(fragments_come_in_any_order) {
  PathShape path = Narrow::quiet();
  for (const uint32_t taken : {uint32_t(extensions::kAll), kJumbo}) {
    Narrow n(taken, path);
    n.longest = 1252;
    CHECK_EQ(n.run(0), 0u);
    n.w.shape.reorder = 0.3;
    const uint64_t before = n.w.a->counter("retransmitted_pkts");
    CHECK_EQ(n.run(0), 0u);
    const uint64_t again = n.w.a->counter("retransmitted_pkts") - before;
    if (!CHECK(again <= 40)) std::printf("%u retransmitted\n", unsigned(again));
  }
}
