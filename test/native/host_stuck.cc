// Tests of peers that do not continue. They are stopped in the middle of a copy, at fifty points, with and without room
// to withdraw the memory. Other peers have memory whose pages never arrive. A neighbor on the same HCA keeps its
// connection, and is served throughout. `host_stuck <points>`, which test/attack runs, also prints figures as JSON.
#include <sys/resource.h>

#include <thread>

#include "host_peer.h"

using namespace hosttest;

namespace {

constexpr uint8_t kOwn = 0xAB;
constexpr uint32_t kPoints = 50, kRounds = 10, kMost = 200;
constexpr uint64_t kBoundNs = 5'000'000'000;  // 100 ms, for a machine with other work

char heard(const Peer& peer) {
  char told = 0;
  HOST_CHECK(read(peer.out, &told, 1) == 1);
  return told;
}
constexpr char as(uint32_t status) { return static_cast<char>(status + 1); }

struct Figures {
  uint64_t stops = 0, evictions = 0, withoutRoom = 0, withheld = 0, rounds = 0, slowestNs = 0;
  void print() const {
    const std::pair<const char*, uint64_t> all[] = {
        {"stops", stops},       {"evictions", evictions}, {"without room", withoutRoom},
        {"withheld", withheld}, {"rounds", rounds},       {"slowest us", slowestNs / 1000}};
    std::string text;
    for (const auto& [name, value] : all)
      text += (text.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + std::to_string(value);
    std::printf("%s}\n", text.c_str());
  }
} figures;

// An honest peer, to whose memory a thread of this process writes one message after the other.
struct Neighbour {
  Side side;
  Peer peer;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  uint64_t slowestNs = 0;  // the slowest Write; the thread's until it has ended
  std::thread thread;
  Neighbour() {
    peer.connect(side, kRest);
    thread = std::thread([this] {
      while (!stop) {
        const uint64_t start = clockNow();
        side.post(kOpWrite, 0, 64, peer.hello.address, peer.hello.rkey);
        const uint32_t status = side.polled();
        HOST_CHECK(status == kWcSuccess);
        if (status != kWcSuccess) return;
        slowestNs = std::max(slowestNs, clockNow() - start);
        rounds++;
      }
    });
    awaitRounds(3);
  }
  void awaitRounds(uint64_t more) {
    const uint64_t before = rounds, until = clockNow() + 4 * kBoundNs;
    while (rounds < before + more && clockNow() < until) std::this_thread::yield();
    HOST_CHECK(rounds >= before + more);
  }
  void end() {
    awaitRounds(3);
    stop = true;
    thread.join();
    HOST_CHECK(!isLost(side));
    figures.rounds += rounds;
    figures.slowestNs = std::max(figures.slowestNs, slowestNs);
    peer.end();
  }
};

struct Writer {
  Side side{true};
  Peer peer;
  Writer() {
    peer.connect(side, kDirect);
    HOST_CHECK(heard(peer) == as(kWcSuccess));
  }
  // The peer stops at another point each time.
  void stopAfter(Neighbour& neighbour, uint32_t rounds) {
    neighbour.awaitRounds(rounds);
    peer.stop();
    figures.stops++;
  }
  Status deregister(Neighbour& neighbour, uint64_t* served) {
    const uint64_t before = neighbour.rounds, start = clockNow();
    const Status status = side.engine.deregisterMr(side.pd, side.lkey);
    HOST_CHECK(clockNow() - start < kBoundNs);
    *served += neighbour.rounds - before;
    return status;
  }
  // The peer continues, but changes nothing.
  void goOn() {
    std::memset(side.memory.data(), kOwn, kBytes);
    ::kill(peer.pid, SIGCONT);
    HOST_CHECK(heard(peer) == as(kWcRemoteAccess));
    for (const uint8_t byte : side.memory) HOST_CHECK(byte == kOwn);
    peer.end();
  }
};

void stoppedAtPoints(uint32_t points) {
  Neighbour neighbour;
  uint64_t served = 0;
  const uint64_t before = hostCounter("direct_memory_reclaimed");
  const auto evictions = [&] { return hostCounter("direct_memory_reclaimed") - before; };
  for (uint32_t point = 0; point < points || (evictions() == 0 && point < kMost); point++) {
    Writer w;
    w.stopAfter(neighbour, point % kRounds);
    HOST_CHECK(w.deregister(neighbour, &served) == Status::kSuccess);
    w.goOn();
  }
  figures.evictions = evictions();
  HOST_CHECK(figures.evictions > 0);
  HOST_CHECK(served > 0);
  neighbour.end();
}

// Under `ulimit -v`, the command fails in time, and succeeds when there is room.
void stoppedWithoutRoom() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return;  // a sanitizer may need memory of the OS at any time
#endif
  Neighbour neighbour;
  uint64_t served = 0;
  const uint64_t before = hostCounter("direct_memory_not_moved");
  for (uint32_t round = 0; round < kMost && hostCounter("direct_memory_not_moved") == before; round++) {
    Writer w;
    w.stopAfter(neighbour, round % kRounds);
    rlimit limit;
    HOST_CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
    rlimit none = limit;
    none.rlim_cur = 4096;
    HOST_CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    const Status status = w.deregister(neighbour, &served);
    const Status again = status == Status::kSuccess ? Status::kSuccess : w.deregister(neighbour, &served);
    HOST_CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    HOST_CHECK(status == again && (status == Status::kSuccess || status == Status::kNoMemory));
    if (status == Status::kNoMemory) HOST_CHECK(w.deregister(neighbour, &served) == Status::kSuccess);
    w.goOn();
  }
  figures.withoutRoom = hostCounter("direct_memory_not_moved") - before;
  HOST_CHECK(figures.withoutRoom > 0);
  neighbour.end();
}

// Only the owner ever reads these pages, so the peer's own Write waits.
void pagesThatNeverCome() {
  Neighbour neighbour;
  Side side;
  Peer stuck;
  stuck.connect(side, kWithheld);
  if (heard(stuck) == 1) {
    HOST_CHECK(heard(stuck) == 2);
    figures.withheld++;
    neighbour.awaitRounds(100);
  } else {
    std::printf("host_stuck: skipped pages that never arrive: this user may not use userfaultfd\n");
  }
  stuck.kill();
  neighbour.end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  privateNetwork();
  startProcess();
  stoppedAtPoints(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : kPoints);
  stoppedWithoutRoom();
  pagesThatNeverCome();
  if (argc > 1) figures.print();
  return finish("host_stuck");
}
