// The whole HCA of two processes: RC over real sockets, the engine's thread, a peer's death, an idle process.
// With the argument "bench": latency and bandwidth between the two.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>

#include "host_side.h"

using namespace hosttest;

namespace {

// The other process: connects, echoes messages until it is told to end (or killed). Its first word says how it
// waits: 'p' polls, 'w' waits for notifications, 'n' does nothing at all after connecting (one-sided work).
int peerMain() {
  startProcess();
  char how = 0;
  Hello other{};
  uint32_t messageBytes = 0;
  if (read(0, &how, 1) != 1 || read(0, &messageBytes, 4) != 4 || read(0, &other, sizeof other) != sizeof other)
    return 2;
  Side side;
  for (uint32_t i = 0; i < 16; i++) side.postReceive(i * (kBytes / 16), messageBytes);
  side.connect(other, 4096);
  const Hello own = side.hello();
  if (write(1, &own, sizeof own) != sizeof own) return 2;
  if (how == 'n') {
    char end;
    return read(0, &end, 1) >= 0 ? hosttest::failures.load() : 1;
  }
  uint32_t echoed = 0;
  for (;;) {
    uint32_t cqe[16];
    while (!side.completion(cqe)) {
      if (how == 'p') {
        side.engine.progress();
        continue;
      }
      pollfd input = {0, POLLIN, 0};
      if (::poll(&input, 1, 0) == 1) return hosttest::failures;
      auto waiter = std::make_shared<Waiter>();
      side.engine.armCq(side.cq, false);
      if (side.completion(cqe)) break;
      side.engine.addCqWaiter(side.cq, kCqNotifyAny, waiter);
      pollfd fds[2] = {{0, POLLIN, 0}, {waiter->wake, POLLIN, 0}};
      ::poll(fds, 2, -1);
      side.engine.removeCqWaiter(side.cq, waiter.get());
      if (fds[0].revents != 0) return hosttest::failures;
    }
    if (cqe[kCqeStatus] != kWcSuccess) return hosttest::failures;
    if ((cqe[kCqeFlags] & kCqeFlagReceiveQueue) == 0) continue;
    const uint32_t offset = echoed++ % 16 * (kBytes / 16);
    side.post(kOpSend, offset, cqe[kCqeLength]);
    side.postReceive(offset, messageBytes);  // the echo is in order: it left before this receive is used again
  }
}

struct Peer {
  pid_t pid;
  int in, out;
  Hello hello{};
  Peer(char how, uint32_t messageBytes, Side& side) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
    pid = fork();
    if (pid == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      execl("/proc/self/exe", "peer", "peer", nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in = to[1];
    out = from[0];
    const Hello own = side.hello();
    HOST_CHECK(write(in, &how, 1) == 1 && write(in, &messageBytes, 4) == 4);
    HOST_CHECK(write(in, &own, sizeof own) == sizeof own);
    HOST_CHECK(read(out, &hello, sizeof hello) == sizeof hello);
    side.connect(hello, 4096);
  }
  void kill() {
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  void end() {
    close(in);
    int status = 0;
    waitpid(pid, &status, 0);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
};

void echo(char how, bool poll) {
  Side side;
  Peer peer(how, 65536, side);
  for (uint32_t i = 0; i < side.memory.size(); i++) side.memory[i] = static_cast<uint8_t>(i * 13 + (i >> 12));
  for (uint32_t n = 0; n < 200; n++) {
    const uint32_t length = n * 331 % 65537;
    side.postReceive(1u << 20, 65536);
    side.post(kOpSend, n * 100, length);
    HOST_CHECK((poll ? side.polled() : side.waited()) == kWcSuccess);
    HOST_CHECK((poll ? side.polled() : side.waited()) == kWcSuccess);
    HOST_CHECK(std::memcmp(&side.memory[n * 100], &side.memory[1u << 20], length) == 0);
  }
  if (how == 'p') peer.kill();
  else peer.end();
}

// One-sided operations need nobody at the peer but its engine's thread.
void oneSided() {
  Side side;
  Peer peer('n', 64, side);
  for (uint32_t i = 0; i < 1u << 20; i++) side.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 11));
  side.post(kOpWrite, 0, 1u << 20, peer.hello.address + 5, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  side.post(kOpRead, 2u << 20, 1u << 20, peer.hello.address + 5, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  HOST_CHECK(std::memcmp(&side.memory[0], &side.memory[2u << 20], 1u << 20) == 0);
  peer.end();
}

// A peer that is killed: the event comes by itself, and what was outstanding ends.
void death() {
  Side side;
  Peer peer('n', 64, side);
  side.postReceive(0, 64);
  peer.kill();
  HOST_CHECK(readable(side.kernel.wake, kPatienceMs));
  HOST_CHECK(side.kernel.event == static_cast<uint32_t>(QpEvent::kPeerLost));
  HOST_CHECK(side.waited() == kWcFlushed);
}

// An idle process costs nothing. (This one has to look at a stretch of time.)
void idle() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return;  // the sanitizer's own threads wake
#endif
  Side side;
  Peer peer('n', 64, side);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  rusage before{}, after{};
  usleep(50'000);  // the ACK timer of the last message may still come
  getrusage(RUSAGE_SELF, &before);
  usleep(300'000);
  getrusage(RUSAGE_SELF, &after);
  HOST_CHECK(after.ru_nvcsw - before.ru_nvcsw <= 3);  // our own sleep, and at most a timer
  peer.end();
}

void bench() {
  for (const uint32_t bytes : {8u, 4096u, 8u, 4096u}) {
    Side side;
    Peer peer('p', 65536, side);
    constexpr uint32_t kRounds = 20000;
    std::vector<uint64_t> samples;  // on a shared machine the low quantiles tell most
    for (uint32_t i = 0; i < kRounds + 1000; i++) {
      const uint64_t start = clockNow();
      side.postReceive(1u << 20, 65536);
      side.post(kOpSend, 0, bytes);
      if (side.polled() + side.polled() != 0) std::abort();
      if (i >= 1000) samples.push_back(clockNow() - start);
    }
    std::sort(samples.begin(), samples.end());
    std::printf("ping-pong of %u bytes: round trip %.3f us median, %.3f us in the best tenth\n", bytes,
                static_cast<double>(samples[kRounds / 2]) / 1000, static_cast<double>(samples[kRounds / 10]) / 1000);
    peer.kill();
  }
  for (const uint32_t op : {kOpWrite, kOpRead}) {
    Side side;
    Peer peer('n', 64, side);
    constexpr uint32_t kMessages = 400, kDepth = 4;
    const uint64_t start = clockNow();
    for (uint32_t i = 0; i < kMessages; i++) {
      if (i >= kDepth && side.polled() != 0) std::abort();
      side.post(op, 0, 1u << 20, peer.hello.address, peer.hello.rkey);
    }
    for (uint32_t i = 0; i < kDepth; i++)
      if (side.polled() != 0) std::abort();
    const double seconds = static_cast<double>(clockNow() - start) / 1e9;
    std::printf("%s of 1 MiB: %.2f GB/s\n", op == kOpWrite ? "WRITE" : "READ", kMessages * 1.048576e6 / seconds / 1e9);
    peer.end();
  }
  const auto values = hca().host().counters();
  for (size_t i = 0; i < values.size(); i++)
    if (values[i] != 0 && std::strncmp(Host::counterNames()[i], "local_", 6) == 0)
      std::printf("%s %llu\n", Host::counterNames()[i], static_cast<unsigned long long>(values[i]));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "peer") == 0) return peerMain();
  signal(SIGPIPE, SIG_IGN);
  hosttest::privateNetwork();
  startProcess();
  if (argc > 1 && std::strcmp(argv[1], "bench") == 0) {
    bench();
    return 0;
  }
  echo('w', false);
  echo('w', true);
  echo('p', true);
  echo('p', false);
  oneSided();
  death();
  idle();
  return hosttest::finish("host_process");
}
