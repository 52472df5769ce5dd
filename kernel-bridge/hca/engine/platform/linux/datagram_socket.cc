#include "platform/datagram_socket.h"

#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/icrc.h"
#include "base/packet_headers.h"
#include "platform/linux/socket_options.h"
#include "platform/linux/udp_control.h"
#include "platform/local_addresses.h"

namespace nd {
namespace {

constexpr size_t kMaxLinkHeader = 64;  // before the IP header of a looped-back datagram
constexpr uint32_t kMostReturned = 8;  // maximum number of looped-back datagrams left unread
// An index that no socket of the group has. Linux then chooses by the datagram's addresses and ports.
constexpr uint32_t kAnyIndex = 0xffff;

UniqueFd makeSocket(IpFamily family) {
  return UniqueFd(socket(familyOf(family), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
}

int bindToAll(int s, IpFamily family, uint16_t port) {
  Gid any;
  if (family == IpFamily::kV4) any = gidOfIpv4(htonl(INADDR_ANY));
  SocketAddress address;
  const socklen_t bytes = socketAddress(any, port, 0, &address);
  return bind(s, &address.any, bytes) == 0 ? 0 : errno;
}

bool setReportsDestinations(int s, bool v4, bool on) {
  return v4 ? setInt(s, IPPROTO_IP, IP_PKTINFO, on) : setInt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, on);
}

bool setShares(int s) { return setInt(s, SOL_SOCKET, SO_REUSEPORT, 1); }

// Sets the options by which a receiving socket reports header fields.
bool setReceives(int s, bool v4) {
  return (v4 ? setInt(s, IPPROTO_IP, IP_RECVTOS, 1) && setInt(s, IPPROTO_IP, IP_RECVTTL, 1) &&
                   setInt(s, IPPROTO_IP, IP_MULTICAST_ALL, 0)  // only on interfaces where this socket joined
             : setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) && setInt(s, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
                   setInt(s, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
                   setInt(s, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)) &&  // otherwise datagrams with checksum 0 are never
                                                                    // received
         setReportsDestinations(s, v4, true);
}

// These options are missing in older kernels.
void setReceivesMore(int s, bool v4) {
  if (v4) return;
  setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);  // otherwise also those of groups joined by other sockets
  setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
}

// Disables fragmentation.
bool setSends(int s, bool v4, int hopLimit) {
  return v4 ? setInt(s, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) && setInt(s, IPPROTO_IP, IP_TTL, hopLimit)
            : setInt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
                  setInt(s, IPPROTO_IPV6, IPV6_DONTFRAG, 1) && setInt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hopLimit);
}

bool setSendsToGroups(int s, bool v4, int hopLimit) {
  return v4 ? setInt(s, IPPROTO_IP, IP_MULTICAST_TTL, hopLimit) && setInt(s, IPPROTO_IP, IP_MULTICAST_LOOP, 1)
            : setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hopLimit) && setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
}

sock_filter instruction(uint16_t code, uint8_t onTrue, uint8_t onFalse, uint32_t k) {
  return sock_filter{code, onTrue, onFalse, k};
}

}  // namespace

int DatagramSocket::use(UniqueFd fd, IpFamily family) {
  fd_ = std::move(fd);
  family_ = family;
  return 0;
}

bool portsAreShared() { return true; }
int DatagramSocket::openBeside(IpFamily, uint32_t) { return ENOTSUP; }

int DatagramSocket::openShared(IpFamily family, uint16_t port, uint32_t bufferBytes, bool joined, bool first) {
  close();
  UniqueFd fd = makeSocket(family);
  if (!fd.valid()) return errno;
  const int s = fd.get();
  const bool v4 = family == IpFamily::kV4;
  // For an unconnected socket with DF, Linux sends IPv4 ID 0.
  if (!setReceives(s, v4) || !setSends(s, v4, kDefaultHopLimit) || !setSendsToGroups(s, v4, kDefaultHopLimit))
    return errno;
  if (joined) setInt(s, IPPROTO_UDP, UDP_GRO, 1);  // older kernels deliver datagrams one by one
  setReceivesMore(s, v4);
  labels_ = !v4 && setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  setReceiveBuffer(s, bufferBytes);
  setSendBuffer(s, bufferBytes);
  if (!first && !setShares(s)) return errno;
  if (const int error = bindToAll(s, family, port)) return error;
  if (first && !setShares(s)) return errno;
  return use(std::move(fd), family);
}

