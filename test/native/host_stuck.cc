// Peers that do not go on: stopped in the middle of a copy, at fifty points, with room to take the memory back and without; and memory
// whose pages never come. A neighbour of the same HCA keeps its connection, and is served all the time.
#include <sys/resource.h>

#include <thread>

#include "host_peer.h"

using namespace hosttest;

namespace {

constexpr uint8_t kOwn = 0xAB;
constexpr uint64_t kBoundNs = 5'000'000'000;  // 100 ms, for a machine with other work

char heard(const Peer& peer) {
  char told = 0;
  HOST_CHECK(read(peer.out, &told, 1) == 1);
  return told;
}
constexpr char as(uint32_t status) { return static_cast<char>(status + 1); }

// An honest peer, into whose memory a thread of this process writes one message after the other.
struct Neighbour {
  Side side;
  Peer peer;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread thread;
  Neighbour() {
    peer.connect(side, kRest);
    thread = std::thread([this] {
      while (!stop) {
        side.post(kOpWrite, 0, 64, peer.hello.address, peer.hello.rkey);
        const uint32_t status = side.polled();
        HOST_CHECK(status == kWcSuccess);
        if (status != kWcSuccess) return;
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
    peer.end();
  }
};

struct Writer {
  Side side{true};
  Peer peer;
  Writer() {
    peer.connect(side, kDirect);
    HOST_CHECK(heard(peer) == as(kWcSuccess));
    peer.stop();
  }
  Status deregister(Neighbour& neighbour, uint64_t* served) {
    const uint64_t before = neighbour.rounds, start = clockNow();
    const Status status = side.engine.deregisterMr(side.pd, side.lkey);
    HOST_CHECK(clockNow() - start < kBoundNs);
    *served += neighbour.rounds - before;
    return status;
  }
  // It goes on, and changes nothing.
  void goOn() {
    std::memset(side.memory.data(), kOwn, kBytes);
    ::kill(peer.pid, SIGCONT);
    HOST_CHECK(heard(peer) == as(kWcRemoteAccess));
    for (const uint8_t byte : side.memory) HOST_CHECK(byte == kOwn);
    peer.end();
  }
};

void stoppedAtFiftyPoints() {
  Neighbour neighbour;
  uint64_t served = 0;
  const uint64_t before = hostCounter("direct_memory_taken_back");
  for (int point = 0; point < 50; point++) {
    Writer w;
    HOST_CHECK(w.deregister(neighbour, &served) == Status::kSuccess);
    w.goOn();
  }
  HOST_CHECK(hostCounter("direct_memory_taken_back") > before);
  HOST_CHECK(served > 0);
  neighbour.end();
}

// `ulimit -v`: the command fails in time, and succeeds when there is room.
void stoppedWithoutRoom() {
  Neighbour neighbour;
  uint64_t served = 0;
  const uint64_t before = hostCounter("direct_memory_not_moved");
  for (int round = 0; round < 200 && hostCounter("direct_memory_not_moved") == before; round++) {
    Writer w;
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
  HOST_CHECK(hostCounter("direct_memory_not_moved") > before);
  neighbour.end();
}

void pagesThatNeverCome() {
  Neighbour neighbour;
  Side side;
  Peer stuck;
  stuck.connect(side, kWithheld);
  if (heard(stuck) == 1) {
    // The threads of this process go on, until the payload is given up; the neighbour notices nothing.
    uint64_t served = 0;
    const uint64_t until = clockNow() + 4 * kBoundNs;
    while (hostCounter("local_link_single_copy_stuck") == 0 && clockNow() < until) {
      const uint64_t before = neighbour.rounds;
      std::this_thread::yield();
      served += neighbour.rounds - before;
    }
    HOST_CHECK(hostCounter("local_link_single_copy_stuck") == 1);
    HOST_CHECK(served > 0);
    neighbour.awaitRounds(10);
  } else {
    std::printf("host_stuck: skipped pages that never come: the system has no userfaultfd for this user\n");
  }
  stuck.kill();
  neighbour.end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  privateNetwork();
  startProcess();
  stoppedAtFiftyPoints();
  stoppedWithoutRoom();
  pagesThatNeverCome();
  return finish("host_stuck");
}
