// Tests of selective retransmission (transport/extensions/selective_ack.h). Only missing packets are retransmitted,
// whatever the network does. For peers without the agreement, every packet conforms to the standard.
#include <cstdio>

#include "path_world.h"

using namespace world;

namespace {

constexpr uint32_t kMtu = 1024, kMessage = 64 << 10;
constexpr uint64_t kSecond = 1'000'000'000;

Link2 linkOf(uint32_t taken) {
  Link2 l;
  l.mtu = kMtu;
  l.ackTimeout = 17;
  l.extensions = taken;
  l.psnA = 0xFFFF00;  // PSNs wrap
  l.psnB = 0xFFFFF0;
  return l;
}

// Whether a frame is an acknowledgement with a payload, which the standard does not have.
bool isReport(const Frame& f) {
  return f.bth().opcode == wire::kOpAcknowledge && f.bytes.size() != wire::kBthBytes + wire::kAethBytes;
}

PathShape quiet() {
  PathShape s;
  s.delayNs = 2'000'000;
  s.bytesPerSecond = 125'000'000;
  s.queue = 4000;
  return s;
}

// Sends the given number of messages of different kinds with different bytes, receives them, and compares the bytes.
struct Mixed {
  PathWorld w;
  QpShape shape;
  TestQp qa, qb;
  uint32_t count;
  Buffer from, writes, receives, source, reads;
  uint64_t reports = 0;
  static QpShape shaped() {
    QpShape s;
    s.sendEntries = s.receiveEntries = 256;
    s.cqEntries = 512;
    return s;
  }
  Mixed(const PathShape& path, uint64_t seed, uint32_t taken, uint32_t messages)
      : w(path, seed),
        shape(shaped()),
        qa(*w.a, shape),
        qb(*w.b, shape),
        count(messages),
        from(*w.a, uint64_t(kMessage) * messages, kAllAccess, seed + 1),
        writes(*w.b, uint64_t(kMessage) * messages),
        receives(*w.b, uint64_t(kMessage) * messages),
        source(*w.b, uint64_t(kMessage) * messages, kAllAccess, seed + 2),
        reads(*w.a, uint64_t(kMessage) * messages) {
    w.connect(qa, qb, linkOf(taken));
    const auto carry = w.net.filter;
    w.net.filter = [this, carry](Frame& f) {
      reports += isReport(f);
      return carry(f);
    };
  }
  // 0: only writes; 1: a mixture by seed.
  bool run(Random& random, bool mixed) {
    std::vector<uint32_t> kinds, lengths;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t kind = mixed ? random.below(4) : 0;
      const uint32_t length = mixed ? 1 + random.below(kMessage) : kMessage;
      kinds.push_back(kind);
      lengths.push_back(length);
      const uint64_t at = uint64_t(i) * kMessage;
      if (kind == 1) qb.receive({{receives.at(at), kMessage, receives.lkey}});
      Wr r{kind == 1 ? kOpSend : kind == 2 ? kOpRead : kOpWrite, kSendFlagSignaled, {}};
      r.sges = {{kind == 2 ? reads.at(at) : from.at(at), length, kind == 2 ? reads.lkey : from.lkey}};
      if (kind != 1) {
        r.remote = kind == 2 ? source.at(at) : writes.at(at);
        r.rkey = kind == 2 ? source.rkey : writes.rkey;
      }
      qa.post(r);
    }
    if (!w.run(60 * kSecond, [&] { return qa.sendCq.written() == count; })) return false;
    bool good = true;
    for (const Cqe& c : qa.sendCq.drain()) good &= c.status == kWcSuccess;
    for (const Cqe& c : qb.receiveCq.drain()) good &= c.status == kWcSuccess;
    for (uint32_t i = 0; i < count; i++) {
      const uint64_t at = uint64_t(i) * kMessage;
      const uint8_t* sent = kinds[i] == 2 ? source.data() + at : from.data() + at;
      const uint8_t* came = (kinds[i] == 1 ? receives.data() : kinds[i] == 2 ? reads.data() : writes.data()) + at;
      good &= std::memcmp(sent, came, lengths[i]) == 0;
    }
    return good;
  }
};

}  // namespace

