// Host sides of one process that a test drives by hand. Records what each poll delivers, and waits until the OS gives
// each its own packets.
#pragma once
#include <poll.h>

#include <algorithm>
#include <functional>

#include "host_node.h"
#include "host_sockets.h"
#include "platform/linux/socket_options.h"
#include "udp/udp_wire.h"

namespace hosttest {

using namespace nd;

constexpr uint32_t kQpIndex = 0x42;
constexpr uint8_t kUcSendOnly = 0x24;

struct Seen {
  uint32_t psn, length;
  uint8_t trafficClass;
  bool good;
};

inline uint64_t counterOf(Host& host, const char* name) {
  const auto& names = Host::counterNames();
  for (size_t i = 0; i < names.size(); i++)
    if (std::strcmp(names[i], name) == 0) return host.counters()[i];
  HOST_CHECK(!"a counter of this name");
  return 0;
}

struct Member;
inline std::vector<Member*> members;

// A separate host side in this process, which records what polls deliver.
struct Member final : PacketSink, KernelPort {
  RealClock clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  KernelId kernel = 0;
  std::vector<Seen> seen;
  uint32_t psn = 0;

  Member() {
    HostOptions options;
    options.link = LinkChoice::kWire;
    HOST_CHECK(host.start(options, engine) == Status::kSuccess);
    HOST_CHECK(engine.attachKernel(this, &kernel) == Status::kSuccess);
    members.push_back(this);
  }
  ~Member() override {
    members.erase(std::find(members.begin(), members.end(), this));
    engine.detachKernel(kernel);
    host.stop();
  }
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override {
    if (wire::destinationQpn(bth) == wire::kGsiQpn) return seen.push_back({UINT32_MAX, length, 0, true});
    Seen s{wire::load24(bth + 9), length, meta.trafficClass, true};
    for (uint32_t i = 12; i < length; i++) s.good &= bth[i] == pattern(s.psn, i - 12);
    seen.push_back(s);
  }
  void onPeerProcessGone(uint32_t, bool) override {}
  void onLocalPacket(LocalPair&, const LocalPacket&) override {}
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent&) override {}

  uint64_t counter(const char* name) const { return counterOf(const_cast<Host&>(host), name); }
  void poll() {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    host.poll(*this, 64);
    host.flush();
  }
  bool readable(int milliseconds) {
    pollfd p = {host.pollFd(), POLLIN, 0};
    return ::poll(&p, 1, milliseconds) == 1;
  }
  // Waits until something has arrived. On a slow machine whose steering was not settled in time, the OS may give a
  // packet to another member, which hands it over.
  bool arrives() {
    for (int waited = 0; waited < kTimeoutMs / 10; waited++) {
      if (readable(10)) return true;
      for (Member* m : members)
        if (m != this) m->pollAll();
    }
    return false;
  }
  // Polls until `n` packets have been delivered and one more poll was empty, because the next arrival may come without
  // a wake-up.
  void take(size_t n) {
    while (seen.size() < n && arrives()) poll();
    poll();
  }
  void pollAll() {
    while (readable(0)) poll();
  }
  static OutPacket packet(uint32_t slot, uint32_t psn, std::vector<uint8_t>& payload) {
    OutPacket p;
    std::memset(p.header, 0, sizeof p.header);
    p.header[0] = 4;  // RC SEND only
    p.header[2] = p.header[3] = 0xff;
    p.header[5] = static_cast<uint8_t>(slot);
    p.header[7] = kQpIndex;
    p.header[10] = static_cast<uint8_t>(psn >> 8);
    p.header[11] = static_cast<uint8_t>(psn);
    p.headerLength = 12;
    for (uint32_t i = 0; i < payload.size(); i++) payload[i] = pattern(psn, i);
    p.payloadLength = static_cast<uint32_t>(payload.size());
    p.pieces[0] = {payload.data(), payload.size()};
    p.pieceCount = 1;
    return p;
  }
  void stage(const Path& path, const Member& to, uint32_t bytes) {
    std::vector<uint8_t> payload(bytes);
    HOST_CHECK(host.send(path, packet(to.host.slot(), psn++, payload)));
  }
  void send(const Path& path, const Member& to, std::initializer_list<uint32_t> lengths) {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    for (const uint32_t bytes : lengths) stage(path, to, bytes);
    host.flush();
  }
};

