// A peer accesses memory and its owner withdraws it, on separate threads, also for ThreadSanitizer. The bytes are not
// atomic, so only the in-use flag and the record order the accesses.
#include <thread>

#include "base/fence.h"
#include "direct_world.h"

using namespace world;

// Tests the protocol alone, on memory that both sides have at the same address.
TEST(direct_threads_mark_and_record) {
  struct {
    alignas(64) uint64_t inUse = 0;
    DirectKey record{};
    alignas(64) uint64_t bytes[8] = {};
  } shared;
  shared.record.key = 1;
  constexpr uint32_t kRounds = 20'000;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> accesses{0};
  std::thread initiator([&] {
    uint64_t entered = 0;
    while (!stop) {
      entered = DirectInUse::enter(&shared.inUse, entered, 1);
      bool allowed = false;
      const bool whole = directRead(shared.record, [&](const DirectKey& r) { allowed = directLoad(r.key) == 1; });
      if (whole && allowed) {
        for (uint64_t& word : shared.bytes) word++;
        accesses++;
      }
      CHECK(DirectInUse::leave(&shared.inUse, entered));
    }
  });
  for (uint32_t round = 0; round < kRounds; round++) {
    directChange(shared.record, [](DirectKey& r) { directStore(r.key, 0u); });
    fullFence();
    const uint64_t seen = DirectInUse::load(&shared.inUse);
    while (DirectInUse::inside(seen) && DirectInUse::load(&shared.inUse) == seen) std::this_thread::yield();
    // The memory belongs to the owner alone now.
    const uint64_t before = shared.bytes[0];
    for (const uint64_t word : shared.bytes)
      if (word != before) CHECK(!"complete accesses only");
    shared.bytes[7] = before;
    directChange(shared.record, [](DirectKey& r) { directStore(r.key, 1u); });
    if (round % 64 == 0) std::this_thread::yield();
  }
  stop = true;
  initiator.join();
  CHECK_EQ(shared.bytes[0], accesses.load());
}

// Tests the whole path: one HCA writes, reads and adds in the memory of another, which keeps registering and
// deregistering it.
TEST(direct_threads_registering_under_requests) {
  DirectConnection w;
  w.b->link.keyTable->setEvictionTimeoutNs(UINT64_MAX / 4);
  SharedBuffer always(*w.b, 64), memory(*w.b, 65'536);
  Buffer own(*w.a, 65'536, kAllAccess, 3);
  CHECK(w.pb->offers.offer(*memory.memory, true));
  CHECK_EQ(w.map(*w.a), 1u);
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  memory.lkey = 0;
  std::atomic<uint32_t> key{0}, done{0};
  std::atomic<bool> stop{false};
  // Only this thread uses side a of the pair. An access that is refused is not posted as a request, because it would
  // end the connection.
  std::thread initiator([&] {
    Random random(17);
    while (!stop) {
      const uint32_t right = 1u << random.below(2), size = 1 + random.below(60'000);
      DirectPeer::Refusal why;
      uint8_t* const at = w.pa->peer.enter(
          {w.qa.qpn, w.qb.qpn, key.load(), right, wire::kDefaultPkey, memory.at(), size}, w.pa->maps, &why);
      if (!at) continue;
      if (right == kAccessRemoteRead) std::memcpy(own.data(), at, size);
      else std::memcpy(at, own.data(), size);
      CHECK(w.pa->peer.leave());
      done++;
    }
  });
  std::vector<uint8_t> after(65'536);
  for (uint32_t round = 0; round < 300; round++) {
    uint32_t lkey, rkey;
    CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), 65'536, kAllAccess, &lkey, &rkey) == Status::kSuccess);
    key = rkey;
    const uint32_t before = done;
    while (done == before) std::this_thread::yield();
    CHECK(w.b->engine.deregisterMr(w.b->pd, lkey) == Status::kSuccess);
    std::memset(memory.data(), int(round), 65'536);
    std::memset(after.data(), int(round), 65'536);
    for (int i = 0; i < 3; i++) CHECK(std::memcmp(memory.data(), after.data(), 65'536) == 0);
  }
  stop = true;
  initiator.join();
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectEvictions), 0u);
}