// One packet of a long window is lost, and only that one is retransmitted.
TEST(one_lost_packet_is_sent_again_alone) {
  Mixed m(quiet(), 1, extensions::kAll, 8);
  uint32_t n = 0;
  const auto carry = m.w.net.filter;
  m.w.net.filter = [&](Frame& f) { return f.source == m.w.a->gid && n++ == 40 ? false : carry(f); };
  Random random(1);
  CHECK(m.run(random, false));
  CHECK_EQ(m.w.a->counter("retransmitted_pkts"), 1u);
  CHECK_EQ(m.w.a->counter("lost_pkts"), 1u);
  CHECK_EQ(m.w.a->counter("ack_timeout"), 0u);
  CHECK(m.reports > 0);
}

TEST(losses_are_repaired_by_as_many_packets) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    PathShape path = quiet();
    path.loss = 0.02;
    Mixed m(path, seed, extensions::kAll, 64);
    Random random(seed);
    CHECK(m.run(random, false));
    const uint64_t again = m.w.a->counter("retransmitted_pkts");
    if (!CHECK(again >= m.w.lost) || !CHECK(again <= m.w.lost + m.w.lost / 4 + 4))
      std::printf("seed %u: %u lost, %u retransmitted\n", unsigned(seed), unsigned(m.w.lost), unsigned(again));
    CHECK_EQ(m.w.a->counter("ack_timeout"), 0u);
  }
}

// The network does everything that networks do, by seed. Each byte arrives, and only once.
TEST(whatever_the_network_does_each_byte_comes) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    PathShape path = quiet();
    path.loss = seed % 4 * 0.02;
    path.reorder = seed / 4 % 3 * 0.05;
    path.duplicate = seed / 12 % 3 * 0.05;
    Mixed m(path, seed, seed % 2 ? uint32_t(extensions::kAll) : withPackets(kEthernetPacket), 64);
    Random random(seed);
    if (!CHECK(m.run(random, true))) std::printf("seed %u\n", unsigned(seed));
    CHECK_EQ(m.w.b->counter("qp_fatal"), 0u);
  }
}

// The same test with lost responses.
TEST(whatever_responses_are_lost_each_byte_arrives) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    PathShape path = quiet();
    path.loss = 0.01;
    Mixed m(path, seed, seed % 2 ? uint32_t(extensions::kAll) : withPackets(kEthernetPacket), 64);
    Random random(seed), fate(seed + 100);
    const auto carry = m.w.net.filter;
    m.w.net.filter = [&](Frame& f) { return f.source == m.w.b->gid && fate.chance(0.1) ? false : carry(f); };
    if (!CHECK(m.run(random, true))) std::printf("seed %u\n", unsigned(seed));
  }
}

TEST(reordering_is_no_loss) {
  PathShape path = quiet();
  path.reorder = 0.05;
  path.bytesPerSecond = 1'250'000'000;
  Mixed m(path, 3, extensions::kAll, 64);
  Random random(3);
  CHECK(m.run(random, false));
  // A packet arrives behind five others that should follow it. The sender waits for only three, so some packets are
  // retransmitted needlessly, but none twice.
  CHECK(m.w.a->counter("retransmitted_pkts") <= 64 * (kMessage / kMtu) / 10);
  CHECK_EQ(m.w.a->counter("ack_timeout"), 0u);
}

