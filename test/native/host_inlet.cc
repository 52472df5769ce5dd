// Sockets connected to single senders: what comes by them is the same, in the same order, as by the socket that hears
// everybody, while they are opened as well; packets that came in one piece, marks, MADs, strays, IDs that jump.
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <functional>

#include "engine/udp_inlet.h"
#include "host_node.h"
#include "host_sockets.h"

using hosttest::flows, hosttest::ownPort, hosttest::parseAddress, hosttest::RealClock;
using namespace nd;

namespace {

// What happens just before and after the next socket on port 4791 is connected.
std::function<void()> beforeConnect, afterConnect;

}  // namespace

extern "C" int connect(int fd, const sockaddr* to, socklen_t bytes) {
  const bool inlet = to->sa_family != AF_UNIX && ownPort(fd) == kRocePort;
  if (inlet && beforeConnect) std::exchange(beforeConnect, nullptr)();
  const int result = static_cast<int>(syscall(SYS_connect, fd, to, bytes));
  if (inlet && afterConnect) std::exchange(afterConnect, nullptr)();
  return result;
}

namespace {

constexpr uint32_t kQpIndex = 0x42;

struct Seen {
  uint32_t psn, length;
  uint8_t trafficClass;
  bool good;
};

struct Member;
std::vector<Member*> members;

// A host side of its own, in this process. Remembers what polls deliver.
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
    if (mad::destinationQpn(bth) == mad::kGsiQpn) return seen.push_back({UINT32_MAX, length, 0, true});
    Seen s{mad::get24(bth + 9), length, meta.trafficClass, true};
    for (uint32_t i = 12; i < length; i++) s.good &= bth[i] == hosttest::pattern(s.psn, i - 12);
    seen.push_back(s);
  }
  void onPeerProcessGone(uint32_t, bool) override {}
  void onLocalPacket(LocalPair&, const LocalPacket&) override {}
  void onMad(const PacketMeta&, uint16_t, const uint8_t*) override {}
  void onQpEvent(Handle, uint32_t, QpEvent, uint32_t) override {}
  void onCqError(Handle) override {}

  uint64_t counter(const char* name) const {
    const auto& names = Host::counterNames();
    for (size_t i = 0; i < names.size(); i++)
      if (std::strcmp(names[i], name) == 0) return const_cast<Host&>(host).counters()[i];
    HOST_CHECK(!"a counter of this name");
    return 0;
  }
  void poll() {
    std::lock_guard<nd::EngineLock> guard(engine.lock());
    host.poll(*this, 64);
    host.flush();
  }
  bool readable(int milliseconds) {
    pollfd p = {host.pollFd(), POLLIN, 0};
    return ::poll(&p, 1, milliseconds) == 1;
  }
  // Something has come. What the system gave to another member, on a slow machine whose steering was not found out in time,
  // that one hands over.
  bool arrives() {
    for (int waited = 0; waited < kPatienceMs / 10; waited++) {
      if (readable(10)) return true;
      for (Member* m : members)
        if (m != this) m->pollAll();
    }
    return false;
  }
  // Until `n` packets have been delivered. Then a look in vain: what comes next may come untold.
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
    for (uint32_t i = 0; i < payload.size(); i++) payload[i] = hosttest::pattern(psn, i);
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

Path pathOf(const char* address) {
  Path path;
  path.source = path.destination = parseAddress(address);
  return path;
}

void quiet(std::initializer_list<Member*> all) {
  const auto busy = [&] {
    for (Member* m : all) {
      std::lock_guard<nd::EngineLock> guard(m->engine.lock());
      if (m->host.nextDeadline() != UINT64_MAX) return true;
    }
    for (Member* m : all)
      if (m->readable(0)) return true;
    return false;
  };
  while (busy())
    for (Member* m : all) m->poll();
}

// All there, whole and in order.
void checkOrder(const Member& m, size_t count, uint32_t first = 0) {
  HOST_CHECK(m.seen.size() == count);
  uint32_t wrong = 0;
  for (size_t i = 0; i < m.seen.size(); i++) wrong += m.seen[i].psn != first + i || !m.seen[i].good;
  HOST_CHECK(wrong == 0);
}

// Until what a sends to b comes by an inlet.
void warm(Member& a, Member& b, const Path& path) {
  const uint64_t before = b.counter("rx_inlet_opened");
  for (uint32_t i = 0; i < 256 && b.counter("rx_inlet_opened") == before; i++) {
    a.send(path, b, {8});
    b.take(b.seen.size() + 1);
  }
  HOST_CHECK(b.counter("rx_inlet_opened") == before + 1);
  b.pollAll();
  for (int i = 0; i < 2; i++) b.poll();
  b.seen.clear();
}

