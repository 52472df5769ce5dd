#include "udp/udp_wire.h"

#include <linux/sock_diag.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platform/local_addresses.h"
#include "udp/udp_control.h"

namespace nd {
namespace {

constexpr size_t kControlBytes = 160;
constexpr uint32_t kMaxRunBytes = 65000, kMaxRunPackets = 64;  // what one message may carry

struct Control {
  alignas(cmsghdr) uint8_t bytes[kControlBytes];
};

template <typename T>
void appendControl(msghdr* message, int level, int type, const T& value) {
  auto* header = reinterpret_cast<cmsghdr*>(static_cast<uint8_t*>(message->msg_control) + message->msg_controllen);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(header), &value, sizeof(T));
  message->msg_controllen += CMSG_SPACE(sizeof(T));
}

}  // namespace

struct UdpWire::Buffers {
  // By run; the bytes of all packets without gaps.
  struct Out {
    mmsghdr messages[kBatch];
    iovec pieces[kBatch];
    SocketAddress addresses[kBatch];
    Control control[kBatch];
    Path paths[kBatch];
    Run runs[kBatch];
    alignas(64) uint8_t bytes[kStagingBytes];
  };
  struct In {
    mmsghdr messages[kReceiveBatch];
    iovec pieces[kReceiveBatch];
    SocketAddress addresses[kReceiveBatch];
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

int UdpWire::open(int family, uint32_t receiveBufferBytes, bool inRuns) {
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
  if (inRuns) setInt(s, IPPROTO_UDP, UDP_GRO, 1);  // an older system delivers packets one by one
  if (family == AF_INET6) {
    setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);  // or those for others' groups, too
    setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    labelsWork_ = setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1);
  }
  setReceiveBuffer(s, receiveBufferBytes);
  setSendBuffer(s, receiveBufferBytes);

