// For single small packets over the network, the fast path is a shortcut and nothing else. The same program sends the
// same packets and produces the same memory, completions, events and counters on a link that has the fast path and on
// one that does not.
#include "small_program.h"

using namespace world;

namespace {

struct OnWire : SmallProgram<World> {
  const bool forges;
  OnWire(uint64_t seed, bool takesSingle, const EngineOptions& options)
      : SmallProgram(seed, options, 64, 10), forges(seed % 2 == 0) {
    a->link.takesSingle = b->link.takesSingle = takesSingle;
    net.logging = true;
  }
  void disturb(uint32_t kind) override {
    switch (kind) {
      case 0: net.ecn = random.below(3) ? 0 : wire::kCongestionExperienced; break;
      case 1: net.faults.drop = random.below(3) ? 0 : 0.1; break;
      case 2: net.faults.reorder = net.faults.duplicate = random.below(3) ? 0 : 0.1; break;
      default:
        if (forges) forge();
        break;
    }
  }
  // Packets that neither side sends: from another sender, to another receiver, duplicated, longer, shorter, or with a
  // bit flipped. Each is sent in addition to a packet in flight, or replaces it.
  void forge() {
    std::lock_guard<std::mutex> lock(net.mutex);
    const bool replaces = !net.frames.empty() && random.below(2);
    if (!replaces && net.log.empty()) return;
    const uint32_t newest = std::min<uint32_t>(uint32_t(net.log.size()), 12);
    const uint32_t at = random.below(replaces ? uint32_t(net.frames.size()) : newest);
    Frame f = replaces ? net.frames[at] : net.log[net.log.size() - 1 - at];
    f.port = f.destination;
    std::vector<uint8_t>& bytes = f.bytes;
    switch (random.below(9)) {
      case 0: f.source.raw[15] ^= 0x40; break;
      case 1: f.destination.raw[15] ^= 0x40; break;
      case 2: bytes[3] ^= 1; break;
      case 3: bytes[1] ^= uint8_t(1u << random.below(8)); break;
      case 4:
        if (!isAddressed(bytes[0]))
          bytes[0] = uint8_t(random.below(2) ? uint32_t(wire::kOpSendOnly) : random.below(24));
        break;
      case 5: bytes.resize(bytes.size() + 4); break;
      case 6: bytes.resize(bytes.size() - 4 * random.below(uint32_t(bytes.size() - wire::kBthBytes) / 4 + 1)); break;
      case 7:
        if (bytes.size() > wire::kBthBytes) bytes[wire::kBthBytes + random.below(4)] ^= uint8_t(1u << random.below(8));
        break;
      default: break;
    }
    if (random.below(3) == 0) bytes[11] = uint8_t(bytes[11] + random.below(3));
    if (replaces) net.frames[at] = std::move(f);
    else net.frames.push_back(std::move(f));
  }
  static bool isAddressed(uint8_t opcode) {
    const uint32_t flags = wire::kOpcodes[opcode].flags;
    return (flags & wire::kReth) || ((flags & wire::kAtomic) && (flags & wire::kRequest));
  }
  // Numbers and addresses that differ from run to run are omitted.
  void log(Outcome* o) {
    for (const Frame& f : net.log) {
      std::vector<uint8_t> bytes = f.bytes;
      const uint32_t qpn = f.bth().destinationQpn;
      std::memset(bytes.data() + 5, qpn == qa.qpn ? 1 : qpn == qb.qpn ? 2 : 3, 3);
      if (isAddressed(bytes[0]) && bytes.size() >= wire::kBthBytes + wire::kRethBytes) {
        const wire::Reth reth = wire::parseReth(bytes.data() + wire::kBthBytes);
        const uint64_t base = reth.address - ma.at() < kArena ? ma.at() : reth.address - mb.at() < kArena ? mb.at() : 0;
        wire::emitReth(bytes.data() + wire::kBthBytes, {reth.address - base, 0, reth.length});
      }
      bytes.push_back(f.source == a->gid ? 1 : 2);
      bytes.push_back(f.trafficClass);
      o->frames.push_back(std::move(bytes));
    }
  }
  Outcome whole(uint32_t steps) {
    run(steps);
    net.faults = {};
    net.ecn = 0;
    Outcome o = outcome();
    log(&o);
    return o;
  }
};

}  // namespace

