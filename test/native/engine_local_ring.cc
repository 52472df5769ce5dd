// Tests of the ring between two processes: wrapping, full, empty, invalid counters, and a peer that writes arbitrary
// bytes anywhere in the segment.
#include "local_world.h"

using namespace world;

namespace {

struct RingPair {
  std::unique_ptr<LocalRing> ring = std::make_unique<LocalRing>();
  uint64_t consumed = 0;
  LocalProducer out;
  LocalConsumer in;
  RingPair() {
    std::memset(ring.get(), 0, sizeof *ring);
    out.attach(ring.get(), &consumed);
    in.attach(ring.get(), &consumed);
  }
};

Wr sendOf(const Buffer& from, uint64_t address, uint32_t length) {
  Wr wr;
  wr.sges = {{address, length, from.lkey}};
  return wr;
}

}  // namespace

TEST(ring_carries_entries_of_all_sizes) {
  RingPair r;
  Random random(11);
  struct Entry {
    std::vector<uint8_t> bytes, bulk;
  };
  std::deque<Entry> model;
  uint64_t written = 0;
  while (written < 30'000) {
    if (random.chance(0.6)) {
      Entry e;
      e.bytes.resize(1 + random.below(LocalRing::kEntryBytes));
      e.bulk.resize(random.chance(0.3) ? 1 + random.below(200'000) : 0);
      for (uint8_t& b : e.bytes) b = uint8_t(random.next());
      for (size_t i = 0; i < e.bulk.size(); i += 97) e.bulk[i] = uint8_t(random.next());
      if (!r.out.room(LocalRing::slotsFor(uint32_t(e.bytes.size())), LocalRing::unitsFor(uint32_t(e.bulk.size()))))
        continue;
      if (!e.bulk.empty()) std::memcpy(r.out.bulk(uint32_t(e.bulk.size())), e.bulk.data(), e.bulk.size());
      r.out.write(e.bytes.data(), uint32_t(e.bytes.size()));
      model.push_back(std::move(e));
      written++;
    } else if (!model.empty()) {
      const Entry e = std::move(model.front());
      model.pop_front();
      const uint32_t slots = LocalRing::slotsFor(uint32_t(e.bytes.size()));
      uint8_t got[LocalRing::kEntryBytes];
      CHECK(r.in.ready());
      for (uint32_t i = 0; i < slots; i++) CHECK(r.in.copy(i, got + i * LocalRing::kSlotBody));
      CHECK(std::memcmp(got, e.bytes.data(), e.bytes.size()) == 0);
      const auto bulk = uint32_t(e.bulk.size());
      if (bulk) CHECK(std::memcmp(r.in.bulk(bulk), e.bulk.data(), bulk) == 0);
      r.in.take(slots, bulk);
      if (random.chance(0.5)) r.in.publish();
    } else {
      CHECK(!r.in.ready());
      r.in.publish();
    }
    if (model.size() > 900) r.in.publish();
  }
}

TEST(ring_full_and_empty) {
  RingPair r;
  uint32_t n = 0;
  const uint8_t byte = 1;
  for (; r.out.room(1, 0); n++) r.out.write(&byte, 1);
  CHECK_EQ(n, LocalRing::kSlots);
  CHECK(!r.out.consumed(1));
  r.in.take(1, 0);
  CHECK(!r.out.room(1, 0));
  CHECK(r.in.publish() && !r.in.publish());
  CHECK(r.out.consumed(1) && !r.out.consumed(2));
  CHECK(r.out.room(1, 0) && !r.out.room(2, 0));
  while (r.in.ready()) r.in.take(1, 0);
  CHECK_EQ(r.in.unpublished(), LocalRing::kSlots - 1);
  // Once everything in the bulk area was consumed, half of the area always fits, at any position.
  r.in.publish();
  for (int i = 0; i < 50; i++) {
    const uint32_t bytes = LocalRing::kBulkBytes / 2 - 64 * uint32_t(i % 7);
    CHECK(r.out.room(1, LocalRing::unitsFor(bytes)));
    r.out.bulk(bytes);
    r.out.write(&byte, 1);
    CHECK(!r.out.room(1, LocalRing::kBulkUnits / 2 + 8));
    r.in.take(1, bytes);
    r.in.publish();
  }
}

TEST(ring_counters_that_are_nonsense) {
  const uint8_t byte = 1;
  for (const uint64_t wrong :
       {packConsumed(11, 0), packConsumed(uint32_t(-1), 0), packConsumed(0, 1), packConsumed(0, 0x80000000)}) {
    RingPair r;
    for (int i = 0; i < 10; i++) r.out.write(&byte, 1);
    __atomic_store_n(&r.consumed, wrong, __ATOMIC_RELEASE);
    CHECK(!r.out.consumed(1));
    CHECK(r.out.broken());
    CHECK(!r.out.room(LocalRing::kSlots, 0));
  }
}

// Random bytes are written to everything that the peer can write, while there is traffic. The pair ends or continues,
// and memory of others stays unchanged.
TEST(ring_hostile_peer) {
  for (uint64_t seed = 1; seed <= 300; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    LocalConnection w;
    Random random(seed);
    constexpr uint32_t kBytes = 200'000;
    Buffer from(*w.a, kBytes, kAllAccess, 3), to(*w.a, kBytes), apart(*w.a, kBytes, kAllAccess, 5);
    const std::vector<uint8_t> before(apart.data(), apart.data() + kBytes);
    for (int i = 0; i < 8; i++) w.qa.receive({{to.at(), kBytes, to.lkey}});
    LocalSegment& s = w.segment();
    auto* bytes = reinterpret_cast<uint8_t*>(&s);
    for (int round = 0; round < 40; round++) {
      if (!w.pa->up()) break;
      w.qa.post(sendOf(from, from.at(), random.chance(0.5) ? 8 : kBytes));
      if (random.chance(0.3)) w.b->step();
      // The bytes are sometimes written anywhere, and sometimes form entries that look valid at first sight.
      if (random.chance(0.3)) {
        for (int i = 0; i < 50; i++) bytes[random.next() % sizeof s] = uint8_t(random.next());
      } else {
        LocalRing& ring = s.rings[1];
        for (uint32_t i = 0; i < LocalRing::kSlots; i++) {
          if (!random.chance(0.2)) continue;
          ring.slots[i].sequence = i + 1;
          for (uint8_t& b : ring.slots[i].body) b = uint8_t(random.next());
          const uint32_t kind = 1 + random.below(5),
                         length = random.chance(0.5) ? random.below(256) : random.below(1u << 20);
          const uint32_t word = LocalEntry::word(length, LocalKind(kind), random.below(20));
          std::memcpy(ring.slots[i].body, &word, 4);
          const uint32_t qpn = w.qb.qpn;
          std::memcpy(ring.slots[i].body + 4, &qpn, 3);
          wire::Bth bth;
          bth.opcode = uint8_t(random.below(0x18));
          bth.destinationQpn = w.qa.qpn;
          bth.psn = 5000 + random.below(3);
          bth.ackRequest = true;
          wire::emitBth(ring.slots[i].body + 8, bth);
        }
      }
      if (random.chance(0.1)) s.sides[1].consumed = random.next();
      w.a->step();
      w.clock.time += 1'000'000;
    }
    CHECK(std::memcmp(before.data(), apart.data(), kBytes) == 0);
  }
  check::note = "";
}
