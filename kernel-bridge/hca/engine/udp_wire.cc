#include "udp_wire.h"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "local_addresses.h"

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
namespace {

constexpr int kDefaultHopLimit = 64;
constexpr size_t kControlBytes = 160;
constexpr uint32_t kMaxRunBytes = 65000, kMaxRunPackets = 64;  // what one message may carry
constexpr uint32_t kReceiveBytes = 65536;
constexpr uint32_t kFlowLabelMask = 0xfffff;

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
  // By run; the bytes of all packets without gaps.
  struct Out {
    mmsghdr messages[kBatch];
    iovec pieces[kBatch];
    Address addresses[kBatch];
    Control control[kBatch];
    Path paths[kBatch];
    Run runs[kBatch];
    alignas(64) uint8_t bytes[kStagingBytes];
  };
  struct In {
    mmsghdr messages[kReceiveBatch];
    iovec pieces[kReceiveBatch];
    Address addresses[kReceiveBatch];
    Control control[kReceiveBatch];
    alignas(64) uint8_t bytes[kReceiveBatch][kReceiveBytes];
  };
  Out out;
  In in;
  Buffers() {
    for (uint32_t i = 0; i < kBatch; i++) {
      out.messages[i] = {};
      msghdr& m = out.messages[i].msg_hdr;
      m.msg_name = &out.addresses[i];
      m.msg_control = out.control[i].bytes;
      m.msg_iov = &out.pieces[i];
      m.msg_iovlen = 1;
    }
    for (uint32_t i = 0; i < kReceiveBatch; i++) {
      in.messages[i] = {};
      in.pieces[i] = {in.bytes[i], kReceiveBytes};
      msghdr& m = in.messages[i].msg_hdr;
      m.msg_name = &in.addresses[i];
      m.msg_control = in.control[i].bytes;
      m.msg_iov = &in.pieces[i];
      m.msg_iovlen = 1;
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
         setInt(s, IPPROTO_IP, IP_TTL, kDefaultHopLimit) &&
         setInt(s, IPPROTO_IP, IP_MULTICAST_TTL, kDefaultHopLimit) && setInt(s, IPPROTO_IP, IP_MULTICAST_LOOP, 1) &&
         setInt(s, IPPROTO_IP, IP_MULTICAST_ALL, 0);  // only where this process joined
  } else {
    ok = ok && setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) && setInt(s, IPPROTO_IPV6, IPV6_DONTFRAG, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) && setInt(s, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
         setInt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kDefaultHopLimit) &&
         setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kDefaultHopLimit) &&
         setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1) &&
         setInt(s, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // else packets with checksum 0 never arrive
  }
  if (!ok) return errno;
  setInt(s, IPPROTO_UDP, UDP_GRO, 1);  // an older system delivers packets one by one
  if (family == AF_INET6) {
    setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);  // or those for others' groups, too
    setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    labelsWork_ = setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  }
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
  staged_ = stagedBytes_ = runs_ = 0;
  fd_ = std::move(fd);
  return 0;
}

