// Tests of fast registration, of invalidation of regions by their owner and by the peer (IBA 1 §10.6.6, §10.6.5), and
// of zero-based addresses.
#include "world.h"

using namespace world;

namespace {

constexpr uint32_t kBytes = 4096;
constexpr uint64_t kMost = 2048;

// B registers its memory as its requests specify. A is its peer.
struct Fast : Pair {
  Buffer memory, remote;
  uint32_t key = 0;
  explicit Fast(uint64_t most = kMost) : memory(*b, kBytes, 0, 3), remote(*a, kBytes, kAllAccess, 4) {
    CHECK(b->engine.allocateMr(b->pd, most, &key) == Status::kSuccess);
  }
  Wr request(uint32_t access, uint64_t offset = 1000, uint64_t length = 1000, int change = 1) {
    Wr r{kOpFastRegister, kSendFlagSignaled, {}};
    r.remote = memory.at(offset);
    r.rkey = memory.lkey;
    r.access = access;
    r.compare = length;
    r.swap = uint64_t((key & ~0xFFu) | ((key + uint32_t(change)) & 0xFF)) << 32;
    return r;
  }
  Wr invalidation(uint32_t of) const {
    Wr r{kOpLocalInvalidate, kSendFlagSignaled, {}};
    r.rkey = of;
    return r;
  }
  bool post(const Wr& r, uint32_t status = kWcSuccess) {
    const uint32_t wqe = qb.post(r);
    pump();
    const bool ok = only(qb.sendCq, wqe, r.opcode, status);
    if (status == kWcSuccess && r.opcode == kOpFastRegister) key = uint32_t(r.swap >> 32);
    return ok;
  }
  uint32_t access(uint32_t op, uint64_t address, uint32_t length) {
    qa.post({op, kSendFlagSignaled, {{remote.at(), length, remote.lkey}}, 0, address, key});
    pump();
    const auto done = qa.sendCq.drain();
    return CHECK_EQ(done.size(), 1u) ? done[0].status : 99;
  }
  // Posts a SEND of A that invalidates a key of B, and checks the statuses on both sides.
  std::pair<uint32_t, uint32_t> remotely(uint32_t of) {
    qb.receive({});
    Wr r{kOpSend, kSendFlagSignaled | kSendFlagInvalidate, {}};
    r.immediate = of;
    qa.post(r);
    pump();
    const auto sent = qa.sendCq.drain(), got = qb.receiveCq.drain();
    if (!CHECK(sent.size() == 1 && got.size() == 1)) return {99, 99};
    if (got[0].status == kWcSuccess)
      CHECK(got[0].flags == (kCqeFlagReceiveQueue | kCqeFlagInvalidated) && got[0].immediate == of);
    return {sent[0].status, got[0].status};
  }
};

constexpr uint32_t kWritable = kAccessRemoteWriteBit | kAccessLocalWrite;
constexpr uint32_t kEverything = kAllAccess & ~kAccessMwBind;

}  // namespace

TEST(fast_register_rights_and_bounds) {
  for (const uint32_t right :
       {0u, kAccessRemoteRead, kWritable, kAccessRemoteAtomic | kAccessLocalWrite, kEverything}) {
    for (const uint32_t op : {kOpRead, kOpWrite, kOpFetchAdd}) {
      Fast f;
      f.post(f.request(right));
      const uint32_t need = op == kOpRead    ? kAccessRemoteRead
                            : op == kOpWrite ? kAccessRemoteWriteBit
                                             : kAccessRemoteAtomic;
      CHECK_EQ(f.access(op, f.memory.at(1000), 8), right & need ? kWcSuccess : kWcRemoteAccess);
    }
  }
  for (const auto& [offset, length, good] : {std::tuple<uint64_t, uint32_t, bool>{1000, 1000, true},
                                             {1000, 1001, false},
                                             {999, 1, false},
                                             {1999, 1, true},
                                             {2000, 1, false}}) {
    Fast f;
    f.post(f.request(kEverything));
    std::memset(f.remote.data(), 0x77, length);
    CHECK_EQ(f.access(kOpWrite, f.memory.at(offset), length), good ? kWcSuccess : kWcRemoteAccess);
    CHECK_EQ(f.memory.data()[offset] == 0x77, good);
  }
}

