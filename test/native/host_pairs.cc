// The local link between processes: how pairs come about or are refused, a peer that sleeps, stops or is killed in the
// middle of copies, and memory that is given back while it is being written.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdarg>

#include "engine/local_pair.h"
#include "engine/watch.h"
#include "host_side.h"

using namespace hosttest;

// How often this process let all of its user's processes read its memory. Without Yama the system knows no such thing.
static int letAnyRead = 0;
extern "C" int prctl(int option, ...) {
  constexpr int kSetPtracer = 0x59616d61;
  va_list list;
  va_start(list, option);
  const unsigned long argument = va_arg(list, unsigned long);
  va_end(list);
  if (option == kSetPtracer) letAnyRead += argument == static_cast<unsigned long>(-1);
  return static_cast<int>(syscall(SYS_prctl, option, argument, 0, 0, 0));
}

namespace {

constexpr uint32_t kMessage = 1u << 20;

// What the other process does once it is connected.
enum : char { kRest = 'n', kPollOnce = 'o', kStream = 's', kInVain = 'v', kOnceEach = 'e', kQuietEach = 'q' };

uint64_t hostCounter(const char* name) {
  const auto values = Process::instance().host().counters();
  for (size_t i = 0; i < values.size(); i++)
    if (std::strcmp(Host::counterNames()[i], name) == 0) return values[i];
  HOST_CHECK(!"counter exists");
  return 0;
}

uint64_t counterOf(Engine& engine, const char* name) {
  const auto values = engine.counters();
  for (size_t i = 0; i < values.size(); i++)
    if (std::strcmp(Engine::counterNames()[i], name) == 0) return values[i];
  HOST_CHECK(!"counter exists");
  return 0;
}

uint64_t engineCounter(const char* name) { return counterOf(Process::instance().engine(), name); }

HostOptions optionsFrom(const std::string& words) {
  HostOptions options;
  if (words.find("wire") != std::string::npos) options.link = LinkChoice::kWire;
  if (words.find("undumpable") != std::string::npos) prctl(PR_SET_DUMPABLE, 0UL);
  return options;
}

// Which way this process's large payload goes is cheaper on one machine and dearer on another.
void fixWay(const std::string& words, uint32_t slot) {
  const auto hold = Process::instance().engine().hold();
  LocalChoice& choice = Process::instance().host().localPair(slot)->choice;
  if (words.find("name") != std::string::npos) choice.fix(LocalChoice::Way::kName);
  if (words.find("carry") != std::string::npos) choice.fix(LocalChoice::Way::kCarry);
}

// As another user; false: it may not.
bool becomeNobody() { return setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0; }

// Whether its connection was lost.
bool isLost(const Side& side) { return side.kernel.event == static_cast<uint32_t>(QpEvent::kPeerLost); }

// Is refused before it can write, or when it does.
void tryInVain(Side& side, const Hello& other) {
  side.listen(other, 4096);
  if (side.speak() == Status::kSuccess) {
    side.post(kOpWrite, 0, 8, other.address, other.rkey);
    HOST_CHECK(side.waited() != kWcSuccess);
  }
  HOST_CHECK(readable(side.kernel.wake, kPatienceMs));
  HOST_CHECK(isLost(side));
  HOST_CHECK(hostCounter("local_link_refused_user") == 1 && hostCounter("local_link_pairs_up") == 0);
}

int peerMain(const std::string& words) {
  if (words.find("stranger") != std::string::npos && !becomeNobody()) return 2;
  startProcess(optionsFrom(words));
  Side side(words.find("allocate") != std::string::npos);
  const Hello own = side.hello();
  if (write(1, &own, sizeof own) != sizeof own) return 2;
  Hello other{};
  char how = 0;
  if (read(0, &other, sizeof other) != sizeof other || read(0, &how, 1) != 1) return 2;
  if (how == kInVain)
    tryInVain(side, other);
  else
    side.connect(other, 4096);
  char told = 1;
  if (write(1, &told, 1) != 1) return 2;
  if (how == kStream) {
    fixWay(words, other.qpn >> 16);
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
      while (engineCounter("sent_pkts") == before) side.engine.progress();  // its engine's thread may have been at work
    }
    if (write(1, &told, 1) != 1) return 2;
  }
  return hosttest::failures;
}

