// Tests of several HCAs in one process (process/hca_context.h). They reach each other as processes do, and each can end
// independently, in any state and at any time.
#include <dirent.h>
#include <sys/stat.h>

#include <memory>
#include <thread>

#include "host_side.h"
#include "local/local_pair.h"

using namespace hosttest;

namespace {

constexpr uint32_t kMessage = 64, kLarge = 1u << 20;
constexpr uint32_t kAckTimeout = 18;   // one second, because sanitizers copy slowly
constexpr uint64_t kThere = 2u << 20;  // the offset of large payload

struct Hca {
  HcaContext context;
  explicit Hca(const HostOptions& options = {}) {
    std::string problem;
    HOST_CHECK(context.engine() == nullptr);
    HOST_CHECK(context.start({}, options, &problem) == Status::kSuccess);
    HOST_CHECK(problem.empty() && context.engine() != nullptr);
  }
  Engine& engine() { return *context.engine(); }
  uint32_t slot() { return context.host().slot(); }
  uint64_t counter(const char* name) {
    const auto values = context.host().counters();
    for (size_t i = 0; i < values.size(); i++)
      if (std::strcmp(Host::counterNames()[i], name) == 0) return values[i];
    HOST_CHECK(!"a counter of this name");
    return 0;
  }
};

uint32_t entriesOf(const char* folder) {
  uint32_t count = 0;
  DIR* const all = opendir(folder);
  while (const dirent* const entry = readdir(all)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(all);
  return count;
}

template <typename Done>
bool eventually(Done done) {
  for (const uint64_t end = clockNow() + kTimeoutNs; clockNow() < end; std::this_thread::yield())
    if (done()) return true;
  return false;
}

void connect(Side& one, Side& other) {
  one.listen(other.hello(), 4096);
  other.connect(one.hello(), 4096, kAckTimeout);
  HOST_CHECK(one.speak(kAckTimeout) == Status::kSuccess);
}

void send(Side& from, Side& to, uint8_t mark) {
  from.memory[0] = mark;
  to.postReceive(kThere, kMessage);
  from.post(kOpSend, 0, kMessage);
  HOST_CHECK(from.polled() == kWcSuccess);
  HOST_CHECK(to.polled() == kWcSuccess);
  HOST_CHECK(to.memory[kThere] == mark);
}

// Makes all writes of this thread or an engine visible to the others. The CPUs are coherent anyway, but ThreadSanitizer
// does not see the shared memory that orders the accesses.
void meet(Side& one, Side& other) {
  one.engine.hold();
  other.engine.hold();
}

void copy(Side& by, Side& with, uint32_t opcode) {
  Side& source = opcode == kOpWrite ? by : with;
  Side& target = opcode == kOpWrite ? with : by;
  for (uint32_t i = 0; i < kLarge; i++) source.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 9) + opcode);
  std::memset(&target.memory[kThere], 0, kLarge);
  const uint64_t remote = with.hello().address + (opcode == kOpWrite ? kThere : 0);
  meet(by, with);
  by.post(opcode, opcode == kOpWrite ? 0 : kThere, kLarge, remote, with.rkey);
  HOST_CHECK(by.polled() == kWcSuccess);
  meet(by, with);
  HOST_CHECK(std::memcmp(&source.memory[0], &target.memory[kThere], kLarge) == 0);
}

// Runs Send, Write and Read in both directions, over either link. `referenced`: from memory of allocate(), which the
// other HCA maps a second time.
void traffic(LinkChoice link, bool referenced) {
  HostOptions options;
  options.link = link;
  options.direct = !referenced;
  Hca a(options), b(options);
  HOST_CHECK(a.slot() != b.slot());
  Side one(false, a.engine()), other(referenced, b.engine());
  HOST_CHECK(one.qpn >> 16 == a.slot() && other.qpn >> 16 == b.slot());
  connect(one, other);
  for (uint8_t mark = 1; mark < 20; mark++) {
    send(one, other, mark);
    send(other, one, static_cast<uint8_t>(mark + 100));
  }
  if (referenced) {
    HOST_CHECK(eventually([&] {
      copy(other, one, kOpWrite);
      return a.counter("local_link_mapped_copy_bytes") != 0;
    }));
  }
  for (const uint32_t opcode : {kOpWrite, kOpRead}) {
    copy(one, other, opcode);
    copy(other, one, opcode);
  }
  const bool local = link == LinkChoice::kAuto;
  HOST_CHECK((a.counter("local_link_tx_packets") != 0) == local);
  HOST_CHECK((a.counter("local_link_pairs_up") != 0) == local);
  if (referenced) HOST_CHECK(a.counter("local_link_mapped_copy_bytes") >= 3 * kLarge);
}