// A packet that two others overtake counts as late; one that three overtake counts as lost (RFC 6675's DupThresh). Each
// packet is reported, and the last ones wait for the late one.
TEST(two_may_overtake_and_three_mean_a_loss) {
  for (uint32_t overtake : {1u, 2u, 3u, 6u}) {
    Mixed m(quiet(), 1, extensions::kAll, 1);
    constexpr uint32_t packets = 60, late = 40;
    const auto carry = m.w.net.filter;
    uint32_t n = 0;
    Frame held;
    m.w.net.filter = [&](Frame& f) {
      if (f.source != m.w.a->gid) return carry(f);
      const uint32_t at = n++;
      if (at == late) held = f;
      else carry(f);
      if (at == late + overtake) carry(held);
      return false;
    };
    for (uint32_t i = 0; i < packets; i++)
      m.qa.post({kOpWrite,
                 kSendFlagSignaled,
                 {{m.from.at(i * kMtu), kMtu, m.from.lkey}},
                 0,
                 m.writes.at(i * kMtu),
                 m.writes.rkey});
    CHECK(m.w.run(kSecond, [&] { return m.qa.sendCq.written() == packets; }));
    m.w.run(kSecond / 10);
    CHECK_EQ(m.w.a->counter("lost_pkts"), overtake < 3 ? 0u : 1u);
    CHECK_EQ(m.w.a->counter("retransmitted_pkts"), overtake < 3 ? 0u : 1u);
    CHECK_EQ(m.w.a->counter("tail_probe") + m.w.a->counter("ack_timeout"), 0u);
    CHECK(m.w.b->counter("kept_pkts") >= overtake);
  }
}

// The last packets, or all of a window, are lost. A probe detects the loss, and the missing packets are retransmitted.
TEST(lost_tail_is_repaired_without_a_time_out) {
  for (uint32_t tail : {1u, 5u, 60u}) {
    Mixed m(quiet(), 1, extensions::kAll, 2);
    const uint32_t packets = 2 * kMessage / kMtu;
    uint32_t n = 0;
    const auto carry = m.w.net.filter;
    // The first responses reveal the round trip.
    m.w.net.filter = [&](Frame& f) {
      if (f.source != m.w.a->gid) return carry(f);
      n++;
      return n > packets - tail && n <= packets ? false : carry(f);
    };
    Random random(1);
    const uint64_t start = m.w.clock.time;
    CHECK(m.run(random, false));
    CHECK(m.w.clock.time - start < 60'000'000);  // the timeout is 0.67 s
    CHECK_EQ(m.w.a->counter("ack_timeout"), 0u);
    CHECK(m.w.a->counter("retransmitted_pkts") <= tail + 3);
  }
}

// Without the agreement, the sender uses go-back-N, and no acknowledgement has a payload.
TEST(peers_without_the_agreement_get_the_standards_packets) {
  PathShape path = quiet();
  path.loss = 0.02;
  path.reorder = 0.02;
  for (uint32_t taken : {0u, uint32_t(extensions::kLongWindow)}) {
    Mixed m(path, 5, taken, 64);
    Random random(5);
    CHECK(m.run(random, true));
    CHECK_EQ(m.reports, 0u);
    CHECK_EQ(m.w.b->counter("kept_pkts"), 0u);
    CHECK_EQ(m.w.a->counter("rcvd_report"), 0u);
    CHECK(m.w.a->counter("retransmitted_pkts") > 0);
  }
}

// A report from a peer that has not agreed, or an invalid report, changes nothing.
TEST(nonsensical_reports_are_ignored) {
  Mixed m(quiet(), 1, extensions::kAll, 4);
  const auto carry = m.w.net.filter;
  Random random(9);
  uint32_t n = 0;
  m.w.net.filter = [&](Frame& f) {
    if (f.source == m.w.b->gid && f.bth().opcode == wire::kOpAcknowledge && ++n % 2 == 0) {
      for (uint32_t i = 0; i < 4 * (1 + random.below(9)); i++) f.bytes.push_back(uint8_t(random.next()));
    }
    return carry(f);
  };
  CHECK(m.run(random, false));
}