struct Peer {
  pid_t pid;
  int in, out;
  Hello hello{};
  explicit Peer(const char* words = "") {
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
    HOST_CHECK(read(out, &hello, sizeof hello) == sizeof hello);
  }
  void greet(Side& side, char how) {
    const Hello own = side.hello();
    HOST_CHECK(write(in, &own, sizeof own) == sizeof own && write(in, &how, 1) == 1);
  }
  void awaitConnected() {
    char told;
    HOST_CHECK(read(out, &told, 1) == 1);
  }
  // Both connect at the same time; waits for the other.
  void connect(Side& side, char how, uint32_t ackTimeout = 14) {
    greet(side, how);
    side.connect(hello, 4096, ackTimeout);
    awaitConnected();
  }
  void tell() {
    char word = 1;
    HOST_CHECK(write(in, &word, 1) == 1 && read(out, &word, 1) == 1);
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

// WRITE and READ back, of a size that is copied once and of one that is not.
void exchange(Side& side, const Peer& peer) {
  for (const uint32_t bytes : {64u, kMessage}) {
    for (uint32_t i = 0; i < bytes; i++) side.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 11) + bytes);
    std::memset(&side.memory[2u << 20], 0, kMessage);
    side.post(kOpWrite, 0, bytes, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    side.post(kOpRead, 2u << 20, bytes, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    HOST_CHECK(std::memcmp(&side.memory[0], &side.memory[2u << 20], bytes) == 0);
  }
}

// Whichever side begins, and when both do: one pair.
void pairsComeUp() {
  for (int round = 0; round < 6; round++) {
    const uint64_t before = hostCounter("local_link_pairs_up"), wire = hostCounter("wire_tx_packets");
    Side side, second;
    Peer peer;
    peer.connect(side, kRest);
    exchange(side, peer);
    exchange(side, peer);  // by the ring at first, and then to see whether a single copy is cheaper
    HOST_CHECK(hostCounter("local_link_pairs_up") == before + 1);
    HOST_CHECK(hostCounter("local_link_single_copy_bytes") > 0);
    HOST_CHECK(hostCounter("wire_tx_packets") <= wire + 64);  // probes of the steering, no megabytes
    peer.end();
    HOST_CHECK(readable(side.kernel.wake, kPatienceMs));
    HOST_CHECK(hostCounter("local_link_pairs_ended") == before + 1);
  }
}

void optionWire() {
  const uint64_t up = hostCounter("local_link_pairs_up");
  Side side;
  Peer peer("wire");
  peer.connect(side, kRest);
  exchange(side, peer);
  HOST_CHECK(hostCounter("local_link_pairs_up") == up);
  HOST_CHECK(hostCounter("local_link_refused_option") == 1);
  HOST_CHECK(hostCounter("wire_tx_packets") > 256);
  peer.end();
}

// Another user's process gets neither shared memory nor a message to this one; it has no wire either, as the port is taken.
void otherUser() {
  const uint64_t up = hostCounter("local_link_pairs_up"), refused = hostCounter("slot_refused_connections");
  Side side;
  std::fill(side.memory.begin(), side.memory.end(), uint8_t(0xEE));
  Peer peer("stranger");
  side.listen(peer.hello, 4096);
  peer.greet(side, kInVain);
  peer.awaitConnected();
  HOST_CHECK(readable(side.kernel.wake, kPatienceMs) && isLost(side));
  peer.end();
  HOST_CHECK(std::all_of(side.memory.begin(), side.memory.end(), [](uint8_t byte) { return byte == 0xEE; }));
  HOST_CHECK(hostCounter("local_link_pairs_up") == up);
  HOST_CHECK(hostCounter("slot_refused_connections") > refused);
}

// Queue pairs of one process, too.
void oneProcess() {
  Side a, b;
  const uint64_t wire = hostCounter("wire_tx_packets");
  a.connect(b.hello(), 4096);
  b.connect(a.hello(), 4096);
  for (const uint32_t bytes : {8u, kMessage}) {
    for (uint32_t i = 0; i < bytes; i++) a.memory[i] = static_cast<uint8_t>(i * 5 + (i >> 9));
    b.postReceive(0, kMessage);
    a.post(kOpSend, 0, bytes);
    HOST_CHECK(a.waited() == kWcSuccess && b.waited() == kWcSuccess);
    HOST_CHECK(std::memcmp(&a.memory[0], &b.memory[0], bytes) == 0);
  }
  HOST_CHECK(hostCounter("wire_tx_packets") <= wire + 64);
}

// A thread that polls once and then does something else leaves its process to be woken as before.
void sleeper() {
  constexpr uint32_t kLongAckTimeout = 22;  // a busy machine answers within it, and nobody who was not woken does
  Side side;
  Peer peer;
  peer.connect(side, kPollOnce, kLongAckTimeout);
  const uint64_t timeouts = engineCounter("ack_timeout");
  for (int round = 0; round < 20; round++) {
    side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    peer.tell();
  }
  HOST_CHECK(engineCounter("ack_timeout") == timeouts);
  HOST_CHECK(hostCounter("local_link_wakes") > 0);
  peer.end();
}

// A peer that stops for longer than the ACK timer, and goes on: nothing is repeated.
void stopped() {
  Side side;
  Peer peer;
  peer.connect(side, kRest);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  const uint64_t timeouts = engineCounter("ack_timeout"), repeated = engineCounter("retransmitted_pkts");
  ::kill(peer.pid, SIGSTOP);
  int status;
  waitpid(peer.pid, &status, WUNTRACED);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  while (engineCounter("ack_timeout") == timeouts) side.engine.progress();
  ::kill(peer.pid, SIGCONT);
  HOST_CHECK(side.waited() == kWcSuccess);
  HOST_CHECK(engineCounter("retransmitted_pkts") == repeated);
  peer.end();
}

// The peer writes into our memory without pause, by one way or the other, and is killed in the middle or not, while the
// memory is taken away from it: from then on nobody writes there.
void hammer(const char* memory) {
  for (int round = 0; round < 12; round++) {
    Side side;
    Peer peer(memory);
    uint8_t* const last = &side.memory[kMessage - 1];
    const auto untouched = [&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) != 0; };
    peer.connect(side, kStream);
    // It has begun when a first message is whole: its memory is zero, ours is not.
    __atomic_store_n(last, uint8_t(1), __ATOMIC_RELEASE);
    const uint64_t end = clockNow() + kPatienceNs;
    while (untouched() && clockNow() < end) {
      if (round % 2 == 0) side.engine.progress();
    }
    HOST_CHECK(!untouched());
    for (int i = 0; i < round * 20; i++) sched_yield();
    if (round % 3 == 0) peer.kill();
    HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
    std::memset(side.memory.data(), 0xA5, kBytes);
    // What the peer had posted is refused, or the peer is gone: either ends the connection.
    const uint64_t limit = clockNow() + kPatienceNs;
    while (side.kernel.event == 0 && clockNow() < limit) side.engine.progress();
    HOST_CHECK(side.kernel.event != 0);
    HOST_CHECK(std::count(side.memory.begin(), side.memory.end(), 0xA5) == static_cast<long>(kBytes));
    HOST_CHECK(side.engine.registerMr(side.pd, reinterpret_cast<uint64_t>(side.memory.data()), kBytes,
                                      kAccessLocalWrite, &side.lkey, &side.rkey) == Status::kSuccess);
    if (round % 3 != 0) peer.end();
  }
}

// How much of our memory of allocate() the peer has mapped: for reading only, as its kernel tells.
int mappings(const Peer& peer) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(peer.pid) + "/maps").c_str(), "re");
  if (file == nullptr) return -1;
  char line[512];
  int count = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    count += std::strstr(line, " r--s ") != nullptr && std::strstr(line, "/memfd:networkdirect ") != nullptr;
  std::fclose(file);
  return count;
}

