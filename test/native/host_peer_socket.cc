// Tests of sockets connected to single senders. They deliver the same packets in the same order as the socket that
// receives from all, even while they are being opened. Also tests packets that arrive in one piece, ECN marks, MADs,
// stray packets and IDs that jump.
#include <sys/syscall.h>

#include <algorithm>
#include <functional>

#include "host_members.h"
#include "udp/peer_socket.h"

using namespace hosttest;
using namespace nd;

namespace {

// Called just before and after the next socket on port 4791 is connected.
std::function<void()> beforeConnect, afterConnect;

}  // namespace

extern "C" int connect(int fd, const sockaddr* to, socklen_t bytes) {
  const bool peer = to->sa_family != AF_UNIX && ownPort(fd) == kRocePort;
  if (peer && beforeConnect) std::exchange(beforeConnect, nullptr)();
  const int result = static_cast<int>(syscall(SYS_connect, fd, to, bytes));
  if (peer && afterConnect) std::exchange(afterConnect, nullptr)();
  return result;
}

namespace {

// Checks that all have arrived, whole and in order.
void checkOrder(const Member& m, size_t count, uint32_t first = 0) {
  HOST_CHECK(m.seen.size() == count);
  uint32_t wrong = 0;
  for (size_t i = 0; i < m.seen.size(); i++) wrong += m.seen[i].psn != first + i || !m.seen[i].good;
  HOST_CHECK(wrong == 0);
}

// Sends from a to b until the packets arrive on a peer socket.
void warm(Member& a, Member& b, const Path& path) {
  const uint64_t before = b.counter("rx_peer_socket_opened");
  for (uint32_t i = 0; i < 256 && b.counter("rx_peer_socket_opened") == before; i++) {
    a.send(path, b, {8});
    b.take(b.seen.size() + 1);
  }
  HOST_CHECK(b.counter("rx_peer_socket_opened") == before + 1);
  b.pollAll();
  for (int i = 0; i < 2; i++) b.poll();
  b.seen.clear();
}

// The packets are sent in bursts, so that the peer socket is opened while more are queued. None is lost, and none
// overtakes another.
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
  HOST_CHECK(b.counter("rx_peer_socket_opened") == 1);
  // From now on each message arrives at the next poll, whichever socket it uses.
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
  HOST_CHECK(b.counter("rx_icrc_errors") == 0 && b.counter("rx_peer_socket_refused") == 0);
}

// Tests joined packets whose segment length is not reported: two, several, with a short one last, long ones, and
// payload that looks like a BTH.
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
  // Payload that contains BTHs for the same queue pair.
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

// The traffic class is examined now and then, and in each datagram after a mark.
void marks(const char* address) {
  Member a, b;
  quiet({&a, &b});
  Path path = pathOf(address);
  path.trafficClass = 2;
  warm(a, b, path);
  for (uint32_t i = 0; i < 2 * (PeerSockets::kWithoutMetadata + 1); i++) {
    a.send(path, b, {8});
    b.take(i + 1);
  }
  for (const Seen& each : b.seen) HOST_CHECK(each.trafficClass == 2);
}

// A mark that arrives on the same socket is seen within 16 datagrams, and from then on in each of them.
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
  HOST_CHECK(last <= PeerSockets::kWithoutMetadata);
}

// After datagrams that never arrived, the next IDs differ, and are found.
void idsJump() {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  const uint32_t first = a.psn;
  size_t n = 0;
  for (int round = 0; round < 40; round++) {
    HOST_CHECK(send(flows().at(0), "", 0, 0) == 0);  // uses an ID that the sender does not know of
    b.pollAll();
    for (int i = 0; i < 3; i++) {
      a.send(path, b, {8});
      b.take(++n);
    }
  }
  // The sender's ICRCs use earlier IDs, which are solved.
  checkOrder(b, n, first);
  HOST_CHECK(b.counter("rx_icrc_errors") == 0 && b.counter("rx_ipv4_id_solved") > 0);
}

// Corrupt packets are not delivered, alone or in one piece, because no IPv4 ID makes them valid.
void corrupt() {
  Member a, b;
  quiet({&a, &b});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  const int fd = flows().at(0);
  uint8_t bytes[88] = {4, 0, 0xff, 0xff, 0, 0, 0, kQpIndex};
  bytes[5] = static_cast<uint8_t>(b.host.slot());
  std::memcpy(bytes + 44, bytes, 12);
  for (uint32_t i = 0; i < 2 * (PeerSockets::kWithoutMetadata + 1); i++) {
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
  HOST_CHECK(b.counter("rx_icrc_errors") == 2 * (PeerSockets::kWithoutMetadata + 1));
}

// A MAD on the other socket does not overtake what was sent before it.
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
    if (round % 2 != 0) b.host.pollNext(PollScope::kAll);
    b.take(3);
    HOST_CHECK(b.seen.size() == 3 && b.seen[0].psn + 1 == b.seen[1].psn && b.seen[2].psn == UINT32_MAX);
  }
}

