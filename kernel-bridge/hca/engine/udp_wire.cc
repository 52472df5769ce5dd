#include "udp_wire.h"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

#include "local_addresses.h"

// Linux ≥ 3.16; absent from some libc headers.
#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

namespace nd {
namespace {

constexpr int kDefaultHopLimit = 64;
constexpr size_t kControlBytes = 160;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

struct Control {
  alignas(cmsghdr) uint8_t bytes[kControlBytes];
};

bool setInt(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

template <typename T>
void appendControl(msghdr* message, int level, int type, const T& value) {
  auto* header = reinterpret_cast<cmsghdr*>(static_cast<uint8_t*>(message->msg_control) + message->msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(header), &value, sizeof(T));
  message->msg_controllen += CMSG_SPACE(sizeof(T));
}

template <typename T>
T controlValue(const cmsghdr* header) {
  T value;
  std::memcpy(&value, CMSG_DATA(header), sizeof value);
  return value;
}

}  // namespace

struct UdpWire::Buffers {
  struct Side {
    mmsghdr messages[kBatch];
    iovec pieces[kBatch];
    Address addresses[kBatch];
    Control control[kBatch];
    alignas(64) uint8_t bytes[kBatch][kMaxDatagram];
  };
  Side out{}, in{};
  Buffers() {
    for (Side* side : {&out, &in}) {
      for (uint32_t i = 0; i < kBatch; i++) {
        side->pieces[i] = {side->bytes[i], kMaxDatagram};
        msghdr& m = side->messages[i].msg_hdr;
        m.msg_name = &side->addresses[i];
        m.msg_iov = &side->pieces[i];
        m.msg_iovlen = 1;
        m.msg_control = side->control[i].bytes;
      }
    }
  }
};

void UdpWire::BuffersDeleter::operator()(Buffers* buffers) const { delete buffers; }

int UdpWire::open(int family, uint32_t receiveBufferBytes) {
  UniqueFd fd(socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd.valid()) return errno;
  const int s = fd.get();
  bool ok = setInt(s, SOL_SOCKET, SO_REUSEPORT, 1);
  if (family == AF_INET) {
    // Unconnected with DF: Linux then sends IPv4 ID 0, which the ICRC covers. No fragments.
    ok = ok && setInt(s, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) && setInt(s, IPPROTO_IP, IP_PKTINFO, 1) &&
         setInt(s, IPPROTO_IP, IP_RECVTOS, 1) && setInt(s, IPPROTO_IP, IP_RECVTTL, 1) &&
         setInt(s, IPPROTO_IP, IP_TTL, kDefaultHopLimit);
    setInt(s, SOL_SOCKET, SO_NO_CHECK, 1);  // the ICRC does it; the checksum 0 is what hardware sends
  } else {
    ok = ok && setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) && setInt(s, IPPROTO_IPV6, IPV6_DONTFRAG, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && setInt(s, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kDefaultHopLimit) &&
         setInt(s, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // else packets with checksum 0 never arrive
    setInt(s, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
  }
  if (!ok) return errno;
  // Only with privileges may a buffer exceed the system's limit; both are wishes.
  const int wanted = receiveBufferBytes > INT32_MAX / 2 ? INT32_MAX / 2 : static_cast<int>(receiveBufferBytes);
  if (!setInt(s, SOL_SOCKET, SO_RCVBUFFORCE, wanted)) setInt(s, SOL_SOCKET, SO_RCVBUF, wanted);
  if (!setInt(s, SOL_SOCKET, SO_SNDBUFFORCE, wanted)) setInt(s, SOL_SOCKET, SO_SNDBUF, wanted);

  Address address{};
  socklen_t addressBytes;
  if (family == AF_INET) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(kRocePort);
    addressBytes = sizeof address.v4;
  } else {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(kRocePort);
    addressBytes = sizeof address.v6;
  }
  if (bind(s, &address.any, addressBytes) != 0) return errno;
  if (!buffers_) buffers_.reset(new Buffers());
  family_ = family;
  staged_ = 0;
  fd_ = std::move(fd);
  return 0;
}

void UdpWire::close() { fd_.reset(); }

uint8_t* UdpWire::stage() {
  if (staged_ == kBatch) flush();
  return buffers_->out.bytes[staged_];
}

void UdpWire::commit(const Path& path, uint32_t length) {
  Buffers::Side& out = buffers_->out;
  const uint32_t i = staged_++;
  out.pieces[i].iov_len = length;
  msghdr& m = out.messages[i].msg_hdr;
  m.msg_controllen = 0;
  Address& to = out.addresses[i];
  const int trafficClass = path.trafficClass, hopLimit = path.hopLimit;
  const bool ownHopLimit = hopLimit != 0 && hopLimit != kDefaultHopLimit;
  if (family_ == AF_INET) {
    to.v4 = {};
    to.v4.sin_family = AF_INET;
    to.v4.sin_port = htons(kRocePort);
    std::memcpy(&to.v4.sin_addr, path.destination.raw.data() + 12, 4);
    m.msg_namelen = sizeof to.v4;
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, path.source.raw.data() + 12, 4);
    appendControl(&m, IPPROTO_IP, IP_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IP, IP_TOS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IP, IP_TTL, hopLimit);
  } else {
    to.v6 = {};
    to.v6.sin6_family = AF_INET6;
    to.v6.sin6_port = htons(kRocePort);
    to.v6.sin6_scope_id = path.scopeId;
    std::memcpy(&to.v6.sin6_addr, path.destination.raw.data(), 16);
    m.msg_namelen = sizeof to.v6;
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, path.source.raw.data(), 16);
    info.ipi6_ifindex = path.scopeId;
    appendControl(&m, IPPROTO_IPV6, IPV6_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IPV6, IPV6_TCLASS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IPV6, IPV6_HOPLIMIT, hopLimit);
  }
}

int UdpWire::flush() {
  int lastError = 0;
  uint32_t done = 0;
  bool retried = false;
  while (done < staged_) {
    const int n = sendmmsg(fd_.get(), buffers_->out.messages + done, staged_ - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      done += static_cast<uint32_t>(n);
      counters_.add(HostCounter::kWireTxPackets, static_cast<uint64_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    lastError = errno;
    if (errno == EAGAIN || errno == ENOBUFS) {
      // Sent packets give the buffer back at their own pace; waiting is not ours to do, and transports retry.
      if (!retried) {
        retried = true;
        continue;
      }
      counters_.add(HostCounter::kTxBufferFull, staged_ - done);
      break;
    }
    counters_.add(HostCounter::kTxErrors);  // this packet only: no route, too long for the path, not our address
    done++;
  }
  staged_ = 0;
  return lastError;
}

uint32_t UdpWire::receive(uint32_t budget) {
  Buffers::Side& in = buffers_->in;
  const uint32_t count = budget < kBatch ? budget : kBatch;
  for (uint32_t i = 0; i < count; i++) {
    msghdr& m = in.messages[i].msg_hdr;
    m.msg_namelen = sizeof(Address);
    m.msg_controllen = kControlBytes;
    m.msg_flags = 0;
  }
  int n;
  do {
    n = recvmmsg(fd_.get(), in.messages, count, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return 0;
  counters_.add(HostCounter::kWireRxPackets, static_cast<uint64_t>(n));
  return static_cast<uint32_t>(n);
}

UdpWire::Datagram UdpWire::datagram(uint32_t index) const {
  const Buffers::Side& in = buffers_->in;
  msghdr message = in.messages[index].msg_hdr;
  Datagram d;
  d.bytes = in.bytes[index];
  d.length = in.messages[index].msg_len;
  const Address& from = in.addresses[index];
  bool known = false;
  uint32_t interface = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      d.meta.destination = gidOfIpv4(controlValue<in_pktinfo>(c).ipi_addr.s_addr);
      known = true;
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      d.meta.trafficClass = controlValue<uint8_t>(c);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
      d.meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      const auto info = controlValue<in6_pktinfo>(c);
      std::memcpy(d.meta.destination.raw.data(), &info.ipi6_addr, 16);
      interface = info.ipi6_ifindex;
      known = true;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      d.meta.trafficClass = static_cast<uint8_t>(controlValue<int>(c));
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT) {
      d.meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    }
  }
  if (family_ == AF_INET) {
    d.meta.source = gidOfIpv4(from.v4.sin_addr.s_addr);
    d.sourcePort = ntohs(from.v4.sin_port);
  } else {
    std::memcpy(d.meta.source.raw.data(), &from.v6.sin6_addr, 16);
    d.sourcePort = ntohs(from.v6.sin6_port);
    if (isLinkLocal6(d.meta.source)) d.meta.scopeId = interface;
  }
  d.complete = known && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return d;
}

}  // namespace nd
