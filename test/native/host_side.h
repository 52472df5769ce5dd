// A process with the whole HCA: its engine, one queue pair, and the connection steps that a test performs by hand.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <atomic>

#include "platform/shared_memory.h"
#include "process/hca_context.h"
#include "ring_user.h"

namespace hosttest {

using namespace nd;
using namespace nd::abi;

// The HCA of this program, which ends when the program exits.
inline HcaContext& hca() {
  static auto* context = new HcaContext();
  return *context;
}

constexpr uint32_t kSideAccess = kAccessLocalWrite | kAccessRemoteWriteBit | kAccessRemoteRead | kAccessRemoteAtomic;
constexpr uint32_t kBytes = 4u << 20, kEntries = 256, kStride = 128, kReceiveStride = 64;

inline uint64_t clockNow() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

inline Gid loopback() {
  Gid gid;
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  return gid;
}

struct Kernel final : KernelPort {
  int wake = eventfd(0, EFD_CLOEXEC);
  std::atomic<uint32_t> event{0};
  ~Kernel() { ::close(wake); }
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent& e) override {
    if (e.kind != HcaEvent::Kind::kQp || QpEvent(e.words[2]) == QpEvent::kCommunicationEstablished) return;
    event = e.words[2];
    const uint64_t one = 1;
    if (write(wake, &one, sizeof one) < 0) std::abort();
  }
};

struct Waiter final : NotifySink {
  int wake = eventfd(0, EFD_CLOEXEC);
  ~Waiter() { ::close(wake); }
  void notify(Status status) override {
    const uint64_t one = 1 + static_cast<uint64_t>(status != Status::kSuccess);
    if (write(wake, &one, sizeof one) < 0) std::abort();
  }
};

// A second process of this program, as a peer. `in` is its standard input, `out` its standard output.
struct Child {
  pid_t pid;
  int in, out;
  explicit Child(const char* words = nullptr) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
    pid = fork();
    if (pid == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      execl("/proc/self/exe", "peer", "peer", words, nullptr);
      _exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    in = to[1];
    out = from[0];
  }
};

inline bool readable(int fd, int ms) {
  pollfd p = {fd, POLLIN, 0};
  uint64_t count;
  return ::poll(&p, 1, ms) == 1 && read(fd, &count, sizeof count) == sizeof count;
}

// The data that the two sides exchange before they connect.
struct Hello {
  uint32_t qpn, rkey;
  uint64_t address;
};

// Registered memory of a side, from the heap or from allocate().
struct Registered {
  std::vector<uint8_t> heap;
  std::shared_ptr<const SharedRange> shared;
  uint8_t* bytes;
  explicit Registered(bool ofAllocate) {
    if (ofAllocate) {
      HOST_CHECK(allocateShared(kBytes, &shared) == Status::kSuccess);
      bytes = reinterpret_cast<uint8_t*>(shared->base);
    } else {
      heap.resize(kBytes);
      bytes = heap.data();
    }
  }
  uint8_t* data() { return bytes; }
  size_t size() const { return kBytes; }
  uint8_t* begin() { return bytes; }
  uint8_t* end() { return bytes + kBytes; }
  uint8_t& operator[](size_t i) { return bytes[i]; }
};

struct Side : RingUser {
  Kernel kernel;
  Registered memory;

  explicit Side(bool ofAllocate = false, Engine& e = *hca().engine())
      : RingUser(e, {kEntries, kStride, kReceiveStride, 1024}), memory(ofAllocate) {
    open(kernel, memory.data(), kBytes, kSideAccess);
  }
  ~Side() {
    engine.detachKernel(id);
    engine.unpinRange(range);
    engine.releaseRing(cqRing);
    engine.releaseRing(qpRing);
  }

  Hello hello() { return {qpn, rkey, reinterpret_cast<uint64_t>(memory.data())}; }

