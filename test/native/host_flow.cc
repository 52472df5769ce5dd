// Tests of connected sending sockets: their IPv4 IDs as seen by a raw socket, failing, miscounted and evicted sockets,
// and systems that do not report the IDs.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "flow_faults.h"
#include "host_test.h"
#include "raw_ipv4.h"
#include "platform/local_addresses.h"
#include "udp/udp_wire.h"

using namespace nd;

namespace {

constexpr uint32_t kPacket = 64;
constexpr uint8_t kBth[kBthBytes] = {};

Path path4(uint32_t last) {
  Path path;
  path.source = gidOfIpv4(htonl(INADDR_LOOPBACK));
  path.destination = gidOfIpv4(htonl((INADDR_LOOPBACK & 0xff000000) + last));
  return path;
}

Path path6() {
  Path path;
  path.source.raw[15] = path.destination.raw[15] = 1;
  return path;
}

bool setMtu(int mtu) {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = mtu;
  const bool ok = ioctl(s, SIOCSIFMTU, &request) == 0;
  close(s);
  return ok;
}

struct Sender {
  HostCounters counters;
  UdpWire wire{counters};
  explicit Sender(IpFamily family = IpFamily::kV4) { HOST_CHECK(wire.open(family, 4u << 20, false) == 0); }
  ~Sender() { wire.close(); }
  // Stages a packet like that of a connection. Returns what its ICRC covers.
  IcrcHeaders stage(const Path& path, uint32_t bytes = kPacket, bool mayRun = true) {
    OutPacket packet;
    std::memset(packet.header, 0, sizeof packet.header);
    static std::vector<uint8_t> payload(4096, 7);
    packet.headerLength = kBthBytes;
    packet.payloadLength = bytes;
    packet.pieces[0] = {payload.data(), bytes};
    packet.pieceCount = 1;
    IcrcStart start;
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    const UdpWire::Way way = wire.prepare(path, packet.header, kBthBytes + bytes + kIcrcBytes, mayRun);
    headers.sourcePort = way.sourcePort;
    headers.ipv4Id = way.ipv4Id;
    const uint32_t length = gatherWithIcrc(start, wire.stage(), headers, packet);
    wire.commit(path, length, mayRun);
    return headers;
  }
  IcrcHeaders send(const Path& path, uint32_t bytes = kPacket) {
    const IcrcHeaders headers = stage(path, bytes);
    wire.flush();
    return headers;
  }
  // One packet more than the batch.
  bool alone(const Path& path) {
    uint8_t bytes[FlowIcrc::kRoom + kBthBytes + kPacket + kIcrcBytes] = {};
    return wire.sendSingle(path, bytes + FlowIcrc::kRoom, kBthBytes + kPacket, true);
  }
  // Sends until packets use the flow.
  IcrcHeaders warm(const Path& path) {
    IcrcHeaders headers;
    for (uint32_t i = 0; i < UdpFlow::kUsesBefore; i++) headers = send(path);
    drain();
    return headers;
  }
  void drain() {
    while (wire.receive(UdpWire::kReceiveBatch) != 0) continue;
  }
  uint64_t get(HostCounter counter) const { return counters.get(counter); }
};

// Returns the descriptors of connected UDP sockets of this process.
std::vector<int> connected() {
  std::vector<int> found;
  for (int fd = 3; fd < 512; fd++) {
    sockaddr_in6 peer{};
    socklen_t bytes = sizeof peer;
    int type = 0;
    socklen_t typeBytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &typeBytes) == 0 && type == SOCK_DGRAM &&
        getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0)
      found.push_back(fd);
  }
  return found;
}

