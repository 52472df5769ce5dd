// Tests of an engine without a thread, driven only by the program's own threads, with a peer on the local link. They
// cover peers whose end was not seen when it occurred, and threads that wait (progress/waiting_thread.h).
#include <arpa/inet.h>

#include <algorithm>

#include "host_peer.h"
#include "process/hosted_engine.h"
#include "progress/waiting_thread.h"

using namespace hosttest;

namespace {

// Another program has the wire's port and does not share it. Without a wire, only the peers' rings wake sleeping
// threads.
struct PortTaken {
  const int socket = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  PortTaken() {
    const int both = 0;
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(4791);
    HOST_CHECK(setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both) == 0);
    HOST_CHECK(bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
  }
  ~PortTaken() { ::close(socket); }
};

// An engine without a thread, which works when it is polled.
struct Unwatched {
  struct : Clock {
    mutable uint64_t slow = 0;  // 0: off; otherwise the time, which each reading of the clock advances a little
    uint64_t now() const override { return slow != 0 ? slow += 50 : clockNow(); }
  } clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  HostedEngine hosted{engine, host};
  Unwatched() {
    HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess && host.openWire() == Status::kSuccess);
  }
  ~Unwatched() { host.stop(); }
};

// The peer is killed and another process gets its slot while no thread here polls. The end of the first is reported
// before a connection to the second starts, and does not end that connection.
int unseenMain() {
  Unwatched here;
  Engine& engine = here.engine;
  for (int round = 0; round < 3; round++) {
    Side first(false, engine);
    Peer peer;
    peer.connect(first, kRest);
    first.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(first.polled() == kWcSuccess);
    peer.kill();
    Peer next;
    HOST_CHECK(next.hello.qpn >> 16 == peer.hello.qpn >> 16);
    Side second(false, engine);
    next.connect(second, kRest);
    HOST_CHECK(isLost(first));
    for (const uint32_t bytes : {8u, kMessage}) {
      second.post(kOpWrite, 0, bytes, next.hello.address, next.hello.rkey);
      HOST_CHECK(second.polled() == kWcSuccess);
    }
    HOST_CHECK(second.kernel.event == 0);
    next.end();
    while (second.kernel.event == 0) engine.progress();
  }
  return hosttest::failures;
}

// The same test with a connection whose path is modified. It led to that process, and has failed.
int modifiedMain() {
  Unwatched here;
  Engine& engine = here.engine;
  Side side(false, engine);
  Peer peer;
  peer.connect(side, kRest);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.polled() == kWcSuccess);
  QpAttributes a;
  a.state = kQpsSqd;
  HOST_CHECK(engine.modifyQp(side.qp, qpmask::kState, a) == Status::kSuccess);
  engine.progress();
  peer.kill();
  Peer next;
  HOST_CHECK(next.hello.qpn >> 16 == peer.hello.qpn >> 16);
  a.path.source = a.path.destination = loopback();
  HOST_CHECK(engine.modifyQp(side.qp, qpmask::kPath, a) == Status::kInvalidDeviceState);
  HOST_CHECK(engine.queryQp(side.qp, &a) == Status::kSuccess && a.currentState == kQpsError);
  HOST_CHECK(isLost(side));
  next.kill();
  return hosttest::failures;
}

// A waiting thread that always has something to do, so that it never sleeps, still sees what does not arrive through
// the rings: here, the end of the peer's process. `again`: the thread enters more than once in a turn, and does not
// leave in between.
void busy(bool again) {
  Unwatched here;
  Side side(false, here.engine);
  Peer peer;
  peer.connect(side, kRest);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.polled() == kWcSuccess);
  WaitingThread waiting(
      here.hosted, [](void*) {}, nullptr);
  const auto something = [] { return true; };
  here.clock.slow = clockNow();
  for (int i = 0; i < 10'000 && !isLost(side); i++) {
    if (i == 10) peer.kill();
    for (int n = again ? 3 : 1; n > 0; n--) HOST_CHECK(waiting.enter(something) == WaitingThread::Entry::kDone);
    waiting.leave();
  }
  HOST_CHECK(isLost(side));
}

int busyMain() {
  busy(false);
  busy(true);
  return hosttest::failures;
}

