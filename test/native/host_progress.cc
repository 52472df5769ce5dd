// Tests that the next poll delivers everything that has arrived, whatever its path and whatever was busy before. A test
// continues as soon as the descriptor reports its packets, so nothing here waits for a fixed time.
#include <poll.h>

#include "host_members.h"
#include "local/local_pair.h"

using hosttest::addressText, hosttest::parseAddress, hosttest::RealClock;
using namespace nd;

namespace {

// A separate host side in this process: its slot, its sockets, and what one poll delivers.
struct Member final : PacketSink {
  RealClock clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  uint32_t packets = 0;
  uint32_t byWire = 0;  // those that came from the wire

  Member() { HOST_CHECK(host.start({}, engine) == Status::kSuccess && host.openWire() == Status::kSuccess); }
  ~Member() override { host.stop(); }
  void onPacket(const PacketMeta&, const uint8_t*, uint32_t) override { packets++, byWire++; }
  void onPeerProcessGone(uint32_t, bool) override {}
  void onLocalPacket(LocalPair&, const LocalPacket&) override { packets++; }

  // Returns the number of packets that one poll delivers.
  uint32_t polled() {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    packets = byWire = 0;
    host.poll(*this, 64);
    host.flush();
    return packets;
  }
  // Returns the number of packets that polling the last active socket again delivers.
  uint32_t found(uint32_t wanted = 0) {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    const std::atomic<uint32_t> commands{wanted};
    packets = 0;
    host.pollBusiest(*this, 64, commands);
    return packets;
  }
  bool readable(int milliseconds) {
    pollfd p = {host.pollFd(), POLLIN, 0};
    return ::poll(&p, 1, milliseconds) == 1;
  }
  void send(const char* address, uint32_t slot) {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    Path path;
    path.source = path.destination = parseAddress(address);
    OutPacket packet;
    std::memset(packet.header, 0, sizeof packet.header);
    packet.header[0] = 4;  // RC SEND only
    packet.header[2] = packet.header[3] = 0xff;
    packet.header[5] = static_cast<uint8_t>(slot);
    packet.header[7] = 0x42;
    packet.headerLength = 12;
    HOST_CHECK(host.send(path, packet));
    host.flush();
  }
};

// Polls until both have done what `pending` covers, or the time limit is over.
template <typename Pending>
void work(Member& a, Member& b, const Pending& pending) {
  const uint64_t end = a.clock.now() + kTimeoutNs;
  while (pending() && a.clock.now() < end) a.polled(), b.polled();
  HOST_CHECK(!pending());
}

// Polls until nothing is left to exchange, such as steering probes, their replies and new connections.
void quiet(Member& a, Member& b) {
  const auto due = [](Member& m) {
    std::lock_guard<nd::EngineLock> guard(m.engine.lock());
    return m.host.nextDeadline() != UINT64_MAX;
  };
  work(a, b, [&] { return a.readable(0) || b.readable(0) || due(a) || due(b); });
}

void nextPollDelivers() {
  Member a, b;
  hosttest::steer<Member>({&a, &b}, [](Member& m) { m.polled(); });
  for (int round = 0; round < 20; round++) {
    // IPv4 and IPv6 alternate. Whichever was busy last, packets of the other are seen just as soon.
    for (const char* address : {"127.0.0.1", "127.0.0.1", "::1"}) {
      a.send(address, b.host.slot());
      HOST_CHECK(b.readable(kTimeoutMs));
      HOST_CHECK(b.polled() == 1);
      HOST_CHECK(b.polled() == 0);
    }
  }
}

// A waiting thread polls the last active socket again, unless another thread wants the lock. It does not do so after
// packets have arrived elsewhere, as more may, or while the local link may deliver something sooner.
void pollsLastActiveSocketAgain() {
  Member a, b;
  hosttest::steer<Member>({&a, &b}, [](Member& m) { m.polled(); });
  const auto arrives = [&](const char* address) {
    a.send(address, b.host.slot());
    HOST_CHECK(b.readable(kTimeoutMs));
  };
  const auto comesElsewhere = [&](const char* address) {
    arrives(address);
    HOST_CHECK(b.found() == 0 && b.polled() == 1);
  };
  arrives("::1");
  HOST_CHECK(b.polled() == 1);
  for (const char* address : {"127.0.0.1", "::1"}) {
    comesElsewhere(address);
    arrives(address);
    HOST_CHECK(b.found() == 0 && b.polled() == 1);
    for (int round = 0; round < 20; round++) {
      arrives(address);
      HOST_CHECK(b.found(1) == 0);
      HOST_CHECK(b.found() == 1);
      HOST_CHECK(b.found() == 0 && b.polled() == 0);
    }
  }
  HOST_CHECK(hosttest::missteer(0));  // to a, which hands the packet over
  a.send("127.0.0.1", b.host.slot());
  HOST_CHECK(a.readable(kTimeoutMs) && a.polled() == 0);
  const uint64_t end = b.clock.now() + kTimeoutNs;
  uint32_t got = 0;
  while (got == 0 && b.clock.now() < end) got = b.readable(kTimeoutMs) ? b.polled() : 0;
  HOST_CHECK(got == 1);
  // At first the last packets arrived elsewhere, as do the steering requests and replies meanwhile.
  uint32_t round = 0;
  for (arrives("::1"); b.found() == 0 && round < 20; round++) {
    while (b.polled() == 0 && b.clock.now() < end) continue;
    arrives("::1");
  }
  HOST_CHECK(round > 0 && round < 20);
  quiet(a, b);
  std::shared_ptr<LocalPair> pair;
  {
    std::lock_guard<nd::EngineLock> guard(a.engine.lock());
    pair = a.host.localPair(b.host.slot());
  }
  work(a, b, [&] { return !pair->up(); });
  for (uint32_t i = 0; i < 2; i++) {
    arrives("::1");
    b.host.pollNext(PollScope::kBusiest);
    HOST_CHECK(b.polled() == 1);
  }
  arrives("::1");
  HOST_CHECK(b.found() == 0);
}

// A packet that the OS gave to another process, and that comes through the slots.
void nextPollDeliversForwarded() {
  Member a, b;
  hosttest::steer<Member>({&a, &b}, [](Member& m) { m.polled(); });
  a.send("127.0.0.1", b.host.slot());
  HOST_CHECK(b.readable(kTimeoutMs) && b.polled() == 1);
  HOST_CHECK(hosttest::missteer(0));  // to the first of the group, which is a
  uint32_t atOnce = 0;
  for (int round = 0; round < 20; round++) {
    a.send("127.0.0.1", b.host.slot());
    HOST_CHECK(a.readable(kTimeoutMs));
    HOST_CHECK(a.polled() == 0);  // a hands the packet over
    HOST_CHECK(b.readable(kTimeoutMs));
    uint32_t got = b.polled();
    atOnce += got;
    // The first packet arrives after the connection. If rounds take long, others arrive after the steering's queries of
    // the group.
    if (got == 0) work(a, b, [&] { return (got = b.packets) == 0; });
    HOST_CHECK(got == 1);
    quiet(a, b);
    HOST_CHECK(hosttest::missteer(0));
  }
  HOST_CHECK(atOnce > 0);
  HOST_CHECK(b.host.slot() != a.host.slot());
}

// A polling thread handles what ends the sleep of the engine's thread before that thread has woken up. The engine's
// thread must stay awake nevertheless, because the peer has already rung and does not ring again until a new sleeper is
// announced.
void pollerLeavesTheRing() {
  Member a, b;
  const auto pair = [](Member& of, Member& with) {
    std::lock_guard<nd::EngineLock> guard(of.engine.lock());
    return of.host.localPair(with.host.slot());
  };
  const auto to = pair(a, b);
  HOST_CHECK(to != nullptr);
  work(a, b, [&] { return !to->up(); });
  const auto send = [&] {
    std::lock_guard<nd::EngineLock> guard(a.engine.lock());
    OutPacket packet;
    packet.header[0] = 4;  // RC SEND only
    packet.headerLength = 12;
    HOST_CHECK(to->ready(0, false));
    to->put(packet, 1, 0, 0);
    a.host.flush();
  };
  uint32_t told = 0;
  Sleeper sleeper, second;
  for (Sleeper* each : {&sleeper, &second}) {
    each->wake = [](void* self) { ++*static_cast<uint32_t*>(self); };
    each->self = &told;
  }
  const auto asleep = [&](Sleeper* who = nullptr) {
    std::lock_guard<nd::EngineLock> guard(b.engine.lock());
    return b.host.fallAsleep(who != nullptr ? *who : sleeper);
  };
  quiet(a, b);
  for (int round = 0; round < 20; round++) {
    HOST_CHECK(asleep());
    HOST_CHECK(!b.readable(0));
    send();
    HOST_CHECK(b.readable(0));
    b.host.pollNext(PollScope::kBusiest);
    HOST_CHECK(b.polled() == 1);
    HOST_CHECK(b.readable(0));
    send();
    HOST_CHECK(!asleep());
    HOST_CHECK(b.polled() == 1);
  }
  // Two threads sleep, and one has fallen asleep again before the other has seen that it was woken. The sleeping one is
  // notified.
  HOST_CHECK(asleep() && asleep(&second));
  HOST_CHECK(told == 0);
  send();
  b.host.pollNext(PollScope::kBusiest);
  HOST_CHECK(b.polled() == 1);
  HOST_CHECK(asleep() && !b.readable(0));
  HOST_CHECK(told == 1 && !second.asleep && sleeper.asleep);
  HOST_CHECK(asleep(&second));
  b.host.forget(sleeper);
  b.host.forget(second);
}

// Rings that are never empty do not delay packets on the sockets, nor does one socket delay another.
void fullRingsLeaveTurns() {
  Member a, b;
  hosttest::steer<Member>({&a, &b}, [](Member& m) { m.polled(); });
  std::shared_ptr<LocalPair> to;
  {
    std::lock_guard<nd::EngineLock> guard(a.engine.lock());
    to = a.host.localPair(b.host.slot());
  }
  HOST_CHECK(to != nullptr);
  work(a, b, [&] { return !to->up(); });
  quiet(a, b);
  const auto fill = [&](uint32_t count) {
    std::lock_guard<nd::EngineLock> guard(a.engine.lock());
    OutPacket packet;
    packet.header[0] = 4;  // RC SEND only
    packet.headerLength = 12;
    for (uint32_t i = 0; i < count && to->ready(0, false); i++) to->put(packet, 1, 0, 0);
    a.host.flush();
  };
  for (int round = 0; round < 20; round++) {
    fill(130);  // more than two polls can handle
    for (const char* address : {"127.0.0.1", "::1"}) a.send(address, b.host.slot());
    uint32_t wire = 0;
    for (int polls = 0; polls < 2; polls++) {
      b.host.pollNext(PollScope::kAll);
      HOST_CHECK(b.polled() >= 64);
      wire += b.byWire;
    }
    HOST_CHECK(wire == 2);
    while (b.polled() != 0) continue;
  }
}

}  // namespace

int main() {
  hosttest::privateNetwork();
  nextPollDelivers();
  nextPollDeliversForwarded();
  pollsLastActiveSocketAgain();
  pollerLeavesTheRing();
  fullRingsLeaveTurns();
  return hosttest::finish("host_progress");
}
