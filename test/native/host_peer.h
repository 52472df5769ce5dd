// Another process with the whole HCA, which executes the commands of tests of the local link. The main() of a program
// that uses it must begin by calling peerMain() if the first argument is "peer".
#pragma once
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <thread>

#include "host_side.h"
#include "local/local_pairs.h"
#include "slots/rdma_port_blocks.h"

namespace hosttest {

constexpr uint32_t kMessage = 1u << 20;

// Behaviour of the other process once it is connected.
enum : char {
  kRest = 'n',
  kPollOnce = 'o',
  kStream = 's',
  kInVain = 'v',
  kOnceEach = 'e',
  kQuietEach = 'q',
  kDirect = 'd',
  kWithheld = 'w'
};

inline uint64_t hostCounter(const char* name) {
  const auto values = hca().host().counters();
  for (size_t i = 0; i < values.size(); i++)
    if (std::strcmp(Host::counterNames()[i], name) == 0) return values[i];
  HOST_CHECK(!"counter exists");
  return 0;
}

inline uint64_t counterOf(Engine& engine, const char* name) {
  const auto values = engine.counters();
  for (size_t i = 0; i < values.size(); i++)
    if (std::strcmp(Engine::counterNames()[i], name) == 0) return values[i];
  HOST_CHECK(!"counter exists");
  return 0;
}

inline uint64_t engineCounter(const char* name) { return counterOf(*hca().engine(), name); }

inline HostOptions optionsFrom(const std::string& words) {
  HostOptions options;
  if (words.find("wire") != std::string::npos) options.link = LinkChoice::kWire;
  if (words.find("indirect") != std::string::npos) options.direct = false;
  if (words.find("undumpable") != std::string::npos) prctl(PR_SET_DUMPABLE, 0UL);
  return options;
}

// Continues as another user. False: not permitted.
inline bool becomeNobody() { return setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0; }

// Whether the side's connection was lost.
inline bool isLost(const Side& side) { return side.kernel.event == static_cast<uint32_t>(QpEvent::kPeerLost); }

// Connects to the process of the other user, root, and sends what a process of that user would send.
inline void tryInVain(const Hello& other) {
  UniqueFd connection;
  HOST_CHECK(connectLocal("networkdirect/0/" + std::to_string(kDialect) + "/" + slotName(other.qpn >> 16), &connection,
                          nullptr) == 0);
  Frame frame;
  frame.kind = FrameKind::kPairRequest;
  LocalHello hello;
  frame.body = reinterpret_cast<const uint8_t*>(&hello);
  frame.bodyLength = sizeof hello;
  sendFrame(connection.get(), frame);
  pollfd ended{connection.get(), POLLIN, 0};
  char byte;
  HOST_CHECK(poll(&ended, 1, kTimeoutMs) > 0 && recv(connection.get(), &byte, 1, 0) <= 0);
  HOST_CHECK(hostCounter("local_link_pairs_up") == 0);
}

// Writes one message after the other until one fails. Reports when the first one was written without a packet, and the
// status of the last.
inline void writeUntilRefused(Side& side, const Hello& other) {
  bool heard = false;
  for (uint8_t round = 1;; round = static_cast<uint8_t>(round % 100 + 1)) {
    std::memset(side.memory.data(), round, kMessage);
    side.post(kOpWrite, 0, kMessage, other.address, other.rkey);
    const uint32_t status = side.polled();
    const bool first = !heard && engineCounter("direct_write") > 0;
    const char told = static_cast<char>(status + 1);
    if (first || status != kWcSuccess) HOST_CHECK(write(1, &told, 1) == 1);
    heard |= first;
    if (status != kWcSuccess) return;
  }
}

// Removes the pages of the side's memory: from now on an access to one of them waits. The result is readable when a
// thread waits; it is -1 if this user may not use userfaultfd.
inline int withhold(Side& side) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<uint64_t>(side.memory.data()) + page - 1) / page * page;
  const uint64_t bytes = (reinterpret_cast<uint64_t>(side.memory.end()) - from) / page * page;
  const auto fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));  // open as long as the process lives
  uffdio_api api{UFFD_API, 0, 0};
  uffdio_register range{{from, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
  const bool done = fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0 &&
                    madvise(reinterpret_cast<void*>(from), bytes, MADV_DONTNEED) == 0;
  return done ? fd : -1;
}

// Posts a Write from memory whose pages are withheld. Sends the parent 1 (pages can be withheld) or 0, and then 2 when
// a thread waits for a page.
inline void writeWithheld(Side& side, const Hello& other) {
  side.post(kOpWrite, 0, 64, other.address, other.rkey);
  HOST_CHECK(side.polled() == kWcSuccess);
  const int fd = withhold(side);
  const char able = fd >= 0 ? 1 : 0;
  HOST_CHECK(write(1, &able, 1) == 1);
  if (!able) return;
  std::thread([fd] {
    uffd_msg message;
    const char waits = 2;
    HOST_CHECK(read(fd, &message, sizeof message) == sizeof message && write(1, &waits, 1) == 1);
  }).detach();
  side.post(kOpWrite, 8192, kMessage, other.address, other.rkey);
}

inline int peerMain(const std::string& words) {
  if (words.find("stranger") != std::string::npos && !becomeNobody()) return 2;
  startProcess(optionsFrom(words));
  Side side(words.find("allocate") != std::string::npos);
  const Hello own = side.hello();
  if (write(1, &own, sizeof own) != sizeof own) return 2;
  Hello other{};
  char how = 0;
  if (read(0, &other, sizeof other) != sizeof other || read(0, &how, 1) != 1) return 2;
  if (how == kInVain) tryInVain(other);
  else side.connect(other, 4096);
  char told = 1;
  if (write(1, &told, 1) != 1) return 2;
  if (how == kDirect) writeUntilRefused(side, other);
  if (how == kWithheld) writeWithheld(side, other);
  if (how == kStream) {
    for (uint32_t posted = 0, done = 0;;) {
      for (; posted - done < 8; posted++) side.post(kOpWrite, 0, kMessage, other.address, other.rkey);
      if (side.polled() != kWcSuccess) return hosttest::failures;
      done++;
    }
  }
  while (read(0, &told, 1) == 1) {
    if (how == kPollOnce) side.engine.progress();
    if (how == kOnceEach || how == kQuietEach) {
      const uint64_t before = engineCounter("sent_pkts");
      side.memory[0]++;
      side.post(kOpWrite, 0, 1, other.address, other.rkey, how == kOnceEach ? kSendFlagSignaled : 0);
      while (engineCounter("sent_pkts") == before) side.engine.progress();  // its engine's thread may have been working
    }
    if (write(1, &told, 1) != 1) return 2;
  }
  return hosttest::failures;
}

struct Peer : Child {
  Hello hello{};
  explicit Peer(const char* words = "") : Child(words) { HOST_CHECK(read(out, &hello, sizeof hello) == sizeof hello); }
  void greet(Side& side, char how) {
    const Hello own = side.hello();
    HOST_CHECK(write(in, &own, sizeof own) == sizeof own && write(in, &how, 1) == 1);
  }
  void awaitConnected() {
    char told;
    HOST_CHECK(read(out, &told, 1) == 1);
  }
  // Connects at the same time as the other side, and waits for it.
  void connect(Side& side, char how, uint32_t ackTimeout = 14) {
    greet(side, how);
    side.connect(hello, 4096, ackTimeout);
    awaitConnected();
  }
  void tell() {
    char word = 1;
    HOST_CHECK(write(in, &word, 1) == 1 && read(out, &word, 1) == 1);
  }
  void stop() {
    ::kill(pid, SIGSTOP);
    int status = 0;
    waitpid(pid, &status, WUNTRACED);
  }
  void kill() {
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    ::close(in);
    ::close(out);
  }
  void end() {
    ::close(in);
    int status = 0;
    waitpid(pid, &status, 0);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ::close(out);
  }
};

// Runs in its own process.
inline void apart(const char* what) {
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", what, what, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace hosttest