bool becomes(const Peer& peer, int expected) {
  const uint64_t end = clockNow() + kPatienceNs;
  while (mappings(peer) != expected && clockNow() < end) sched_yield();
  return mappings(peer) == expected;
}

// Memory of allocate() is mapped by the other process at its first use, copied from there, and unmapped when it is freed.
// Not `readable`: where processes may not read each other's memory, so that no list of the peer's mappings is to be had.
void mapsMemory(const char* words, bool readable) {
  const uint64_t before = hostCounter("local_link_memory_mapped"), ended = hostCounter("local_link_memory_unmapped");
  Peer peer(words);
  {
    Side side(true);
    peer.connect(side, kRest);
    exchange(side, peer);  // by ordinary copies, perhaps
    if (readable) HOST_CHECK(becomes(peer, 1));
    const uint64_t limit = clockNow() + kPatienceNs;
    while (hostCounter("local_link_memory_mapped") == before && clockNow() < limit) sched_yield();
    HOST_CHECK(hostCounter("local_link_memory_mapped") == before + 1);
    // The peer names it from when it has our answer.
    uint64_t mapped = hostCounter("local_link_mapped_copy_bytes");
    for (const uint64_t none = mapped; mapped == none && clockNow() < limit;) {
      exchange(side, peer);
      mapped = hostCounter("local_link_mapped_copy_bytes");
    }
    exchange(side, peer);
    HOST_CHECK(hostCounter("local_link_mapped_copy_bytes") == mapped + kMessage);
    HOST_CHECK(readable || hostCounter("local_link_single_copy_bytes") == hostCounter("local_link_mapped_copy_bytes"));
    HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
    if (readable) HOST_CHECK(mappings(peer) == 1);
  }
  if (readable) HOST_CHECK(becomes(peer, 0));
  HOST_CHECK(hostCounter("local_link_memory_unmapped") == ended);  // that of the peer's is there
  peer.end();
}