// Bursts, so that the inlet is opened while there is more: nothing is lost and nothing overtakes.
void opensInOrder(const char* address) {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf(address);
  size_t sent = 0;
  for (uint32_t burst = 1; sent < 400; burst = burst % 7 + 1) {
    for (uint32_t i = 0; i < burst; i++) a.send(path, b, {8});
    sent += burst;
    if (burst % 3 == 0) b.poll();
  }
  b.take(sent);
  checkOrder(b, sent);
  HOST_CHECK(b.counter("rx_inlet_opened") == 1);
  // Then each message is there at the next poll, by whichever socket it comes.
  b.seen.clear();
  const Path others[] = {path, path, pathOf("::1"), path, pathOf("127.0.0.9")};
  for (int round = 0; round < 20; round++)
    for (const Path& each : others) {
      a.send(each, b, {8});
      HOST_CHECK(b.arrives());
      const size_t before = b.seen.size();
      b.poll();
      HOST_CHECK(b.seen.size() == before + 1);
      if (round % 2 != 0) b.poll();
    }
  HOST_CHECK(b.counter("rx_icrc_errors") == 0 && b.counter("rx_inlet_refused") == 0);
}

// Packets in one piece, which is told of none: two, several, a short one last; long ones; payload that looks like a BTH.
void joined(const char* address) {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf(address);
  warm(a, b, path);
  const uint32_t first = a.psn;
  for (int round = 0; round < 40; round++) {
    a.send(path, b, {8, 0});
    b.take(b.seen.size() + 2);
    a.send(path, b, {100, 100, 100, 4});
    b.take(b.seen.size() + 4);
    a.send(path, b, {8});
    b.take(b.seen.size() + 1);
    if (round % 10 == 0) {
      a.send(path, b, {4096, 4096, 4096, 1000});
      b.take(b.seen.size() + 4);
    }
  }
  checkOrder(b, 40 * 7 + 4 * 4, first);
  HOST_CHECK(b.counter("rx_icrc_errors") == 0);
  // Payload with BTHs to the same queue pair in it.
  b.seen.clear();
  for (int round = 0; round < 20; round++) {
    std::vector<uint8_t> payload(64);
    OutPacket p = Member::packet(b.host.slot(), a.psn++, payload);
    for (uint32_t at = 4; at + 12 <= payload.size(); at += 16) std::memcpy(payload.data() + at, p.header, 12);
    {
      std::lock_guard<nd::EngineLock> guard(a.engine.lock());
      HOST_CHECK(a.host.send(path, p));
      a.host.flush();
    }
    b.take(b.seen.size() + 1);
    HOST_CHECK(b.seen.back().length == 12 + 64);
  }
  HOST_CHECK(b.seen.size() == 20 && b.counter("rx_icrc_errors") == 0);
}

// Traffic class is looked at now and then; once there is a mark, in each.
void marks(const char* address) {
  Member a, b;
  quiet({&a, &b});
  Path path = pathOf(address);
  path.trafficClass = 2;
  warm(a, b, path);
  for (uint32_t i = 0; i < 2 * (UdpInlets::kUntold + 1); i++) {
    a.send(path, b, {8});
    b.take(i + 1);
  }
  for (const Seen& each : b.seen) HOST_CHECK(each.trafficClass == 2);
}

// A mark comes by the same socket: seen within 16 datagrams, and then each of them.
void markOnTheWay() {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  HOST_CHECK(flows().size() == 1);
  const int marked = 3;
  HOST_CHECK(setsockopt(flows().at(0), IPPROTO_IP, IP_TOS, &marked, sizeof marked) == 0);
  uint32_t last = 0;
  for (uint32_t i = 0; i < 64; i++) {
    a.send(path, b, {8});
    b.take(i + 1);
    if (b.seen.back().trafficClass != 3) last = i + 1;
  }
  HOST_CHECK(last <= UdpInlets::kUntold);
}

// Datagrams that never came: the next IDs are others, and are found.
void idsJump() {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  const uint32_t first = a.psn;
  size_t n = 0;
  for (int round = 0; round < 40; round++) {
    HOST_CHECK(send(flows().at(0), "", 0, 0) == 0);  // an ID that the sender does not know of
    b.pollAll();
    for (int i = 0; i < 3; i++) {
      a.send(path, b, {8});
      b.take(++n);
    }
  }
  // The sender's ICRCs count with IDs that are behind: solved.
  checkOrder(b, n, first);
  HOST_CHECK(b.counter("rx_icrc_errors") == 0 && b.counter("rx_ipv4_id_solved") > 0);
}