TEST(fast_register_errors) {
  const auto refused = [](const std::function<void(Fast&, Wr&)>& spoil) {
    Fast f;
    Wr r = f.request(kEverything);
    spoil(f, r);
    f.post(r, kWcMwBind);
    CHECK_EQ(f.qb.stateWord(), kQpsError);
    CHECK(f.b->engine.deregisterMr(f.b->pd, f.key) == Status::kSuccess);
  };
  refused([](Fast&, Wr& r) { r.compare = 0; });
  refused([](Fast&, Wr& r) { r.compare = kMost + 1; });
  refused([](Fast&, Wr& r) { r.compare = UINT64_MAX; });
  refused([](Fast& f, Wr& r) { r.remote = f.memory.at(kBytes - 999); });
  refused([](Fast&, Wr& r) { r.remote -= 1001; });
  refused([](Fast&, Wr& r) { r.rkey ^= 1; });
  refused([](Fast& f, Wr& r) { r.rkey = f.key; });
  refused([](Fast&, Wr& r) { r.access = kAccessRemoteWriteBit; });  // without the local write right
  refused([](Fast&, Wr& r) { r.access = 0x40; });
  refused([](Fast&, Wr& r) { r.swap ^= 0x100ull << 32; });
  refused([](Fast& f, Wr& r) { r.swap = uint64_t(f.memory.lkey) << 32; });  // the key of a registered region
  refused([](Fast& f, Wr& r) {
    Handle pd;
    uint32_t other;
    CHECK(f.b->engine.allocatePd(f.b->kernel, &pd) == Status::kSuccess);
    CHECK(f.b->engine.allocateMr(pd, kMost, &other) == Status::kSuccess);
    r.swap = uint64_t(other) << 32;
  });
  refused([](Fast& f, Wr& r) {
    Handle mw;
    uint32_t window;
    CHECK(f.b->engine.allocateMw(f.b->pd, &mw, &window) == Status::kSuccess);
    r.swap = uint64_t(window) << 32;
  });
  // The key cannot be registered again while it is registered, and the following requests are flushed.
  Fast f;
  f.post(f.request(kEverything));
  f.post(f.request(kEverything), kWcMwBind);
  f.qb.post(f.invalidation(f.key));
  f.pump();
  only(f.qb.sendCq, 2, kOpLocalInvalidate, kWcFlushed);
  uint32_t lkey;
  CHECK(f.b->engine.allocateMr(f.b->pd, 0, &lkey) == Status::kInvalidParameter);
  CHECK(f.b->engine.allocateMr(f.b->pd, EngineOptions().maxMrSize + 1, &lkey) == Status::kInvalidParameter);
  CHECK(f.b->engine.allocateMr(0, 1, &lkey) == Status::kInvalidHandle);
}

TEST(fast_register_life) {
  Fast f;
  CHECK_EQ(f.access(kOpRead, f.memory.at(1000), 8), kWcRemoteAccess);  // the key is not registered yet
  Fast g;
  g.post(g.request(kEverything));
  const uint32_t first = g.key;
  CHECK_EQ(g.access(kOpWrite, g.memory.at(1000), 8), kWcSuccess);
  g.post(g.invalidation(g.key));
  g.post(g.request(kEverything, 0, kMost, 7));  // registers other memory with another key
  CHECK_EQ(g.key, (first & ~0xFFu) | ((first + 7) & 0xFF));
  CHECK_EQ(g.access(kOpWrite, g.memory.at(2047), 1), kWcSuccess);
  // Requests of one list are executed in order, and the key may stay the same.
  Wr again = g.request(kAccessRemoteRead, 3000, 8, 0);
  Wr off = g.invalidation(g.key);
  off.flags = 0;
  const uint32_t second = g.key;
  g.qb.write(off);
  g.post(again);
  CHECK_EQ(g.key, second);
  CHECK_EQ(g.access(kOpRead, g.memory.at(3000), 8), kWcSuccess);
  CHECK_EQ(std::memcmp(g.remote.data(), g.memory.data() + 3000, 8), 0);
  const uint32_t present = g.key;
  g.key = first;
  CHECK_EQ(g.access(kOpRead, g.memory.at(3000), 8), kWcRemoteAccess);
  // Deregistering the region works with any low byte of the key, and ends what was registered with it.
  CHECK(g.b->engine.deregisterMr(g.b->pd, present ^ 0x55) == Status::kSuccess);
  CHECK(g.b->engine.deregisterMr(g.b->pd, present) == Status::kInvalidHandle);
}

