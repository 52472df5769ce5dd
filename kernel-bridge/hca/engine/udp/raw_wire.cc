#include "udp/raw_wire.h"

#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crc32.h"
#include "base/joined.h"
#include "base/wire.h"
#include "platform/local_addresses.h"
#include "udp/udp_wire.h"

namespace nd {
namespace {

constexpr uint32_t kRawBytes = 65536;  // more than any IP packet has
constexpr uint32_t kQpnWordAt = wire::kBthQpnAt - 1, kSlotAt = wire::kBthQpnAt;
constexpr uint32_t kTake = 0xffffffff, kDrop = 0;
constexpr uint32_t kInterface = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_IFINDEX);

sock_filter step(uint16_t code, uint32_t k) { return sock_filter{code, 0, 0, k}; }
sock_filter jump(uint16_t kind, uint32_t k, uint8_t onTrue, uint8_t onFalse) {
  return sock_filter{static_cast<uint16_t>(BPF_JMP | kind | BPF_K), onTrue, onFalse, k};
}

int attach(int fd, std::vector<sock_filter>& program) {
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 ? 0 : errno;
}

// What every process may get: management, and groups.
bool isShared(uint32_t qpn) { return qpn <= wire::kGsiQpn || qpn == wire::kMulticastQpn; }

uint32_t ipv4Of(const Gid& gid) {
  uint32_t address;
  std::memcpy(&address, gid.raw.data() + 12, 4);
  return address;
}

}  // namespace

