// Tests that a member that joins the RoCEv2 group leaves the group's steering unchanged until it has learned the order
// of its members.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>

#include "host_test.h"
#include "udp/steering.h"

namespace {

int member() {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(4791);
  return bind(s, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 ? s : -1;
}

// Sends packets from many ports, which the OS alone would spread; returns how many arrived at `to`.
int arrivedAt(int to, int count) {
  sockaddr_in group{};
  group.sin_family = AF_INET;
  group.sin_port = htons(4791);
  group.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < count; i++) {
    const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const uint8_t packet[32] = {4, 0, 0, 0, 0, 1};  // a packet for slot 1
    HOST_CHECK(sendto(s, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&group), sizeof group) == 32);
    close(s);
  }
  uint8_t bytes[64];
  int n = 0;
  for (pollfd waited = {to, POLLIN, 0}; n < count && poll(&waited, 1, kTimeoutMs) == 1; n++)
    if (recv(to, bytes, sizeof bytes, 0) <= 0) break;
  return n;
}

int probes = 0;
void countProbe(void*, const nd::SteeringProbe&) { probes++; }

}  // namespace

int main() {
  hosttest::privateNetwork();
  const int first = member(), second = member();
  HOST_CHECK(first >= 0 && second >= 0);
  sock_filter toSecond[] = {{BPF_RET | BPF_K, 0, 0, 1}};
  sock_fprog program{1, toSecond};
  HOST_CHECK(setsockopt(first, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0);
  HOST_CHECK(arrivedAt(second, 32) == 32);

  const int third = member();
  nd::HostCounters counters;
  nd::Steering steering(counters, countProbe, nullptr);
  uint64_t now = 1'000'000'000;
  steering.start(third, 2, now);
  HOST_CHECK(probes > 0);
  HOST_CHECK(arrivedAt(second, 32) == 32);
  // No reply arrives, because the other program does not know probes. The next attempt installs the rule for them.
  const int before = probes;
  steering.onTime(now = steering.deadline());
  HOST_CHECK(probes > before);
  // No reply arrives then, either. There are no more attempts, and the OS spreads the packets.
  const int after = probes;
  steering.onTime(now = steering.deadline());
  HOST_CHECK(probes == after && steering.deadline() == UINT64_MAX);
  return hosttest::finish("host_steering");
}
