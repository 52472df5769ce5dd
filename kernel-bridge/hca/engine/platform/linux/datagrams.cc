// Batches of datagrams (datagram_socket.h).
#include <linux/net_tstamp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/ip.h"
#include "platform/datagram_socket.h"
#include "platform/linux/socket_options.h"
#include "platform/linux/udp_control.h"
#include "platform/local_addresses.h"

namespace nd {
namespace {

struct Control {
  alignas(cmsghdr) uint8_t bytes[160];
};

}  // namespace

// ── Out ─────────────────────────────────────────────────────────────────────────────────────────────────────

struct DatagramsOut::Impl {
  mmsghdr messages[kMostMessages] = {};
  iovec pieces[kMostMessages];
  SocketAddress addresses[kMostMessages];
  Control control[kMostMessages];
  bool cut[kMostMessages];
};

DatagramsOut::DatagramsOut() : impl_(new Impl) {
  for (uint32_t i = 0; i < kMostMessages; i++) {
    msghdr& m = impl_->messages[i].msg_hdr;
    m.msg_control = impl_->control[i].bytes;
    m.msg_iov = &impl_->pieces[i];
    m.msg_iovlen = 1;
  }
}
DatagramsOut::~DatagramsOut() = default;

void DatagramsOut::set(uint32_t index, const uint8_t* bytes, uint32_t length) {
  impl_->pieces[index] = {const_cast<uint8_t*>(bytes), length};
  impl_->cut[index] = false;
  msghdr& m = impl_->messages[index].msg_hdr;
  m.msg_name = nullptr;
  m.msg_namelen = 0;
  m.msg_controllen = 0;
}

void DatagramsOut::set(uint32_t index, const uint8_t* bytes, uint32_t length, const Path& path, uint16_t port,
                       const DatagramSocket& by) {
  set(index, bytes, length);
  msghdr& m = impl_->messages[index].msg_hdr;
  SocketAddress& to = impl_->addresses[index];
  m.msg_name = &to;
  m.msg_namelen = socketAddress(path.destination, port, path.scopeId, &to);
  const int trafficClass = path.trafficClass, hopLimit = path.hopLimit;
  const bool ownHopLimit = hopLimit != 0 && hopLimit != DatagramSocket::kDefaultHopLimit;
  if (by.family() == IpFamily::kV4) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, path.source.raw.data() + 12, 4);
    if (path.destination.isMulticast()) info.ipi_ifindex = static_cast<int>(path.scopeId);
    appendControl(&m, IPPROTO_IP, IP_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IP, IP_TOS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IP, IP_TTL, hopLimit);
  } else {
    if (by.labels()) to.v6.sin6_flowinfo = htonl(path.flowLabel & kFlowLabelMask);  // 0: chosen by Linux
    in6_pktinfo info{};
    std::memcpy(&info.ipi6_addr, path.source.raw.data(), 16);
    info.ipi6_ifindex = path.scopeId;
    appendControl(&m, IPPROTO_IPV6, IPV6_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IPV6, IPV6_TCLASS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IPV6, IPV6_HOPLIMIT, hopLimit);
  }
}

// Makes Linux loop the datagram back as it is sent.
void DatagramsOut::requestId(uint32_t index) {
  appendControl(&impl_->messages[index].msg_hdr, SOL_SOCKET, SO_TIMESTAMPING, uint32_t{SOF_TIMESTAMPING_TX_SCHED});
}

void DatagramsOut::cutUp(uint32_t index, uint32_t length, uint32_t segment) {
  impl_->pieces[index].iov_len = length;
  impl_->cut[index] = true;
  appendControl(&impl_->messages[index].msg_hdr, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(segment));
}

void DatagramsOut::setSingle(uint32_t index, const uint8_t* bytes, uint32_t length) {
  impl_->pieces[index] = {const_cast<uint8_t*>(bytes), length};
  if (std::exchange(impl_->cut[index], false))
    impl_->messages[index].msg_hdr.msg_controllen -= CMSG_SPACE(sizeof(uint16_t));
}

bool DatagramsOut::dropLabel(uint32_t index) {
  if (impl_->messages[index].msg_hdr.msg_name == nullptr) return false;
  SocketAddress& to = impl_->addresses[index];
  return to.any.sa_family == AF_INET6 && std::exchange(to.v6.sin6_flowinfo, 0) != 0;
}

// A single message is sent by a cheaper call, and by the cheapest one if it has no control messages.
int DatagramsOut::send(Descriptor by, uint32_t first, uint32_t count) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  mmsghdr* const messages = impl_->messages + first;
  const msghdr& only = messages->msg_hdr;
  for (;;) {
    int n;
    if (count != 1) n = sendmmsg(by, messages, count, kFlags);
    else if (only.msg_name == nullptr && only.msg_controllen == 0)
      n = ::send(by, only.msg_iov->iov_base, only.msg_iov->iov_len, kFlags) < 0 ? -1 : 1;
    else n = sendmsg(by, &only, kFlags) < 0 ? -1 : 1;
    if (n >= 0) return n;
    if (errno != EINTR) return errno == EHOSTDOWN ? -EHOSTUNREACH : -errno;  // not every kernel has both
  }
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────────────────

