// Tests of memory from allocate() on the local link. It is offered, mapped by the peer for reading, and copied from
// there. Also tests what a peer may offer, and freed memory.
#include <fcntl.h>

#include <algorithm>

#include "local/local_maps.h"
#include "local_world.h"
#include "platform/linux/seals.h"
#include "trap.h"

using namespace world;

namespace {

uint64_t mapped(const HostCounters& counters) { return counters.get(HostCounter::kLocalMappedBytes); }
uint64_t pulled(const HostCounters& counters) { return counters.get(HostCounter::kLocalPulled); }

Wr request(uint32_t opcode, const std::vector<Sge>& sges, uint64_t remote = 0, uint32_t rkey = 0) {
  Wr wr;
  wr.opcode = opcode;
  wr.sges = sges;
  wr.remote = remote;
  wr.rkey = rkey;
  return wr;
}

bool isMapped(const uint8_t* address) {
  unsigned char present;
  return mincore(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) / kPage * kPage), 1, &present) == 0;
}

}  // namespace

TEST(local_maps_every_size) {
  constexpr uint32_t kMost = 1u << 20;
  LocalConnection w;
  SharedBuffer from(*w.a, kMost + 64, 7), source(*w.b, kMost + 64, 8);
  Buffer to(*w.b, kMost), back(*w.a, kMost);
  const auto run = [&](uint32_t size, uint32_t offset) {
    std::memset(to.data(), 0xEE, to.size);
    w.qb.receive({{to.at(), uint32_t(to.size), to.lkey}});
    const uint32_t s = w.qa.post(request(kOpSend, {{from.at(offset), size, from.lkey}}));
    w.pump();
    only(w.qa.sendCq, s, kOpSend, kWcSuccess);
    CHECK_EQ(w.qb.receiveCq.drain().at(0).length, size);
    CHECK(std::memcmp(from.data() + offset, to.data(), size) == 0);
    CHECK(size == to.size || to.data()[size] == 0xEE);

    std::memset(to.data(), 0xEE, to.size);
    const uint32_t wi = w.qa.post(request(kOpWrite, {{from.at(offset), size, from.lkey}}, to.at(), to.rkey));
    w.pump();
    only(w.qa.sendCq, wi, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data() + offset, to.data(), size) == 0);
    CHECK(size == to.size || to.data()[size] == 0xEE);

    std::memset(back.data(), 0xEE, back.size);
    const uint32_t r = w.qa.post(request(kOpRead, {{back.at(), size, back.lkey}}, source.at(offset), source.rkey));
    w.pump();
    only(w.qa.sendCq, r, kOpRead, kWcSuccess, size);
    CHECK(std::memcmp(source.data() + offset, back.data(), size) == 0);
    CHECK(size == back.size || back.data()[size] == 0xEE);
  };
  // The first messages are sent as usual, and cause the memory to be offered.
  run(kMost, 1);
  CHECK_EQ(mapped(w.countersA) + mapped(w.countersB), 0u);
  CHECK_EQ(exchange(*w.pa, *w.pb), 1u);
  CHECK_EQ(exchange(*w.pb, *w.pa), 1u);
  CHECK_EQ(exchange(*w.pa, *w.pb) + exchange(*w.pb, *w.pa), 0u);
  uint64_t atB = 0, atA = 0;
  for (const uint32_t size : {1u, 4095u, 4096u, 4097u, 65'536u, 98'304u, 524'288u, 524'289u, 528'384u, kMost}) {
    check::note = "size";
    check::noteNumber = size;
    run(size, size % 61 + 3);
    // A reference covers its maximum of packets, and another covers the rest if it is large enough.
    const uint32_t rest = size % (LocalPair::kMtu * LocalPair::kReferencePackets);
    const uint32_t referenced = size - (rest < LocalPair::kReferenceFrom ? rest : 0);
    atB += 2 * referenced;
    atA += referenced;
    CHECK_EQ(mapped(w.countersB), atB);
    CHECK_EQ(mapped(w.countersA), atA);
  }
  check::note = "";
  CHECK_EQ(pulled(w.countersA) + pulled(w.countersB), atA + atB);
  CHECK_EQ(w.a->counter("retransmitted_pkts") + w.b->counter("retransmitted_pkts"), 0u);
}

