// Direct access with keys of fast registration and with zero-based keys, which are published and withdrawn like any
// other key.
#include <functional>
#include <thread>

#include "direct_world.h"

using namespace world;

namespace {

constexpr uint32_t kBytes = 4096, kFrom = 1000, kLength = 1000;
constexpr uint32_t kRights = kAllAccess & ~kAccessMwBind;
constexpr uint64_t kForEver = UINT64_MAX / 4;

struct Registered : DirectConnection {
  SharedBuffer memory{*b, kBytes};
  Buffer own{*a, 64, kAllAccess, 3};
  uint32_t key = 0;
  Registered() {
    CHECK(b->engine.allocateMr(b->pd, kBytes, &key) == Status::kSuccess);
    meet(memory);
  }
  void registerIt(uint32_t access = kRights) {
    Wr r{kOpFastRegister, kSendFlagSignaled, {}};
    r.remote = memory.at(kFrom);
    r.rkey = memory.lkey;
    r.access = access;
    r.compare = kLength;
    key = (key & ~0xFFu) | ((key + 1) & 0xFF);
    r.swap = uint64_t(key) << 32;
    local(r);
  }
  Wr invalidation() const {
    Wr r{kOpLocalInvalidate, kSendFlagSignaled, {}};
    r.rkey = key;
    return r;
  }
  void local(const Wr& r) {
    qb.post(r);
    pump();
    CHECK_EQ(qb.sendCq.drain().at(0).status, kWcSuccess);
  }
  uint32_t request(uint32_t op, uint64_t address, uint32_t by) {
    qa.post(oneSided(op, {{own.at(), 8, own.lkey}}, address, by));
    pump();
    return qa.sendCq.drain().at(0).status;
  }
  uint8_t* enter(uint64_t address) {
    DirectPeer::Refusal why;
    return pa->peer.enter({qa.qpn, qb.qpn, key, kAccessRemoteWriteBit, wire::kDefaultPkey, address, 8}, pa->maps, &why);
  }
};

}  // namespace

TEST(direct_by_fast_registration) {
  Registered w;
  w.registerIt();
  const uint32_t first = w.key;
  for (const uint32_t op : {kOpWrite, kOpRead, kOpFetchAdd})
    CHECK_EQ(w.request(op, w.memory.at(kFrom), w.key), kWcSuccess);
  CHECK_EQ(w.direct(*w.a), 3u);
  CHECK(w.memory.data()[kFrom + 1] == w.own.data()[1]);
  w.local(w.invalidation());
  CHECK(!w.enter(w.memory.at(kFrom)));
  w.registerIt(kAccessRemoteRead);
  CHECK_EQ(w.request(kOpRead, w.memory.at(kFrom), w.key), kWcSuccess);
  CHECK_EQ(w.direct(*w.a), 4u);
  CHECK(!w.enter(w.memory.at(kFrom)));  // the key grants no right to write
  std::memset(w.memory.data(), 0, kBytes);
  CHECK_EQ(w.request(kOpRead, w.memory.at(kFrom), first), kWcRemoteAccess);
  CHECK_EQ(w.direct(*w.a), 4u);
}

// However the key ends, the peer's own check then finds nothing, and no peer writes.
TEST(direct_by_fast_registration_ends) {
  const std::function<void(Registered&)> ends[] = {
      [](Registered& w) { w.local(w.invalidation()); },
      [](Registered& w) {
        w.qb.receive({});
        Wr r{kOpSend, kSendFlagSignaled | kSendFlagInvalidate, {}};
        r.immediate = w.key;
        w.qa.post(r);
        w.pump();
        CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
        CHECK_EQ(w.qb.receiveCq.drain().at(0).immediate, w.key);
      },
      [](Registered& w) { CHECK(w.b->engine.deregisterMr(w.b->pd, w.key) == Status::kSuccess); },
      [](Registered& w) { w.b->engine.unpinRange(w.memory.range); },
  };
  for (const auto& end : ends) {
    Registered w;
    w.registerIt();
    CHECK_EQ(w.request(kOpWrite, w.memory.at(kFrom), w.key), kWcSuccess);
    CHECK_EQ(w.direct(*w.a), 1u);
    end(w);
    CHECK(!w.enter(w.memory.at(kFrom)));
    std::memset(w.memory.data(), 0xAB, kBytes);
    CHECK_EQ(w.request(kOpWrite, w.memory.at(kFrom), w.key), kWcRemoteAccess);
    CHECK_EQ(w.direct(*w.a), 1u);
    for (uint32_t i = 0; i < kBytes; i++) CHECK_EQ(w.memory.data()[i], 0xAB);
  }
}