TEST(fast_registered_memory_is_local_memory_too) {
  Fast f;
  f.post(f.request(kAccessLocalWrite));
  f.qb.receive({{f.memory.at(1000), 8, f.key}});
  f.qa.post({kOpSend, kSendFlagSignaled, {{f.remote.at(), 8, f.remote.lkey}}});
  f.pump();
  only(f.qb.receiveCq, 0, kOpReceive, kWcSuccess, 8);
  CHECK_EQ(std::memcmp(f.memory.data() + 1000, f.remote.data(), 8), 0);
  f.post(f.invalidation(f.key));
  f.qb.post({kOpSend, kSendFlagSignaled, {{f.memory.at(1000), 8, f.key}}});
  f.pump();
  only(f.qb.sendCq, 2, kOpSend, kWcLocalProtection);
}

TEST(invalidation_of_regions) {
  {
    Fast f;  // unordered with others, so it waits for the READ that writes there
    f.post(f.request(kAccessLocalWrite));
    f.qb.write({kOpRead, kSendFlagSignaled, {{f.memory.at(1000), 1000, f.key}}, 0, f.remote.at(), f.remote.rkey});
    f.qb.post(f.invalidation(f.key));
    f.pump();
    const auto done = f.qb.sendCq.drain();
    CHECK(done.size() == 2 && done[0].status == kWcSuccess && done[1].status == kWcSuccess);
  }
  for (const uint32_t twice : {0u, 1u}) {  // a region that is not registered, or a key of another region
    Fast f;
    f.post(f.request(kEverything));
    if (twice) f.post(f.invalidation(f.key));
    f.post(f.invalidation(twice ? f.key : f.key ^ 1), kWcMwBind);
    CHECK_EQ(f.qb.stateWord(), kQpsError);
  }
  Fast f;  // not while windows are bound to the region, which cannot be ended then either
  f.post(f.request(kEverything | kAccessMwBind));
  Handle mw;
  uint32_t window;
  CHECK(f.b->engine.allocateMw(f.b->pd, &mw, &window) == Status::kSuccess);
  Wr bind{kOpBindWindow, kSendFlagSignaled, {}};
  bind.remote = f.memory.at(1000);
  bind.rkey = f.key;
  bind.access = kAccessRemoteRead;
  bind.compare = 8;
  bind.swap = uint64_t(window ^ 1) << 32 | window;
  f.post(bind);
  CHECK(f.b->engine.deregisterMr(f.b->pd, f.key) == Status::kDeviceBusy);
  f.post(f.invalidation(f.key), kWcMwBind);
}

