#include "udp/udp_flow.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <cerrno>
#include <cstring>

#include "base/icrc.h"
#include "udp/udp_control.h"

namespace nd {

const uint32_t kTimestampRequest = SOF_TIMESTAMPING_TX_SCHED;

namespace {

constexpr uint32_t kSendBuffer = 4 << 20;
constexpr size_t kMaxLinkHeader = 64;  // before the IP header of what comes back
constexpr uint32_t kMostReturned = 8;  // datagrams that came back and nobody has looked at

}  // namespace

socklen_t socketAddress(const Gid& gid, uint16_t port, uint32_t scopeId, SocketAddress* out) {
  std::memset(out, 0, sizeof *out);
  if (gid.isV4()) {
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(port);
    std::memcpy(&out->v4.sin_addr, gid.raw.data() + 12, 4);
    return sizeof out->v4;
  }
  out->v6.sin6_family = AF_INET6;
  out->v6.sin6_port = htons(port);
  out->v6.sin6_scope_id = scopeId;
  std::memcpy(&out->v6.sin6_addr, gid.raw.data(), 16);
  return sizeof out->v6;
}

bool UdpFlow::use(HostCounters& counters) {
  if (state_ == State::kReady) return true;
  if (state_ == State::kRefused || ++uses_ < kUsesBefore) return false;
  if (open()) {
    state_ = State::kReady;
    counters.add(HostCounter::kFlowsOpened);
    return true;
  }
  fd_.reset();
  state_ = State::kRefused;  // as long as the entry lives
  counters.add(HostCounter::kFlowsRefused);
  return false;
}

bool UdpFlow::open() {
  const bool v4 = isV4();
  fd_ = UniqueFd(socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd_.valid()) return false;
  const int s = fd_.get(), hopLimit = path_.hopLimit == 0 ? UdpWire::kDefaultHopLimit : path_.hopLimit;
  const bool ok =
      v4 ? setInt(s, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO) && setInt(s, IPPROTO_IP, IP_TTL, hopLimit) &&
               setInt(s, IPPROTO_IP, IP_TOS, path_.trafficClass) &&
               setInt(s, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE)
         : setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) && setInt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) &&
               setInt(s, IPPROTO_IPV6, IPV6_DONTFRAG, 1) && setInt(s, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hopLimit) &&
               setInt(s, IPPROTO_IPV6, IPV6_TCLASS, path_.trafficClass) &&
               (path_.flowLabel == 0 || setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1));
  if (!ok) return false;
  setSendBuffer(s, kSendBuffer);
  SocketAddress source{}, destination{};
  if (bind(s, &source.any, socketAddress(path_.source, 0, path_.scopeId, &source)) != 0) return false;
  const socklen_t destinationBytes = socketAddress(path_.destination, kRocePort, path_.scopeId, &destination);
  if (!v4) destination.v6.sin6_flowinfo = htonl(path_.flowLabel & kFlowLabelMask);  // 0: the system's own choice
  if (connect(s, &destination.any, destinationBytes) != 0) return false;
  socklen_t bytes = sizeof source;
  if (getsockname(s, &source.any, &bytes) != 0) return false;
  sourcePort_ = ntohs(v4 ? source.v4.sin_port : source.v6.sin6_port);
  staged_ = 0;
  icrc_ = FlowIcrc({path_.source, path_.destination, sourcePort_});
  return !v4 || learn();
}

// An empty datagram, which receivers drop without a word.
bool UdpFlow::learn() {
  msghdr message{};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof kTimestampRequest)] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SO_TIMESTAMPING;
  header->cmsg_len = CMSG_LEN(sizeof kTimestampRequest);
  std::memcpy(CMSG_DATA(header), &kTimestampRequest, sizeof kTimestampRequest);
  if (sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return false;
  uint16_t id;
  if (!takeId(&id)) return false;
  nextId_ = static_cast<uint16_t>(id + 1);
  return true;
}

// The ID of the newest datagram that came back; to this host it is there as soon as it was sent.
bool UdpFlow::takeId(uint16_t* id) {
  uint8_t ours[8], ports[4] = {static_cast<uint8_t>(sourcePort_ >> 8), static_cast<uint8_t>(sourcePort_),
                               static_cast<uint8_t>(kRocePort >> 8), static_cast<uint8_t>(kRocePort & 0xff)};
  std::memcpy(ours, path_.source.raw.data() + 12, 4);
  std::memcpy(ours + 4, path_.destination.raw.data() + 12, 4);
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
    const ssize_t n = recvmsg(fd_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (n < 0) break;
    for (ssize_t at = 0; at + static_cast<ssize_t>(kIp4Bytes + kUdpBytes) <= n; at++) {
      const uint8_t* header = bytes + at;
      if (header[0] != ip::kVersionAndLength || header[ip::kProtocolAt] != IPPROTO_UDP ||
          std::memcmp(header + ip::kSourceAt, ours, 8) != 0 || std::memcmp(header + kIp4Bytes, ports, sizeof ports) != 0)
        continue;
      *id = static_cast<uint16_t>(wire::load16(header + ip::kIdAt));
      found = true;
      break;
    }
  }
  return found;
}

void UdpFlow::check(uint16_t id, HostCounters& counters) {
  uint16_t real;
  if (!takeId(&real) || real == id) return;
  counters.add(HostCounter::kFlowsMiscounted);
  failed();
}

void UdpFlow::failed() {
  fd_.reset();
  state_ = State::kCounting;
  uses_ = 0;
}

// ── Table ───────────────────────────────────────────────────────────────────────────────────────

UdpFlow* UdpFlows::find(const Path& path, uint32_t slot) {
  if (last_ != nullptr && last_->is(path, slot)) return last_;
  for (UdpFlow& flow : flows_)
    if (flow.is(path, slot)) return last_ = &flow;
  return nullptr;
}

UdpFlow& UdpFlows::oldest() {
  UdpFlow* oldest = &flows_[0];
  for (UdpFlow& flow : flows_)
    if (flow.used_ < oldest->used_) oldest = &flow;
  return *oldest;
}

bool UdpFlows::evicts(const Path& path, uint32_t slot) { return find(path, slot) == nullptr && oldest().ready(); }

UdpFlow& UdpFlows::at(const Path& path, uint32_t slot) {
  UdpFlow* flow = find(path, slot);
  if (flow == nullptr) {
    flow = last_ = &oldest();
    flow->failed();
    flow->path_ = path;
    flow->slot_ = slot;
  }
  flow->used_ = ++clock_;
  return *flow;
}

void UdpFlows::close() {
  for (UdpFlow& flow : flows_) {
    flow.failed();
    flow.used_ = 0;
  }
}

uint32_t UdpFlows::openSockets() const {
  uint32_t n = 0;
  for (const UdpFlow& flow : flows_) n += flow.ready();
  return n;
}

}  // namespace nd