int UdpWire::changeGroup(bool join, const Gid& group, uint32_t interface) {
  int result;
  if (family_ == AF_INET) {
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

void UdpWire::close() { fd_.reset(); }

uint8_t* UdpWire::stage() {
  if (staged_ == kBatch || stagedBytes_ + kMaxDatagram > kStagingBytes) flush();
  return buffers_->out.bytes + stagedBytes_;
}

bool UdpWire::extendsRun(const Path& path, const uint8_t* bth, uint32_t length) const {
  if (!runsWork_ || runs_ == 0) return false;
  const Buffers::Out& out = buffers_->out;
  const Run& run = out.runs[runs_ - 1];
  const Path& p = out.paths[runs_ - 1];
  if (!run.open || run.count == kMaxRunPackets || run.bytes + length > kMaxRunBytes) return false;
  // A run is steered as one, by its first packet: all must be for the same QP.
  return length <= run.segment && std::memcmp(bth + 5, out.bytes + run.at + 5, 3) == 0 &&
         p.destination == path.destination && p.source == path.source && p.trafficClass == path.trafficClass &&
         p.hopLimit == path.hopLimit && p.flowLabel == path.flowLabel && p.scopeId == path.scopeId;
}

void UdpWire::commit(const Path& path, uint32_t length, bool mayRun) {
  Buffers::Out& out = buffers_->out;
  const uint32_t at = stagedBytes_;
  staged_++;
  stagedBytes_ += length;
  if (mayRun && extendsRun(path, out.bytes + at, length)) {
    Run& run = out.runs[runs_ - 1];
    run.count++;
    run.bytes += length;
    run.open = length == run.segment;  // a shorter one is the last
    out.pieces[runs_ - 1].iov_len = run.bytes;
    return;
  }
  const uint32_t i = runs_++;
  out.runs[i] = {at, 1, length, length, mayRun};
  out.paths[i] = path;
  out.pieces[i] = {out.bytes + at, length};
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
    if (path.destination.isMulticast()) info.ipi_ifindex = static_cast<int>(path.scopeId);
    appendControl(&m, IPPROTO_IP, IP_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IP, IP_TOS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IP, IP_TTL, hopLimit);
  } else {
    to.v6 = {};
    to.v6.sin6_family = AF_INET6;
    to.v6.sin6_port = htons(kRocePort);
    to.v6.sin6_scope_id = path.scopeId;
    if (labelsWork_) to.v6.sin6_flowinfo = htonl(path.flowLabel & kFlowLabelMask);  // 0: the system's own choice
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
  if (runs_ == 0) return 0;
  Buffers::Out& out = buffers_->out;
  int lastError = 0;
  uint32_t done = 0;
  bool retried = false;
  for (uint32_t i = 0; i < runs_; i++) {
    if (out.runs[i].count == 1) continue;
    appendControl(&out.messages[i].msg_hdr, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(out.runs[i].segment));
  }
  while (done < runs_) {
    const int n = sendmmsg(fd_.get(), out.messages + done, runs_ - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      for (int i = 0; i < n; i++) counters_.add(HostCounter::kWireTxPackets, out.runs[done++].count);
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
      for (; done < runs_; done++) counters_.add(HostCounter::kTxBufferFull, out.runs[done].count);
      break;
    }
    // A label that nobody leased is refused where somebody on this host has one for himself. It is a hint; the packet counts.
    Address& to = out.addresses[done];
    if (family_ == AF_INET6 && to.v6.sin6_flowinfo != 0 && (errno == ENOENT || errno == EINVAL)) {
      to.v6.sin6_flowinfo = 0;
      continue;
    }
    // This message only: no route, too long for the path, not our address; or a system that knows no runs.
    const Run& run = out.runs[done++];
    if (run.count == 1) {
      counters_.add(HostCounter::kTxErrors);
    } else if (sendSingly(run, &lastError)) {
      runsWork_ = false;
    }
  }
  staged_ = stagedBytes_ = runs_ = 0;
  return lastError;
}

// True if all went out, one by one.
bool UdpWire::sendSingly(const Run& run, int* lastError) {
  Buffers::Out& out = buffers_->out;
  msghdr message = out.messages[&run - out.runs].msg_hdr;
  bool all = true;
  message.msg_controllen -= CMSG_SPACE(sizeof(uint16_t));
  for (uint32_t done = 0; done < run.bytes; done += run.segment) {
    iovec piece = {out.bytes + run.at + done, std::min(run.segment, run.bytes - done)};
    message.msg_iov = &piece;
    if (sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
      counters_.add(HostCounter::kWireTxPackets);
      continue;
    }
    *lastError = errno;
    counters_.add(HostCounter::kTxErrors);
    all = false;
  }
  if (all) *lastError = 0;
  return all;
}

uint32_t UdpWire::receive(uint32_t budget) {
  Buffers::In& in = buffers_->in;
  const uint32_t count = std::min(budget, expected_);
  for (uint32_t i = 0; i < count; i++) {
    msghdr& m = in.messages[i].msg_hdr;
    m.msg_namelen = sizeof(Address);
    m.msg_controllen = kControlBytes;
    m.msg_flags = 0;
  }
  int n;
  do {
    n = count == 1 ? receiveOne() : recvmmsg(fd_.get(), in.messages, count, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  const uint32_t got = n < 0 ? 0 : static_cast<uint32_t>(n);
  // Finding nothing more costs as much as a small datagram: ask for as many as are likely to be there.
  expected_ = got == count ? std::min(2 * expected_, kReceiveBatch) : std::max(got, 1u);
  return got;
}

int UdpWire::receiveOne() {
  mmsghdr& m = buffers_->in.messages[0];
  const ssize_t n = recvmsg(fd_.get(), &m.msg_hdr, MSG_DONTWAIT);
  if (n < 0) return -1;
  m.msg_len = static_cast<unsigned>(n);
  return 1;
}

UdpWire::Datagram UdpWire::datagram(uint32_t index) const {
  const Buffers::In& in = buffers_->in;
  msghdr message = in.messages[index].msg_hdr;
  Datagram d;
  d.bytes = in.bytes[index];
  d.length = d.segment = in.messages[index].msg_len;
  const Address& from = in.addresses[index];
  bool known = false;
  uint32_t interface = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      const auto info = controlValue<in_pktinfo>(c);
      d.meta.destination = gidOfIpv4(info.ipi_addr.s_addr);
      interface = static_cast<uint32_t>(info.ipi_ifindex);
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
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_FLOWINFO) {
      d.meta.flowLabel = ntohl(controlValue<uint32_t>(c)) & kFlowLabelMask;
    } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
      const int segment = controlValue<int>(c);
      if (segment > 0 && static_cast<uint32_t>(segment) < d.length) d.segment = static_cast<uint32_t>(segment);
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
  if (d.meta.destination.isMulticast()) d.meta.scopeId = interface;
  d.complete = known && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return d;
}

}  // namespace nd