// Bound to all addresses, the socket is the last of the port's group, and connecting removes it from the group. Bound
// to one address, it would receive everything for that address until it is connected.
int DatagramSocket::openListener(IpFamily family, uint16_t port, uint32_t bufferBytes) {
  close();
  UniqueFd fd = makeSocket(family);
  if (!fd.valid()) return errno;
  const int s = fd.get();
  const bool v4 = family == IpFamily::kV4;
  if (!setShares(s) || !setReceives(s, v4) || !setInt(s, IPPROTO_UDP, UDP_GRO, 1)) return errno;
  setReceivesMore(s, v4);
  setReceiveBuffer(s, bufferBytes);
  const int error = bindToAll(s, family, port);
  return error != 0 ? error : use(std::move(fd), family);
}

bool DatagramSocket::hearOnly(const Gid& sender, uint16_t senderPort, const Gid& own) {
  SocketAddress peer, found{}, wanted;
  const socklen_t peerBytes = socketAddress(sender, senderPort, 0, &peer);
  if (connect(fd(), &peer.any, peerBytes) != 0) return false;
  socklen_t bytes = sizeof found;
  socketAddress(own, 0, 0, &wanted);
  if (getsockname(fd(), &found.any, &bytes) != 0) return false;
  // Linux chooses the source address.
  return family_ == IpFamily::kV4
             ? found.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr
             : std::memcmp(&found.v6.sin6_addr, &wanted.v6.sin6_addr, sizeof wanted.v6.sin6_addr) == 0;
}

void DatagramSocket::reportDestinations(bool on) { setReportsDestinations(fd(), family_ == IpFamily::kV4, on); }

int DatagramSocket::openSender(const Path& path, uint16_t port, uint32_t bufferBytes) {
  close();
  const bool v4 = path.destination.isV4();
  const IpFamily family = v4 ? IpFamily::kV4 : IpFamily::kV6;
  UniqueFd fd = makeSocket(family);
  if (!fd.valid()) return errno;
  const int s = fd.get();
  const bool ok =
      setSends(s, v4, path.hopLimit == 0 ? kDefaultHopLimit : path.hopLimit) &&
      (v4 ? setInt(s, IPPROTO_IP, IP_TOS, path.trafficClass) &&
                setInt(s, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE)
          : setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) && setInt(s, IPPROTO_IPV6, IPV6_TCLASS, path.trafficClass) &&
                (path.flowLabel == 0 || setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)));
  if (!ok) return errno;
  setSendBuffer(s, bufferBytes);
  SocketAddress source, destination;
  const socklen_t sourceBytes = socketAddress(path.source, 0, path.scopeId, &source);
  if (bind(s, &source.any, sourceBytes) != 0) return errno;
  const socklen_t destinationBytes = socketAddress(path.destination, port, path.scopeId, &destination);
  if (!v4) destination.v6.sin6_flowinfo = htonl(path.flowLabel & kFlowLabelMask);  // 0: chosen by Linux
  if (connect(s, &destination.any, destinationBytes) != 0) return errno;
  socklen_t bytes = sizeof source;
  if (getsockname(s, &source.any, &bytes) != 0) return errno;
  port_ = ntohs(v4 ? source.v4.sin_port : source.v6.sin6_port);
  return use(std::move(fd), family);
}

int DatagramSocket::changeGroup(bool join, const Gid& group, uint32_t interface) {
  int result;
  if (family_ == IpFamily::kV4) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, group.raw.data() + 12, 4);
    request.imr_ifindex = static_cast<int>(interface);
    result = setsockopt(fd(), IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request, sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.raw.data(), 16);
    request.ipv6mr_interface = interface;
    result = setsockopt(fd(), IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request, sizeof request);
  }
  return result == 0 ? 0 : errno;
}