// The peer of a context learns of its end, even if another context of the process got its slot before that was seen.
// Its other connections continue.
void end(LinkChoice link) {
  HostOptions options;
  options.link = link;
  Hca b(options), c(options);
  Side y(false, b.engine()), v(false, b.engine()), w(false, c.engine());
  connect(v, w);
  auto a = std::make_unique<Hca>(options);
  const uint32_t slot = a->slot();
  auto x = std::make_unique<Side>(false, a->engine());
  connect(*x, y);
  send(*x, y, 1);
  y.postReceive(0, kMessage);
  std::unique_ptr<Hca> next;
  {
    const auto hold = b.engine().hold();
    x.reset();
    a.reset();
    next = std::make_unique<Hca>(options);
    HOST_CHECK(next->slot() == slot);
  }
  HOST_CHECK(readable(y.kernel.wake, kTimeoutMs));
  HOST_CHECK(y.kernel.event == static_cast<uint32_t>(QpEvent::kPeerLost));
  HOST_CHECK(y.waited() == kWcFlushed);
  for (uint8_t mark = 1; mark < 10; mark++) send(v, w, mark);
  Side z(false, next->engine()), u(false, b.engine());
  connect(z, u);
  send(z, u, 3);
  HOST_CHECK(v.kernel.event == 0);
}

// Once its peer has seen the end of a context, nothing of the context is left, whatever it was doing when it ended.
void churn(uint32_t rounds) {
  Hca b;
  uint32_t slot = 0;
#if defined(__SANITIZE_THREAD__)
  const uint32_t threads = 3;  // this one, the engine's of `b`, and the sanitizer's
#else
  const uint32_t threads = 2;
#endif
  const uint32_t descriptors = entriesOf("/proc/self/fd");
  for (uint32_t n = 0; n < rounds; n++) {
    HOST_CHECK(eventually(
        [&] { return entriesOf("/proc/self/task") == threads && entriesOf("/proc/self/fd") <= descriptors; }));
    Hca a;
    Side x(n % 2 == 0, a.engine()), y(false, b.engine());
    if (n == 0) slot = a.slot();
    HOST_CHECK(a.slot() == slot);
    switch (n % 6) {
      case 0:  // at rest
        break;
      case 1:  // only one side is connected, so what it sends is never acknowledged
        x.connect(y.hello(), 4096);
        x.post(kOpSend, 0, kLarge);
        break;
      case 2:  // the pair is being set up
        connect(x, y);
        x.post(kOpSend, 0, kMessage);
        break;
      case 3:
        connect(x, y);
        send(x, y, 1);
        break;
      case 4:  // large requests are in flight
        connect(x, y);
        for (int i = 0; i < 4; i++) x.post(kOpWrite, 0, kLarge, y.hello().address, y.rkey);
        for (int i = 0; i < 4; i++) y.post(kOpRead, 0, kLarge, x.hello().address, x.rkey);
        break;
      default: {  // a port is claimed
        uint16_t port = 0;
        uint32_t claim = 0;
        HOST_CHECK(a.context.host().claimPort(x.id, 0x0106, nullptr, &port, &claim) == Status::kSuccess);
        HOST_CHECK(a.context.host().openPort(claim) == Status::kSuccess);
      }
    }
    HOST_CHECK(entriesOf("/proc/self/task") <= threads + 1);
  }
}

