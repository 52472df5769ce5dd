// Rendezvous by system call (local/local_puller.h): payload in pieces, pages that never come, and what ends under way.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "local_world.h"
#include "platform/peer_memory.h"

using namespace world;

namespace {

constexpr uint32_t kMtu = LocalPair::kMtu, kNamed = kMtu * LocalPair::kNamedPackets;

// Memory of this process whose pages come when release() is called.
struct Withheld {
  int fd = -1;
  uint8_t* memory;
  uint64_t bytes;
  explicit Withheld(uint64_t size) : bytes(size) {
    memory = static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(memory != MAP_FAILED);
    fd = int(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
    if (fd < 0) return;
    uffdio_api api{UFFD_API, 0, 0};
    uffdio_register range{{uint64_t(reinterpret_cast<uintptr_t>(memory)), bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
    if (ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0) return;
    release();
  }
  ~Withheld() {
    release();
    munmap(memory, bytes);
  }
  bool works() const {
    if (fd < 0) std::printf("skipped: the system has no userfaultfd for this user\n");
    return fd >= 0;
  }
  void release() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

struct Registered {
  Node& node;
  uint64_t address, range = 0;
  uint32_t lkey = 0, rkey = 0;
  Registered(Node& n, const Withheld& memory) : node(n), address(reinterpret_cast<uint64_t>(memory.memory)) {
    CHECK(n.engine.pinRange(address, memory.bytes, &range) == Status::kSuccess);
    CHECK(n.engine.registerMr(n.pd, address, memory.bytes, kAllAccess, &lkey, &rkey) == Status::kSuccess);
  }
  ~Registered() {
    CHECK(node.engine.deregisterMr(node.pd, lkey) == Status::kSuccess);
    node.engine.unpinRange(range);
  }
};

LocalPuller::Peer self(const uint8_t nonce[16]) {
  LocalPuller::Peer peer = {getpid(), reinterpret_cast<uint64_t>(nonce), {}};
  std::memcpy(peer.nonce, nonce, sizeof peer.nonce);
  return peer;
}

}  // namespace

TEST(the_right_to_read_is_found_without_reading) {
  CHECK(mayReadPeer(getpid()));
  CHECK(!mayReadPeer(0x7FFFFFFF));
}

// Pieces of the peer's of any size, over the borders of those that are read at once.
TEST(puller_reads_pieces_of_any_size) {
  const uint8_t nonce[16] = {1, 2, 3};
  const std::unique_ptr<LocalPuller> puller = LocalPuller::start(self(nonce), kNoDescriptor);
  CHECK(puller != nullptr);
  Random random(5);
  for (uint32_t round = 0; round < 50; round++) {
    const uint32_t count = 1 + random.below(LocalPuller::kMaxPieces);
    std::vector<std::vector<uint8_t>> memory(count);
    std::vector<LocalPiece> pieces;
    std::vector<uint8_t> all, got;
    for (auto& part : memory) {
      part.resize(round % 2 ? random.below(100'000) : random.below(200));
      for (uint8_t& byte : part) byte = uint8_t(random.next());
      pieces.push_back({reinterpret_cast<uint64_t>(part.data()), part.size(), 0});
      all.insert(all.end(), part.begin(), part.end());
    }
    if (all.empty()) continue;
    puller->begin(pieces.data(), count, uint32_t(all.size()));
    while (got.size() < all.size()) {
      const uint8_t* piece = nullptr;
      CHECK(eventually([&] { return (piece = puller->piece()) != nullptr; }));
      const size_t bytes = std::min<size_t>(LocalPuller::kPieceBytes, all.size() - got.size());
      got.insert(got.end(), piece, piece + bytes);
      puller->take();
    }
    CHECK(got == all && puller->piece() == nullptr && !puller->failed());
  }
}

TEST(puller_reports_what_the_system_refuses) {
  uint8_t nonce[16] = {1, 2, 3};
  const std::unique_ptr<LocalPuller> puller = LocalPuller::start(self(nonce), kNoDescriptor);
  std::vector<uint8_t> memory(300'000, 7);
  const LocalPiece good = {reinterpret_cast<uint64_t>(memory.data()), memory.size(), 0};
  const LocalPiece bad[] = {{good.address, 150'000, 0}, {4096, 150'000, 0}};
  for (int round = 0; round < 3; round++) {
    puller->begin(bad, 2, 300'000);
    CHECK(eventually([&] { return puller->failed(); }));
    CHECK(puller->piece() == nullptr);
    puller->forgetFailure();
    CHECK(!puller->failed() && puller->piece() == nullptr);
    puller->begin(&good, 1, 300'000);
    for (int i = 0; i < 5; i++) {
      CHECK(eventually([&] { return puller->piece() != nullptr; }));
      CHECK_EQ(puller->piece()[0], 7);
      puller->take();
    }
  }
  nonce[0] = 9;  // another process by now
  puller->begin(&good, 1, 300'000);
  CHECK(eventually([&] { return puller->failed(); }));
}

// There are so many threads and no more, and each comes back when its payload has an end.
TEST(puller_threads_are_bounded) {
  const uint8_t nonce[16] = {};
  std::vector<std::unique_ptr<LocalPuller>> all;
  CHECK(eventually([&] {
    while (std::unique_ptr<LocalPuller> one = LocalPuller::start(self(nonce), kNoDescriptor)) all.push_back(std::move(one));
    return all.size() == LocalPuller::kMostThreads;
  }));
  CHECK(LocalPuller::start(self(nonce), kNoDescriptor) == nullptr);
  all.clear();
  std::unique_ptr<LocalPuller> next;
  CHECK(eventually([&] { return (next = LocalPuller::start(self(nonce), kNoDescriptor)) != nullptr; }));
}

// Every kind of message, as one name: what arrives is what would have come through the ring.
TEST(named_payload_is_taken_packet_by_packet) {
  constexpr uint32_t kBytes = kNamed + 2 * kMtu + 100;
  for (const uint32_t flags : {0u, uint32_t(kSendFlagImmediate), uint32_t(kSendFlagSolicited)}) {
    for (const uint32_t opcode : {kOpSend, kOpWrite, kOpRead}) {
      if (opcode == kOpRead && flags != 0) continue;
      LocalConnection w;
      Buffer ours(*w.a, kBytes, kAllAccess, 7), theirs(*w.b, kBytes, kAllAccess, 8);
      if (opcode == kOpSend || (flags & kSendFlagImmediate)) w.qb.receive(opcode == kOpSend ? std::vector<Sge>{{theirs.at(), kBytes, theirs.lkey}} : std::vector<Sge>{});
      Wr wr{opcode, kSendFlagSignaled | flags, {{ours.at(), kBytes, ours.lkey}}};
      wr.remote = theirs.at();
      wr.rkey = theirs.rkey;
      wr.immediate = 0xABCD;
      const uint32_t i = w.qa.post(wr);
      w.pump();
      only(w.qa.sendCq, i, opcode, kWcSuccess, opcode == kOpRead ? kBytes : 0);
      CHECK(std::memcmp(ours.data(), theirs.data(), kBytes) == 0);
      const auto received = w.qb.receiveCq.drain();
      if (opcode == kOpSend) CHECK_EQ(received.at(0).length, kBytes);
      if (flags & kSendFlagImmediate) CHECK_EQ(received.at(0).immediate, 0xABCDu);
      CHECK_EQ(w.a->counter("retransmitted_pkts") + w.b->counter("retransmitted_pkts"), 0u);
      CHECK_EQ((opcode == kOpRead ? w.countersA : w.countersB).get(HostCounter::kLocalPulled), uint64_t(kBytes));
    }
  }
}

// The key is checked for each piece: one that ends in the middle of the message ends the message.
TEST(key_that_ends_under_a_named_payload) {
  LocalConnection w;
  Buffer ours(*w.a, kNamed, kAllAccess, 7), theirs(*w.b, kNamed);
  std::memset(theirs.data(), 0xAB, kNamed);
  const uint32_t i = w.qa.post({kOpWrite, kSendFlagSignaled, {{ours.at(), kNamed, ours.lkey}}, 0, theirs.at(), theirs.rkey});
  w.b->link.awaitsPulls = false;
  CHECK(eventually([&] {
    w.b->step();
    return theirs.data()[kMtu - 1] != 0xAB;
  }));
  CHECK(w.b->engine.deregisterMr(w.b->pd, theirs.lkey) == Status::kSuccess);
  theirs.lkey = 0;
  uint32_t from = 0;
  while (from < kNamed && std::memcmp(theirs.data() + from, ours.data() + from, kMtu) == 0) from += kMtu;
  CHECK(from > 0);
  w.b->link.awaitsPulls = true;
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, from == kNamed ? kWcSuccess : kWcRemoteAccess);  // another thread has read it meanwhile
  for (uint32_t at = from; at < kNamed; at++) CHECK_EQ(theirs.data()[at], 0xAB);
}

// The queue pair, or the pair, is gone when a piece comes.
TEST(queue_pair_that_ends_under_a_named_payload) {
  for (const bool pairEnds : {false, true}) {
    LocalConnection w;
    Buffer ours(*w.a, kNamed, kAllAccess, 7), theirs(*w.b, kNamed);
    w.qa.post({kOpWrite, kSendFlagSignaled, {{ours.at(), kNamed, ours.lkey}}, 0, theirs.at(), theirs.rkey});
    w.b->link.awaitsPulls = false;
    w.b->step();
    if (pairEnds) w.pb->close();
    else CHECK(w.qb.toState(kQpsError) == Status::kSuccess);
    std::memset(theirs.data(), 0xAB, kNamed);
    CHECK(eventually([&] {
      w.b->step();
      return !w.pb->pulling();
    }));
    for (uint32_t at = 0; at < kNamed; at++) CHECK_EQ(theirs.data()[at], 0xAB);
  }
}

// Pages that never come: the payload is refused in time, and comes through the ring from then on; other pairs have noticed nothing, as
// nobody waits. When they come at last, nothing is written.
TEST(pages_that_never_come_are_given_up) {
  Withheld withheld(kNamed);
  if (!withheld.works()) return;
  LocalConnection w;
  const Registered source(*w.a, withheld);
  Buffer theirs(*w.b, kNamed);
  std::memset(theirs.data(), 0xAB, kNamed);
  const uint32_t i = w.qa.post({kOpWrite, kSendFlagSignaled, {{source.address, kNamed, source.lkey}}, 0, theirs.at(), theirs.rkey});
  const uint64_t start = monotonicNs();
  w.b->link.awaitsPulls = false;
  w.b->step();
  CHECK(w.pb->pulling() && !w.pb->pending());  // and the step has not waited
  CHECK(eventually([&] {
    if (monotonicNs() >= w.pb->pullDue()) w.pb->pullIsLate();
    return w.pb->pending();
  }));
  CHECK(monotonicNs() - start >= LocalPuller::kPatienceNs);
  w.b->step();
  CHECK(!w.pb->pulling());
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPullStuck), 1u);
  for (uint32_t at = 0; at < kNamed; at++) CHECK_EQ(theirs.data()[at], 0xAB);
  withheld.release();  // zeroes; the sender itself would wait otherwise
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  for (uint32_t at = 0; at < kNamed; at++) CHECK_EQ(theirs.data()[at], 0);
  const uint64_t pulled = w.countersB.get(HostCounter::kLocalPulled);
  w.qa.post({kOpWrite, kSendFlagSignaled, {{source.address, kNamed, source.lkey}}, 0, theirs.at(), theirs.rkey});
  w.pump();
  CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcSuccess);
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPulled), pulled);
}

// Setting the pair up reads nothing of the peer's either.
TEST(nonce_that_never_comes_keeps_nobody_waiting) {
  Withheld withheld(4096);
  if (!withheld.works()) return;
  LocalConnection w({}, {}, {}, false);
  w.segment().sides[0].nonceAddress = reinterpret_cast<uint64_t>(withheld.memory);
  w.pb->probe();  // or this test does not end
  withheld.release();
}