void countsThroughTheWrap() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  for (uint32_t i = 1; i < UdpFlow::kUsesBefore; i++) {
    const IcrcHeaders headers = s.send(path);
    HOST_CHECK(headers.sourcePort == kRocePort && headers.ipv4Id == 0);
    HOST_CHECK(raw.sees(headers));
  }
  uint32_t wrong = 0;
  bool wrapped = false;
  for (uint32_t i = 0; i < 70000; i++) {
    const IcrcHeaders headers = s.send(path);
    wrong += headers.sourcePort == kRocePort || !raw.sees(headers);
    wrapped |= headers.ipv4Id == 0xffff;
    if (i % 64 == 0) s.drain();
  }
  HOST_CHECK(wrong == 0);
  HOST_CHECK(wrapped);
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 1);
  HOST_CHECK(s.get(HostCounter::kFlowsMiscounted) == 0);
}

// The packets of one message share an ID, which counts as one.
void runIsOneMessage() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  const uint16_t id = s.warm(path).ipv4Id;
  while (raw.next() != 0) continue;
  for (int i = 0; i < 3; i++) HOST_CHECK(s.stage(path).ipv4Id == static_cast<uint16_t>(id + 1));
  s.wire.flush();
  HOST_CHECK(raw.next(kTimeoutMs) == 28 + 3 * (kBthBytes + kPacket + kIcrcBytes));
  HOST_CHECK(raw.id() == static_cast<uint16_t>(id + 1));
  const IcrcHeaders after = s.send(path);
  HOST_CHECK(after.ipv4Id == static_cast<uint16_t>(id + 2));
  HOST_CHECK(raw.sees(after));
}

// A packet that is too long for the path fails, as does everything staged after it. After that, all is as before.
void failedSend() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  s.warm(path);
  while (raw.next() != 0) continue;
  HOST_CHECK(setMtu(1500));
  const IcrcHeaders good = s.stage(path);
  s.stage(path, 4096);
  s.stage(path, 512, false);
  HOST_CHECK(s.wire.flush() == EMSGSIZE);
  HOST_CHECK(raw.sees(good));
  HOST_CHECK(raw.seesNothing());
  HOST_CHECK(s.get(HostCounter::kTxErrors) == 1);
  HOST_CHECK(s.get(HostCounter::kTxBufferFull) == 1);
  HOST_CHECK(connected().empty());
  for (uint32_t i = 0; i < 2 * UdpFlow::kUsesBefore; i++) {
    const IcrcHeaders headers = s.send(path);
    HOST_CHECK((headers.sourcePort == kRocePort) == (i + 1 < UdpFlow::kUsesBefore));
    HOST_CHECK(raw.sees(headers));
  }
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 2);
  HOST_CHECK(setMtu(65536));
}

int flowTo(const Path& path) {
  for (const int fd : connected()) {
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes);
    if (std::memcmp(&peer.sin_addr, path.destination.raw.data() + 12, 4) == 0) return fd;
  }
  HOST_CHECK(!"a flow of this path");
  return -1;
}

// A full socket loses what is staged for it, from the first packet that finds no room, but stays open. Other sockets
// still send.
void fullSocket() {
  Sender s;
  Raw raw;
  const Path one = path4(1), two = path4(2), cold = path4(3);
  s.warm(one);
  s.warm(two);
  while (raw.next() != 0) continue;
  fullFd = flowTo(one);
  for (const int room : {0, 1, 2}) {
    const uint64_t lost = s.get(HostCounter::kTxBufferFull);
    roomFor = room;
    IcrcHeaders first[3], others[2];
    for (int i = 0; i < 3; i++) {
      first[i] = s.stage(one, kPacket, i != 2);
      if (i != 2) others[i] = s.stage(i == 0 ? two : cold);
    }
    HOST_CHECK(s.wire.flush() == EAGAIN);
    for (int i = 0; i < 3; i++) {
      if (i < room) HOST_CHECK(raw.sees(first[i]));
      if (i != 2) HOST_CHECK(raw.sees(others[i]));
    }
    HOST_CHECK(raw.seesNothing());
    HOST_CHECK(s.get(HostCounter::kTxBufferFull) == lost + 3 - static_cast<uint64_t>(room));
    roomFor = 1;
    const IcrcHeaders next = s.send(one);
    HOST_CHECK(next.sourcePort == first[0].sourcePort && next.ipv4Id == first[room].ipv4Id && raw.sees(next));
  }
  // The unconnected socket behaves in the same way.
  fullFd = s.wire.fd();
  roomFor = 0;
  s.stage(cold);
  const IcrcHeaders other = s.stage(one);
  s.stage(cold);
  HOST_CHECK(s.wire.flush() == EAGAIN);
  HOST_CHECK(raw.sees(other) && raw.seesNothing());
  fullFd = -1;
  HOST_CHECK(raw.sees(s.send(one)) && raw.sees(s.send(two)) && raw.sees(s.send(cold)));
  HOST_CHECK(connected().size() == 2 && s.get(HostCounter::kFlowsOpened) == 2 &&
             s.get(HostCounter::kFlowsMiscounted) == 0);
}