  Gid any;
  if (family == AF_INET) any = gidOfIpv4(htonl(INADDR_ANY));
  SocketAddress address;
  const socklen_t addressBytes = socketAddress(any, kRocePort, 0, &address);
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

void UdpWire::close() {
  fd_.reset();
  flows_.close();
}

uint8_t* UdpWire::stage() {
  if (!hasRoom()) flush();
  return buffers_->out.bytes + stagedBytes_;
}

UdpWire::Way UdpWire::prepare(const Path& path, const uint8_t* bth, uint32_t length, bool mayRun) {
  Way way;
  // The room is made before, so that the packet's run and ID are still those when it is committed.
  const uint32_t slot = mayRun ? bth[wire::kBthQpnAt] : 0;  // of this host, each process has its own
  UdpFlow* flow = flows_.readyOne(path, slot);
  if (!hasRoom() || (flow == nullptr && flows_.evicts(path, slot))) flush();
  if (flow == nullptr) flow = &flows_.at(path, slot);
  if (!flow->use(counters_)) return way;
  prepared_ = flow;
  preparedExtends_ = mayRun && extendsRun(path, flow, bth, length);
  way.sourcePort = flow->sourcePort();
  if (family_ == AF_INET) way.ipv4Id = preparedExtends_ ? runOf(runs_ - 1).id : flow->nextId();
  return way;
}

const UdpWire::Run& UdpWire::runOf(uint32_t index) const { return buffers_->out.runs[index]; }

bool UdpWire::extendsRun(const Path& path, const UdpFlow* flow, const uint8_t* bth, uint32_t length) const {
  if (!runsWork_ || runs_ == 0) return false;
  const Buffers::Out& out = buffers_->out;
  const Run& run = out.runs[runs_ - 1];
  const Path& p = out.paths[runs_ - 1];
  if (!run.open || run.flow != flow || run.count == kMaxRunPackets || run.bytes + length > kMaxRunBytes) return false;
  // A run is steered as one, by its first packet: all must be for the same QP.
  return length <= run.segment && std::memcmp(bth + wire::kBthQpnAt, out.bytes + run.at + wire::kBthQpnAt, 3) == 0 &&
         p.destination == path.destination && p.source == path.source && p.trafficClass == path.trafficClass &&
         p.hopLimit == path.hopLimit && p.flowLabel == path.flowLabel && p.scopeId == path.scopeId;
}

void UdpWire::commit(const Path& path, uint32_t length, bool mayRun) {
  Buffers::Out& out = buffers_->out;
  const uint32_t at = stagedBytes_;
  UdpFlow* const flow = prepared_;
  prepared_ = nullptr;
  staged_++;
  stagedBytes_ += length;
  if (flow != nullptr ? preparedExtends_ : mayRun && extendsRun(path, flow, out.bytes + at, length)) {
    Run& run = out.runs[runs_ - 1];
    run.count++;
    run.bytes += length;
    run.open = length == run.segment;  // a shorter one is the last
    out.pieces[runs_ - 1].iov_len = run.bytes;
    return;
  }
  const uint32_t i = runs_++;
  out.runs[i] = {at, 1, length, length, mayRun, flow, 0, false, false};
  out.paths[i] = path;
  out.pieces[i] = {out.bytes + at, length};
  if (flow == nullptr) return address(i, path);
  msghdr& m = out.messages[i].msg_hdr;
  m.msg_name = nullptr;
  m.msg_namelen = 0;
  m.msg_controllen = 0;
  out.runs[i].id = flow->nextId();
  out.runs[i].checked = flow->checkDue();
  flow->stagedOne();
  if (out.runs[i].checked) appendControl(&m, SOL_SOCKET, SO_TIMESTAMPING, kTimestampRequest);
}

// Tells the unconnected socket where to.
void UdpWire::address(uint32_t message, const Path& path) {
  Buffers::Out& out = buffers_->out;
  msghdr& m = out.messages[message].msg_hdr;
  SocketAddress& to = out.addresses[message];
  m.msg_name = &to;
  m.msg_namelen = socketAddress(path.destination, kRocePort, path.scopeId, &to);
  m.msg_controllen = 0;
  const int trafficClass = path.trafficClass, hopLimit = path.hopLimit;
  const bool ownHopLimit = hopLimit != 0 && hopLimit != kDefaultHopLimit;
  if (family_ == AF_INET) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, path.source.raw.data() + 12, 4);
    if (path.destination.isMulticast()) info.ipi_ifindex = static_cast<int>(path.scopeId);
    appendControl(&m, IPPROTO_IP, IP_PKTINFO, info);
    if (trafficClass != 0) appendControl(&m, IPPROTO_IP, IP_TOS, trafficClass);
    if (ownHopLimit) appendControl(&m, IPPROTO_IP, IP_TTL, hopLimit);
  } else {
    if (labelsWork_) to.v6.sin6_flowinfo = htonl(path.flowLabel & kFlowLabelMask);  // 0: the system's own choice
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
  uint32_t retried = UINT32_MAX;  // which message
  for (uint32_t i = 0; i < runs_; i++) {
    if (out.runs[i].count == 1) continue;
    appendControl(&out.messages[i].msg_hdr, IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(out.runs[i].segment));
  }
  while (done < runs_) {
    const Run& run = out.runs[done];
    if (run.lost) {
      done++;
      continue;
    }
    if (run.flow != nullptr && !run.flow->ready()) {  // lost, with the one before that failed
      refused(done++);
      continue;
    }
    uint32_t together = 1;  // by one socket
    while (done + together < runs_ && out.runs[done + together].flow == run.flow) together++;
    const int n = send(done, together);
    if (n > 0) {
      for (int i = 0; i < n; i++, done++) {
        const Run& sent = out.runs[done];
        counters_.add(HostCounter::kWireTxPackets, sent.count);
        if (sent.checked && sent.flow->ready()) sent.flow->check(sent.id, counters_);
      }
      continue;
    }
    if (errno == EINTR) continue;
    lastError = errno;
    // A connected socket also reports refusals by ICMP, once, in place of sending.
    const bool reported = run.flow != nullptr && (errno == ECONNREFUSED || errno == EHOSTUNREACH || errno == ENETUNREACH);
    if ((errno == EAGAIN || errno == ENOBUFS || reported) && retried != done) {
      retried = done;
      continue;
    }
    if (errno == EAGAIN || errno == ENOBUFS) {
      // Sent packets give the buffer back at their own pace; waiting is not ours to do, and transports retry. Others' are not full.
      full(done, lastError);
      continue;
    }
    // A flow label without a lease is refused if another socket of this host has an exclusive one. It is a hint; the packet counts.
    SocketAddress& to = out.addresses[done];
    if (family_ == AF_INET6 && run.flow == nullptr && to.v6.sin6_flowinfo != 0 && (errno == ENOENT || errno == EINVAL)) {
      to.v6.sin6_flowinfo = 0;
      continue;
    }
    // This message only: no route, too long for the path, not our address; or a system that knows no runs.
    if (run.flow != nullptr) {
      if (run.count > 1 && (lastError == EINVAL || lastError == EIO)) runsWork_ = false;
      counters_.add(HostCounter::kTxErrors, run.count);
      run.flow->failed();
    } else if (run.count == 1) {
      counters_.add(HostCounter::kTxErrors);
    } else if (sendOneByOne(run, &lastError)) {
      runsWork_ = false;
    }
    done++;
  }
  staged_ = stagedBytes_ = runs_ = 0;
  return lastError;
}

