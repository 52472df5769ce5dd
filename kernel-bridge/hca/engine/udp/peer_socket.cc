#include "udp/peer_socket.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/wire.h"
#include "platform/local_addresses.h"
#include "udp/udp_control.h"

namespace nd {
namespace {

constexpr size_t kControlBytes = 128;

}  // namespace

struct PeerSockets::Buffers {
  mmsghdr messages[UdpWire::kReceiveBatch];
  iovec pieces[UdpWire::kReceiveBatch];
  struct {
    alignas(cmsghdr) uint8_t bytes[kControlBytes];
  } control[UdpWire::kReceiveBatch];
  alignas(64) uint8_t room[FlowIcrc::kRoom + UdpWire::kReceiveBatch * UdpWire::kReceiveBytes];
  uint8_t* bytes(uint32_t index) { return room + FlowIcrc::kRoom + index * UdpWire::kReceiveBytes; }
  bool withMetadata = false;  // of the last call
  Buffers() {
    for (uint32_t i = 0; i < UdpWire::kReceiveBatch; i++) {
      messages[i] = {};
      pieces[i] = {bytes(i), UdpWire::kReceiveBytes};
      msghdr& m = messages[i].msg_hdr;
      m.msg_control = control[i].bytes;
      m.msg_iov = &pieces[i];
      m.msg_iovlen = 1;
    }
  }
};

void PeerSockets::BuffersDeleter::operator()(Buffers* buffers) const { delete buffers; }

PeerSockets::PeerSockets(HostCounters& counters, int family) : counters_(counters), family_(family) {}
PeerSockets::~PeerSockets() = default;

// The sender's entry, or one that may become it; null: all have more to do.
PeerSocket* PeerSockets::entry(const PacketMeta& meta, uint16_t port) {
  PeerSocket* oldest = nullptr;
  for (PeerSocket& peer : sockets_) {
    if (peer.is(meta, port)) return &peer;
    const bool settled = peer.ready() || peer.refused_;
    if (peer.port_ != 0 && clock_ - peer.used_ < (settled ? kUnusedFor : kNotHeardFor)) continue;
    if (oldest == nullptr || peer.used_ < oldest->used_) oldest = &peer;
  }
  if (oldest == nullptr) return nullptr;
  char none;
  if (oldest->ready() && recv(oldest->fd(), &none, 0, MSG_PEEK | MSG_DONTWAIT) >= 0) return nullptr;
  *oldest = PeerSocket();
  oldest->source_ = meta.source;
  oldest->destination_ = meta.destination;
  oldest->port_ = port;
  return oldest;
}

PeerSocket* PeerSockets::consider(const PacketMeta& meta, uint16_t sourcePort) {
  clock_++;
  PeerSocket* const peer = entry(meta, sourcePort);
  if (peer == nullptr) return nullptr;
  peer->used_ = clock_;
  return peer->ready() || peer->refused_ || ++peer->heard_ < kHeardBefore ? nullptr : peer;
}

// Bound to all addresses it is the last of the port's group, which the steering never chooses; connecting takes it out of the
// group. Bound to one address it would get all that comes to that address until it is connected.
bool PeerSockets::bind(PeerSocket& peer, uint32_t receiveBufferBytes) {
  const bool v4 = family_ == AF_INET;
  UniqueFd fd(socket(family_, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd.valid()) return false;
  const int s = fd.get();
  const bool ok =
      setInt(s, SOL_SOCKET, SO_REUSEPORT, 1) &&
      (v4 ? setInt(s, IPPROTO_IP, IP_RECVTOS, 1) && setInt(s, IPPROTO_IP, IP_RECVTTL, 1) &&
                setInt(s, IPPROTO_IP, IP_MULTICAST_ALL, 0)  // or a second copy of what groups are sent
          : setInt(s, IPPROTO_IPV6, IPV6_V6ONLY, 1) && setInt(s, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
                setInt(s, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) && setInt(s, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)) &&
      setDestinations(s, true) && setInt(s, IPPROTO_UDP, UDP_GRO, 1);
  if (!ok) return false;
  if (!v4) {
    setInt(s, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
    setInt(s, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  }
  setReceiveBuffer(s, receiveBufferBytes);
  SocketAddress any{};
  const socklen_t bytes = socketAddress(v4 ? gidOfIpv4(htonl(INADDR_ANY)) : Gid(), kRocePort, 0, &any);
  if (::bind(s, &any.any, bytes) != 0) return false;
  peer.fd_ = std::move(fd);
  return true;
}

bool PeerSockets::connect(PeerSocket& peer) {
  SocketAddress source{}, own{}, wanted{};
  if (::connect(peer.fd(), &source.any, socketAddress(peer.source_, peer.port_, 0, &source)) != 0) return false;
  socklen_t bytes = sizeof own;
  socketAddress(peer.destination_, kRocePort, 0, &wanted);
  if (getsockname(peer.fd(), &own.any, &bytes) != 0) return false;
  // The system chooses which address is its own.
  return family_ == AF_INET ? own.v4.sin_addr.s_addr == wanted.v4.sin_addr.s_addr
                            : std::memcmp(&own.v6.sin6_addr, &wanted.v6.sin6_addr, sizeof wanted.v6.sin6_addr) == 0;
}

void PeerSockets::settle(PeerSocket& peer) {
  setDestinations(peer.fd(), false);
  if (!buffers_) buffers_.reset(new Buffers());
  peer.icrc = FlowIcrc({peer.source_, peer.destination_, peer.port_});
  peer.open_ = true;
  counters_.add(HostCounter::kPeerSocketsOpened);
}

bool PeerSockets::setDestinations(int fd, bool on) {
  return family_ == AF_INET ? setInt(fd, IPPROTO_IP, IP_PKTINFO, on) : setInt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, on);
}

void PeerSockets::refuse(PeerSocket& peer) {
  peer.fd_.reset();
  peer.open_ = false;
  peer.refused_ = true;  // as long as the entry lives
  counters_.add(HostCounter::kPeerSocketsRefused);
}

void PeerSockets::close() {
  for (PeerSocket& peer : sockets_) peer = PeerSocket();
}

uint32_t PeerSockets::receive(PeerSocket& from, uint32_t budget, bool withMetadata) {
  Buffers& in = *buffers_;
  const uint32_t count = std::min(budget, from.expected_);
  in.withMetadata = withMetadata || count > 1 || from.withoutMetadata_ == 0;
  int n;
  do {
    if (!in.withMetadata) {
      const ssize_t length = receiveNow(from.fd(), in.bytes(0), UdpWire::kReceiveBytes);
      in.messages[0].msg_len = static_cast<unsigned>(length);
      n = length < 0 ? -1 : 1;
      continue;
    }
    for (uint32_t i = 0; i < count; i++) {
      in.messages[i].msg_hdr.msg_controllen = kControlBytes;
      in.messages[i].msg_hdr.msg_flags = 0;
    }
    n = recvmmsg(from.fd(), in.messages, count, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  const uint32_t got = n < 0 ? 0 : static_cast<uint32_t>(n);
  const bool filled = got == count;
  from.expected_ = filled && (count > 1 || from.filled_) ? std::min(2 * count, UdpWire::kReceiveBatch) : std::max(got, 1u);
  from.filled_ = filled;
  if (got != 0) from.used_ = clock_ += got;
  return got;
}

uint8_t* PeerSockets::single(uint32_t* length) {
  *length = buffers_->messages[0].msg_len;
  return buffers_->withMetadata || *length > FlowIcrc::kMostBytes + kIcrcBytes ? nullptr : buffers_->bytes(0);
}

PacketMeta PeerSockets::metaOf(const PeerSocket& from) const {
  PacketMeta meta;
  meta.source = from.source_;
  meta.destination = from.destination_;
  meta.trafficClass = from.trafficClass_;
  meta.hopLimit = from.hopLimit_;
  return meta;
}

UdpWire::Datagram PeerSockets::datagram(PeerSocket& from, uint32_t index) {
  Buffers& in = *buffers_;
  UdpWire::Datagram d;
  d.bytes = in.bytes(index);
  d.length = d.segment = in.messages[index].msg_len;
  d.sourcePort = from.port_;
  d.meta.source = from.source_;
  d.meta.destination = from.destination_;
  d.hasMetadata = in.withMetadata;
  d.complete = true;
  if (d.hasMetadata) {
    msghdr& message = in.messages[index].msg_hdr;
    readControl(message, &d);
    d.complete = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    from.trafficClass_ = d.meta.trafficClass;
    from.hopLimit_ = d.meta.hopLimit;
    const bool marked = (d.meta.trafficClass & wire::kEcnMask) == wire::kCongestionExperienced;
    from.withoutMetadata_ = d.length <= kShort && !marked ? kWithoutMetadata : 0;
  } else {
    d.meta.trafficClass = from.trafficClass_;
    d.meta.hopLimit = from.hopLimit_;
    from.withoutMetadata_ = d.length <= kShort ? from.withoutMetadata_ - 1 : 0;
  }
  return d;
}

}  // namespace nd
