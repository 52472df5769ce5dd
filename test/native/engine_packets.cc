// Tests of packets whose length both peers have agreed on (extensions::kLongPackets) and is not a power of two.
// Messages of every length are segmented and reassembled, PSNs count these packets, and no other peer gets one.
#include <cstdio>

#include "path_world.h"

using namespace world;

namespace {

constexpr uint32_t kPackets[] = {264, kEthernetPacket, 8912, kJumboPacket, extensions::kPacketBytesLongest};
constexpr uint64_t kSecond = 1'000'000'000;

bool carriesData(const Frame& f) { return (wire::kOpcodes[f.bytes[0]].flags & wire::kCarriesData) != 0; }
uint32_t payloadOf(const Frame& f) {
  return uint32_t(f.bytes.size()) - wire::kOpcodes[f.bytes[0]].headerBytes - wire::parseBth(f.bytes.data()).pad;
}

// Sends messages of each kind, one after the other, and examines their packets.
struct Cut : World {
  TestQp qa, qb;
  Buffer mine, theirs;
  uint32_t packets = 0, longest = 0;
  static Link2 linkOf(uint32_t mtu, uint32_t taken) {
    Link2 l;
    l.mtu = mtu;
    l.extensions = taken;
    l.psnA = 0xFFFFFD;  // PSNs wrap
    return l;
  }
  Cut(uint32_t mtu, uint32_t taken, uint64_t bytes)
      : qa(*a), qb(*b), mine(*a, bytes, kAllAccess, 3), theirs(*b, bytes, kAllAccess, 5) {
    connect(qa, qb, linkOf(mtu, taken));
    net.filter = [this](Frame& f) {
      if (carriesData(f)) {
        packets++;
        longest = std::max(longest, payloadOf(f));
      }
      return true;
    };
  }
  // Checks that the bytes arrive, and that none around them change.
  bool moves(uint32_t opcode, uint32_t length) {
    packets = longest = 0;
    Buffer& to = opcode == kOpRead ? mine : theirs;
    Buffer& from = opcode == kOpRead ? theirs : mine;
    std::memset(to.data(), 0xEE, length + 8);
    if (opcode == kOpSend) qb.receive({{theirs.at(), uint32_t(theirs.size), theirs.lkey}});
    qa.post({opcode, kSendFlagSignaled, {{mine.at(), length, mine.lkey}}, 0, theirs.at(), theirs.rkey});
    if (!until([&] { return qa.sendCq.written() != 0; })) return false;
    bool good = true;
    for (const Cqe& c : qa.sendCq.drain()) good &= c.status == kWcSuccess;
    for (const Cqe& c : qb.receiveCq.drain()) good &= c.status == kWcSuccess && c.length == length;
    good &= std::memcmp(from.data(), to.data(), length) == 0;
    for (uint32_t i = 0; i < 8; i++) good &= to.data()[length + i] == 0xEE;
    return good;
  }
};

}  // namespace

TEST(messages_of_each_length_are_cut_into_packets_of_the_agreed_one) {
  for (const uint32_t bytes : kPackets)
    for (const uint32_t opcode : {uint32_t(kOpWrite), uint32_t(kOpSend), uint32_t(kOpRead)}) {
      Cut w(256, withPackets(bytes), 4 * bytes + 64);
      for (uint32_t whole = 0; whole <= 3; whole++)
        for (const int32_t more : {-9, -8, -5, -4, -1, 0, 1, 3, 4, 7, 8}) {
          if (whole == 0 && more < 0) continue;
          const uint32_t length = whole * bytes + uint32_t(more);
          const bool good = CHECK(w.moves(opcode, length)) &
                            CHECK_EQ(w.packets, length == 0 ? 1u : (length + bytes - 1) / bytes) &
                            CHECK_EQ(w.longest, std::min(length, bytes));
          if (!good) std::printf("packets of %u, opcode %u, %u bytes\n", bytes, opcode, length);
        }
    }
}