TEST(reports_of_what_was_never_sent_are_ignored) {
  Mixed m(quiet(), 1, extensions::kAll, 4);
  const auto carry = m.w.net.filter;
  uint32_t told = 0;
  m.w.net.filter = [&](Frame& f) {
    if (f.source == m.w.b->gid && f.bth().opcode == wire::kOpAcknowledge) {
      told++;
      for (const uint32_t ahead : {5000u, 5010u}) {
        uint8_t psn[4];
        wire::store32(psn, wire::psnAdd(f.bth().psn, ahead));
        f.bytes.insert(f.bytes.end(), psn, psn + 4);
      }
    }
    return carry(f);
  };
  Random random(1);
  CHECK(m.run(random, false));
  CHECK(told > 0);
  CHECK_EQ(m.w.a->counter("retransmitted_pkts"), 0u);
}

// Packets behind the retransmitted one show that it is lost again, so neither a probe nor a timeout is needed.
TEST(a_packet_that_is_lost_twice_is_noticed_by_what_follows) {
  Mixed m(quiet(), 1, extensions::kAll, 64);
  const auto carry = m.w.net.filter;
  const uint32_t victim = wire::psnAdd(linkOf(0).psnA, 100);
  uint32_t seen = 0;
  m.w.net.filter = [&](Frame& f) {
    if (f.source == m.w.a->gid && f.bth().psn == victim && ++seen <= 2) return false;
    return carry(f);
  };
  Random random(1);
  CHECK(m.run(random, false));
  CHECK_EQ(seen, 3u);
  CHECK_EQ(m.w.a->counter("tail_probe"), 0u);
  CHECK_EQ(m.w.a->counter("ack_timeout"), 0u);
}

// Kept packets are freed when the gap closes, when the queue pair fails, and when it ends.
TEST(kept_packets_are_bounded_and_freed) {
  EngineOptions options;
  options.longWindowBytes = 64 << 10;
  PathWorld w(quiet(), 1, options);
  TestQp qa(*w.a), qb(*w.b);
  w.connect(qa, qb, linkOf(extensions::kAll));
  Buffer from(*w.a, 1 << 20, kAllAccess, 1), to(*w.b, 1 << 20);
  uint32_t n = 0;
  const auto carry = w.net.filter;
  w.net.filter = [&](Frame& f) { return f.source == w.a->gid && n++ == 0 ? false : carry(f); };
  for (uint32_t i = 0; i < 8; i++)
    qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 1 << 17, from.lkey}}, 0, to.at(), to.rkey});
  CHECK(w.run(10 * kSecond, [&] { return qa.sendCq.written() == 8; }));
  CHECK(w.b->counter("unkept_pkts") > 0);
  CHECK(w.b->counter("kept_pkts") <= 64 + w.b->counter("out_of_seq_request"));
  CHECK(std::memcmp(from.data(), to.data(), 1 << 17) == 0);
}

TEST(receives_that_come_late_and_gaps_go_together) {
  for (uint64_t seed = 1; seed <= 10; seed++) {
    PathShape path = quiet();
    path.loss = 0.03;
    PathWorld w(path, seed);
    TestQp qa(*w.a), qb(*w.b);
    w.connect(qa, qb, linkOf(extensions::kAll));
    constexpr uint32_t kCount = 40, kBytes = 5000;
    Buffer from(*w.a, kCount * kBytes, kAllAccess, seed), to(*w.b, kCount * kBytes);
    for (uint32_t i = 0; i < kCount; i++)
      qa.post({kOpSend, kSendFlagSignaled, {{from.at(i * kBytes), kBytes, from.lkey}}});
    for (uint32_t i = 0; i < kCount; i++) {
      w.run(i % 5 == 0 ? 8'000'000 : 0);
      qb.receive({{to.at(i * kBytes), kBytes, to.lkey}});
    }
    CHECK(w.run(60 * kSecond, [&] { return qa.sendCq.written() == kCount; }));
    for (const Cqe& c : qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), kCount * kBytes) == 0);
  }
}