TEST(fast_wire_changes_nothing) {
  uint64_t fast = 0, single = 0;
  for (uint64_t seed = 1; seed <= check::seeds(200); seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    EngineOptions options;
    if (seed % 3 == 0) options.window = 4;
    const Outcome with = OnWire(seed, true, options).whole(2000), without = OnWire(seed, false, options).whole(2000);
    CHECK_EQ(without.fast + without.single, 0u);
    fast += with.fast;
    single += with.single;
    CHECK(with.completions == without.completions);
    CHECK(with.events == without.events);
    CHECK(with.memory == without.memory);
    CHECK(with.frames == without.frames);
    CHECK(with.counters == without.counters);
  }
  CHECK(fast > check::seeds(10'000) && single > check::seeds(10'000));
}

// A request that binds a memory window is queued between two messages and uses no PSN. Acknowledging one packet of the
// second message, which has three, does not complete that message.
TEST(fast_wire_acknowledgement_of_a_part_of_a_message_behind_local_work) {
  Pair p;
  p.a->link.takesSingle = p.b->link.takesSingle = true;
  Buffer from(*p.a, 4096, kAllAccess, 1), to(*p.b, 4096);
  for (int i = 0; i < 3; i++) p.qb.receive({{to.at(), 4096, to.lkey}});
  p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}});
  p.pump();
  only(p.qa.sendCq, 0, kOpSend, kWcSuccess);
  Window window(*p.a);
  p.net.filter = [&](Frame& f) { return f.source == p.b->gid || f.bth().psn <= 102; };
  p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 8, from.lkey}}});
  p.qa.post(window.bind(from, 64));
  p.qa.post({kOpSend, kSendFlagSignaled, {{from.at(), 3000, from.lkey}}});
  p.pump();
  CHECK_EQ(p.qb.receiveCq.written(), 2u);
  const auto ended = p.qa.sendCq.drain();
  if (CHECK_EQ(ended.size(), 2u)) CHECK_EQ(ended[1].opcode, kOpBindWindow);
  p.net.filter = nullptr;
  CHECK(p.until([&] { return p.qa.sendCq.written() == 4; }));
  only(p.qa.sendCq, 3, kOpSend, kWcSuccess);
  CHECK_EQ(p.qb.receiveCq.written(), 3u);
  CHECK(std::memcmp(from.data(), to.data(), 3000) == 0);
}

// A bind completes when the messages before it are acknowledged. If only some of them are acknowledged, the rest, which
// did not request an acknowledgement, request one immediately and not after a timeout.
TEST(fast_wire_acknowledgement_of_a_part_of_what_local_work_waits_for) {
  Pair p;
  p.a->link.takesSingle = p.b->link.takesSingle = true;
  Buffer from(*p.a, 4096, kAllAccess, 1), to(*p.b, 4096);
  const auto write = [&](uint32_t flags) {
    p.qa.post({kOpWrite, flags, {{from.at(), 8, from.lkey}}, 0, to.at(), to.rkey});
  };
  write(kSendFlagSignaled);  // the round trip is known from now on
  p.pump();
  only(p.qa.sendCq, 0, kOpWrite, kWcSuccess);
  Window window(*p.a);
  const uint64_t start = p.clock.time;
  write(kSendFlagSignaled);
  p.b->step();  // the peer responds immediately
  write(0);
  p.qa.post(window.bind(from, 64));
  p.pump();
  const auto ended = p.qa.sendCq.drain();
  if (CHECK_EQ(ended.size(), 2u)) CHECK_EQ(ended[1].opcode, kOpBindWindow);
  CHECK_EQ(p.clock.time, start);
}