// Corrupt ones are not delivered, alone or in one piece: such as are right with no IPv4 ID.
void corrupt() {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  const int fd = flows().at(0);
  uint8_t bytes[88] = {4, 0, 0xff, 0xff, 0, 0, 0, kQpIndex};
  bytes[5] = static_cast<uint8_t>(b.host.slot());
  std::memcpy(bytes + 44, bytes, 12);
  for (uint32_t i = 0; i < 2 * (UdpInlets::kUntold + 1); i++) {
    const uint32_t length = i % 2 == 0 ? 44 : 88;
    IcrcHeaders headers;
    headers.source = headers.destination = path.source;
    headers.sourcePort = ownPort(fd);
    while (solveIpv4Id(icrcOf(headers, bytes, length - kIcrcBytes), loadIcrc(bytes + length - kIcrcBytes),
                       length - kIcrcBytes, &headers))
      bytes[12]++;
    HOST_CHECK(send(fd, bytes, length, 0) > 0);
    HOST_CHECK(b.arrives());
    b.pollAll();
  }
  HOST_CHECK(b.seen.empty());
  HOST_CHECK(b.counter("rx_icrc_errors") == 2 * (UdpInlets::kUntold + 1));
}

// A MAD by the other socket does not overtake what was sent before it.
void madsComeAfter(const char* address) {
  Member b, a;  // QP1 is steered to the first
  quiet({&a, &b});
  const Path path = pathOf(address);
  warm(a, b, path);
  const uint8_t mad[256] = {1, 7, 2, 3};
  for (int round = 0; round < 20; round++) {
    b.seen.clear();
    a.send(path, b, {8});
    a.send(path, b, {8});
    HOST_CHECK(a.host.sendMad(path, mad, 0xffff) == Status::kSuccess);
    if (round % 2 != 0) b.host.lookAllNext();
    b.take(3);
    HOST_CHECK(b.seen.size() == 3 && b.seen[0].psn + 1 == b.seen[1].psn && b.seen[2].psn == UINT32_MAX);
  }
}

// A sender that sends to another process from the same port: handed over, and heard by the other socket from then on.
void strays() {
  Member a, b, c;
  quiet({&a, &b, &c});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  // As its connected socket would: any ID is found.
  const auto forge = [&](const Member& to, uint32_t psn) {
    std::vector<uint8_t> payload(8);
    const OutPacket p = Member::packet(to.host.slot(), psn, payload);
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    sockaddr_in own{};
    socklen_t bytes = sizeof own;
    HOST_CHECK(getsockname(flows().at(0), reinterpret_cast<sockaddr*>(&own), &bytes) == 0);
    headers.sourcePort = ntohs(own.sin_port);
    IcrcStart start;
    uint8_t out[kMaxDatagram];
    const uint32_t length = gatherWithIcrc(start, out, headers, p);
    HOST_CHECK(send(flows().at(0), out, length, 0) == static_cast<ssize_t>(length));
  };
  for (int round = 0; round < 3; round++) {
    const size_t there = c.seen.size();
    forge(c, 7);
    for (uint32_t spin = 0; c.seen.size() == there && spin < 1000000; spin++) b.poll(), c.poll();
    HOST_CHECK(c.seen.size() == there + 1 && c.seen.back().psn == 7);
  }
  HOST_CHECK(b.counter("rx_inlet_refused") == 1);
  b.seen.clear();
  const size_t n = 2 * UdpInlets::kHeardBefore;
  for (size_t i = 0; i < n; i++) {
    a.send(path, b, {8});
    b.take(i + 1);
  }
  HOST_CHECK(b.seen.size() == n);
  HOST_CHECK(b.counter("rx_inlet_opened") == 1);  // and not again
}

// A sender's own socket, as of a process of this host.
struct Sender {
  UniqueFd fd;
  Path path;
  uint8_t opcode;
  uint32_t psn;
  Sender(const Path& p, uint8_t op, uint32_t firstPsn) : path(p), opcode(op), psn(firstPsn) {
    const bool v4 = path.source.isV4();
    SocketAddress own{}, to{};
    fd.reset(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
    const int discover = IP_PMTUDISC_DO;
    HOST_CHECK(!v4 || setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover) == 0);
    HOST_CHECK(bind(fd.get(), &own.any, socketAddress(path.source, 0, 0, &own)) == 0);
    HOST_CHECK(connect(fd.get(), &to.any, socketAddress(path.destination, kRocePort, 0, &to)) == 0);
  }
  void send(const Member& to) {
    std::vector<uint8_t> payload(8);
    OutPacket p = Member::packet(to.host.slot(), psn++, payload);
    p.header[0] = opcode;
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    headers.sourcePort = ownPort(fd.get());
    IcrcStart start;
    uint8_t out[kMaxDatagram];
    const uint32_t length = gatherWithIcrc(start, out, headers, p);
    HOST_CHECK(::send(fd.get(), out, length, 0) == static_cast<ssize_t>(length));
  }
};

