// Batches of datagrams (datagram_socket.h), with one call for each datagram.
#include "platform/windows/udp_socket.h"

#include <cerrno>

#include "base/ip.h"
#include "platform/datagram_socket.h"
#include "platform/local_addresses.h"
#include "platform/windows/error_text.h"

namespace nd {
namespace {

constexpr size_t kControlBytes = 160;

int lastError() { return errnoOf(static_cast<unsigned long>(WSAGetLastError())); }

// The message must have enough room.
template <typename T>
void appendControl(WSAMSG* message, int level, int type, const T& value) {
  auto* header = reinterpret_cast<WSACMSGHDR*>(message->Control.buf + message->Control.len);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = WSA_CMSG_LEN(sizeof(T));
  std::memcpy(WSA_CMSG_DATA(header), &value, sizeof(T));
  message->Control.len += static_cast<ULONG>(WSA_CMSG_SPACE(sizeof(T)));
}

template <typename T>
T controlValue(WSACMSGHDR* header) {
  T value{};
  std::memcpy(&value, WSA_CMSG_DATA(header), std::min(sizeof value, header->cmsg_len - WSA_CMSG_LEN(0)));
  return value;
}

struct Control {
  alignas(WSACMSGHDR) char bytes[kControlBytes];
};

}  // namespace

// ── Out ─────────────────────────────────────────────────────────────────────────────────────────────────────

struct DatagramsOut::Impl {
  WSAMSG messages[kMostMessages] = {};
  WSABUF pieces[kMostMessages];
  SocketAddress addresses[kMostMessages];
  Control control[kMostMessages];
  ULONG classAt[kMostMessages];  // where the traffic class is among its control messages; it comes last
  bool cut[kMostMessages], hasClass[kMostMessages];
};

DatagramsOut::DatagramsOut() : impl_(new Impl) {
  for (uint32_t i = 0; i < kMostMessages; i++) {
    WSAMSG& m = impl_->messages[i];
    m.lpBuffers = &impl_->pieces[i];
    m.dwBufferCount = 1;
    m.Control.buf = impl_->control[i].bytes;
  }
}
DatagramsOut::~DatagramsOut() = default;

void DatagramsOut::set(uint32_t index, const uint8_t* bytes, uint32_t length) {
  impl_->pieces[index] = {length, reinterpret_cast<char*>(const_cast<uint8_t*>(bytes))};
  impl_->cut[index] = impl_->hasClass[index] = false;
  WSAMSG& m = impl_->messages[index];
  m.name = nullptr;
  m.namelen = 0;
  m.Control.len = 0;
}

void DatagramsOut::set(uint32_t index, const uint8_t* bytes, uint32_t length, const Path& path, uint16_t port,
                       const DatagramSocket& by) {
  set(index, bytes, length);
  WSAMSG& m = impl_->messages[index];
  SocketAddress& to = impl_->addresses[index];
  m.name = &to.any;
  m.namelen = socketAddress(path.destination, port, path.scopeId, &to);
  const int trafficClass = path.trafficClass, hopLimit = path.hopLimit;
  const bool ownHopLimit = hopLimit != 0 && hopLimit != DatagramSocket::kDefaultHopLimit;
  const bool v4 = by.family() == IpFamily::kV4;
  if (v4) {
    IN_PKTINFO info{};
    std::memcpy(&info.ipi_addr, path.source.raw.data() + 12, 4);
    if (path.destination.isMulticast()) info.ipi_ifindex = path.scopeId;
    appendControl(&m, IPPROTO_IP, IP_PKTINFO, info);
    if (ownHopLimit) appendControl(&m, IPPROTO_IP, IP_TTL, hopLimit);
  } else {
    IN6_PKTINFO info{};
    std::memcpy(&info.ipi6_addr, path.source.raw.data(), 16);
    info.ipi6_ifindex = path.scopeId;
    appendControl(&m, IPPROTO_IPV6, IPV6_PKTINFO, info);
    if (ownHopLimit) appendControl(&m, IPPROTO_IPV6, IPV6_HOPLIMIT, hopLimit);
  }
  impl_->classAt[index] = m.Control.len;
  impl_->hasClass[index] = trafficClass != 0;
  if (trafficClass != 0) appendControl(&m, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, trafficClass);
}

// takeId() is not supported.
void DatagramsOut::requestId(uint32_t) {}

void DatagramsOut::cutUp(uint32_t index, uint32_t length, uint32_t segment) {
  impl_->pieces[index].len = length;
  impl_->cut[index] = true;
  appendControl(&impl_->messages[index], IPPROTO_UDP, UDP_SEND_MSG_SIZE, static_cast<DWORD>(segment));
}

void DatagramsOut::setSingle(uint32_t index, const uint8_t* bytes, uint32_t length) {
  impl_->pieces[index] = {length, reinterpret_cast<char*>(const_cast<uint8_t*>(bytes))};
  if (std::exchange(impl_->cut[index], false))
    impl_->messages[index].Control.len -= static_cast<ULONG>(WSA_CMSG_SPACE(sizeof(DWORD)));
}

// Flow labels are not sent.
bool DatagramsOut::dropLabel(uint32_t) { return false; }

int DatagramsOut::send(Descriptor by, uint32_t first, uint32_t count) {
  UdpSocket& socket = udpOf(by);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t index = first + i;
    WSAMSG& m = impl_->messages[index];
    int error = impl_->cut[index] && !socket.cuts ? EINVAL : 0;
    // The traffic class is a preference of the path; some systems reserve it for administrators.
    for (bool again = error == 0; again;) {
      again = false;
      if (!socket.takesClasses && std::exchange(impl_->hasClass[index], false) && !impl_->cut[index])
        m.Control.len = impl_->classAt[index];
      DWORD sent = 0;
      error = socket.sendMessage(socket.socket, &m, 0, &sent, nullptr, nullptr) == 0 ? 0 : lastError();
      if (error == EINVAL && impl_->hasClass[index] && !impl_->cut[index]) again = !(socket.takesClasses = false);
    }
    if (error != 0) return i != 0 ? static_cast<int>(i) : -error;
  }
  return static_cast<int>(count);
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────────────────

struct DatagramsIn::Impl {
  WSAMSG messages[kMost] = {};
  WSABUF pieces[kMost];
  SocketAddress addresses[kMost];
  Control control[kMost];
  DWORD lengths[kMost];
  bool senders = false;
  alignas(64) uint8_t room[kFront + kMost * kBytes];
};

DatagramsIn::DatagramsIn(bool senders) : impl_(new Impl) {
  impl_->senders = senders;
  for (uint32_t i = 0; i < kMost; i++) {
    impl_->pieces[i] = {kBytes, reinterpret_cast<char*>(bytes(i))};
    WSAMSG& m = impl_->messages[i];
    m.lpBuffers = &impl_->pieces[i];
    m.dwBufferCount = 1;
    m.Control.buf = impl_->control[i].bytes;
    m.name = &impl_->addresses[i].any;
  }
}
DatagramsIn::~DatagramsIn() = default;

uint8_t* DatagramsIn::bytes(uint32_t index) { return impl_->room + kFront + index * kBytes; }
uint32_t DatagramsIn::length(uint32_t index) const { return impl_->lengths[index]; }

uint32_t DatagramsIn::receive(Descriptor from, uint32_t count) {
  UdpSocket& socket = udpOf(from);
  for (uint32_t i = 0; i < count; i++) {
    WSAMSG& m = impl_->messages[i];
    m.namelen = sizeof(SocketAddress);
    m.Control.len = kControlBytes;
    m.dwFlags = 0;
    if (socket.receiveMessage(socket.socket, &m, &impl_->lengths[i], nullptr, nullptr) == 0) continue;
    const int error = WSAGetLastError();
    if (error == WSAEMSGSIZE) {  // truncated; its flags show that
      m.dwFlags |= MSG_TRUNC;
      continue;
    }
    if (error == WSAEWOULDBLOCK) socket.foundNothing();
    return i;
  }
  return count;
}

bool DatagramsIn::receiveBytes(Descriptor from) { return receive(from, 1) == 1; }

Datagram DatagramsIn::datagram(uint32_t index) const {
  WSAMSG message = impl_->messages[index];
  Datagram d;
  d.bytes = impl_->room + kFront + index * kBytes;
  d.length = d.segment = impl_->lengths[index];
  bool known = !impl_->senders;
  uint32_t interface = 0;
  for (WSACMSGHDR* c = WSA_CMSG_FIRSTHDR(&message); c != nullptr; c = WSA_CMSG_NXTHDR(&message, c)) {
    const auto is = [c](int level, int type) { return c->cmsg_level == level && c->cmsg_type == type; };
    if (is(IPPROTO_IP, IP_PKTINFO)) {
      const auto info = controlValue<IN_PKTINFO>(c);
      d.meta.destination = gidOfIpv4(info.ipi_addr.s_addr);
      interface = info.ipi_ifindex;
      known = true;
    } else if (is(IPPROTO_IP, IP_TOS)) {
      d.meta.trafficClass = controlValue<uint8_t>(c);
    } else if (is(IPPROTO_IP, IP_TTL) || is(IPPROTO_IPV6, IPV6_HOPLIMIT)) {
      d.meta.hopLimit = static_cast<uint8_t>(controlValue<int>(c));
    } else if (is(IPPROTO_IPV6, IPV6_PKTINFO)) {
      const auto info = controlValue<IN6_PKTINFO>(c);
      std::memcpy(d.meta.destination.raw.data(), &info.ipi6_addr, 16);
      interface = info.ipi6_ifindex;
      known = true;
    } else if (is(IPPROTO_IPV6, IPV6_TCLASS)) {
      d.meta.trafficClass = static_cast<uint8_t>(controlValue<int>(c));
    } else if (is(IPPROTO_UDP, UDP_COALESCED_INFO)) {
      const auto segment = controlValue<DWORD>(c);
      if (segment > 0 && segment < d.length) d.segment = segment;
    }
  }
  const SocketAddress& from = impl_->addresses[index];
  d.meta.source = gidOf(&from.any);
  d.sourcePort = ntohs(from.any.sa_family == AF_INET ? from.v4.sin_port : from.v6.sin6_port);
  if (isLinkLocal6(d.meta.source)) d.meta.scopeId = interface;
  if (d.meta.destination.isMulticast()) d.meta.scopeId = interface;
  d.complete = known && (message.dwFlags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  return d;
}

}  // namespace nd
