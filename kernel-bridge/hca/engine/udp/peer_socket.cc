#include "udp/peer_socket.h"

#include <algorithm>

#include "base/packet_headers.h"

namespace nd {

// Returns the sender's entry, or one that can be reused, or null if all others are busier.
PeerSocket* PeerSockets::entry(const PacketMeta& meta, uint16_t port) {
  PeerSocket* oldest = nullptr;
  for (PeerSocket& peer : sockets_) {
    if (peer.is(meta, port)) return &peer;
    const bool settled = peer.ready() || peer.refused_;
    if (peer.port_ != 0 && clock_ - peer.used_ < (settled ? kUnusedFor : kNotHeardFor)) continue;
    if (oldest == nullptr || peer.used_ < oldest->used_) oldest = &peer;
  }
  if (oldest == nullptr) return nullptr;
  if (oldest->ready() && oldest->socket_.hasDatagram()) return nullptr;
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

bool PeerSockets::bind(PeerSocket& peer, uint32_t receiveBufferBytes) {
  return peer.socket_.openListener(family_, kRocePort, receiveBufferBytes) == 0;
}

bool PeerSockets::connect(PeerSocket& peer) {
  return peer.socket_.hearOnly(peer.source_, peer.port_, peer.destination_);
}

void PeerSockets::settle(PeerSocket& peer) {
  peer.socket_.reportDestinations(false);
  if (!in_) in_.reset(new DatagramsIn(false));
  peer.icrc = FlowIcrc({peer.source_, peer.destination_, peer.port_});
  peer.open_ = true;
  counters_.add(HostCounter::kPeerSocketsOpened);
}

void PeerSockets::refuse(PeerSocket& peer) {
  peer.socket_.close();
  peer.open_ = false;
  peer.refused_ = true;  // for the lifetime of the entry
  counters_.add(HostCounter::kPeerSocketsRefused);
}

void PeerSockets::close() {
  for (PeerSocket& peer : sockets_) peer = PeerSocket();
}

uint32_t PeerSockets::receive(PeerSocket& from, uint32_t budget, bool withMetadata) {
  const uint32_t count = std::min(budget, from.expected_);
  withMetadata_ = withMetadata || count > 1 || from.withoutMetadata_ == 0;
  const uint32_t got = withMetadata_ ? in_->receive(from.fd(), count) : in_->receiveBytes(from.fd());
  const bool filled = got == count;
  from.expected_ =
      filled && (count > 1 || from.filled_) ? std::min(2 * count, UdpWire::kReceiveBatch) : std::max(got, 1u);
  from.filled_ = filled;
  if (got != 0) from.used_ = clock_ += got;
  return got;
}

uint8_t* PeerSockets::single(uint32_t* length) {
  static_assert(FlowIcrc::kRoom <= DatagramsIn::kFront);
  *length = in_->length(0);
  return withMetadata_ || *length > FlowIcrc::kMostBytes + kIcrcBytes ? nullptr : in_->bytes(0);
}

PacketMeta PeerSockets::metaOf(const PeerSocket& from) const {
  PacketMeta meta;
  meta.source = from.source_;
  meta.destination = from.destination_;
  meta.trafficClass = from.trafficClass_;
  meta.hopLimit = from.hopLimit_;
  return meta;
}

Datagram PeerSockets::datagram(PeerSocket& from, uint32_t index) {
  Datagram d = in_->datagram(index);
  d.sourcePort = from.port_;
  d.meta.source = from.source_;
  d.meta.destination = from.destination_;
  if (d.hasMetadata) {
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