struct DatagramsIn::Impl {
  mmsghdr messages[kMost] = {};
  iovec pieces[kMost];
  SocketAddress addresses[kMost];
  Control control[kMost];
  bool senders = false, withMetadata = false;  // of the last call: whether senders were wanted, and metadata
  alignas(64) uint8_t room[kFront + kMost * kBytes];
};

DatagramsIn::DatagramsIn(bool senders) : impl_(new Impl) {
  impl_->senders = senders;
  for (uint32_t i = 0; i < kMost; i++) {
    impl_->pieces[i] = {bytes(i), kBytes};
    msghdr& m = impl_->messages[i].msg_hdr;
    if (senders) m.msg_name = &impl_->addresses[i];
    m.msg_control = impl_->control[i].bytes;
    m.msg_iov = &impl_->pieces[i];
    m.msg_iovlen = 1;
  }
}
DatagramsIn::~DatagramsIn() = default;

uint8_t* DatagramsIn::bytes(uint32_t index) { return impl_->room + kFront + index * kBytes; }
uint32_t DatagramsIn::length(uint32_t index) const { return impl_->messages[index].msg_len; }

uint32_t DatagramsIn::receive(Descriptor from, uint32_t count) {
  mmsghdr* const messages = impl_->messages;
  for (uint32_t i = 0; i < count; i++) {
    msghdr& m = messages[i].msg_hdr;
    m.msg_namelen = impl_->senders ? sizeof(SocketAddress) : 0;
    m.msg_controllen = sizeof(Control);
    m.msg_flags = 0;
  }
  impl_->withMetadata = true;
  for (;;) {
    if (count == 1) {
      const ssize_t length = recvmsg(from, &messages->msg_hdr, MSG_DONTWAIT);
      messages->msg_len = static_cast<unsigned>(length);
      if (length >= 0) return 1;
    } else {
      const int n = recvmmsg(from, messages, count, MSG_DONTWAIT, nullptr);
      if (n >= 0) return static_cast<uint32_t>(n);
    }
    if (errno != EINTR) return 0;
  }
}

// The reason is the same as in DatagramSocket::send.
bool DatagramsIn::receiveBytes(Descriptor from) {
  impl_->withMetadata = false;
  ssize_t n;
  do {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    n = recv(from, bytes(0), kBytes, MSG_DONTWAIT);
#else
    n = syscall(SYS_recvfrom, from, bytes(0), kBytes, MSG_DONTWAIT, nullptr, nullptr);
#endif
  } while (n < 0 && errno == EINTR);
  impl_->messages[0].msg_len = static_cast<unsigned>(n);
  return n >= 0;
}

Datagram DatagramsIn::datagram(uint32_t index) const {
  msghdr message = impl_->messages[index].msg_hdr;
  Datagram d;
  d.bytes = impl_->room + kFront + index * kBytes;
  d.length = d.segment = impl_->messages[index].msg_len;
  d.hasMetadata = impl_->withMetadata;
  d.complete = !d.hasMetadata;
  if (!d.hasMetadata) return d;
  bool known = !impl_->senders;
  uint32_t interface = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    const auto is = [c](int level, int type) { return c->cmsg_level == level && c->cmsg_type == type; };
    if (is(IPPROTO_IP, IP_PKTINFO)) {
      const auto info = controlValue<in_pktinfo>(c);
      d.meta.destination = gidOfIpv4(info.ipi_addr.s_addr);
      interface = static_cast<uint32_t>(info.ipi_ifindex);
      known = true;
    } else if (is(IPPROTO_IP, IP_TOS)) {
      d.meta.trafficClass = controlValue<uint8_t>(c);
    } else if (is(IPPROTO_IP, IP_TTL) || is(IPPROTO_IPV6, IPV6_HOPLIMIT)) {
      d.meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    } else if (is(IPPROTO_IPV6, IPV6_PKTINFO)) {
      const auto info = controlValue<in6_pktinfo>(c);
      std::memcpy(d.meta.destination.raw.data(), &info.ipi6_addr, 16);
      interface = info.ipi6_ifindex;
      known = true;
    } else if (is(IPPROTO_IPV6, IPV6_TCLASS)) {
      d.meta.trafficClass = static_cast<uint8_t>(controlValue<int>(c));
    } else if (is(IPPROTO_IPV6, IPV6_FLOWINFO)) {
      d.meta.flowLabel = ntohl(controlValue<uint32_t>(c)) & kFlowLabelMask;
    } else if (is(IPPROTO_UDP, UDP_GRO)) {
      const int segment = controlValue<int>(c);
      if (segment > 0 && static_cast<uint32_t>(segment) < d.length) d.segment = static_cast<uint32_t>(segment);
    }
  }
  const SocketAddress& from = impl_->addresses[index];
  if (!impl_->senders) {
    // The caller knows the sender.
  } else if (from.any.sa_family == AF_INET) {
    d.meta.source = gidOfIpv4(from.v4.sin_addr.s_addr);
    d.sourcePort = ntohs(from.v4.sin_port);
  } else {
    std::memcpy(d.meta.source.raw.data(), &from.v6.sin6_addr, 16);
    d.sourcePort = ntohs(from.v6.sin6_port);
    if (isLinkLocal6(d.meta.source)) d.meta.scopeId = interface;
  }
  if (d.meta.destination.isMulticast()) d.meta.scopeId = interface;
  d.complete = known && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return d;
}

}  // namespace nd