// The bit alone has no effect, and standard peers get packets of the path MTU.
TEST(without_an_agreed_length_packets_are_those_of_the_path_mtu) {
  for (const uint32_t taken : {0u, uint32_t(extensions::kLongPackets), uint32_t(extensions::kAll)})
    for (const uint32_t mtu : {256u, 1024u, 4096u}) {
      Cut w(mtu, taken, 50'000);
      CHECK(w.moves(kOpWrite, 40'001));
      CHECK_EQ(w.longest, mtu);
      CHECK_EQ(w.packets, 40'001 / mtu + 1);
    }
}

// If the two peers count differently, such a packet is refused, and nothing is written.
TEST(packet_of_another_length_is_refused) {
  for (const uint32_t theirs :
       {0u, withPackets(kJumboPacket), withPackets(kEthernetPacket + 8), withPackets(kEthernetPacket - 8)}) {
    World w;
    TestQp qa(*w.a), qb(*w.b);
    Buffer from(*w.a, 50'000, kAllAccess, 3), to(*w.b, 50'000);
    bring(qa, w.b->gid, qb.qpn, Cut::linkOf(1024, withPackets(kEthernetPacket)), true);
    bring(qb, w.a->gid, qa.qpn, Cut::linkOf(1024, theirs), false);
    qa.post({kOpWrite, kSendFlagSignaled, {{from.at(), 50'000, from.lkey}}, 0, to.at(), to.rkey});
    CHECK(w.until([&] { return qa.sendCq.written() != 0; }));
    for (const Cqe& c : qa.sendCq.drain()) CHECK_EQ(c.status, uint32_t(kWcRemoteInvalidRequest));
    CHECK_EQ(to.data()[0], 0);
  }
}

// READs whose responses are lost get them again from any packet on, whole or in parts, with and without the agreements
// for that.
TEST(parts_of_responses_begin_at_packets_of_the_agreed_length) {
  constexpr uint32_t kReads = 24, kEach = 150'001;
  const uint32_t agreements[] = {0, extensions::kRecovery, extensions::kAll};
  for (uint64_t seed = 0; seed < 36; seed++) {
    PathShape path;
    path.delayNs = 1'000'000;
    path.queue = 4000;
    path.loss = seed % 2 * 0.02;
    const uint32_t bytes = kPackets[seed % 5], taken = withPackets(bytes, agreements[seed % 3]);
    PathWorld w(path, seed);
    TestQp qa(*w.a), qb(*w.b);
    Buffer source(*w.b, kReads * kEach, kAllAccess, seed + 1), to(*w.a, kReads * kEach);
    Link2 l = Cut::linkOf(256, taken);
    l.ackTimeout = 15;
    w.connect(qa, qb, l);
    Random fate(seed + 100);
    uint32_t longest = 0;
    const auto carry = w.net.filter;
    w.net.filter = [&](Frame& f) {
      if (carriesData(f)) longest = std::max(longest, payloadOf(f));
      return f.source == w.b->gid && fate.chance(0.02) ? false : carry(f);
    };
    for (uint32_t i = 0; i < kReads; i++)
      qa.post(
          {kOpRead, kSendFlagSignaled, {{to.at(i * kEach), kEach - i, to.lkey}}, 0, source.at(i * kEach), source.rkey});
    const bool done = w.run(300 * kSecond, [&] { return qa.sendCq.written() == kReads; });
    bool good = CHECK(done);
    for (const Cqe& c : qa.sendCq.drain()) good &= CHECK_EQ(c.status, uint32_t(kWcSuccess));
    for (uint32_t i = 0; i < kReads; i++)
      good &= CHECK(std::memcmp(source.data() + i * kEach, to.data() + i * kEach, kEach - i) == 0);
    good &= CHECK_EQ(longest, bytes);
    good &= CHECK_EQ(w.b->counter("malformed_pkts"), 0u);  // each re-request is valid
    if (!good) std::printf("seed %u: packets of %u\n", unsigned(seed), bytes);
  }
}
