// The sockets of port 4791 are opened when they are first needed, and only once, however many threads need them at the
// same time (Host::openWire).
#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "host_side.h"
#include "platform/local_addresses.h"
#include "platform/local_names.h"
#include "platform/readiness.h"

using namespace hosttest;

namespace {

constexpr uint32_t kService = 0x0106;
constexpr uint32_t kThreads = 4, kRounds = 8;

// Returns the number of sockets of both families on the port, in this network namespace.
uint32_t socketsOnPort() {
  uint32_t count = 0;
  for (const char* table : {"/proc/self/net/udp", "/proc/self/net/udp6"}) {
    std::ifstream in(table);
    for (std::string line; std::getline(in, line);) count += line.find(":12B7 ") != std::string::npos ? 1 : 0;
  }
  return count;
}

struct Hca {
  HcaContext context;
  explicit Hca(LinkChoice link = LinkChoice::kAuto) {
    HostOptions options;
    options.link = link;
    HOST_CHECK(context.start({}, options, nullptr) == Status::kSuccess);
  }
  Host& host() { return context.host(); }
  Status claim(const Gid* address) {
    uint16_t port = 0;
    uint32_t claim = 0;
    return host().claimPort(1, kService, address, &port, &claim);
  }
};

Gid elsewhere() { return gidOfIpv4(htonl(0xc0000201)); }  // 192.0.2.1, for documentation

void needs() {
  const uint32_t before = socketsOnPort();
  Hca hca;
  const Gid loopback = loopbackOf(IpFamily::kV4), loopback6 = loopbackOf(IpFamily::kV6);
  HOST_CHECK(hca.claim(&loopback) == Status::kSuccess && hca.claim(&loopback6) == Status::kSuccess);
  HOST_CHECK(hca.host().wireState() == Host::WireState::kUnused && socketsOnPort() == before);
  HOST_CHECK(hca.claim(nullptr) == Status::kSuccess);
  HOST_CHECK(hca.host().wireState() == Host::WireState::kOpen && socketsOnPort() == before + 2);
}

void local() {
  const uint32_t before = socketsOnPort();
  Hca hca(LinkChoice::kLocal);
  const Gid loopback = loopbackOf(IpFamily::kV4), other = elsewhere();
  HOST_CHECK(hca.claim(&loopback) == Status::kSuccess);
  HOST_CHECK(hca.claim(nullptr) == Status::kNotSupported && hca.claim(&other) == Status::kNotSupported);
  HOST_CHECK(hca.host().openWire() == Status::kNotSupported);
  HOST_CHECK(hca.host().wireState() == Host::WireState::kNever && socketsOnPort() == before);
  // Another kernel of the thread cannot change the wire, and does not get one that was not opened.
  HostOptions options;
  HOST_CHECK(hca.context.start({}, options, nullptr) == Status::kSuccess);
  options.link = LinkChoice::kWire;
  std::string problem;
  HOST_CHECK(hca.context.start({}, options, &problem) == Status::kNotSupported && !problem.empty());
  Hca other2;
  options.link = LinkChoice::kLocal;
  HOST_CHECK(other2.context.start({}, options, &problem) == Status::kNotSupported);
}

// Several threads need the wire at the same time, while the engine's own thread continues. Then several HCAs open it
// alternately.
void together() {
  const uint32_t before = socketsOnPort();
  for (uint32_t round = 0; round < kRounds; round++) {
    Hca hcas[2];
    std::atomic<uint32_t> ready{0}, opened{0};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 2 * kThreads; i++)
      threads.emplace_back([&, i] {
        Host& host = hcas[i % 2].host();
        ready++;
        while (ready != 2 * kThreads) std::this_thread::yield();
        if (host.openWire() == Status::kSuccess && host.wireReady()) opened++;
      });
    for (std::thread& thread : threads) thread.join();
    HOST_CHECK(opened == 2 * kThreads);
    HOST_CHECK(socketsOnPort() == before + 4);
  }
  HOST_CHECK(socketsOnPort() == before);
}

// Another process of this user is opening the port and does not finish, because it is stopped. A thread that needs the
// port waits a second for it, without the engine's lock. The second does not pass on the engine's clock, which stands
// still here.
void behindOther() {
  struct : Clock {
    std::atomic<uint64_t> time{1};
    uint64_t now() const override { return time; }
  } clock;
  const uint32_t before = socketsOnPort();
  for (const bool finishes : {true, false}) {
    Host host{clock};
    Engine engine{host, clock, EngineOptions()};
    HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess);
    LocalNames names;
    UniqueFd turn;
    HOST_CHECK(names.claim("wire", &turn) == 0);
    std::atomic<bool> returned{false};
    std::thread opener([&] {
      HOST_CHECK(host.openWire() == Status::kSuccess);
      returned = true;
    });
    const Descriptor listener = turn.get();
    waitReadable(&listener, 1, UINT64_MAX);  // the stopped process is connected to the name
    {
      std::lock_guard<EngineLock> guard(engine.lock());
      HOST_CHECK(!returned && host.wireState() == Host::WireState::kUnused);
    }
    if (finishes) turn.reset();
    else clock.time += 1'000'000'000;
    opener.join();
    HOST_CHECK(host.wireState() == (finishes ? Host::WireState::kOpen : Host::WireState::kHeld));
    HOST_CHECK(host.wireProblem().empty() == finishes && socketsOnPort() == before + (finishes ? 2 : 0));
    HOST_CHECK(host.openWire() == Status::kSuccess);  // immediately, because it is tried only once
    host.stop();
  }
}

}  // namespace

int main() {
  hosttest::privateNetwork();
  needs();
  local();
  together();
  behindOther();
  return hosttest::finish("host_opening");
}