struct RawWire::Buffers {
  mmsghdr messages[kBatch];
  iovec pieces[kBatch];
  uint8_t bytes[kBatch][kRawBytes];
  Buffers() {
    for (uint32_t i = 0; i < kBatch; i++) {
      messages[i] = {};
      pieces[i] = {bytes[i], kRawBytes};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
};

void RawWire::BuffersDeleter::operator()(Buffers* buffers) const { delete buffers; }

int RawWire::open(uint32_t receiveBufferBytes) {
  UniqueFd fd(socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!fd.valid()) return errno;
  // Nothing is for it before divide().
  std::vector<sock_filter> nothing = {step(BPF_RET | BPF_K, kDrop)};
  if (const int error = attach(fd.get(), nothing)) return error;
  const int wanted = static_cast<int>(std::min<uint32_t>(receiveBufferBytes, INT32_MAX / 2));
  if (setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof wanted) != 0)
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
  buffers_.reset(new Buffers());
  witnesses_.assign(kWitnesses, {});
  fd_ = std::move(fd);
  return 0;
}

int RawWire::divide(int udp, uint32_t slot) {
  const uint32_t loopback = if_nametoindex("lo");
  // The UDP socket's filter sees the UDP header first.
  std::vector<sock_filter> forUdp = {
      step(BPF_LD | BPF_W | BPF_ABS, kInterface),
      jump(BPF_JEQ, loopback, 0, 2),
      step(BPF_LD | BPF_B | BPF_ABS, kUdpBytes),
      jump(BPF_JSET, wire::kTransportBits, 6, 0),
      step(BPF_LD | BPF_W | BPF_ABS, kUdpBytes + kQpnWordAt),
      step(BPF_ALU | BPF_AND | BPF_K, wire::kQpnMask),
      jump(BPF_JGT, wire::kGsiQpn, 0, 3),
      step(BPF_LD | BPF_B | BPF_ABS, kUdpBytes + kSlotAt),
      jump(BPF_JEQ, slot, 0, 1),
      step(BPF_RET | BPF_K, kDrop),
      step(BPF_RET | BPF_K, kTake),
  };
  // The raw socket's the IP header.
  std::vector<sock_filter> forRaw = {
      step(BPF_LDX | BPF_B | BPF_MSH, 0),  // X: bytes of the IP header
      step(BPF_LD | BPF_H | BPF_IND, 2),
      jump(BPF_JEQ, kRocePort, 0, 11),
      step(BPF_LD | BPF_W | BPF_ABS, kInterface),
      jump(BPF_JEQ, loopback, 0, 2),
      step(BPF_LD | BPF_B | BPF_IND, kUdpBytes),
      jump(BPF_JSET, wire::kTransportBits, 7, 0),
      step(BPF_LD | BPF_B | BPF_IND, kUdpBytes + kSlotAt),
      jump(BPF_JEQ, slot, 4, 0),
      step(BPF_LD | BPF_W | BPF_IND, kUdpBytes + kQpnWordAt),
      step(BPF_ALU | BPF_AND | BPF_K, wire::kQpnMask),
      jump(BPF_JEQ, wire::kMulticastQpn, 1, 0),
      jump(BPF_JGT, wire::kGsiQpn, 1, 0),
      step(BPF_RET | BPF_K, kTake),
      step(BPF_RET | BPF_K, kDrop),
  };
  // First the copies, then nothing more by the old way: a packet in between comes twice, which transports know.
  if (const int error = attach(fd_.get(), forRaw)) return error;
  return attach(udp, forUdp);
}

void RawWire::close() { fd_.reset(); }

uint32_t RawWire::receive(uint32_t budget) {
  const uint32_t count = std::min(budget, kBatch);
  for (uint32_t i = 0; i < count; i++) buffers_->messages[i].msg_hdr.msg_flags = 0;
  int n;
  do {
    n = recvmmsg(fd_.get(), buffers_->messages, count, MSG_DONTWAIT, nullptr);
  } while (n < 0 && errno == EINTR);
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

RawWire::Piece RawWire::piece(uint32_t index) {
  Piece p;
  const mmsghdr& message = buffers_->messages[index];
  const uint8_t* header = buffers_->bytes[index];
  const uint32_t total = message.msg_len;
  const auto bad = [&](HostCounter counter) {
    counters_.add(counter);
    return Piece();
  };
  // The ICRC knows no options; fragments come reassembled.
  if (total < kIp4Bytes + kUdpBytes + kBthBytes + kIcrcBytes || header[0] != ip::kVersionAndLength) return bad(HostCounter::kWireRxShort);
  const uint8_t* udp = header + kIp4Bytes;
  const uint32_t udpBytes = total - kIp4Bytes;
  p.length = udpBytes - kUdpBytes;
  if (wire::load16(udp + ip::kUdpLengthAt) != udpBytes || p.length % 4 != 0) return bad(HostCounter::kWireRxShort);
  const uint32_t flags = wire::load16(header + ip::kFlagsAt);
  if ((flags & ~ip::kDontFragment) != 0) return bad(HostCounter::kIcrcErrors);
  uint32_t address;
  std::memcpy(&address, header + ip::kSourceAt, 4);
  p.meta.source = gidOfIpv4(address);
  std::memcpy(&address, header + ip::kDestinationAt, 4);
  p.meta.destination = gidOfIpv4(address);
  p.meta.trafficClass = header[ip::kTrafficClassAt];
  p.meta.hopLimit = header[ip::kHopLimitAt];
  p.headers.source = p.meta.source;
  p.headers.destination = p.meta.destination;
  p.headers.sourcePort = static_cast<uint16_t>(wire::load16(udp + ip::kSourcePortAt));
  p.headers.ipv4Id = static_cast<uint16_t>(wire::load16(header + ip::kIdAt));
  p.headers.dontFragment = flags != 0;
  p.bytes = udp + kUdpBytes;
  IcrcHeaders headers;
  if (p.length <= kMaxDatagram && right(p, p.bytes, p.length, 0, &headers)) {
    p.segment = p.length;  // one packet
    return p;
  }
  p.segment = findSegment(p, lastSegment_);
  if (p.segment == 0) return bad(p.length > kMaxDatagram ? HostCounter::kRawUnsegmented : HostCounter::kIcrcErrors);
  lastSegment_ = p.segment;
  return p;
}

// Whether the packet number `index` of a piece has the right ICRC, and with which headers.
bool RawWire::right(const Piece& piece, const uint8_t* bth, uint32_t whole, uint32_t index, IcrcHeaders* headers) {
  *headers = piece.headers;
  const uint32_t length = whole - kIcrcBytes, received = loadIcrc(bth + length);
  if (icrcOf(*headers, bth, length) == received) return true;
  if (index == 0) return false;
  headers->ipv4Id = static_cast<uint16_t>(piece.headers.ipv4Id + index);  // it had a header of its own
  return icrcOf(*headers, bth, length) == received;
}

// The length of the packets of a piece, 0 if it is not known: where it ends there is another BTH to the same
// queue pair, and the first ICRC is right.
uint32_t RawWire::findSegment(const Piece& piece, uint32_t likely) {
  const uint8_t* first = piece.bytes;
  IcrcHeaders headers;
  uint32_t guesses = 0;
  const auto found = [&](uint32_t segment) {
    return mayBeJoined(first, piece.length, segment) && guesses++ < kMostGuesses && right(piece, first, segment, 0, &headers);
  };
  const uint32_t most = std::min(kMaxDatagram, piece.length - 4);  // the whole was tried
  if (likely != 0 && likely <= most && found(likely)) return likely;
  for (uint32_t segment = kBthBytes + kIcrcBytes; segment <= most; segment += 4)
    if (found(segment)) return segment;
  return 0;
}

bool RawWire::next(Piece* piece, Packet* out) {
  while (piece->at < piece->length) {
    const uint8_t* bth = piece->bytes + piece->at;
    const uint32_t whole = std::min(piece->segment, piece->length - piece->at), index = piece->index++;
    piece->at += whole;
    if (index != 0 && !right(*piece, bth, whole, index, &out->headers)) {
      counters_.add(HostCounter::kIcrcErrors);
      continue;
    }
    if (index == 0) out->headers = piece->headers;
    out->meta = piece->meta;
    out->bth = bth;
    out->length = whole - kIcrcBytes;
    if (!isShared(wire::destinationQpn(bth))) return true;
    const Witness witness = witnessOf(out->meta, bth, out->length);
    witnesses_[witness.crc & (kWitnesses - 1)] = witness;
  }
  return false;
}

RawWire::Witness RawWire::witnessOf(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  return {ipv4Of(meta.source), ipv4Of(meta.destination), length, crc32Register(kTake, bth, length)};
}

bool RawWire::witnessed(const PacketMeta& meta, const uint8_t* bth, uint32_t length) const {
  const Witness w = witnessOf(meta, bth, length), &known = witnesses_[w.crc & (kWitnesses - 1)];
  return known.crc == w.crc && known.length == w.length && known.source == w.source &&
         known.destination == w.destination;
}

}  // namespace nd