// Tests a thread that spins before it sleeps, on a clock that advances with its polls.
int spinsMain() {
  const PortTaken taken;
  Unwatched here;
  WaitingThread waiting(
      here.hosted, [](void*) {}, nullptr);
  here.clock.slow = clockNow();
  uint32_t polls = 0, there = 0;
  const auto comes = [&] { return ++polls == there; };
  const auto enter = [&](uint32_t whenPolled, bool sleeps) {
    polls = 0;
    there = whenPolled;
    const WaitingThread::Entry entry = waiting.enter(comes, sleeps);
    waiting.leave();
    return entry;
  };
  constexpr uint32_t kNever = 0, kSoon = 6, kPollAndStep = 2;
  // A thread that only sleeps sets no mark. If it did, the engine's thread would leave it timers that are due
  // meanwhile.
  const uint64_t marked = here.engine.owner().marked();
  HOST_CHECK(waiting.enter([] { return false; }, false) == WaitingThread::Entry::kSleep);
  HOST_CHECK(here.engine.owner().marked() == marked);
  waiting.leave();
  HOST_CHECK(enter(kSoon, true) == WaitingThread::Entry::kDone);
  HOST_CHECK(polls == kSoon);
  HOST_CHECK(enter(kSoon, false) == WaitingThread::Entry::kSleep);  // the thread does not sleep, and so does not wait
  HOST_CHECK(polls == kPollAndStep);
  HOST_CHECK(enter(kNever, true) == WaitingThread::Entry::kSleep);
  HOST_CHECK(polls > kSoon);
  HOST_CHECK(enter(kSoon, true) == WaitingThread::Entry::kSleep);  // the last spin had no result
  HOST_CHECK(polls == kPollAndStep);
  HOST_CHECK(enter(kSoon, true) == WaitingThread::Entry::kDone);
  // A thread that comes from sleeping handles everything else before it sleeps again.
  HOST_CHECK(waiting.enter([] { return false; }, false) == WaitingThread::Entry::kSleep);
  HOST_CHECK(enter(kSoon, true) == WaitingThread::Entry::kSleep);
  HOST_CHECK(polls == kPollAndStep);
  return hosttest::failures;
}

// A message that ends a sleep, and whose sender waits for it, is acknowledged immediately. Acknowledgements of other
// messages may be sent with a reply, but leave before the thread sleeps.
void acknowledges(char how) {
  Unwatched here;
  Side side(false, here.engine);
  Peer peer;
  peer.connect(side, how);
  WaitingThread waiting(
      here.hosted, [](void*) {}, nullptr);
  const auto sent = [&] { return counterOf(here.engine, "sent_pkts"); };
  const auto hears = [&] {
    pollfd descriptor = {here.host.pollFd(), POLLIN, 0};
    return ::poll(&descriptor, 1, kTimeoutMs) == 1;
  };
  uint8_t number = 0;
  const auto came = [&] { return __atomic_load_n(&side.memory[0], __ATOMIC_ACQUIRE) == number; };
  for (const bool sleeps : {true, true, false, true, false}) {
    HOST_CHECK(waiting.enter([] { return false; }, false) == WaitingThread::Entry::kSleep);
    const uint64_t before = sent();
    number++;
    peer.tell();
    HOST_CHECK(hears());
    if (!sleeps) waiting.leave();
    HOST_CHECK(waiting.enter(came, false) == WaitingThread::Entry::kDone);
    // The first message may have waited for the local link. Then it requests an acknowledgement, as longer messages do.
    const bool atOnce = sleeps && how == kOnceEach;
    HOST_CHECK(number == 1 || sent() == before + (atOnce ? 1 : 0));
    waiting.leave();
    HOST_CHECK(waiting.enter([] { return false; }, false) == WaitingThread::Entry::kSleep);
    HOST_CHECK(sent() == before + 1);
    waiting.leave();
  }
  peer.end();
}

int acknowledgesMain() {
  const PortTaken taken;
  acknowledges(kOnceEach);
  acknowledges(kQuietEach);
  return hosttest::failures;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "unseen") == 0) return unseenMain();
  if (argc > 1 && std::strcmp(argv[1], "modified") == 0) return modifiedMain();
  if (argc > 1 && std::strcmp(argv[1], "busy") == 0) return busyMain();
  if (argc > 1 && std::strcmp(argv[1], "spins") == 0) return spinsMain();
  if (argc > 1 && std::strcmp(argv[1], "acknowledges") == 0) return acknowledgesMain();
  hosttest::privateNetwork();
  for (const char* test : {"unseen", "modified", "busy", "spins", "acknowledges"}) apart(test);
  return hosttest::finish("host_unwatched");
}