// The report on an earlier message replaces a send, whatever happened to another socket before. No packet is lost
// because of it.
void fullThenTold() {
  Sender s;
  Raw raw;
  const Path one = path4(1), two = path4(2);
  s.warm(one);
  s.warm(two);
  while (raw.next() != 0) continue;
  fullFd = flowTo(one);
  roomFor = 0;
  toldFd = flowTo(two);
  s.stage(one);
  const IcrcHeaders other = s.stage(two);
  HOST_CHECK(s.wire.flush() != 0);
  HOST_CHECK(raw.sees(other) && raw.seesNothing());
  fullFd = -1;
  HOST_CHECK(toldFd == -1 && connected().size() == 2 && s.get(HostCounter::kTxErrors) == 0);
}

// Closing the wire closes the flows. The wire can be opened again.
void closesWithTheWire() {
  Sender s;
  Raw raw;
  s.warm(path4(1));
  HOST_CHECK(connected().size() == 1);
  s.wire.close();
  HOST_CHECK(connected().empty());
  HOST_CHECK(s.wire.open(IpFamily::kV4, 1u << 20, false) == 0);
  s.warm(path4(1));
  while (raw.next() != 0) continue;
  const IcrcHeaders headers = s.send(path4(1));
  HOST_CHECK(raw.sees(headers) && headers.sourcePort != kRocePort);
}

// "Port unreachable", as for a datagram with these headers.
void sendIcmp(const IcrcHeaders& refused) {
  const UniqueFd fd(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  uint8_t packet[8 + 48] = {3, 3};
  const auto length = static_cast<uint32_t>(8 + buildHeaders(packet + 8, refused, 0, false));
  uint32_t sum = 0;
  for (uint32_t i = 0; i < length; i += 2) sum += static_cast<uint32_t>(packet[i] << 8 | packet[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  packet[2] = static_cast<uint8_t>(~sum >> 8);
  packet[3] = static_cast<uint8_t>(~sum);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  HOST_CHECK(sendto(fd.get(), packet, length, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) == length);
}

// A connected socket reports an ICMP refusal instead of sending. This costs neither a packet nor an ID.
void refusedByIcmp() {
  Sender s;
  Raw raw;
  const IcrcHeaders refused = s.warm(path4(1));
  while (raw.next() != 0) continue;
  for (int i = 0; i < 3; i++) {
    sendIcmp(refused);
    HOST_CHECK(raw.sees(s.send(path4(1))));
  }
  HOST_CHECK(s.get(HostCounter::kTxErrors) + s.get(HostCounter::kTxBufferFull) == 0);
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 1);
  int error = 0;  // set if the error is reported at all
  socklen_t bytes = sizeof error;
  sendIcmp(refused);
  HOST_CHECK(getsockopt(connected().at(0), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == ECONNREFUSED);
}

// A single packet that gets the report of an earlier refusal has used no ID. The next packet uses the same socket and
// the same ID.
void refusedAlone() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  const IcrcHeaders warm = s.warm(path);
  for (int i = 0; i < 3; i++) {
    HOST_CHECK(s.alone(path));
    while (raw.next() != 0) continue;
    sendIcmp(warm);
    HOST_CHECK(!s.alone(path));
    HOST_CHECK(raw.seesNothing());
    const IcrcHeaders next = s.send(path);
    HOST_CHECK(next.sourcePort == warm.sourcePort && next.ipv4Id == static_cast<uint16_t>(warm.ipv4Id + 2 + 2 * i));
    HOST_CHECK(raw.sees(next));
  }
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 1 && s.get(HostCounter::kTxErrors) == 0);
}

// Any other failure of its socket ends the flow. Later packets are not lost, because they use the unconnected socket
// until there is a new flow.
void failedAlone() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  s.warm(path);
  while (raw.next() != 0) continue;
  HOST_CHECK(shutdown(flowTo(path), SHUT_WR) == 0);
  HOST_CHECK(!s.alone(path));
  HOST_CHECK(connected().empty());
  const IcrcHeaders next = s.send(path);
  HOST_CHECK(next.sourcePort == kRocePort && raw.sees(next));
  HOST_CHECK(!s.alone(path));
  s.warm(path);
  while (raw.next() != 0) continue;
  HOST_CHECK(s.alone(path) && raw.next(kTimeoutMs) != 0 && raw.port() != kRocePort);
  HOST_CHECK(raw.sees(s.send(path)));
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 2 &&
             s.get(HostCounter::kTxErrors) + s.get(HostCounter::kTxBufferFull) == 0);
}

