// One process releases a port and another claims it. A process that is still connected to the first is not refused by
// it.
#include <sys/syscall.h>

#include <functional>
#include <thread>
#include <utility>

#include "host_node.h"
#include "platform/local_socket.h"
#include "slots/rdma_ports.h"

using hosttest::parseAddress, hosttest::RealClock;
using namespace nd;

namespace {

// A descriptor, and a function that is called just after it is closed.
int closing = -1;
std::function<void()> afterClose;

}  // namespace

extern "C" int close(int fd) {
  const int result = static_cast<int>(syscall(SYS_close, fd));
  if (fd == closing && afterClose) std::exchange(afterClose, nullptr)();
  return result;
}

namespace {

constexpr uint32_t kService = 0x0106;

// A separate host side in this process.
struct Member final : PacketSink, KernelPort {
  RealClock clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  KernelId kernel = 0;
  uint32_t mads = 0;

  Member() {
    HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess && host.openWire() == Status::kSuccess);
    HOST_CHECK(engine.attachKernel(this, &kernel) == Status::kSuccess);
  }
  ~Member() override {
    host.releaseKernel(kernel);
    engine.detachKernel(kernel);
    host.stop();
  }
  void onPacket(const PacketMeta&, const uint8_t*, uint32_t) override {}
  void onPeerProcessGone(uint32_t, bool) override {}
  void onLocalPacket(LocalPair&, const LocalPacket&) override {}
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override { mads++; }
  void onEvent(const HcaEvent&) override {}

  Status claim(uint16_t* port, uint32_t* id) {
    const Status status = host.claimPort(kernel, kService, nullptr, port, id);
    return status != Status::kSuccess ? status : host.openPort(*id);
  }
  void step() {
    for (int i = 0; i < 8; i++) host.poll(*this, 64);
  }
  void poll() {
    const auto hold = engine.hold();
    step();
  }
  void request(uint16_t port) {
    Path path;
    path.source = path.destination = parseAddress("127.0.0.1");
    uint8_t mad[256] = {1, 7, 2, 3};
    mad[17] = 0x10;  // attribute: REQ
    const uint64_t service = uint64_t{kService} << 16 | port;
    for (int i = 0; i < 8; i++) mad[24 + 8 + i] = static_cast<uint8_t>(service >> (56 - 8 * i));
    HOST_CHECK(host.sendMad(path, mad, 0xffff) == Status::kSuccess);
  }
};

std::string nameOf(uint16_t port) {
  char name[64];
  std::snprintf(name, sizeof name, "port/%04x/%u/*", kService, port);
  return ownName(name);
}

// Returns the listener of this name in this process.
int listenerOf(uint16_t port) {
  const std::string name = nameOf(port);
  for (int fd = 3; fd < 512; fd++) {
    sockaddr_un own{};
    socklen_t bytes = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 && own.sun_family == AF_UNIX &&
        bytes == sizeof(sa_family_t) + 1 + name.size() && std::memcmp(own.sun_path + 1, name.data(), name.size()) == 0)
      return fd;
  }
  return -1;
}

// `release` releases the port. Before it returns, another process has claimed it and the peer sends a second REQ.
void releases(void (*release)(Member& owner, uint32_t claim)) {
  Member owner, next, peer;
  uint16_t port = 0;
  uint32_t claim = 0, other = 0;
  HOST_CHECK(owner.claim(&port, &claim) == Status::kSuccess);
  peer.request(port);
  owner.poll();
  HOST_CHECK(owner.mads == 1);
  std::atomic<bool> tried{false}, claimed{false};
  std::thread poller;
  closing = listenerOf(port);
  HOST_CHECK(closing >= 0);
  afterClose = [&] {
    // The listener of another process, which has claimed the port. It does not accept.
    UniqueFd listener;
    HOST_CHECK(listenLocal(nameOf(port), &listener) == 0);
    peer.request(port);
    poller = std::thread([&] {
      if (owner.engine.lock().try_lock()) {
        tried = true;
        owner.step();
        owner.engine.lock().unlock();
      }
      tried = true;
    });
    while (!tried) sched_yield();
  };
  release(owner, claim);
  HOST_CHECK(poller.joinable());
  poller.join();
  owner.poll();
  HOST_CHECK(owner.mads == 1);
  // From then on, the peer finds the new owner.
  std::thread answering([&] {  // the owner of the block replies
    while (!claimed) owner.poll();
  });
  // The claim is also refused if the owner's reply has taken all the time that there is for it.
  Status status;
  int64_t asked;
  const int64_t end = monotonicMs() + kTimeoutMs;
  do {
    asked = monotonicMs();
    status = next.claim(&port, &other);
  } while (status == Status::kAddressAlreadyExists && monotonicMs() - asked >= RdmaPorts::kReplyMs && asked < end);
  HOST_CHECK(status == Status::kSuccess);
  claimed = true;
  answering.join();
  peer.request(port);
  next.poll();
  owner.poll();
  HOST_CHECK(next.mads == 1 && owner.mads == 1);
}

}  // namespace

int main() {
  hosttest::privateNetwork();
  releases([](Member& owner, uint32_t claim) { owner.host.releasePort(claim); });
  releases([](Member& owner, uint32_t) { owner.host.releaseKernel(owner.kernel); });
  return hosttest::finish("host_release");
}
