#include "host/local_delivery.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy.h"
#include "base/mad.h"
#include "platform/event.h"
#include "slots/host_events.h"

namespace nd {
namespace {

PacketMeta metaOf(const Path& path) {
  PacketMeta meta;
  meta.source = path.source;
  meta.destination = path.destination;
  meta.trafficClass = path.trafficClass;
  meta.hopLimit = path.hopLimit;
  meta.flowLabel = path.flowLabel;
  meta.scopeId = path.scopeId;
  return meta;
}

// Returns a packet's bytes from BTH to pad in one piece.
void gather(uint8_t* out, const OutPacket& packet) {
  std::memcpy(out, packet.header, packet.headerLength);
  out += packet.headerLength;
  for (uint32_t i = 0; i < packet.pieceCount; i++) {
    copyBytes(out, packet.pieces[i].data, packet.pieces[i].length);
    out += packet.pieces[i].length;
  }
  std::memset(out, 0, packet.padLength);
}

std::vector<uint8_t> copyOf(const Frame& frame) {
  std::vector<uint8_t> bytes(Frame::kHeaderBytes + frame.bodyLength);
  frame.encodeHeader(bytes.data());
  copyBytes(bytes.data() + Frame::kHeaderBytes, frame.body, frame.bodyLength);
  return bytes;
}

}  // namespace

LocalDelivery::LocalDelivery(const HostParts& parts, LocalPairs& pairs, Gsi& gsi, RawReceiver& raw,
                             WireReceiver& receiver4, WireReceiver& receiver6)
    : Carrier(false),
      parts_(parts),
      pairs_(pairs),
      gsi_(gsi),
      raw_(raw),
      receiver4_(receiver4),
      receiver6_(receiver6),
      wake_(makeEvent()) {
  if (wake_.valid()) parts.readiness.add(wake_.get(), Readiness::kReadable, eventTag(EventKind::kLocalQueue, 0));
}

void LocalDelivery::stop() {
  queue_.clear();
  silence();
}

// ── Out ─────────────────────────────────────────────────────────────────────────────────────────

// QP1 messages to processes on this host need no wire, because they are routed by the ids in them in any case.
bool LocalDelivery::prefers(const Path& path, const OutPacket& packet) {
  return localLink_ && wire::destinationQpn(packet.header) == wire::kGsiQpn && parts_.addresses.isOwn(path.destination);
}

bool LocalDelivery::send(const Path& path, const OutPacket& packet, uint32_t length) {
  const bool reachable = path.destination.isMulticast() || parts_.addresses.isOwn(path.destination);
  if (!reachable || !parts_.addresses.isOwn(path.source)) return false;
  uint8_t bytes[kMaxDatagram];
  gather(bytes, packet);
  parts_.tap.pass(*this, path, bytes, length);
  return true;
}

// Sends to the process that owns the destination QP. QP1 exists in every process, so this process routes its packets
// itself.
void LocalDelivery::carry(const Path& path, const uint8_t* bytes, uint32_t length) {
  Frame frame;
  frame.meta = metaOf(path);
  frame.meta.sender = parts_.slots.slot();
  frame.body = bytes;
  frame.bodyLength = length;
  // Only a group's members know that they are members.
  if (path.destination.isMulticast()) {
    parts_.slots.sendToOthers(frame, parts_.clock.now());
    if (parts_.addresses.accepts(frame.meta)) queue(frame);
    return;
  }
  const uint32_t qpn = wire::destinationQpn(bytes), slot = qpn >> 16;
  if (qpn == wire::kGsiQpn || slot == parts_.slots.slot()) return queue(frame);
  parts_.slots.send(slot, frame);
}

void LocalDelivery::queue(const Frame& frame) {
  if (queue_.size() >= kMostQueued) return parts_.counters.add(HostCounter::kLocalQueueFull);
  if (!now_) ring();
  queue_.push_back(copyOf(frame));
  parts_.counters.add(HostCounter::kLocalPackets);
}

void LocalDelivery::ring() {
  if (!std::exchange(rung_, true)) raiseEvent(wake_.get());
}

void LocalDelivery::silence() {
  if (std::exchange(rung_, false)) clearEvent(wake_.get());
}

void LocalDelivery::endNow(Engine& engine) {
  if (!std::exchange(now_, false) || queue_.empty()) return;
  const auto deliver = [](void* self, PacketSink& sink) {
    auto* local = static_cast<LocalDelivery*>(self);
    const Intake::Step step(local->parts_.intake, sink);
    local->deliverQueue(kMostDrained);
  };
  engine.deliver(deliver, this);
  if (!queue_.empty()) ring();
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────

void LocalDelivery::onFrame(const Frame& frame, FrameOrigin& origin) {
  const auto bad = [&](HostCounter counter) { parts_.counters.add(counter); };
  if (!parts_.intake.checkLength(frame.bodyLength, HostCounter::kSlotBadFrames)) return;
  const uint32_t qpn = wire::destinationQpn(frame.body);
  const bool multicast = frame.meta.destination.isMulticast(), stray = frame.kind == FrameKind::kStray;
  if (!parts_.addresses.accepts(frame.meta)) {
    // A packet for a group goes to all processes, so it is not an error if it is not for this one.
    const bool forOthers = multicast && qpn == wire::kMulticastQpn && frame.kind != FrameKind::kMad;
    return bad(forOthers ? HostCounter::kRxNotLocal : HostCounter::kSlotBadFrames);
  }
  if (raw_.hasOwnCopy(frame.meta, frame.body, stray) || !raw_.vouchesFor(frame.meta, frame.body, frame.bodyLength))
    return;
  if (frame.kind == FrameKind::kMad) {
    // A process forwards packets from the wire, and sends its own. It does not send on behalf of another process.
    const uint32_t sender = frame.meta.sender;
    if (qpn != wire::kGsiQpn || (sender != kByWire && !parts_.slots.mayComeFrom(sender, origin.connection)))
      return bad(HostCounter::kSlotBadFrames);
    deferred_.push_back({copyOf(frame)});
    return;
  }
  // The frame is not forwarded again; one for another slot is its sender's error.
  const bool ours = multicast ? qpn == wire::kMulticastQpn : qpn >> 16 == parts_.slots.slot() || qpn == wire::kGsiQpn;
  if (!ours || (frame.kind != FrameKind::kPacket && !stray)) return bad(HostCounter::kSlotBadFrames);
  if (multicast && stray && !parts_.copies.takesHanded(frame.meta, frame.body, frame.bodyLength, parts_.clock.now()))
    return bad(HostCounter::kGroupCopies);
  parts_.intake.onPacket(frame.meta, frame.body, frame.bodyLength);
}

void LocalDelivery::onOutbound(uint32_t slot, uint32_t kinds) {
  const Departure departure = parts_.slots.onOutbound(slot, kinds, parts_.clock.now());
  if (departure != Departure::kNone) deferred_.push_back({{}, slot, departure == Departure::kOrderly});
}

uint32_t LocalDelivery::deliverQueue(uint32_t budget) {
  uint32_t n = 0;
  for (; n < budget && !queue_.empty(); n++) {
    // The message is removed first, because delivering it may queue a reply.
    const std::vector<uint8_t> bytes = std::move(queue_.front());
    queue_.pop_front();
    if (queue_.empty()) silence();
    Frame frame;
    if (!frame.decode(bytes.data(), static_cast<uint32_t>(bytes.size()))) continue;
    if (pairs_.any() && wire::destinationQpn(frame.body) == wire::kGsiQpn) drainPairs();  // it may end a connection
    parts_.intake.onPacket(frame.meta, frame.body, frame.bodyLength);
  }
  return n;
}

// Delivers packets that came over the pairs before a message that ends a connection, or before the end of a process.
void LocalDelivery::drainPairs() {
  uint32_t n = 0;
  for (uint32_t got = 1; got != 0 && n < kMostDrained; n += got) got = receivePairs(kMostDrained);
}

// Returns whether earlier data of the message's sender may still be in a socket, and would be lost if the message were
// delivered first. This is so if it ends a connection. A message that begins one has no earlier data, and need not wait
// for other hosts' packets.
bool LocalDelivery::endsConnection(const Deferred& what) {
  if (what.frame.empty()) return true;
  const uint8_t* bth = what.frame.data() + Frame::kHeaderBytes;
  if (!mad::isMadPacket(bth, static_cast<uint32_t>(what.frame.size()) - Frame::kHeaderBytes)) return true;
  const uint32_t attribute = mad::attribute(bth + mad::kPacketMadOffset);
  return attribute == mad::kDreq || attribute == mad::kRej;
}

uint32_t LocalDelivery::deliverDeferred() {
  uint32_t n = 0;
  if (std::any_of(deferred_.begin(), deferred_.end(), endsConnection)) {
    for (WireReceiver* receiver : {&receiver4_, &receiver6_}) n += receiver->drainPort();
    for (WireReceiver* receiver : {&receiver4_, &receiver6_}) n += receiver->drainPeers();
  }
  if (pairs_.any()) drainPairs();
  while (!deferred_.empty()) {
    const Deferred what = std::move(deferred_.front());
    deferred_.pop_front();
    Frame frame;
    if (what.frame.empty()) {
      parts_.intake.sink().onPeerProcessGone(what.slot, what.orderly);
      pairs_.forget(what.slot);
    } else if (frame.decode(what.frame.data(), static_cast<uint32_t>(what.frame.size()))) {
      gsi_.onHandedOver(frame.meta, frame.body, frame.bodyLength);
    }
  }
  return n;
}

}  // namespace nd