// What comes while an inlet is opened, from its sender and from others, whom the system gives to one of the port's sockets by a
// hash of their ports: all of it, and what one has sent in order.
void othersMeanwhile(const char* address) {
  constexpr uint32_t kOthers = 32, kEach = 64;  // PSNs of each
  Member b;
  quiet({&b});
  const Path path = pathOf(address);
  sock_filter byHash[] = {{BPF_RET | BPF_K, 0, 0, 0xffff}};
  const sock_fprog program = {1, byHash};
  for (int fd = 3; fd < 512; fd++)
    if (ownPort(fd) == kRocePort) setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
  Sender own(path, 4, kOthers * kEach);
  std::vector<Sender> others;
  for (uint32_t i = 0; i < kOthers; i++) others.emplace_back(path, uint8_t(0x24), i * kEach);  // UC SEND only
  size_t sent = 0;
  const auto all = [&] {
    for (Sender& other : others) other.send(b);
    own.send(b);
    sent += kOthers + 1;
  };
  for (uint32_t i = 1; i < UdpInlets::kHeardBefore; i++) {
    own.send(b);
    b.take(++sent);
  }
  bool came = false;
  beforeConnect = [&] { all(), all(); };
  afterConnect = [&] { all(), all(), came = true; };
  all();
  all();
  while (!came && b.arrives()) b.poll();
  b.take(sent);
  HOST_CHECK(came && b.seen.size() == sent && b.counter("rx_inlet_opened") == 1);
  std::map<uint32_t, uint32_t> next;
  uint32_t wrong = 0;
  for (const Seen& each : b.seen) {
    const uint32_t who = std::min(each.psn / kEach, kOthers);
    wrong += !each.good || each.psn != who * kEach + next[who]++;
  }
  HOST_CHECK(wrong == 0 && b.counter("rx_icrc_errors") == 0);
}

// The group's order, by which the system steers, stays.
void steeringStays() {
  Member a, b, c;
  quiet({&a, &b, &c});
  warm(a, b, pathOf("127.0.0.1"));
  warm(c, b, pathOf("127.0.0.1"));
  warm(b, c, pathOf("127.0.0.1"));
  const Path other = pathOf("127.0.0.5");
  Member* const all[] = {&a, &b, &c};
  for (Member* from : all)
    for (Member* to : all) {
      to->seen.clear();
      from->send(other, *to, {8});
      to->take(1);
      HOST_CHECK(to->seen.size() == 1);
    }
  for (Member* m : all) HOST_CHECK(m->counter("rx_misdirected") == 0);
}

// More senders than there are inlets: all are heard.
void bounded() {
  Member b;
  std::vector<std::unique_ptr<Member>> senders;
  for (uint32_t i = 0; i < UdpInlets::kMost + 2; i++) senders.emplace_back(new Member);
  for (auto& each : senders) quiet({&b, each.get()});
  const Path path = pathOf("127.0.0.1");
  for (uint32_t i = 0; i < 3 * UdpInlets::kHeardBefore; i++)
    for (auto& each : senders) {
      each->send(path, b, {8});
      b.take(b.seen.size() + 1);
    }
  HOST_CHECK(b.counter("rx_inlet_opened") == UdpInlets::kMost);
  HOST_CHECK(b.counter("rx_icrc_errors") == 0);
  uint32_t wrong = 0;
  for (size_t i = 0; i < b.seen.size(); i++) wrong += !b.seen[i].good || b.seen[i].psn != i / senders.size();
  HOST_CHECK(wrong == 0 && b.seen.size() == 3 * UdpInlets::kHeardBefore * senders.size());
}

}  // namespace

int main() {
  if (!hosttest::privateNetwork()) {
    std::printf("host_inlet: skipped, it needs a network namespace of its own\n");
    return 0;
  }
  for (const char* address : {"127.0.0.1", "::1"}) {
    opensInOrder(address);
    joined(address);
    marks(address);
    madsComeAfter(address);
    for (int i = 0; i < 8; i++) othersMeanwhile(address);
  }
  markOnTheWay();
  idsJump();
  corrupt();
  strays();
  steeringStays();
  bounded();
  return hosttest::finish("host_inlet");
}