void setSharingRule(Descriptor socket, const SharingRule& rule) {
  std::vector<sock_filter> program;
  program.push_back(instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, rule.at));
  program.push_back(instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, rule.direct));
  program.push_back(instruction(BPF_LD | BPF_B | BPF_ABS, 0, 0, rule.directAt));
  program.push_back(instruction(BPF_RET | BPF_A, 0, 0, 0));
  for (uint32_t value = 0; value < rule.values; value++) {
    if (rule.indexes[value] == SharingRule::kNoIndex) continue;
    program.push_back(instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value));
    program.push_back(instruction(BPF_RET | BPF_K, 0, 0, rule.indexes[value]));
  }
  program.push_back(instruction(BPF_RET | BPF_K, 0, 0, kAnyIndex));
  sock_fprog attachment{static_cast<unsigned short>(program.size()), program.data()};
  setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attachment,
             sizeof attachment);  // refused by seccomp, or an old kernel
}

// The number follows from the memory, since Linux charges at least its headers and a share of a page for each datagram.
uint32_t DatagramSocket::queuedAtMost() const {
  constexpr uint32_t kLeastBytes = 512;
  uint32_t memory[SK_MEMINFO_VARS] = {};
  socklen_t length = sizeof memory;
  if (getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, memory, &length) != 0) return UINT32_MAX;
  return (memory[SK_MEMINFO_RMEM_ALLOC] + kLeastBytes - 1) / kLeastBytes;
}

bool DatagramSocket::hasDatagram() const {
  char none;
  return recv(fd(), &none, 0, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

// send() is a cancellation point, which the C library marks with locked instructions before and after each call as soon
// as there are threads. The sanitizers, however, see only buffers of the library's own calls.
int DatagramSocket::send(const void* bytes, uint32_t length) const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return ::send(fd(), bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
#else
  return syscall(SYS_sendto, fd(), bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0) < 0 ? errno : 0;
#endif
}

// Sends an empty datagram, which receivers drop silently, and gets it back with its headers. On this host it is
// available as soon as it has been sent.
bool DatagramSocket::learnId(const Path& path, uint16_t* id) const {
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint32_t))] = {};
  msghdr message{};
  message.msg_control = control;
  appendControl(&message, SOL_SOCKET, SO_TIMESTAMPING, uint32_t{SOF_TIMESTAMPING_TX_SCHED});
  return sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 && takeId(path, id);
}

bool DatagramSocket::takeId(const Path& path, uint16_t* id) const {
  uint8_t ours[8], ports[4] = {static_cast<uint8_t>(port_ >> 8), static_cast<uint8_t>(port_),
                               static_cast<uint8_t>(kRocePort >> 8), static_cast<uint8_t>(kRocePort & 0xff)};
  std::memcpy(ours, path.source.raw.data() + 12, 4);
  std::memcpy(ours + 4, path.destination.raw.data() + 12, 4);
  bool found = false;
  for (uint32_t i = 0; i < kMostReturned; i++) {
    uint8_t bytes[kMaxLinkHeader + kIp4Bytes + kUdpBytes];
    alignas(cmsghdr) uint8_t control[256];
    iovec piece = {bytes, sizeof bytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (n < 0) break;
    for (ssize_t at = 0; at + static_cast<ssize_t>(kIp4Bytes + kUdpBytes) <= n; at++) {
      const uint8_t* header = bytes + at;
      if (header[0] != ip::kVersionAndLength || header[ip::kProtocolAt] != IPPROTO_UDP ||
          std::memcmp(header + ip::kSourceAt, ours, 8) != 0 ||
          std::memcmp(header + kIp4Bytes, ports, sizeof ports) != 0)
        continue;
      *id = static_cast<uint16_t>(wire::load16(header + ip::kIdAt));
      found = true;
      break;
    }
  }
  return found;
}

}  // namespace nd