TEST(invalidation_of_regions_by_the_peer) {
  Fast f;
  f.post(f.request(kEverything));
  CHECK(f.remotely(f.key) == std::make_pair(kWcSuccess, kWcSuccess));
  f.post(f.request(kEverything));  // the request is executed immediately
  CHECK_EQ(f.access(kOpWrite, f.memory.at(1000), 8), kWcSuccess);
  CHECK(f.remotely(f.key) == std::make_pair(kWcSuccess, kWcSuccess));
  CHECK(f.remotely(f.key) == std::make_pair(kWcRemoteAccess, kWcLocalAccess));
  CHECK_EQ(f.qb.stateWord(), kQpsError);
  const auto refused = [](uint32_t access, const std::function<uint32_t(Fast&)>& key) {
    Fast g;
    g.post(g.request(access));
    CHECK(g.remotely(key(g)) == std::make_pair(kWcRemoteAccess, kWcLocalAccess));
  };
  refused(kAccessLocalWrite, [](Fast& g) { return g.key; });  // the peer may not use it
  refused(kEverything, [](Fast& g) { return g.key ^ 1; });
  refused(kEverything, [](Fast& g) {  // a key of another protection domain
    Handle pd;
    uint32_t other;
    CHECK(g.b->engine.allocatePd(g.b->kernel, &pd) == Status::kSuccess);
    CHECK(g.b->engine.allocateMr(pd, kMost, &other) == Status::kSuccess);
    return other;
  });
}

TEST(registered_regions_cannot_be_invalidated_by_the_peer) {
  Fast f;
  Buffer other(*f.b, 64);
  CHECK(f.remotely(other.rkey) == std::make_pair(kWcRemoteAccess, kWcLocalAccess));
  CHECK(f.b->engine.deregisterMr(f.b->pd, other.lkey) == Status::kSuccess);
}

TEST(fast_registration_ends_with_its_memory) {
  Fast f;
  f.post(f.request(kEverything));
  CHECK_EQ(f.access(kOpWrite, f.memory.at(1000), 8), kWcSuccess);
  f.b->engine.unpinRange(f.memory.range);
  Fast g;
  g.post(g.request(kEverything));
  CHECK(g.b->engine.deregisterMr(g.b->pd, g.memory.lkey) == Status::kSuccess);
  CHECK_EQ(g.access(kOpWrite, g.memory.at(1000), 8), kWcSuccess);  // the memory is still pinned
  g.b->engine.unpinRange(g.memory.range);
  CHECK_EQ(g.access(kOpWrite, g.memory.at(1000), 8), kWcRemoteAccess);
  // The region remains registered until it is invalidated.
  Buffer next(*f.b, 64);
  f.post(f.invalidation(f.key));
  Wr r = f.request(kEverything);
  r.remote = next.at();
  r.rkey = next.lkey;
  r.compare = 64;
  f.post(r);
  CHECK_EQ(f.access(kOpWrite, next.at(), 8), kWcSuccess);
}

TEST(many_fast_registrations_of_one_range_come_and_go) {
  Fast f;
  std::vector<uint32_t> keys(16);
  for (uint32_t& key : keys) CHECK(f.b->engine.allocateMr(f.b->pd, kMost, &key) == Status::kSuccess);
  std::vector<bool> registered(keys.size());
  Random random(9);
  for (uint32_t i = 0; i < 400; i++) {
    const uint32_t n = random.below(uint32_t(keys.size()));
    f.key = keys[n];
    CHECK(f.post(registered[n] ? f.invalidation(keys[n]) : f.request(kEverything, 64 * n, 64, int(random.below(256)))));
    keys[n] = f.key;
    registered[n] = !registered[n];
  }
  for (uint32_t n = 0; n < keys.size(); n++) {
    if (!registered[n]) CHECK(f.post((f.key = keys[n], f.request(kEverything, 64 * n, 64))));
    if (!registered[n]) keys[n] = f.key;
  }
  f.b->engine.unpinRange(f.memory.range);
  for (const uint32_t key : keys) {
    TestQp from(*f.a), to(*f.b);
    f.connect(from, to);
    const uint32_t i = from.post({kOpWrite,
                                  kSendFlagSignaled,
                                  {{f.remote.at(), 1, f.remote.lkey}},
                                  0,
                                  f.memory.at(64 * (&key - keys.data())),
                                  key});
    f.pump();
    only(from.sendCq, i, kOpWrite, kWcRemoteAccess);
    CHECK(f.b->engine.deregisterMr(f.b->pd, key) == Status::kSuccess);
  }
}

