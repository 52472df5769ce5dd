#include "platform/windows/udp_socket.h"

#include "platform/datagram_socket.h"

#include <algorithm>
#include <cerrno>

#include "platform/network_interfaces.h"
#include "platform/local_addresses.h"
#include "platform/raw_socket.h"
#include "platform/readiness.h"
#include "platform/windows/error_text.h"

namespace nd {

bool socketsReady() {
  static const bool ready = [] {
    WSADATA data;
    return WSAStartup(MAKEWORD(2, 2), &data) == 0;
  }();
  return ready;
}

namespace {

constexpr int kDontFragment = 14;                             // IP_DONTFRAGMENT and IPV6_DONTFRAG
constexpr DWORD kConnectionReset = IOC_IN | IOC_VENDOR | 12;  // SIO_UDP_CONNRESET

template <typename Function>
bool findExtension(SOCKET socket, GUID id, Function* function) {
  DWORD bytes = 0;
  return WSAIoctl(socket, SIO_GET_EXTENSION_FUNCTION_POINTER, &id, sizeof id, function, sizeof *function, &bytes,
                  nullptr, nullptr) == 0;
}

int lastError() { return errnoOf(static_cast<unsigned long>(WSAGetLastError())); }

}  // namespace

// ── The descriptor ──────────────────────────────────────────────────────────────────────────────────────────

UdpSocket::UdpSocket() : signal_(std::make_shared<Signal>(WSACreateEvent())) {}

UdpSocket::~UdpSocket() {
  if (socket != INVALID_SOCKET) closesocket(socket);
}

int UdpSocket::open(int family) {
  if (!socketsReady()) return ENOBUFS;
  socket = WSASocketW(family, SOCK_DGRAM, IPPROTO_UDP, nullptr, 0, WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
  if (socket == INVALID_SOCKET) return lastError();
  if (!findExtension(socket, WSAID_WSASENDMSG, &sendMessage) ||
      !findExtension(socket, WSAID_WSARECVMSG, &receiveMessage))
    return ENOTSUP;
  // Without this, a receiving call fails when an earlier datagram was undeliverable.
  BOOL off = FALSE;
  DWORD bytes = 0;
  WSAIoctl(socket, kConnectionReset, &off, sizeof off, nullptr, 0, &bytes, nullptr, nullptr);
  // The socket is non-blocking from now on.
  return signal_->handle != nullptr && WSAEventSelect(socket, signal_->handle, FD_READ) == 0 ? 0 : lastError();
}

uint32_t UdpSocket::readyKinds(uint32_t kinds, bool signalled) {
  if (signalled) {
    WSANETWORKEVENTS events;
    WSAEnumNetworkEvents(socket, signal_->handle,
                         &events);  // resets the signal; receiving makes Windows set it again
    filled_.store(true, std::memory_order_relaxed);
  }
  return filled_.load(std::memory_order_relaxed) ? kinds & Readiness::kReadable : 0;
}

bool UdpSocket::waits(uint32_t kinds) const {
  return (kinds & Readiness::kReadable) == 0 || !filled_.load(std::memory_order_relaxed);
}

// ── Opening ─────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

bool setReceives(UdpSocket& s, bool v4) {
  if (!(v4 ? s.setInt(IPPROTO_IP, IP_PKTINFO, 1)
           : s.setInt(IPPROTO_IPV6, IPV6_V6ONLY, 1) && s.setInt(IPPROTO_IPV6, IPV6_PKTINFO, 1)))
    return false;
  // These options are missing in older versions of Windows. Without them, congestion marks are not seen.
  if (v4) {
    s.setInt(IPPROTO_IP, IP_RECVTOS, 1);
    s.setInt(IPPROTO_IP, IP_RECVTTL, 1);
  } else {
    s.setInt(IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    s.setInt(IPPROTO_IPV6, IPV6_HOPLIMIT, 1);
  }
  return true;
}

bool setSends(UdpSocket& s, bool v4, int hopLimit) {
  const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (!s.setInt(level, kDontFragment, 1)) return false;
  return v4 ? s.setInt(level, IP_TTL, hopLimit) && s.setInt(level, IP_MULTICAST_TTL, hopLimit) &&
                  s.setInt(level, IP_MULTICAST_LOOP, 1)
            : s.setInt(level, IPV6_UNICAST_HOPS, hopLimit) && s.setInt(level, IPV6_MULTICAST_HOPS, hopLimit) &&
                  s.setInt(level, IPV6_MULTICAST_LOOP, 1);
}

}  // namespace

int DatagramSocket::use(UniqueFd fd, IpFamily family) {
  fd_ = std::move(fd);
  family_ = family;
  return 0;
}

// Windows does not define which of several sockets on a port receives a datagram.
bool portsAreShared() { return false; }

int DatagramSocket::openBeside(IpFamily family, uint32_t bufferBytes) {
  if (const int error = openShared(family, 0, bufferBytes, false, true)) return error;
  SocketAddress own;
  int bytes = sizeof own;
  if (getsockname(udpOf(fd()).socket, &own.any, &bytes) != 0) {
    const int error = lastError();
    close();
    return error;
  }
  port_ = ntohs(family == IpFamily::kV4 ? own.v4.sin_port : own.v6.sin6_port);
  return 0;
}

int DatagramSocket::openShared(IpFamily family, uint16_t port, uint32_t bufferBytes, bool joined, bool) {
  close();
  const bool v4 = family == IpFamily::kV4;
  auto made = std::make_unique<UdpSocket>();
  UdpSocket& s = *made;
  if (const int error = s.open(v4 ? AF_INET : AF_INET6)) return error;
  if (!s.setInt(SOL_SOCKET, SO_EXCLUSIVEADDRUSE, 1) || !setReceives(s, v4) || !setSends(s, v4, kDefaultHopLimit))
    return lastError();
  s.cuts = s.setInt(IPPROTO_UDP, UDP_SEND_MSG_SIZE, 0);
  if (joined) s.setInt(IPPROTO_UDP, UDP_RECV_MAX_COALESCED_SIZE, DatagramsIn::kBytes - 1);
  const int wanted = static_cast<int>(std::min<uint32_t>(bufferBytes, INT32_MAX / 2));
  s.setInt(SOL_SOCKET, SO_RCVBUF, wanted);
  s.setInt(SOL_SOCKET, SO_SNDBUF, wanted);
  Gid any;
  if (v4) any = gidOfIpv4(0);
  SocketAddress address;
  const int bytes = socketAddress(any, port, 0, &address);
  if (bind(s.socket, &address.any, bytes) != 0) {
    const int error = lastError();
    return error == EACCES ? EADDRINUSE : error;  // another process has it exclusively
  }
  return use(descriptorOf(std::unique_ptr<Object>(std::move(made))), family);
}

// Sockets for one sender or one destination would need features that Windows lacks: two sockets that share a port with
// a defined order, and predictable IDs.
int DatagramSocket::openListener(IpFamily, uint16_t, uint32_t) { return ENOTSUP; }
bool DatagramSocket::hearOnly(const Gid&, uint16_t, const Gid&) { return false; }
void DatagramSocket::reportDestinations(bool) {}
int DatagramSocket::openSender(const Path&, uint16_t, uint32_t) { return ENOTSUP; }
int DatagramSocket::send(const void*, uint32_t) const { return ENOTSUP; }
bool DatagramSocket::learnId(const Path&, uint16_t*) const { return false; }
bool DatagramSocket::takeId(const Path&, uint16_t*) const { return false; }
void setSharingRule(Descriptor, const SharingRule&) {}
// A Windows raw socket receives UDP only in a mode that captures all packets of the adapter.
int openRawSocket(uint32_t, UniqueFd*) { return ENOTSUP; }
int divideRoce(Descriptor, Descriptor, uint32_t) { return ENOTSUP; }

int DatagramSocket::changeGroup(bool join, const Gid& group, uint32_t interface) {
  UdpSocket& s = udpOf(fd());
  const auto set = [&](int level, int option, const auto& request) {
    return setsockopt(s.socket, level, option, reinterpret_cast<const char*>(&request), sizeof request) == 0
               ? 0
               : lastError();
  };
  if (family_ == IpFamily::kV6) {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.raw.data(), 16);
    request.ipv6mr_interface = interface;
    return set(IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, request);
  }
  // The interface is given by one of its addresses, because not every version accepts its index.
  std::vector<NetworkInterface> all;
  if (const int error = listInterfaces(&all)) return error;
  for (const NetworkInterface& one : all) {
    if (one.index != interface) continue;
    for (const InterfaceAddress& own : one.addresses) {
      if (!own.v4) continue;
      ip_mreq request{};
      std::memcpy(&request.imr_multiaddr, group.raw.data() + 12, 4);
      std::memcpy(&request.imr_interface, own.gid.raw.data() + 12, 4);
      return set(IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, request);
    }
    return EADDRNOTAVAIL;
  }
  return ENODEV;
}

uint32_t DatagramSocket::queuedAtMost() const { return hasDatagram() ? UINT32_MAX : 0; }

bool DatagramSocket::hasDatagram() const {
  char first;
  return recv(udpOf(fd()).socket, &first, sizeof first, MSG_PEEK) >= 0 || WSAGetLastError() == WSAEMSGSIZE;
}

}  // namespace nd
