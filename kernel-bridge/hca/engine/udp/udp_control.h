// Options and control messages of sockets that receive datagrams.
#pragma once
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "platform/local_addresses.h"
#include "udp/udp_wire.h"

// Absent from some libc headers: Linux ≥ 3.16, 4.20, 4.18 and 5.0.
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace nd {

// Without waiting. recv() and send() are points of cancellation, which the system library marks by locked instructions before and
// after each call as soon as there are threads. The sanitizers, though, see the buffers of the library's calls only.
inline ssize_t receiveNow(int fd, void* bytes, size_t room) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return recv(fd, bytes, room, MSG_DONTWAIT);
#else
  return syscall(SYS_recvfrom, fd, bytes, room, MSG_DONTWAIT, nullptr, nullptr);
#endif
}
inline ssize_t sendNow(int fd, const void* bytes, size_t length) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
#else
  return syscall(SYS_sendto, fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
#endif
}

inline bool setInt(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// Only with privileges may a buffer exceed the system's limit; both are wishes.
inline void setReceiveBuffer(int fd, uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<uint32_t>(bytes, INT32_MAX / 2));
  if (!setInt(fd, SOL_SOCKET, SO_RCVBUFFORCE, wanted)) setInt(fd, SOL_SOCKET, SO_RCVBUF, wanted);
}
inline void setSendBuffer(int fd, uint32_t bytes) {
  const int wanted = static_cast<int>(std::min<uint32_t>(bytes, INT32_MAX / 2));
  if (!setInt(fd, SOL_SOCKET, SO_SNDBUFFORCE, wanted)) setInt(fd, SOL_SOCKET, SO_SNDBUF, wanted);
}

template <typename T>
T controlValue(const cmsghdr* header) {
  T value;
  std::memcpy(&value, CMSG_DATA(header), sizeof value);
  return value;
}

// What control messages say of a datagram, beside its own fields.
struct Arrival {
  bool known = false;      // its destination
  uint32_t interface = 0;  // and where it came in
};

inline Arrival readControl(msghdr& message, UdpWire::Datagram* d) {
  Arrival a;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      const auto info = controlValue<in_pktinfo>(c);
      d->meta.destination = gidOfIpv4(info.ipi_addr.s_addr);
      a.interface = static_cast<uint32_t>(info.ipi_ifindex);
      a.known = true;
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      d->meta.trafficClass = controlValue<uint8_t>(c);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
      d->meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      const auto info = controlValue<in6_pktinfo>(c);
      std::memcpy(d->meta.destination.raw.data(), &info.ipi6_addr, 16);
      a.interface = info.ipi6_ifindex;
      a.known = true;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      d->meta.trafficClass = static_cast<uint8_t>(controlValue<int>(c));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT) {
      d->meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_FLOWINFO) {
      d->meta.flowLabel = ntohl(controlValue<uint32_t>(c)) & kFlowLabelMask;
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      const int segment = controlValue<int>(c);
      if (segment > 0 && static_cast<uint32_t>(segment) < d->length) d->segment = static_cast<uint32_t>(segment);
    }
  }
  return a;
}

}  // namespace nd