// We write from memory of allocate() without pause, and take it away in the middle, or the peer is killed.
void freeing() {
  for (int round = 0; round < 12; round++) {
    Peer peer;
    {
      Side side(true);
      peer.connect(side, kRest);
      exchange(side, peer);
      HOST_CHECK(becomes(peer, 1));
      for (int i = 0; i < 64; i++) side.post(kOpWrite, 0, kMessage, peer.hello.address, peer.hello.rkey);
      for (int i = 0; i < round * 20; i++) side.engine.progress();
      if (round % 3 == 0) peer.kill();
      HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
      std::memset(side.memory.data(), 0xA5, kBytes);
      if (round % 3 == 1) {
        // What was posted and not done yet fails; nothing of it hangs.
        uint32_t status = kWcSuccess, done = 0;
        for (; done < 64 && status == kWcSuccess; done++) status = side.polled();
        HOST_CHECK(status == kWcSuccess || status == kWcLocalProtection);
      }
    }
    if (round % 3 != 0) {
      HOST_CHECK(becomes(peer, 0));
      peer.end();
    }
  }
}

// Processes that may not read each other's memory: everything goes through the ring.
int unprivilegedMain() {
  if (!becomeNobody()) return 0;
  prctl(PR_SET_DUMPABLE, 0UL);
  startProcess();
  {
    Side side;
    Peer peer("undumpable");
    peer.connect(side, kRest);
    exchange(side, peer);
    HOST_CHECK(hostCounter("local_link_pairs_up") == 1);
    HOST_CHECK(hostCounter("local_link_no_single_copy") == 1);
    HOST_CHECK(hostCounter("local_link_single_copy_bytes") == 0);
    peer.end();
  }
  mapsMemory("undumpable allocate", false);
  return hosttest::failures;
}

// Only who asks for it lets others read its memory where the system restricts that.
int readableMain() {
  HostOptions options;
  options.allowPtrace = true;
  startProcess(options);
  HOST_CHECK(letAnyRead == 1);
  return hosttest::failures;
}

// Somebody has the wire's port and does not share it: without a wire, only peers' rings wake those who sleep.
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

// An engine without a thread: it looks when it is polled.
struct Unwatched {
  struct : Clock {
    mutable uint64_t slow = 0;  // not 0: the time, of which every look at the clock takes a little
    uint64_t now() const override { return slow != 0 ? slow += 50 : clockNow(); }
  } clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  Unwatched() { HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess); }
  ~Unwatched() { host.stop(); }
};

// The peer is killed and another process has its slot, while nobody here looks: the end of the one is reported before a
// connection to the other begins, and does not end that.
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

// The same in a connection whose path is modified: it was to that process, and has failed.
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

// A thread that waits and for which there is always something, so that it never sleeps, still sees what comes by other ways
// than the rings: here, the end of the peer's process. `again`: it enters more than once in a turn, and does not leave in between.
void busy(bool again) {
  Unwatched here;
  Side side(false, here.engine);
  Peer peer;
  peer.connect(side, kRest);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.polled() == kWcSuccess);
  Watch watch(here.engine, here.host, [](void*) {}, nullptr);
  const auto something = [] { return true; };
  here.clock.slow = clockNow();
  for (int i = 0; i < 10'000 && !isLost(side); i++) {
    if (i == 10) peer.kill();
    for (int n = again ? 3 : 1; n > 0; n--) HOST_CHECK(watch.enter(something) == Watch::Entry::kDone);
    watch.leave();
  }
  HOST_CHECK(isLost(side));
}

int busyMain() {
  busy(false);
  busy(true);
  return hosttest::failures;
}