inline Path pathOf(const char* address) {
  Path path;
  path.source = path.destination = parseAddress(address);
  return path;
}

// A sender's own socket, like that of a process on this host. It is connected, so that its IPv4 IDs count, or
// unconnected.
struct Sender {
  UniqueFd fd;
  Path path;
  SocketAddress roce{};
  socklen_t roceBytes = socketAddress(path.destination, kRocePort, 0, &roce);
  uint8_t opcode;
  uint32_t psn;
  Sender(const Path& p, uint8_t op, uint32_t firstPsn, bool counts = true) : path(p), opcode(op), psn(firstPsn) {
    const bool v4 = path.source.isV4();
    SocketAddress own{};
    fd.reset(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
    const int discover = IP_PMTUDISC_DO;
    HOST_CHECK(!v4 || setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover) == 0);
    HOST_CHECK(bind(fd.get(), &own.any, socketAddress(path.source, 0, 0, &own)) == 0);
    HOST_CHECK(!counts || connect(fd.get(), &roce.any, roceBytes) == 0);
  }
  void send(uint32_t slot) {
    std::vector<uint8_t> payload(8);
    OutPacket p = Member::packet(slot, psn++, payload);
    p.header[0] = opcode;
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    headers.sourcePort = ownPort(fd.get());
    IcrcStart start;
    uint8_t out[kMaxDatagram];
    const uint32_t length = gatherWithIcrc(start, out, headers, p);
    HOST_CHECK(sendto(fd.get(), out, length, 0, &roce.any, roceBytes) == static_cast<ssize_t>(length));
  }
};

template <typename M>
uint64_t sumOf(const std::vector<M*>& all, const char* counter) {
  uint64_t n = 0;
  for (M* m : all) n += counterOf(m->host, counter);
  return n;
}

template <typename M>
bool isReadable(M& m) {
  pollfd p = {m.host.pollFd(), POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// Runs until no member has anything to do. A member replies to a request in its next turn, and gets the replies before
// it concludes that they are late.
template <typename M, typename Poll>
void settle(const std::vector<M*>& all, const Poll& poll) {
  const auto busy = [&] {
    for (M* m : all) {
      std::lock_guard<EngineLock> guard(m->engine.lock());
      if (m->host.nextDeadline() != UINT64_MAX) return true;
    }
    return std::any_of(all.begin(), all.end(), [](M* m) { return isReadable(*m); });
  };
  const auto pollAll = [&](M& m) {
    m.host.pollNext(PollScope::kAll);
    poll(m);
  };
  while (busy())
    for (M* m : all) {
      pollAll(*m);
      for (int i = 0; i < 64 && isReadable(*m); i++) pollAll(*m);
    }
}

// Runs until the OS gives each member its own packets. If the others reply slowly, the steering does not learn their
// order, and queries again after a misdirected packet, at most every 100 ms. There are many senders, because the OS
// hashes their ports where it has no rule; they are unreliable, and their IDs do not count, so that no state is kept
// for them.
template <typename M, typename Poll>
void steer(const std::vector<M*>& all, const Poll& poll) {
  constexpr uint32_t kSenders = 16;
  const uint64_t end = RealClock().now() + kTimeoutNs;
  for (const char* address : {"127.0.0.1", "::1"}) {
    std::vector<Sender> senders;
    while (senders.size() < kSenders) senders.emplace_back(pathOf(address), kUcSendOnly, 0, false);
    bool right = false;
    while (!right && RealClock().now() < end) {
      settle(all, poll);
      const uint64_t astray = sumOf(all, "rx_misdirected"),
                     come = sumOf(all, "wire_rx_packets") + all.size() * kSenders;
      for (M* m : all)
        for (Sender& sender : senders) sender.send(m->host.slot());
      while (sumOf(all, "wire_rx_packets") < come && RealClock().now() < end)
        for (M* m : all) poll(*m);
      right = sumOf(all, "rx_misdirected") == astray;
    }
    HOST_CHECK(right);
  }
  settle(all, poll);
}

using Members = std::vector<Member*>;

inline void quiet(const Members& all) {
  steer(all, [](Member& m) { m.poll(); });
  for (Member* m : all) m->seen.clear();
}

}  // namespace hosttest