  // Makes the queue pair ready to receive.
  void listen(const Hello& peer, uint32_t pathMtu) {
    QpAttributes a;
    a.state = kQpsInit;
    a.access = kSideAccess;
    a.port = 1;
    HOST_CHECK(engine.modifyQp(qp, qpmask::kState | qpmask::kAccess | qpmask::kPkeyIndex | qpmask::kPort, a) ==
               Status::kSuccess);
    a.state = kQpsRtr;
    a.path.source = a.path.destination = loopback();
    a.pathMtu = pathMtu;
    a.destinationQpn = peer.qpn;
    a.responderResources = 16;
    a.minRnrTimer = 12;
    HOST_CHECK(engine.modifyQp(qp,
                               qpmask::kState | qpmask::kPath | qpmask::kPathMtu | qpmask::kDestinationQpn |
                                   qpmask::kReceivePsn | qpmask::kResponderResources | qpmask::kMinRnrTimer,
                               a) == Status::kSuccess);
  }
  // Makes the queue pair ready to send. `ackTimeout`: 14 is 67 ms, 22 is 17 s.
  Status speak(uint32_t ackTimeout = 14) {
    QpAttributes a;
    a.state = kQpsRts;
    a.initiatorDepth = 16;
    a.ackTimeout = ackTimeout;
    a.retryCount = 7;
    a.rnrRetry = 7;
    return engine.modifyQp(qp,
                           qpmask::kState | qpmask::kAckTimeout | qpmask::kRetryCount | qpmask::kRnrRetry |
                               qpmask::kSendPsn | qpmask::kInitiatorDepth,
                           a);
  }
  void connect(const Hello& peer, uint32_t pathMtu, uint32_t ackTimeout = 14) {
    listen(peer, pathMtu);
    HOST_CHECK(speak(ackTimeout) == Status::kSuccess);
  }

  void post(uint32_t opcode, uint32_t offset, uint32_t length, uint64_t remote = 0, uint32_t remoteKey = 0,
            uint32_t flags = kSendFlagSignaled) {
    uint32_t* const wqe = request();
    wqe[kSwOpcode] = opcode;
    wqe[kSwFlags] = flags;
    wqe[kSwSgeCount] = 1;
    wqe[kSwRemoteLo] = static_cast<uint32_t>(remote);
    wqe[kSwRemoteHi] = static_cast<uint32_t>(remote >> 32);
    wqe[kSwRkey] = remoteKey;
    sge(wqe + kSendWqeHeaderBytes / 4, offset, length);
    publish();
    engine.doorbell(qp);
  }
  // Polls for a completion, driving the engine itself. Returns its status; 99 after kTimeoutNs.
  uint32_t polled() {
    uint32_t cqe[16];
    const uint64_t end = clockNow() + kTimeoutNs;
    for (;;) {
      if (completion(cqe)) return cqe[kCqeStatus];
      const uint64_t now = clockNow();
      if (now > end) return 99;
      engine.progress();
    }
  }
  // Waits for a completion. The engine's thread does the work.
  uint32_t waited() {
    uint32_t cqe[16];
    for (;;) {
      if (completion(cqe)) return cqe[kCqeStatus];
      auto waiter = std::make_shared<Waiter>();
      HOST_CHECK(engine.armCq(cq, false) == Status::kSuccess);
      if (completion(cqe)) return cqe[kCqeStatus];
      HOST_CHECK(engine.addCqWaiter(cq, kCqNotifyAny, waiter) == Status::kSuccess);
      const bool came = readable(waiter->wake, kTimeoutMs);
      engine.removeCqWaiter(cq, waiter.get());
      if (!came) return 99;
    }
  }
};

inline void startProcess(HostOptions options = {}) {
  std::string problem;
  HOST_CHECK(hca().engine() == nullptr);
  HOST_CHECK(hca().start({}, options, &problem) == Status::kSuccess);
  HOST_CHECK(hca().start({}, options, &problem) == Status::kSuccess);  // only checks
  HOST_CHECK(problem.empty());
}

}  // namespace hosttest