// If another program advances the ID, this is detected, and the ID is learned again.
void miscounted() {
  Sender s;
  Raw raw;
  const Path path = path4(1);
  s.warm(path);
  HOST_CHECK(connected().size() == 1);
  HOST_CHECK(send(connected()[0], "", 0, 0) == 0);
  uint32_t sent = 0;
  for (; sent < 2 * UdpFlow::kCheckEvery && s.get(HostCounter::kFlowsMiscounted) == 0; sent++) {
    s.send(path);
    if (sent % 64 == 0) s.drain();
  }
  HOST_CHECK(s.get(HostCounter::kFlowsMiscounted) == 1);
  HOST_CHECK(sent <= UdpFlow::kCheckEvery);
  s.warm(path);
  while (raw.next() != 0) continue;
  for (int i = 0; i < 100; i++) HOST_CHECK(raw.sees(s.send(path)));
  HOST_CHECK(s.get(HostCounter::kFlowsOpened) == 2);
}

void tableIsBounded() {
  Sender s;
  Raw raw;
  for (uint32_t peer = 1; peer <= UdpFlows::kMost; peer++) s.warm(path4(peer));
  HOST_CHECK(connected().size() == UdpFlows::kMost);
  while (raw.next() != 0) continue;
  for (uint32_t peer = 2; peer <= UdpFlows::kMost; peer++) s.send(path4(peer));
  while (raw.next() != 0) continue;
  // The oldest flow is evicted, but not before everything staged for it has left.
  const IcrcHeaders staged = s.stage(path4(2));
  for (uint32_t peer = 3; peer <= UdpFlows::kMost; peer++) s.wire.prepare(path4(peer), kBth, kPacket, true);
  HOST_CHECK(raw.seesNothing());
  s.wire.prepare(path4(101), kBth, kPacket, true);  // evicts the flow of path 1
  HOST_CHECK(raw.sees(staged));
  s.stage(path4(101));
  s.wire.flush();
  for (uint32_t peer = 200; peer < 250; peer++) s.warm(path4(peer));
  HOST_CHECK(connected().size() == UdpFlows::kMost);
  s.warm(path4(1));
  while (raw.next() != 0) continue;
  const IcrcHeaders again = s.send(path4(1));
  HOST_CHECK(again.sourcePort != kRocePort);
  HOST_CHECK(raw.sees(again));
  HOST_CHECK(s.get(HostCounter::kTxBufferFull) == 0);
}