// A thread holds the engine and does not release it. The context's end does not wait for the thread, and finishes when
// the next context starts.
void late() {
  auto a = std::make_unique<Hca>();
  const uint32_t slot = a->slot();
  std::atomic<bool> held{false}, enough{false}, waitedFor{true};
  std::thread holder([&held, &enough, &waitedFor, &engine = a->engine()] {
    const auto hold = engine.hold();
    held = true;
    for (int i = 0; i < 500 && waitedFor; i++) {
      if (enough) waitedFor = false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  while (!held) std::this_thread::yield();
  a.reset();
  Hca b;
  HOST_CHECK(b.slot() != slot);
  enough = true;
  holder.join();
  HOST_CHECK(!waitedFor);
  // Starting another context does not wait for it either.
  HOST_CHECK(eventually([&] { return Hca().slot() == slot; }));
}

// On several threads at the same time, contexts start, connect to one that stays, and end.
void threads(uint32_t rounds) {
  Hca stays;
  std::vector<std::thread> all;
  for (uint32_t t = 0; t < 4; t++) {
    all.emplace_back([&, t] {
      for (uint32_t n = 0; n < rounds; n++) {
        auto own = std::make_unique<Hca>();
        auto x = std::make_unique<Side>(false, own->engine());
        Side y(false, stays.engine());
        connect(*x, y);
        for (uint8_t mark = 1; mark < 10; mark++) send(*x, y, mark);
        y.postReceive(0, kMessage);
        if ((n + t) % 2 == 0) x->post(kOpWrite, 0, kLarge, y.hello().address, y.rkey);
        x.reset();
        own.reset();
        HOST_CHECK(y.waited() == kWcFlushed);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
}

// A port belongs to only one context, as with two processes.
void ports() {
  Hca a, b;
  Side x(false, a.engine()), y(false, b.engine());
  uint16_t port = 7471;
  uint32_t claim = 0, other = 0;
  const auto claimBy = [&](Hca& hca, const Side& side, uint32_t* id) {
    return hca.context.host().claimPort(side.id, 0x0106, nullptr, &port, id);
  };
  HOST_CHECK(claimBy(a, x, &claim) == Status::kSuccess);
  HOST_CHECK(claimBy(b, y, &other) == Status::kAddressAlreadyExists);
  a.context.host().releasePort(claim);
  HOST_CHECK(claimBy(b, y, &other) == Status::kSuccess);
  // One context has claimed a free port, so the other queries that context's engine thread.
  port = 0;
  HOST_CHECK(claimBy(a, x, &claim) == Status::kSuccess && port != 0);
  HOST_CHECK(claimBy(b, y, &other) == Status::kAddressAlreadyExists);
}

int64_t sizeOf(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_size : -1;
}

// Captures of one process to one path do not overwrite each other.
void captures() {
  char folder[] = "/tmp/host_contexts.XXXXXX";
  HOST_CHECK(mkdtemp(folder) != nullptr);
  const std::string base = std::string(folder) + "/x.y/", pid = std::to_string(getpid());
  HOST_CHECK(mkdir(base.c_str(), 0700) == 0);
  HostOptions options;
  const auto once = [&](const std::string& path) {
    options.capture = path;
    Hca a(options), b(options);
    Side x(false, a.engine()), y(false, b.engine());
    connect(x, y);
    send(x, y, 1);
  };
  once(base + "of-%p.pcapng");
  const std::string names[] = {"of-" + pid + ".pcapng",
                               "of-" + pid + "-2.pcapng",
                               "of-" + pid + "-3.pcapng",
                               "of-" + pid + "-4.pcapng",
                               "plain",
                               "plain-2"};
  const int64_t first = sizeOf(base + names[0]);
  HOST_CHECK(first > 200);
  once(base + "of-%p.pcapng");
  once(base + "plain");
  HOST_CHECK(sizeOf(base + names[0]) == first);
  HOST_CHECK(entriesOf(base.c_str()) == std::size(names));
  for (const std::string& name : names) {
    HOST_CHECK(sizeOf(base + name) > 200);
    unlink((base + name).c_str());
  }
  HOST_CHECK(rmdir(base.c_str()) == 0 && rmdir(folder) == 0);
}

}  // namespace

int main() {
  hosttest::privateNetwork();
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kChurns = 60, kRounds = 8;
#else
  constexpr uint32_t kChurns = 300, kRounds = 30;
#endif
  traffic(LinkChoice::kAuto, false);
  traffic(LinkChoice::kAuto, true);
  traffic(LinkChoice::kWire, false);
  end(LinkChoice::kAuto);
  end(LinkChoice::kWire);
  churn(kChurns);
  late();
  threads(kRounds);
  ports();
  captures();
  return hosttest::finish("host_contexts");
}