// An invalidation does not complete while a peer is accessing the memory, but delays nothing else.
TEST(direct_invalidation_waits_for_the_peer) {
  Registered w;
  w.b->link.keyTable->setEvictionTimeoutNs(kForEver);
  w.registerIt();
  uint8_t* const at = w.enter(w.memory.at(kFrom));
  CHECK(at != nullptr);
  w.qb.post(w.invalidation());
  for (int i = 0; i < 100; i++) w.b->step();
  CHECK_EQ(w.qb.sendCq.written(), 1u);  // only the registration has completed
  CHECK_EQ(w.hostCounter(*w.b, HostCounter::kDirectWaits), 1u);
  *at = 0x77;
  CHECK(w.pa->peer.leave());
  w.pump();
  CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  CHECK_EQ(w.memory.data()[kFrom], 0x77);
  CHECK(!w.memory.memory->reclaimed);
  CHECK(!w.enter(w.memory.at(kFrom)));
}

// The invalidation does not wait for a peer that is stopped, either.
TEST(direct_invalidation_does_not_wait_for_a_stopped_peer) {
  Registered w;
  w.b->link.keyTable->setEvictionTimeoutNs(1'000'000);
  w.registerIt();
  uint8_t* const at = w.enter(w.memory.at(kFrom));
  w.qb.post(w.invalidation());
  w.pump();
  CHECK_EQ(w.qb.sendCq.drain().at(0).status, kWcSuccess);
  w.memory.data()[kFrom] = 0x11;
  *at = 0x77;
  CHECK_EQ(w.memory.data()[kFrom], 0x11);
  CHECK(!w.pa->peer.leave());
}

TEST(direct_zero_based) {
  Registered w;
  uint32_t lkey, zero;
  CHECK(w.b->engine.registerMr(w.b->pd, w.memory.at(kFrom), kLength, kRights | kAccessZeroBased, &lkey, &zero) ==
        Status::kSuccess);
  CHECK_EQ(w.request(kOpWrite, 992, zero), kWcSuccess);
  CHECK_EQ(std::memcmp(w.memory.data() + kFrom + 992, w.own.data(), 8), 0);
  w.registerIt(kRights | kAccessZeroBased);
  CHECK_EQ(w.request(kOpWrite, 0, w.key), kWcSuccess);
  CHECK_EQ(std::memcmp(w.memory.data() + kFrom, w.own.data(), 8), 0);
  CHECK_EQ(w.direct(*w.a), 2u);
  // Each word that an atomic needs is 1 byte beyond its zero-based address.
  uint32_t odd;
  CHECK(w.b->engine.registerMr(w.b->pd, w.memory.at(1), 64, kRights | kAccessZeroBased, &lkey, &odd) ==
        Status::kSuccess);
  CHECK_EQ(w.request(kOpFetchAdd, 8, odd), kWcRemoteInvalidRequest);
  CHECK_EQ(w.direct(*w.a), 2u);
}

TEST(direct_zero_based_ends_where_the_region_does) {
  for (const uint64_t address : {uint64_t(993), UINT64_MAX - 3, UINT64_MAX - 999}) {
    Registered w;
    w.registerIt(kRights | kAccessZeroBased);
    CHECK_EQ(w.request(kOpWrite, address, w.key), kWcRemoteAccess);
    CHECK_EQ(w.direct(*w.a), 0u);
  }
}