// A sender sends to another process from the same port. The packets are handed over, and received by the other socket
// from then on.
void strays() {
  Member a, b, c;
  quiet({&a, &b, &c});
  const Path path = pathOf("127.0.0.1");
  warm(a, b, path);
  // The packets look as if its connected socket had sent them, so any ID is found.
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
  HOST_CHECK(b.counter("rx_peer_socket_refused") == 1);
  b.seen.clear();
  const size_t n = 2 * PeerSockets::kHeardBefore;
  for (size_t i = 0; i < n; i++) {
    a.send(path, b, {8});
    b.take(i + 1);
  }
  HOST_CHECK(b.seen.size() == n);
  HOST_CHECK(b.counter("rx_peer_socket_opened") == 1);  // it was opened once
}

// While a peer socket is opened, packets arrive from its peer and from others, which the OS distributes among the
// port's sockets by a hash of their ports. All are delivered, in order for each sender.
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
  for (uint32_t i = 0; i < kOthers; i++) others.emplace_back(path, kUcSendOnly, i * kEach);
  size_t sent = 0;
  const auto all = [&] {
    for (Sender& other : others) other.send(b.host.slot());
    own.send(b.host.slot());
    sent += kOthers + 1;
  };
  for (uint32_t i = 1; i < PeerSockets::kHeardBefore; i++) {
    own.send(b.host.slot());
    b.take(++sent);
  }
  bool came = false;
  beforeConnect = [&] { all(), all(); };
  afterConnect = [&] { all(), all(), came = true; };
  all();
  all();
  while (!came && b.arrives()) b.poll();
  b.take(sent);
  HOST_CHECK(came && b.seen.size() == sent && b.counter("rx_peer_socket_opened") == 1);
  std::map<uint32_t, uint32_t> next;
  uint32_t wrong = 0;
  for (const Seen& each : b.seen) {
    const uint32_t who = std::min(each.psn / kEach, kOthers);
    wrong += !each.good || each.psn != who * kEach + next[who]++;
  }
  HOST_CHECK(wrong == 0 && b.counter("rx_icrc_errors") == 0);
}

// The order of the group, which steering depends on, does not change.
void steeringStays() {
  Member a, b, c;
  const Members all = {&a, &b, &c};
  quiet(all);
  const uint64_t astray = sumOf(all, "rx_misdirected");
  warm(a, b, pathOf("127.0.0.1"));
  warm(c, b, pathOf("127.0.0.1"));
  warm(b, c, pathOf("127.0.0.1"));
  const Path other = pathOf("127.0.0.5");
  for (Member* from : all)
    for (Member* to : all) {
      to->seen.clear();
      from->send(other, *to, {8});
      to->take(1);
      HOST_CHECK(to->seen.size() == 1);
    }
  HOST_CHECK(sumOf(all, "rx_misdirected") == astray);
}

// There are more peers than peer sockets. The packets of all are received.
void bounded() {
  Member b;
  std::vector<std::unique_ptr<Member>> senders;
  for (uint32_t i = 0; i < PeerSockets::kMostPeers + 2; i++) senders.emplace_back(new Member);
  Members all = {&b};
  for (auto& each : senders) all.push_back(each.get());
  quiet(all);
  const Path path = pathOf("127.0.0.1");
  for (uint32_t i = 0; i < 3 * PeerSockets::kHeardBefore; i++)
    for (auto& each : senders) {
      each->send(path, b, {8});
      b.take(b.seen.size() + 1);
    }
  HOST_CHECK(b.counter("rx_peer_socket_opened") == PeerSockets::kMostPeers);
  HOST_CHECK(b.counter("rx_icrc_errors") == 0);
  uint32_t wrong = 0;
  for (size_t i = 0; i < b.seen.size(); i++) wrong += !b.seen[i].good || b.seen[i].psn != i / senders.size();
  HOST_CHECK(wrong == 0 && b.seen.size() == 3 * PeerSockets::kHeardBefore * senders.size());
}

}  // namespace

int main() {
  if (!hosttest::privateNetwork()) {
    std::printf("host_peer_socket: skipped, it needs a network namespace of its own\n");
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
  return hosttest::finish("host_peer_socket");
}