// The most recently used key is not looked up again, but must become invalid nevertheless.
TEST(fast_registration_invalidates_the_previous_key) {
  Fast f;
  f.post(f.request(kEverything));
  const uint32_t before = f.key;
  CHECK_EQ(f.access(kOpWrite, f.memory.at(1000), 8), kWcSuccess);
  f.post(f.invalidation(f.key));
  f.post(f.request(kEverything));
  f.key = before;
  CHECK_EQ(f.access(kOpWrite, f.memory.at(1000), 8), kWcRemoteAccess);
}

// ── Zero based ──────────────────────────────────────────────────────────────────────────────────

TEST(zero_based_regions) {
  Fast f;
  Buffer zero(*f.b, 1000, kEverything | kAccessZeroBased, 9);
  CHECK_EQ(zero.lkey, zero.rkey);
  f.key = zero.rkey;
  std::memset(f.remote.data(), 0x66, 16);
  CHECK_EQ(f.access(kOpWrite, 992, 8), kWcSuccess);
  CHECK(zero.data()[992] == 0x66 && zero.data()[991] != 0x66);
  CHECK_EQ(f.access(kOpRead, 0, 1000), kWcSuccess);
  CHECK_EQ(std::memcmp(f.remote.data(), zero.data(), 1000), 0);
  CHECK_EQ(f.access(kOpFetchAdd, 8, 8), kWcSuccess);
  // Local requests use offsets from 0 as well.
  f.qb.receive({{100, 8, zero.lkey}});
  f.qa.post({kOpSend, kSendFlagSignaled, {{f.remote.at(), 8, f.remote.lkey}}});
  f.pump();
  only(f.qb.receiveCq, 0, kOpReceive, kWcSuccess, 8);
  CHECK_EQ(std::memcmp(zero.data() + 100, f.remote.data(), 8), 0);
  f.qa.sendCq.drain();
  CHECK_EQ(f.access(kOpWrite, 993, 8), kWcRemoteAccess);
}

// The same memory may be pinned more than once. The key then continues in the other range, at the same position.
TEST(zero_based_regions_of_memory_that_is_pinned_twice) {
  Fast f;
  uint64_t again;
  CHECK(f.b->engine.pinRange(f.memory.at(), kBytes, &again) == Status::kSuccess);
  uint32_t lkey;
  CHECK(f.b->engine.registerMr(f.b->pd, f.memory.at(8), 64, kEverything | kAccessZeroBased, &lkey, &f.key) ==
        Status::kSuccess);
  f.b->engine.unpinRange(again);
  std::memset(f.remote.data(), 0x5B, 8);
  CHECK_EQ(f.access(kOpWrite, 56, 8), kWcSuccess);
  CHECK_EQ(f.memory.data()[64], 0x5B);
  CHECK_EQ(f.access(kOpWrite, 57, 8), kWcRemoteAccess);
}

TEST(zero_based_regions_at_their_own_addresses) {
  Fast f;
  Buffer zero(*f.b, 1000, kEverything | kAccessZeroBased, 9);
  f.key = zero.rkey;
  CHECK_EQ(f.access(kOpWrite, zero.at(), 8), kWcRemoteAccess);
}

TEST(zero_based_fast_registration) {
  Fast f;
  f.post(f.request(kEverything | kAccessZeroBased));
  std::memset(f.remote.data(), 0x5A, 8);
  CHECK_EQ(f.access(kOpWrite, 0, 8), kWcSuccess);
  CHECK_EQ(f.memory.data()[1000], 0x5A);
  CHECK(f.memory.data()[999] != 0x5A);
  f.post(f.invalidation(f.key));
  f.post(f.request(kEverything));
  CHECK_EQ(f.access(kOpWrite, f.memory.at(1000), 8), kWcSuccess);
  CHECK_EQ(f.access(kOpWrite, 0, 8), kWcRemoteAccess);
  // The memory may be specified by a zero-based region.
  Fast g;
  Buffer zero(*g.b, 1000, kAccessZeroBased, 9);
  Wr r = g.request(kEverything, 0, 10);
  r.rkey = zero.lkey;
  r.remote = 100;
  g.post(r);
  CHECK_EQ(g.access(kOpWrite, zero.at(100), 10), kWcSuccess);
}

