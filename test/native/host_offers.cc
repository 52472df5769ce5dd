// Tests a peer of this user that follows no rules. What it offers, or does with an offer, costs it its pair and affects
// no other process. The peer is simulated in this process.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <functional>
#include <map>

#include "host_impostor.h"

using namespace hosttest;

namespace {

// Counts open descriptors, but not while the engine's thread is working, because it may have opened one.
int descriptors() {
  const auto hold = hca().engine()->hold();
  int n = 0;
  for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

bool comesTo(const char* counter, uint64_t value) {
  const uint64_t end = clockNow() + kTimeoutNs;
  while (hostCounter(counter) != value && clockNow() < end) sched_yield();
  return hostCounter(counter) == value;
}

// Whether the process can sleep because everything that makes its descriptors readable is handled. This is not checked
// while the engine's thread is working: a connection that the thread has accepted but does not wait for yet makes
// nothing readable.
bool rests() {
  pollfd p{hca().host().pollFd(), POLLIN, 0};
  const auto quiet = [&p] {
    const auto hold = hca().engine()->hold();
    return ::poll(&p, 1, 0) == 0;
  };
  const uint64_t end = clockNow() + kTimeoutNs;
  while (!quiet()) {
    if (clockNow() >= end) return false;
    hca().engine()->wakeThread();
    sched_yield();
  }
  return true;
}

// Whether this many descriptors are open once the engine is done. When a descriptor no longer wakes any thread, others
// that belong to it may still have to be closed.
bool holds(int count) {
  const uint64_t end = clockNow() + kTimeoutNs;
  while (descriptors() != count && clockNow() < end) sched_yield();
  return descriptors() == count;
}

UniqueFd event() { return UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }
UniqueFd pipeEnd(int end) {
  int ends[2];
  HOST_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  close(ends[1 - end]);
  return UniqueFd(ends[end]);
}

struct Offer {
  UniqueFd memory, own = event(), theirs = event();
  LocalMapping mapping;
  Offer() { HOST_CHECK(mapping.create(&memory)); }
  void file(off_t size, int seals) {
    memory.reset(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    HOST_CHECK(ftruncate(memory.get(), size) == 0 && fcntl(memory.get(), F_ADD_SEALS, seals) == 0);
    const uint32_t magic = LocalSegment::kMagic;
    if ((seals & F_SEAL_WRITE) == 0) HOST_CHECK(pwrite(memory.get(), &magic, sizeof magic, 0) == sizeof magic);
  }
  std::vector<int> fds() const { return {memory.get(), own.get(), theirs.get()}; }
};

constexpr off_t kSize = sizeof(LocalSegment);
const std::map<const char*, std::function<void(Offer&)>> kBadOffers = {
    {"memory of another size", [](Offer& o) { o.file(kSize + 4096, F_SEAL_SHRINK); }},
    {"memory that can shrink", [](Offer& o) { o.file(kSize, F_SEAL_GROW); }},
    {"memory that cannot be written", [](Offer& o) { o.file(kSize, F_SEAL_SHRINK | F_SEAL_WRITE); }},
    {"no memory", [](Offer& o) { o.memory = event(); }},
    {"memory of something else", [](Offer& o) { o.mapping.get()->magic++; }},
    {"no eventfd to wake the peer", [](Offer& o) { o.own = pipeEnd(1); }},
    {"no eventfd to be woken by", [](Offer& o) { o.theirs = pipeEnd(0); }},
    {"a file to wake the peer", [](Offer& o) { o.own.reset(memfd_create("test", MFD_CLOEXEC)); }},
    {"a set of descriptors to be woken by", [](Offer& o) { o.theirs.reset(epoll_create1(EPOLL_CLOEXEC)); }},
};

// An offer from the lower slot gets a reply, whatever is wrong with it, and leaves nothing behind.
int offersMain() {
  auto impostor = std::make_unique<Impostor>(0);
  startProcess();
  HOST_CHECK(hca().host().slot() == 1);
  uint64_t gone = 0;
  LocalHello answer;
  const auto anew = [&] {
    impostor.reset();
    HOST_CHECK(comesTo("slot_peers_gone", ++gone));
    impostor = std::make_unique<Impostor>(0);
  };
  HOST_CHECK(rests());
  const int before = descriptors();
  for (const auto& [name, spoil] : kBadOffers) {
    Offer offer;
    spoil(offer);
    impostor->say(1, FrameKind::kPairOffer, LocalHello::kYes, offer.fds());
    HOST_CHECK(impostor->hears(FrameKind::kPairReply, &answer));
    if (answer.reason != LocalHello::kSystem) std::fprintf(stderr, "%s: was taken\n", name);
    HOST_CHECK(answer.reason == LocalHello::kSystem);
    anew();
  }
  for (const size_t count : {size_t(0), size_t(2)}) {
    Offer offer;
    std::vector<int> fds = offer.fds();
    fds.resize(count);
    impostor->say(1, FrameKind::kPairOffer, LocalHello::kYes, fds);
    HOST_CHECK(impostor->hears(FrameKind::kPairReply, &answer) && answer.reason == LocalHello::kSystem);
    anew();
  }
  {
    // The offer is withdrawn before it is accepted. No reply arrives, and the offered descriptors wake no thread.
    Offer offer;
    offer.mapping.get()->state = LocalSegment::kWithdrawn;
    const uint64_t refused = hostCounter("local_link_refused_system");
    impostor->say(1, FrameKind::kPairOffer, LocalHello::kYes, offer.fds());
    HOST_CHECK(comesTo("local_link_refused_system", refused + 1));
    HOST_CHECK(eventfd_write(offer.theirs.get(), 1) == 0);
    HOST_CHECK(rests());
    anew();
  }
  {
    // Invalid frames: a slot that is not the sender's, missing words, a reply without a request.
    LocalHello hello;
    hello.slot = 1;
    const uint64_t bad = hostCounter("slot_bad_frames");
    impostor->send(1, FrameKind::kPairOffer, &hello, sizeof hello);
    impostor->send(1, FrameKind::kPairOffer, &hello, 4);
    impostor->say(1, FrameKind::kPairRequest);  // from the lower slot
    impostor->say(1, FrameKind::kPairReply);
    HOST_CHECK(comesTo("slot_bad_frames", bad + 4));
  }
  impostor.reset();
  HOST_CHECK(rests());
  HOST_CHECK(holds(before - 1));  // the impostor's own descriptor is closed
  HOST_CHECK(hostCounter("local_link_pairs_up") == 0);
  return hosttest::failures;
}

// A valid pair is set up, and closed because of invalid data in the ring. Then it no longer wakes any thread.
int nonsenseMain() {
  Impostor impostor(0);
  startProcess();
  Offer offer;
  impostor.say(1, FrameKind::kPairOffer, LocalHello::kYes, offer.fds());
  LocalHello answer;
  HOST_CHECK(impostor.hears(FrameKind::kPairReply, &answer) && answer.reason == LocalHello::kYes);
  HOST_CHECK(comesTo("local_link_pairs_up", 1) && rests());
  LocalRing::Slot& slot = offer.mapping.get()->rings[0].slots[0];
  std::memset(slot.body, 0xFF, sizeof slot.body);
  __atomic_store_n(&slot.sequence, 1u, __ATOMIC_RELEASE);
  HOST_CHECK(eventfd_write(offer.theirs.get(), 1) == 0);
  HOST_CHECK(comesTo("local_link_broken", 1));
  HOST_CHECK(eventfd_write(offer.theirs.get(), 1) == 0);
  HOST_CHECK(rests());
  return hosttest::failures;
}

// The peer has the higher slot. It receives an offer, refuses it, keeps the descriptors, and continues to wake this
// side.
int refusalMain() {
  startProcess();
  Impostor impostor(1);
  impostor.say(0, FrameKind::kPairRequest);
  LocalHello hello;
  HOST_CHECK(impostor.hears(FrameKind::kPairOffer, &hello));
  UniqueFd* const kept = impostor.kept[FrameKind::kPairOffer];
  HOST_CHECK(kept[1].valid());
  impostor.say(0, FrameKind::kPairReply, LocalHello::kOption);
  HOST_CHECK(comesTo("local_link_refused_option", 1));
  HOST_CHECK(eventfd_write(kept[1].get(), 1) == 0);
  HOST_CHECK(rests());
  // A positive reply that arrives after the refusal, or without an offer, has no effect.
  impostor.say(0, FrameKind::kPairReply);
  impostor.say(0, FrameKind::kPairRequest);
  HOST_CHECK(impostor.hears(FrameKind::kPairReply, &hello) && hello.reason == LocalHello::kOption);
  HOST_CHECK(hostCounter("local_link_pairs_up") == 0);
  return hosttest::failures;
}

// The peer has the higher slot. It ends while the request is pending, before or after it has received an offer.
int deathMain() {
  startProcess();
  const int before = descriptors();
  for (uint64_t round = 1; round <= 4; round++) {
    // A peer that only sends a request may be gone before it is examined. Otherwise its end is counted.
    const uint64_t gone = hostCounter("slot_peers_gone");
    {
      Impostor impostor(1);
      LocalHello hello;
      impostor.say(0, FrameKind::kPairRequest);
      if (round % 2 == 0) HOST_CHECK(impostor.hears(FrameKind::kPairOffer, &hello));
    }
    HOST_CHECK(rests());
    if (round % 2 == 0) HOST_CHECK(comesTo("slot_peers_gone", gone + 1));
    HOST_CHECK(rests() && holds(before));
  }
  return hosttest::failures;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc > 1 && std::strcmp(argv[1], "offers") == 0) return offersMain();
  if (argc > 1 && std::strcmp(argv[1], "nonsense") == 0) return nonsenseMain();
  if (argc > 1 && std::strcmp(argv[1], "refusal") == 0) return refusalMain();
  if (argc > 1 && std::strcmp(argv[1], "death") == 0) return deathMain();
  hosttest::privateNetwork();
  for (const char* what : {"offers", "nonsense", "refusal", "death"}) apart(what);
  return hosttest::finish("host_offers");
}