bool UdpWire::sendSingle(const Path& path, uint8_t* bth, uint32_t length, bool mayRun) {
  if (runs_ != 0) return false;
  UdpFlow* const flow = flows_.readyOne(path, mayRun ? bth[wire::kBthQpnAt] : 0);
  if (flow == nullptr || flow->checkDue()) return false;
  storeIcrc(bth + length, flow->icrcOf(bth, length));
  if (sendNow(flow->fd(), bth, length + kIcrcBytes) < 0) {
    // Without room, or with a report of an earlier one, the system has not counted an ID; otherwise that is not known.
    if (errno != EAGAIN && errno != ECONNREFUSED) flow->failed();
    return false;
  }
  flow->stagedOne();
  counters_.add(HostCounter::kWireTxPackets);
  return true;
}

// No room in the socket's buffer for this message: lost, with all that follow it there.
void UdpWire::full(uint32_t message, int error) {
  Buffers::Out& out = buffers_->out;
  UdpFlow* const flow = out.runs[message].flow;
  uint32_t lost = 0;
  for (uint32_t i = message; i < runs_; i++) {
    Run& run = out.runs[i];
    if (run.flow != flow) continue;
    run.lost = true;
    lost++;
    counters_.add(HostCounter::kTxBufferFull, run.count);
  }
  if (flow == nullptr) return;
  // The system counts an ID when it has room; if other memory is short, that is not known.
  if (error == EAGAIN)
    flow->unstage(out.runs[message].id, lost);
  else
    flow->failed();
}

// Lost: its flow has ended.
void UdpWire::refused(uint32_t message) {
  const Run& run = buffers_->out.runs[message];
  counters_.add(HostCounter::kTxBufferFull, run.count);
  if (run.flow != nullptr) run.flow->failed();
}

// One message goes by a cheaper call, and without control messages by the cheapest.
int UdpWire::send(uint32_t first, uint32_t count) {
  const UdpFlow* const flow = runOf(first).flow;
  const int fd = flow != nullptr ? flow->fd() : fd_.get();
  mmsghdr* const messages = buffers_->out.messages + first;
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (count != 1) return sendmmsg(fd, messages, count, kFlags);
  const msghdr& only = messages->msg_hdr;
  if (flow != nullptr && only.msg_controllen == 0)
    return ::send(fd, only.msg_iov->iov_base, only.msg_iov->iov_len, kFlags) < 0 ? -1 : 1;
  return sendmsg(fd, &only, kFlags) < 0 ? -1 : 1;
}

// True if all went out, one by one.
bool UdpWire::sendOneByOne(const Run& run, int* lastError) {
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

// By the memory that they take: the system counts no datagram with less than its headers and its share of a page.
uint32_t UdpWire::queuedAtMost() const {
  constexpr uint32_t kLeastBytes = 512;
  uint32_t memory[SK_MEMINFO_VARS] = {};
  socklen_t length = sizeof memory;
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_MEMINFO, memory, &length) != 0) return UINT32_MAX;
  return (memory[SK_MEMINFO_RMEM_ALLOC] + kLeastBytes - 1) / kLeastBytes;
}

uint32_t UdpWire::receive(uint32_t budget) {
  const uint32_t count = std::min(budget, expected_);
  makeRoom(count);
  int n;
  do {
    n = count == 1 ? receiveOne() : recvmmsg(fd_.get(), buffers_->in.messages, count, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  const uint32_t got = n < 0 ? 0 : static_cast<uint32_t>(n);
  // Finding nothing more costs as much as a small datagram: ask for as many as are likely to be there.
  expected_ = got == count ? std::min(2 * expected_, kReceiveBatch) : std::max(got, 1u);
  return got;
}

uint32_t UdpWire::receiveFrom(int fd) {
  makeRoom(kReceiveBatch);
  int n;
  do {
    n = recvmmsg(fd, buffers_->in.messages, kReceiveBatch, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

void UdpWire::makeRoom(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    msghdr& m = buffers_->in.messages[i].msg_hdr;
    m.msg_namelen = sizeof(SocketAddress);
    m.msg_controllen = kControlBytes;
    m.msg_flags = 0;
  }
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
  const SocketAddress& from = in.addresses[index];
  const Arrival arrival = readControl(message, &d);
  if (family_ == AF_INET) {
    d.meta.source = gidOfIpv4(from.v4.sin_addr.s_addr);
    d.sourcePort = ntohs(from.v4.sin_port);
  } else {
    std::memcpy(d.meta.source.raw.data(), &from.v6.sin6_addr, 16);
    d.sourcePort = ntohs(from.v6.sin6_port);
    if (isLinkLocal6(d.meta.source)) d.meta.scopeId = arrival.interface;
  }
  if (d.meta.destination.isMulticast()) d.meta.scopeId = arrival.interface;
  d.complete = arrival.known && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return d;
}

}  // namespace nd