TEST(zero_based_windows) {
  Fast f;
  Buffer memory(*f.b, kBytes, kAllAccess, 5), zero(*f.b, kBytes, kAllAccess | kAccessZeroBased);
  Handle mw;
  uint32_t window;
  CHECK(f.b->engine.allocateMw(f.b->pd, &mw, &window) == Status::kSuccess);
  Wr bind{kOpBindWindow, kSendFlagSignaled, {}};
  bind.remote = memory.at(1000);
  bind.rkey = memory.lkey;
  bind.access = kAccessRemoteRead | kAccessZeroBased;
  bind.compare = 64;
  bind.swap = uint64_t(window ^ 1) << 32 | window;
  f.post(bind);
  f.key = window ^ 1;
  CHECK_EQ(f.access(kOpRead, 56, 8), kWcSuccess);
  CHECK_EQ(std::memcmp(f.remote.data(), memory.data() + 1056, 8), 0);
  f.post(f.invalidation(f.key));
  // A window is not bound to a zero-based region (IBA 1 §10.6.7.2.3).
  bind.remote = 1000;
  bind.rkey = zero.lkey;
  bind.swap = uint64_t(window) << 32 | (window ^ 1);
  f.post(bind, kWcMwBind);
}

// An atomic needs a word that is aligned in memory, whatever its address is under the key.
TEST(zero_based_atomics_are_aligned) {
  Fast f;
  f.post(f.request(kEverything | kAccessZeroBased, 1001, 64));
  CHECK_EQ(f.access(kOpFetchAdd, 8, 8), kWcRemoteInvalidRequest);
}

// The HCA does not trust the ring: whatever a request contains, it either succeeds within the registered memory or ends
// the queue pair.
TEST(fast_registration_of_anything) {
  Random random(11);
  for (uint32_t i = 0; i < 300; i++) {
    Fast f;
    const uint64_t numbers[] = {0,
                                1,
                                7,
                                8,
                                999,
                                2048,
                                4096,
                                UINT32_MAX,
                                1ull << 47,
                                UINT64_MAX - 3,
                                UINT64_MAX,
                                f.memory.at(),
                                f.memory.at(4095)};
    const auto any = [&] { return numbers[random.below(13)] + random.below(3) - 1; };
    Wr r = f.request(kEverything | (random.below(2) ? kAccessZeroBased : 0));
    if (random.below(3) == 0) r.remote = any();
    if (random.below(3) == 0) r.compare = any();
    if (random.below(6) == 0) r.access = uint32_t(random.next());
    if (random.below(6) == 0) r.rkey = uint32_t(random.below(2) ? any() : f.key);
    if (random.below(6) == 0) r.swap = random.next();
    f.qb.post(r);
    f.pump();
    const auto done = f.qb.sendCq.drain();
    if (!CHECK_EQ(done.size(), 1u)) continue;
    const bool good = done[0].status == kWcSuccess;
    CHECK(good || done[0].status == kWcMwBind);
    if (!good) continue;
    const uint64_t from = f.memory.at(), start = r.remote;
    CHECK(r.compare != 0 && r.compare <= kMost && start >= from && start - from <= kBytes - r.compare);
    f.key = uint32_t(r.swap >> 32);
    const uint64_t first = r.access & kAccessZeroBased ? 0 : start;
    const bool writable = (r.access & kAccessRemoteWriteBit) != 0;
    CHECK_EQ(f.access(kOpWrite, first + r.compare - 1, 1), writable ? kWcSuccess : kWcRemoteAccess);
    if (writable) CHECK_EQ(f.access(kOpWrite, first + r.compare, 1), kWcRemoteAccess);
  }
}