// Each path has its own socket, with the traffic class and hop limit of the path.
void fieldsOfThePath() {
  Sender s;
  Raw raw;
  Path marked = path4(1);
  marked.trafficClass = 0x68;
  marked.hopLimit = 7;
  s.warm(path4(1));
  s.warm(marked);
  while (raw.next() != 0) continue;
  HOST_CHECK(connected().size() == 2);
  HOST_CHECK(raw.sees(s.send(marked)));
  HOST_CHECK(raw.bytes[1] == 0x68 && raw.bytes[8] == 7);
  HOST_CHECK(raw.sees(s.send(path4(1))));
  HOST_CHECK(raw.bytes[1] == 0 && raw.bytes[8] == 64);
  // IPv4 has no flow label, so labels need no sockets of their own. The passive side of a connection has its peer's
  // label.
  Path labelled = path4(1);
  labelled.flowLabel = 5;
  const IcrcHeaders headers = s.send(labelled);
  HOST_CHECK(raw.sees(headers) && headers.sourcePort != kRocePort);
  HOST_CHECK(connected().size() == 2);
}

void ipv6() {
  Sender s(IpFamily::kV6);
  for (const uint32_t label : {0u, 5u, 0xfffffu}) {
    Path path = path6();
    path.flowLabel = label;
    IcrcHeaders headers = s.warm(path);
    HOST_CHECK(headers.sourcePort != kRocePort);
    for (int i = 0; i < 3; i++) {
      headers = s.send(path);
      if (s.wire.receive(1) != 1) return HOST_CHECK(!"a datagram came");
      const UdpWire::Datagram d = s.wire.datagram(0);
      HOST_CHECK(d.sourcePort == headers.sourcePort && d.meta.destination == path.destination);
      HOST_CHECK(label == 0 || d.meta.flowLabel == label);
      HOST_CHECK(icrcOf(headers, d.bytes, d.length - kIcrcBytes) == loadIcrc(d.bytes + d.length - kIcrcBytes));
    }
  }
  HOST_CHECK(connected().size() == 3);
}

// Without a free descriptor, or on a system that does not report the IDs, packets use the unconnected socket.
void staysUnconnected(const char* why) {
  Sender s;
  Raw raw;
  while (raw.next() != 0) continue;
  if (std::strcmp(why, "descriptors") == 0) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(dup(0)) + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
  } else {
    sock_filter program[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                             {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_setsockopt},
                             {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, args[2])},
                             {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SO_TIMESTAMPING},
                             {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOPROTOOPT},
                             {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    sock_fprog filter{6, program};
    HOST_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
  }
  for (uint32_t i = 0; i < 3 * UdpFlow::kUsesBefore; i++) {
    const IcrcHeaders headers = s.send(path4(1));
    HOST_CHECK(headers.sourcePort == kRocePort && headers.ipv4Id == 0);
    HOST_CHECK(raw.sees(headers));
  }
  HOST_CHECK(s.get(HostCounter::kFlowsRefused) == 1);
}

void inChild(const char* why) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    hosttest::failures = 0;
    staysUnconnected(why);
    _exit(hosttest::failures != 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main() {
  if (!hosttest::privateNetwork()) {
    std::printf("host_flow: skipped, it needs a network namespace of its own\n");
    return 0;
  }
  if (!Raw().fd.valid()) {
    std::printf("host_flow: skipped, no raw socket here to observe IPv4 IDs\n");
    return 0;
  }
  countsThroughTheWrap();
  runIsOneMessage();
  failedSend();
  fullSocket();
  fullThenTold();
  miscounted();
  closesWithTheWire();
  refusedByIcmp();
  refusedAlone();
  failedAlone();
  tableIsBounded();
  fieldsOfThePath();
  ipv6();
  inChild("descriptors");
  inChild("timestamps");
  return hosttest::finish("host_flow");
}