// A thread that looks on before it sleeps, on a clock that goes with its looks.
int looksOnMain() {
  const PortTaken taken;
  Unwatched here;
  Watch watch(here.engine, here.host, [](void*) {}, nullptr);
  here.clock.slow = clockNow();
  uint32_t asked = 0, there = 0;
  const auto comes = [&] { return ++asked == there; };
  const auto enter = [&](uint32_t whenAsked, bool sleeps) {
    asked = 0;
    there = whenAsked;
    const Watch::Entry entry = watch.enter(comes, sleeps);
    watch.leave();
    return entry;
  };
  constexpr uint32_t kNever = 0, kSoon = 6, kLookAndStep = 2;
  // Who only sleeps leaves no mark: the engine's thread would give way to it with timers that are due meanwhile.
  const uint64_t marked = here.engine.pollerMark();
  HOST_CHECK(watch.enter([] { return false; }, false) == Watch::Entry::kWatching);
  HOST_CHECK(here.engine.pollerMark() == marked);
  watch.leave();
  HOST_CHECK(enter(kSoon, true) == Watch::Entry::kDone);
  HOST_CHECK(asked == kSoon);
  HOST_CHECK(enter(kSoon, false) == Watch::Entry::kWatching);  // it does not sleep, and so does not wait
  HOST_CHECK(asked == kLookAndStep);
  HOST_CHECK(enter(kNever, true) == Watch::Entry::kWatching);
  HOST_CHECK(asked > kSoon);
  HOST_CHECK(enter(kSoon, true) == Watch::Entry::kWatching);  // it was in vain the last time
  HOST_CHECK(asked == kLookAndStep);
  HOST_CHECK(enter(kSoon, true) == Watch::Entry::kDone);
  // Who comes from sleeping sees to all else before it sleeps again.
  HOST_CHECK(watch.enter([] { return false; }, false) == Watch::Entry::kWatching);
  HOST_CHECK(enter(kSoon, true) == Watch::Entry::kWatching);
  HOST_CHECK(asked == kLookAndStep);
  return hosttest::failures;
}

// A message that ends a sleep, and for which its sender waits, is acknowledged at once; acknowledgements of others may go along with
// an answer, but leave before the thread sleeps.
void acknowledges(char how) {
  Unwatched here;
  Side side(false, here.engine);
  Peer peer;
  peer.connect(side, how);
  Watch watch(here.engine, here.host, [](void*) {}, nullptr);
  const auto sent = [&] { return counterOf(here.engine, "sent_pkts"); };
  const auto hears = [&] {
    pollfd descriptor = {here.host.pollFd(), POLLIN, 0};
    return ::poll(&descriptor, 1, kPatienceMs) == 1;
  };
  uint8_t number = 0;
  const auto came = [&] { return __atomic_load_n(&side.memory[0], __ATOMIC_ACQUIRE) == number; };
  for (const bool sleeps : {true, true, false, true, false}) {
    HOST_CHECK(watch.enter([] { return false; }, false) == Watch::Entry::kWatching);
    const uint64_t before = sent();
    number++;
    peer.tell();
    HOST_CHECK(hears());
    if (!sleeps) watch.leave();
    HOST_CHECK(watch.enter(came, false) == Watch::Entry::kDone);
    // The first may have waited for the local link, and then asks as longer messages do.
    const bool atOnce = sleeps && how == kOnceEach;
    HOST_CHECK(number == 1 || sent() == before + (atOnce ? 1 : 0));
    watch.leave();
    HOST_CHECK(watch.enter([] { return false; }, false) == Watch::Entry::kWatching);
    HOST_CHECK(sent() == before + 1);
    watch.leave();
  }
  peer.end();
}

int acknowledgesMain() {
  const PortTaken taken;
  acknowledges(kOnceEach);
  acknowledges(kQuietEach);
  return hosttest::failures;
}

// In a process of its own.
void apart(const char* what) {
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", what, what, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "unprivileged") == 0) return unprivilegedMain();
  if (argc > 1 && std::strcmp(argv[1], "readable") == 0) return readableMain();
  if (argc > 1 && std::strcmp(argv[1], "unseen") == 0) return unseenMain();
  if (argc > 1 && std::strcmp(argv[1], "modified") == 0) return modifiedMain();
  if (argc > 1 && std::strcmp(argv[1], "busy") == 0) return busyMain();
  if (argc > 1 && std::strcmp(argv[1], "looks on") == 0) return looksOnMain();
  if (argc > 1 && std::strcmp(argv[1], "acknowledges") == 0) return acknowledgesMain();
  hosttest::privateNetwork();
  if (geteuid() == 0) apart("unprivileged");  // which can become somebody else
  apart("readable");
  apart("unseen");
  apart("modified");
  apart("busy");
  apart("looks on");
  apart("acknowledges");
  startProcess();
  HOST_CHECK(letAnyRead == 0);
  pairsComeUp();
  optionWire();
  if (geteuid() == 0) otherUser();  // else there is nobody to become
  oneProcess();
  sleeper();
  stopped();
  hammer("name");
  hammer("carry");
  mapsMemory("allocate", true);
  hammer("allocate");
  freeing();
  return hosttest::finish("host_pairs");
}