TEST(local_maps_scattered_pieces) {
  LocalConnection w;
  SharedBuffer x(*w.a, 300'000, 3), y(*w.a, 100'000, 4);
  Buffer own(*w.a, 50'000, kAllAccess, 5), to(*w.b, 400'000);
  const auto send = [&](const std::vector<Sge>& sges) {
    std::vector<uint8_t> expected;
    for (const Sge& s : sges) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(s.address);
      expected.insert(expected.end(), bytes, bytes + s.length);
    }
    std::memset(to.data(), 0, to.size);
    w.qb.receive({{to.at(3), 17'000, to.lkey}, {to.at(30'001), 350'000, to.lkey}});
    w.qa.post(request(kOpSend, sges));
    w.pump();
    CHECK_EQ(w.qb.receiveCq.drain().at(0).status, kWcSuccess);
    CHECK(std::memcmp(to.data() + 3, expected.data(), 17'000) == 0);
    CHECK(std::memcmp(to.data() + 30'001, expected.data() + 17'000, expected.size() - 17'000) == 0);
  };
  const std::vector<Sge> both = {
      {x.at(7), 20'001, x.lkey}, {y.at(50'003), 40'000, y.lkey}, {x.at(1), 1, x.lkey}, {x.at(200'000), 99'999, x.lkey}};
  send(both);
  CHECK_EQ(exchange(*w.pa, *w.pb), 2u);
  send(both);
  CHECK_EQ(mapped(w.countersB), 160'001u);
  // One piece is in other memory, so nothing of the packet is copied from mappings.
  send({{x.at(7), 100'000, x.lkey}, {own.at(1), 40'000, own.lkey}});
  CHECK_EQ(mapped(w.countersB), 160'001u);
}

// Memory is freed between the reference and the copy.
TEST(local_maps_memory_given_back) {
  for (const bool read : {false, true}) {
    LocalConnection w;
    constexpr uint32_t kBytes = 100'000;
    SharedBuffer source(read ? *w.b : *w.a, kBytes, 9);
    Buffer target(read ? *w.a : *w.b, kBytes);
    const auto transfer = [&] {
      return w.qa.post(read ? request(kOpRead, {{target.at(), kBytes, target.lkey}}, source.at(), source.rkey)
                            : request(kOpWrite, {{source.at(), kBytes, source.lkey}}, target.at(), target.rkey));
    };
    transfer();
    w.pump();
    w.qa.sendCq.drain();
    CHECK_EQ(exchange(read ? *w.pb : *w.pa, read ? *w.pa : *w.pb), 1u);
    const uint32_t i = transfer();
    if (read) w.b->step();  // b references its memory
    CHECK(source.node.engine.deregisterMr(source.node.pd, source.lkey) == Status::kSuccess);
    source.lkey = 0;
    std::memset(source.data(), 0xAB, kBytes);  // the memory is the owner's again
    w.pump();
    only(w.qa.sendCq, i, read ? kOpRead : kOpWrite, read ? kWcRemoteAccess : kWcLocalProtection);
    const HostCounters& counters = read ? w.countersA : w.countersB;
    CHECK_EQ(counters.get(HostCounter::kLocalPullChanged), 1u);
    CHECK_EQ(pulled(counters), 0u);
  }
}

// The memory is freed in the middle of the copy, and so early that it is unmapped by then.
TEST(local_maps_memory_given_back_under_a_copy) {
  for (const bool unmapped : {false, true}) {
    LocalConnection w;
    constexpr uint32_t kBytes = 100'000;
    auto source = std::make_unique<SharedBuffer>(*w.a, kBytes, 9);
    SharedBuffer target(*w.b, kBytes);
    CHECK(!w.pa->isMapped(source->memory.get()));
    CHECK_EQ(exchange(*w.pa, *w.pb), 1u);
    const uint32_t i = w.qa.post(request(kOpWrite, {{source->at(), kBytes, source->lkey}}, target.at(), target.rkey));
    if (unmapped) {
      source.reset();
      exchange(*w.pa, *w.pb);
      w.pump();
    } else {
      Trap trap(target.data() + kPage, [&] {
        CHECK(source->node.engine.deregisterMr(source->node.pd, source->lkey) == Status::kSuccess);
        source->lkey = 0;
      });
      w.pump();
    }
    only(w.qa.sendCq, i, kOpWrite, kWcLocalProtection);
    CHECK_EQ(w.countersB.get(HostCounter::kLocalPullChanged), 1u);
    CHECK_EQ(w.countersB.get(HostCounter::kLocalPullFailed) + pulled(w.countersB), 0u);
  }
}

// The peer unmaps freed memory. A number stands for one allocation for ever.
TEST(local_maps_freed_memory) {
  LocalConnection w;
  constexpr uint32_t kBytes = 100'000;
  Buffer to(*w.b, kBytes);
  const auto write = [&](SharedBuffer& from) {
    const uint32_t i = w.qa.post(request(kOpWrite, {{from.at(), kBytes, from.lkey}}, to.at(), to.rkey));
    w.pump();
    only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
  };
  const uint8_t* there;
  uint64_t base;
  const uint32_t freed = offeredRangesFreed();
  {
    SharedBuffer from(*w.a, kBytes, 5);
    write(from);
    CHECK(exchange(*w.pa, *w.pb) == 1);
    write(from);
    base = from.at();
    there = w.pb->maps.find(1, base, from.memory->length);
    CHECK(there != nullptr && isMapped(there));
  }
  CHECK(sentOffers(*w.pa, false).empty() && w.pa->offers.news());  // the connection is full, so it is reported later
  CHECK_EQ(offeredRangesFreed(), freed + 1);
  exchange(*w.pa, *w.pb);
  CHECK(!w.pa->offers.news());
  CHECK(!isMapped(there));
  CHECK(w.pb->maps.find(1, base, 1) == nullptr);
  SharedBuffer next(*w.a, kBytes, 6);
  write(next);
  const std::vector<SentOffer> offer = sentOffers(*w.pa);
  CHECK_EQ(offer.size(), 1u);
  CHECK_EQ(offer.at(0).memory.number, 2u);
  // Until the response arrives, the memory is copied like any other.
  const uint64_t before = mapped(w.countersB);
  write(next);
  CHECK_EQ(mapped(w.countersB), before);
}

// A pair that ends unmaps everything, whatever the peer still has.
TEST(local_maps_end_with_the_pair) {
  LocalConnection w;
  SharedBuffer from(*w.a, 1u << 20, 5);
  CHECK(!w.pa->isMapped(from.memory.get()));
  CHECK_EQ(exchange(*w.pa, *w.pb), 1u);
  CHECK(w.pa->isMapped(from.memory.get()));
  const uint8_t* there = w.pb->maps.find(1, from.at(), 1);
  CHECK(there != nullptr && isMapped(there));
  w.pb->close();
  CHECK(!isMapped(there));
}

TEST(local_maps_find_stays_inside) {
  std::shared_ptr<const SharedRange> a, b;
  CHECK(allocateShared(2 * kPage, &a) == Status::kSuccess);
  CHECK(allocateShared(kPage, &b) == Status::kSuccess);
  a->seal(false);
  b->seal(false);
  LocalMaps maps;
  // The peer reports where it has mapped the files. Whatever it reports is used in arithmetic only.
  constexpr uint64_t kBase = 0x10000;
  CHECK(maps.add({0, 5, kBase, a->length, 0, 0}, a->fd.get(), false));
  CHECK(maps.add({0, 6, UINT64_MAX - 10, b->length, 0, 0}, b->fd.get(), false));
  const uint8_t* start = maps.find(5, kBase, 2 * kPage);
  CHECK(start != nullptr);
  CHECK(maps.find(5, kBase + 2 * kPage, 0) == start + 2 * kPage);
  CHECK(maps.find(5, kBase + kPage, kPage) == start + kPage);
  CHECK(!maps.find(5, kBase + kPage, kPage + 1));
  CHECK(!maps.find(5, kBase - 1, 1));
  CHECK(!maps.find(5, kBase + 2 * kPage, 1));
  CHECK(!maps.find(5, kBase, UINT64_MAX));
  CHECK(!maps.find(5, UINT64_MAX, 1));
  CHECK(!maps.find(7, kBase, 1) && !maps.find(0, kBase, 1));
  CHECK(maps.find(6, UINT64_MAX - 10, 1) != nullptr);
  CHECK(maps.find(6, 5, 1) == maps.find(6, UINT64_MAX - 10, 1) + 16);
  CHECK(!maps.find(6, kPage, kPage));
  CHECK(maps.remove(5) && !maps.remove(5));
  CHECK(!maps.find(5, kBase, 1) && maps.find(6, UINT64_MAX - 10, 1));
}

// Tests files that the other process could use against this one, and more files than are allowed.
TEST(local_maps_refuse) {
  LocalMaps maps;
  std::shared_ptr<const SharedRange> good;
  CHECK(allocateShared(kPage, &good) == Status::kSuccess);
  good->seal(false);
  const auto offer = [&](uint32_t number, uint64_t length, int fd) {
    return maps.add({0, number, 0x10000, length, 0, 0}, fd, false);
  };
  CHECK(!offer(0, kPage, good->fd.get()));
  CHECK(!offer(1, 0, good->fd.get()));
  CHECK(!offer(1, 2 * kPage, good->fd.get()));
  CHECK(!offer(1, kPage / 2, good->fd.get()));
  CHECK(!offer(1, UINT64_MAX, good->fd.get()));
  CHECK(!offer(1, kPage, -1));
  const auto file = [](int seals, bool whole) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    CHECK(ftruncate(fd.get(), off_t(kPage)) == 0);
    if (whole) CHECK(posix_fallocate(fd.get(), 0, off_t(kPage)) == 0);
    if (seals) CHECK(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
  };
  CHECK(!offer(1, kPage, file(0, true).get()));
  CHECK(!offer(1, kPage, file(F_SEAL_GROW | kSealFutureWrite, true).get()));
  CHECK(!offer(1, kPage, file(F_SEAL_SHRINK, true).get()));
  CHECK(!offer(1, kPage, file(F_SEAL_SHRINK | kSealFutureWrite, false).get()));
  CHECK(offer(1, kPage, file(F_SEAL_SHRINK | kSealFutureWrite, true).get()));
  CHECK(!offer(1, kPage, good->fd.get()));  // the number is taken
  int pipes[2];
  CHECK(pipe(pipes) == 0);
  CHECK(!offer(2, kPage, pipes[0]));
  close(pipes[0]);
  close(pipes[1]);
  for (uint32_t i = 2; i <= LocalMaps::kMost; i++) CHECK(offer(i, kPage, good->fd.get()));
  CHECK(!offer(LocalMaps::kMost + 1, kPage, good->fd.get()));
  CHECK(maps.remove(77));
  CHECK(offer(LocalMaps::kMost + 1, kPage, good->fd.get()));
}

// Memory that the peer refuses, or that is too much to offer, is copied like any other and is not offered again.
TEST(local_maps_refused_memory_works_as_before) {
  LocalConnection w;
  SharedBuffer from(*w.a, 200'000, 5);
  Buffer to(*w.b, 200'000);
  for (int round = 0; round < 3; round++) {
    std::memset(to.data(), 0, to.size);
    const uint32_t i = w.qa.post(request(kOpWrite, {{from.at(), 200'000, from.lkey}}, to.at(), to.rkey));
    w.pump();
    only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), 200'000) == 0);
    const std::vector<SentOffer> offer = sentOffers(*w.pa);
    CHECK_EQ(offer.size(), round == 0 ? 1u : 0u);
    if (round == 0) w.pa->offers.onReply(offer[0].memory.number, false);
  }
  CHECK_EQ(mapped(w.countersB), 0u);
  std::vector<std::shared_ptr<const SharedRange>> many(LocalOffers::kMost + 10);
  for (auto& range : many) {
    CHECK(allocateShared(kPage, &range) == Status::kSuccess);
    CHECK(!w.pa->isMapped(range.get()));
  }
  CHECK_EQ(sentOffers(*w.pa).size(), size_t(LocalOffers::kMost - 1));
  many.clear();
  CHECK_EQ(sentOffers(*w.pa).size(), size_t(LocalOffers::kMost - 1));  // reports the ends of allocations
  CHECK(!w.pa->offers.news());
}

// An unsolicited response changes nothing, and a number that stands for other memory is not used.
TEST(local_maps_nonsense_from_the_peer) {
  LocalConnection w;
  SharedBuffer from(*w.a, 200'000, 5);
  Buffer to(*w.b, 200'000);
  w.pa->offers.onReply(1, true);
  CHECK(!w.pa->isMapped(from.memory.get()));
  w.pa->offers.onReply(1, true);  // the reply precedes the report
  CHECK(!w.pa->isMapped(from.memory.get()));
  for (SentOffer& offer : sentOffers(*w.pa)) {
    offer.memory.base += kPage;  // the referenced range then ends outside of the memory
    CHECK(w.pb->maps.add(offer.memory, offer.fd.get(), false));
    w.pa->offers.onReply(offer.memory.number, true);
  }
  CHECK(w.pa->isMapped(from.memory.get()));
  const uint32_t i = w.qa.post(request(kOpWrite, {{from.at(), 200'000, from.lkey}}, to.at(), to.rkey));
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(from.data(), to.data(), 200'000) == 0);
  CHECK_EQ(pulled(w.countersB), 0u);
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPullFailed), 1u);
}
