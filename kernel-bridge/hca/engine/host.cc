#include "host.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>

#include "capture.h"
#include "faults.h"
#include "gsi.h"
#include "host_counters.h"
#include "host_events.h"
#include "local_addresses.h"
#include "mad.h"
#include "port_holder.h"
#include "ports.h"
#include "slots.h"
#include "steering.h"
#include "udp_wire.h"

namespace nd {
namespace {

constexpr uint32_t kMaxLocalQueue = 4096;        // packets of this process to itself, without a wire
constexpr uint32_t kFramesPerConnection = 64;    // of one peer process per poll
constexpr uint32_t kPollsPerFullLook = 8;        // while polling: how often the quiet descriptors are looked at
constexpr uint32_t kEventsPerLook = 32;

uint32_t gather(uint8_t* out, const OutPacket& packet) {
  std::memcpy(out, packet.header, packet.headerLength);
  uint32_t at = packet.headerLength;
  for (uint32_t i = 0; i < packet.pieceCount; i++) {
    std::memcpy(out + at, packet.pieces[i].iov_base, packet.pieces[i].iov_len);
    at += static_cast<uint32_t>(packet.pieces[i].iov_len);
  }
  std::memset(out + at, 0, packet.padLength);
  return at + packet.padLength;
}

// Length from BTH to pad, 0 if the packet is not one that may be sent.
uint32_t checkedLength(const OutPacket& packet) {
  if (packet.headerLength < kBthBytes || packet.headerLength > OutPacket::kMaxHeader || packet.padLength > 3 ||
      packet.pieceCount > OutPacket::kMaxPieces)
    return 0;
  uint64_t pieces = 0;
  for (uint32_t i = 0; i < packet.pieceCount; i++) pieces += packet.pieces[i].iov_len;
  const uint64_t length = packet.headerLength + pieces + packet.padLength;
  if (pieces != packet.payloadLength || length % 4 != 0 || length + kIcrcBytes > kMaxDatagram) return 0;
  return static_cast<uint32_t>(length);
}

PacketMeta metaOf(const Path& path) {
  PacketMeta meta;
  meta.source = path.source;
  meta.destination = path.destination;
  meta.trafficClass = path.trafficClass;
  meta.hopLimit = path.hopLimit;
  meta.scopeId = path.scopeId;
  return meta;
}

Status statusOfErrno(int error) {
  switch (error) {
    case 0:
    case EAGAIN:
    case ENOBUFS:  // lost, as any datagram may be
      return Status::kSuccess;
    case ENETUNREACH:
    case ENETDOWN:
      return Status::kNetworkUnreachable;
    case EHOSTUNREACH:
    case EHOSTDOWN:
      return Status::kHostUnreachable;
    case EINVAL:
    case EADDRNOTAVAIL:
      return Status::kInvalidAddress;
    case EPERM:
    case EACCES:
      return Status::kAccessDenied;
    default:
      return Status::kUnsuccessful;
  }
}

}  // namespace

struct Host::Impl {
  struct Wire {
    Wire(Impl& impl, int f)
        : family(f), udp(impl.counters), steering(impl.counters, &Impl::sendProbe, this), host(impl) {}
    int family;
    UdpWire udp;
    Steering steering;
    Impl& host;
  };
  // A packet that others overtake (fault layer).
  struct Held {
    uint32_t packetsToGo = 0;      // 0: none is held
    uint64_t due = UINT64_MAX;
    Wire* wire = nullptr;          // null: a packet without a wire
    Path path;
    std::vector<uint8_t> bytes;
  };

  explicit Impl(const Clock& c) : clock(c), epoll(epoll_create1(EPOLL_CLOEXEC)) {
    localWake.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (epoll.valid() && localWake.valid())
      watchFd(epoll.get(), localWake.get(), EPOLLIN, EventKind::kLocalQueue, 0);
  }

  const Clock& clock;
  HostCounters counters;
  UniqueFd epoll;
  UniqueFd localWake;
  Inbound inbound{counters, epoll.get()};
  Slots slots{counters, epoll.get()};
  Ports ports{epoll.get()};
  Gsi gsi{clock, counters, ports, slots};
  Faults faults;
  Capture capture;
  LocalAddresses addresses;
  Wire wire4{*this, AF_INET}, wire6{*this, AF_INET6};
  Wire* hot = nullptr;             // the socket that received last
  Engine* engine = nullptr;
  PacketSink* sink = nullptr;      // during poll()
  std::deque<std::vector<uint8_t>> localQueue;  // frames
  Held held;
  std::string problem;
  uint32_t quietPolls = 0;
  uint32_t madPsn = 0;
  bool fullLook = true;
  std::atomic<bool> started{false};
  bool wired = false;              // at start; read by any thread

  Wire& wireTo(const Gid& address) { return address.isV4() ? wire4 : wire6; }

  // ── Out
  void transmit(Wire& wire, const Path& path, uint8_t* bytes, uint32_t length);
  void commit(Wire& wire, const Path& path, const uint8_t* bytes, uint32_t length);
  void transmitLocal(const Path& path, uint8_t* bytes, uint32_t length);
  void carryLocal(const Path& path, const uint8_t* bytes, uint32_t length);
  bool hold(Wire* wire, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets);
  void overtakeHeld();
  void releaseHeld();
  bool isDropped(const Faults::Fate& fate);
  void captureOut(const Path& path, const uint8_t* bytes, uint32_t length);
  void queueLocal(const Frame& frame);
  static void sendProbe(void* wire, const SteeringProbe& probe);

  // ── In
  uint32_t receiveFrom(Wire& wire, uint32_t budget);
  void onDatagram(Wire& wire, const UdpWire::Datagram& datagram);
  void onProbe(Wire& wire, const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  void onFrame(const Frame& frame);
  void deliver(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
               const uint8_t* icrc);
  uint32_t drainLocalQueue(uint32_t budget);
  uint32_t lookAtAll(uint32_t budget);
  uint64_t nextDeadline() const;
  void runTimers();

  void openWire(Wire& wire, uint32_t receiveBufferBytes);
};

// ── Out ─────────────────────────────────────────────────────────────────────────────────────────────────────

void Host::Impl::captureOut(const Path& path, const uint8_t* bytes, uint32_t length) {
  if (!capture.active()) return;
  IcrcHeaders headers;
  headers.source = path.source;
  headers.destination = path.destination;
  capture.write(Capture::Direction::kOutbound, headers, {path.trafficClass, path.hopLimit}, bytes, length);
  capture.scheduleFlush(clock.now());
}

bool Host::Impl::isDropped(const Faults::Fate& fate) {
  if (!fate.drop) return false;
  counters.add(fate.dropMad ? HostCounter::kFaultMadsDropped : HostCounter::kFaultDropped);
  return true;
}

bool Host::Impl::hold(Wire* wire, const Path& path, const uint8_t* bytes, uint32_t length, uint32_t packets) {
  if (held.packetsToGo != 0) return false;  // one at a time is enough disorder
  held.packetsToGo = packets;
  held.due = clock.now() + Faults::kMaxHoldNs;
  held.wire = wire;
  held.path = path;
  held.bytes.assign(bytes, bytes + length);
  counters.add(HostCounter::kFaultReordered);
  return true;
}

void Host::Impl::overtakeHeld() {
  if (held.packetsToGo != 0 && --held.packetsToGo == 0) releaseHeld();
}

void Host::Impl::releaseHeld() {
  held.packetsToGo = 0;
  held.due = UINT64_MAX;
  const auto length = static_cast<uint32_t>(held.bytes.size());
  if (held.wire == nullptr) return carryLocal(held.path, held.bytes.data(), length);
  std::memcpy(held.wire->udp.stage(), held.bytes.data(), length);
  commit(*held.wire, held.path, held.bytes.data(), length);
}

void Host::Impl::commit(Wire& wire, const Path& path, const uint8_t* bytes, uint32_t length) {
  captureOut(path, bytes, length);
  wire.udp.commit(path, length);
}

// `bytes` is the wire's staging room, `length` without ICRC, for which there is room.
void Host::Impl::transmit(Wire& wire, const Path& path, uint8_t* bytes, uint32_t length) {
  IcrcHeaders headers;
  headers.source = path.source;
  headers.destination = path.destination;
  storeIcrc(bytes + length, icrcOf(headers, bytes, length));
  const uint32_t total = length + kIcrcBytes;
  if (!faults.active()) return commit(wire, path, bytes, total);

  const Faults::Fate fate = faults.decide(bytes, length);
  if (isDropped(fate)) return;
  if (fate.corrupt) {
    const uint64_t bit = fate.bit % (total * 8ull);
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1u << bit % 8);
    counters.add(HostCounter::kFaultCorrupted);
  }
  if (fate.reorder && hold(&wire, path, bytes, total, fate.holdFor)) return;
  commit(wire, path, bytes, total);
  if (fate.duplicate) {
    counters.add(HostCounter::kFaultDuplicated);
    uint8_t* copy = wire.udp.stage();  // may send the batch; its bytes stay where they are
    if (copy != bytes) std::memcpy(copy, bytes, total);
    commit(wire, path, copy, total);
  }
  overtakeHeld();
}

void Host::Impl::transmitLocal(const Path& path, uint8_t* bytes, uint32_t length) {
  if (!faults.active()) return carryLocal(path, bytes, length);
  const Faults::Fate fate = faults.decide(bytes, length);
  if (isDropped(fate)) return;
  if (fate.corrupt) return counters.add(HostCounter::kFaultCorrupted);  // no ICRC here: what it would find is lost
  if (fate.reorder && hold(nullptr, path, bytes, length, fate.holdFor)) return;
  carryLocal(path, bytes, length);
  if (fate.duplicate) {
    counters.add(HostCounter::kFaultDuplicated);
    carryLocal(path, bytes, length);
  }
  overtakeHeld();
}

// Without a wire: to the process that owns the destination QP. QP1 is everybody's, so its packets are this
// process's own to route.
void Host::Impl::carryLocal(const Path& path, const uint8_t* bytes, uint32_t length) {
  if (capture.active()) {
    uint8_t whole[kMaxDatagram];
    IcrcHeaders headers;
    headers.source = path.source;
    headers.destination = path.destination;
    std::memcpy(whole, bytes, length);
    storeIcrc(whole + length, icrcOf(headers, bytes, length));
    captureOut(path, whole, length + kIcrcBytes);
  }
  Frame frame;
  frame.meta = metaOf(path);
  frame.body = bytes;
  frame.bodyLength = length;
  const uint32_t qpn = mad::destinationQpn(bytes), slot = qpn >> 16;
  if (qpn == mad::kGsiQpn || slot == slots.slot()) return queueLocal(frame);
  slots.send(slot, frame);
}

void Host::Impl::queueLocal(const Frame& frame) {
  if (localQueue.size() >= kMaxLocalQueue) return counters.add(HostCounter::kLocalQueueFull);
  if (localQueue.empty()) {
    const uint64_t one = 1;
    if (::write(localWake.get(), &one, sizeof one) < 0) {
      // The counter is at its limit only if it was never read: the descriptor is readable, as wanted.
    }
  }
  std::vector<uint8_t> bytes(Frame::kHeaderBytes + frame.bodyLength);
  frame.encodeHeader(bytes.data());
  std::memcpy(bytes.data() + Frame::kHeaderBytes, frame.body, frame.bodyLength);
  localQueue.push_back(std::move(bytes));
  counters.add(HostCounter::kLocalPackets);
}

void Host::Impl::sendProbe(void* argument, const SteeringProbe& probe) {
  Wire& wire = *static_cast<Wire*>(argument);
  Path path;
  if (wire.family == AF_INET) {
    path.source = gidOfIpv4(htonl(INADDR_LOOPBACK));
  } else {
    path.source.raw[15] = 1;
  }
  path.destination = path.source;
  uint8_t* bytes = wire.udp.stage();
  const uint32_t length = kBthBytes + sizeof probe;
  std::memset(bytes, 0, kBthBytes);
  bytes[0] = SteeringProbe::kOpcode;
  bytes[2] = bytes[3] = 0xff;
  bytes[5] = SteeringProbe::kQpnMark >> 16;
  bytes[7] = static_cast<uint8_t>(probe.index);
  std::memcpy(bytes + kBthBytes, &probe, sizeof probe);
  IcrcHeaders headers;
  headers.source = headers.destination = path.source;
  storeIcrc(bytes + length, icrcOf(headers, bytes, length));
  wire.udp.commit(path, length + kIcrcBytes);
}

bool Host::send(const Path& path, const OutPacket& packet) {
  Impl& h = *impl_;
  const uint32_t length = checkedLength(packet);
  if (length == 0) {
    h.counters.add(HostCounter::kTxTooLong);
    return false;
  }
  Impl::Wire& wire = h.wireTo(path.destination);
  if (wire.udp.isOpen() && path.source.isV4() == path.destination.isV4()) {
    uint8_t* bytes = wire.udp.stage();
    gather(bytes, packet);
    h.transmit(wire, path, bytes, length);
    return true;
  }
  if (!h.started || !isLocal(path.destination) || !isLocal(path.source)) {
    h.counters.add(HostCounter::kTxUnroutable);
    return false;
  }
  uint8_t bytes[kMaxDatagram];
  gather(bytes, packet);
  h.transmitLocal(path, bytes, length);
  return true;
}

void Host::flush() {
  if (impl_->wire4.udp.isOpen()) impl_->wire4.udp.flush();
  if (impl_->wire6.udp.isOpen()) impl_->wire6.udp.flush();
}

// ── In ──────────────────────────────────────────────────────────────────────────────────────────────────────

uint32_t Host::Impl::receiveFrom(Wire& wire, uint32_t budget) {
  if (!wire.udp.isOpen()) return 0;
  const uint32_t n = wire.udp.receive(budget);
  for (uint32_t i = 0; i < n; i++) onDatagram(wire, wire.udp.datagram(i));
  if (n != 0) hot = &wire;
  return n;
}

void Host::Impl::onDatagram(Wire& wire, const UdpWire::Datagram& datagram) {
  if (!datagram.complete || datagram.length < kBthBytes + kIcrcBytes || datagram.length % 4 != 0)
    return counters.add(HostCounter::kWireRxShort);
  const uint8_t* bth = datagram.bytes;
  const uint32_t length = datagram.length - kIcrcBytes;
  IcrcHeaders headers;
  headers.source = datagram.meta.source;
  headers.destination = datagram.meta.destination;
  headers.sourcePort = datagram.sourcePort;
  const uint32_t computed = icrcOf(headers, bth, length), received = loadIcrc(bth + length);
  if (computed != received) {
    if (wire.family != AF_INET || !solveIpv4Id(computed, received, length, &headers))
      return counters.add(HostCounter::kIcrcErrors);
    counters.add(HostCounter::kIpv4IdSolved);
  }
  if (!isUnicast(datagram.meta.source) || !addresses.contains(datagram.meta.destination, clock.now()))
    return counters.add(HostCounter::kRxNotLocal);

  const uint32_t qpn = mad::destinationQpn(bth), slot = qpn >> 16;
  if (qpn <= mad::kGsiQpn || slot == slots.slot())
    return deliver(datagram.meta, headers, bth, length, bth + length);
  if (slot == SteeringProbe::kQpnMark >> 16 && bth[0] == SteeringProbe::kOpcode)
    return onProbe(wire, datagram.meta, bth, length);
  counters.add(HostCounter::kRxMisdirected);
  if (slot >= Slots::kMax) return counters.add(HostCounter::kUnknownSlot);
  Frame frame;
  frame.meta = datagram.meta;
  frame.body = bth;
  frame.bodyLength = length;
  // Only a packet that had somebody to go to says that the steering is wrong.
  if (slots.send(slot, frame)) wire.steering.onMisdirected(clock.now());
}

void Host::Impl::onProbe(Wire& wire, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  SteeringProbe probe;
  if (!isLoopback(meta.source) || length != kBthBytes + sizeof probe) return;
  std::memcpy(&probe, bth + kBthBytes, sizeof probe);
  if (probe.magic != SteeringProbe::kMagic) return;
  const ProbeReply reply{probe.nonce, probe.index, slots.slot()};
  if (probe.slot == slots.slot()) return wire.steering.onReply(reply);
  Frame frame;
  frame.kind = FrameKind::kProbeReply;
  frame.body = reinterpret_cast<const uint8_t*>(&reply);
  frame.bodyLength = sizeof reply;
  if (probe.slot < Slots::kMax) slots.send(probe.slot, frame);
}

void Host::Impl::onFrame(const Frame& frame) {
  counters.add(HostCounter::kForwardedIn);
  if (frame.kind == FrameKind::kProbeReply) {
    ProbeReply reply;
    if (frame.bodyLength != sizeof reply) return counters.add(HostCounter::kSlotBadFrames);
    std::memcpy(&reply, frame.body, sizeof reply);
    wire4.steering.onReply(reply);
    wire6.steering.onReply(reply);
    return;
  }
  const bool packet = frame.bodyLength >= kBthBytes && frame.bodyLength % 4 == 0 &&
                      frame.bodyLength + kIcrcBytes <= kMaxDatagram;
  if (!packet || !isUnicast(frame.meta.source) || !addresses.contains(frame.meta.destination, clock.now()))
    return counters.add(HostCounter::kSlotBadFrames);
  const uint32_t qpn = mad::destinationQpn(frame.body);
  IcrcHeaders headers;
  headers.source = frame.meta.source;
  headers.destination = frame.meta.destination;
  if (frame.kind == FrameKind::kMad) {
    if (qpn != mad::kGsiQpn) return counters.add(HostCounter::kSlotBadFrames);
    gsi.onHandedOver(frame.meta, frame.body, frame.bodyLength);
    return;
  }
  // Never forwarded again: a frame for another slot is its sender's mistake.
  if (qpn >> 16 != slots.slot() && qpn != mad::kGsiQpn) return counters.add(HostCounter::kSlotBadFrames);
  deliver(frame.meta, headers, frame.body, frame.bodyLength, nullptr);
}

// `icrc`: the bytes that came with the packet, null if it came without.
void Host::Impl::deliver(const PacketMeta& meta, const IcrcHeaders& headers, const uint8_t* bth, uint32_t length,
                         const uint8_t* icrc) {
  if (capture.active()) {
    uint8_t whole[kMaxDatagram];
    std::memcpy(whole, bth, length);
    if (icrc != nullptr)
      std::memcpy(whole + length, icrc, kIcrcBytes);
    else
      storeIcrc(whole + length, icrcOf(headers, bth, length));
    capture.write(Capture::Direction::kInbound, headers, {meta.trafficClass, meta.hopLimit}, whole,
                  length + kIcrcBytes);
    capture.scheduleFlush(clock.now());
  }
  sink->onPacket(meta, bth, length);
}

uint32_t Host::Impl::drainLocalQueue(uint32_t budget) {
  uint32_t n = 0;
  while (n < budget && !localQueue.empty()) {
    // Taken out first: delivering may queue an answer.
    const std::vector<uint8_t> bytes = std::move(localQueue.front());
    localQueue.pop_front();
    if (localQueue.empty()) {
      uint64_t ignored;
      if (::read(localWake.get(), &ignored, sizeof ignored) < 0) ignored = 0;
    }
    Frame frame;
    if (frame.decode(bytes.data(), static_cast<uint32_t>(bytes.size()))) {
      IcrcHeaders headers;
      headers.source = frame.meta.source;
      headers.destination = frame.meta.destination;
      deliver(frame.meta, headers, frame.body, frame.bodyLength, nullptr);
    }
    n++;
  }
  return n;
}

uint32_t Host::Impl::lookAtAll(uint32_t budget) {
  epoll_event events[kEventsPerLook];
  const int count = epoll_wait(epoll.get(), events, kEventsPerLook, 0);
  uint32_t n = 0;
  for (int i = 0; i < count; i++) {
    const uint32_t left = n < budget ? budget - n : 0, id = eventId(events[i].data.u64);
    switch (eventKind(events[i].data.u64)) {
      case EventKind::kWire:
        if (left != 0) n += receiveFrom(id == AF_INET ? wire4 : wire6, left);
        break;
      case EventKind::kSlotListener:
        inbound.acceptFrom(slots.listener());
        break;
      case EventKind::kInbound:
        if (left == 0) break;
        n += inbound.read(
            id, std::min(left, kFramesPerConnection),
            [](void* self, const Frame& frame) { static_cast<Impl*>(self)->onFrame(frame); }, this);
        break;
      case EventKind::kOutbound:
        if (slots.onOutbound(id, events[i].events, clock.now())) sink->onPeerProcessGone(id);
        break;
      case EventKind::kClaim:
        ports.acceptOn(id, inbound);
        break;
      case EventKind::kLocalQueue:
        break;  // drained in every poll
    }
  }
  return n;
}

uint64_t Host::Impl::nextDeadline() const {
  return std::min(std::min(held.due, capture.flushDue()),
                  std::min(wire4.steering.deadline(), wire6.steering.deadline()));
}

void Host::Impl::runTimers() {
  const uint64_t now = clock.now();
  if (held.due <= now) releaseHeld();
  if (capture.flushDue() <= now) {
    capture.flush();
    if (!capture.active()) counters.add(HostCounter::kCaptureErrors);
  }
  for (Wire* wire : {&wire4, &wire6})
    if (wire->steering.deadline() <= now) wire->steering.onTime(now);
}

bool Host::poll(PacketSink& sink, uint32_t budget) {
  Impl& h = *impl_;
  if (!h.started || budget == 0) return false;
  h.sink = &sink;
  uint32_t n = h.localQueue.empty() ? 0 : h.drainLocalQueue(budget);
  if (h.hot != nullptr && n < budget) n += h.receiveFrom(*h.hot, budget - n);
  // One system call tells of all descriptors; a polling thread makes it only now and then.
  const bool look = h.fullLook || h.hot == nullptr || ++h.quietPolls >= kPollsPerFullLook;
  if (look && n < budget) {
    h.quietPolls = 0;
    h.fullLook = false;
    n += h.lookAtAll(budget - n);
  }
  if (h.nextDeadline() != UINT64_MAX) {
    h.runTimers();
    flush();
  }
  h.sink = nullptr;
  return n >= std::min(budget, UdpWire::kBatch) || !h.localQueue.empty();
}

void Host::lookEverywhere() { impl_->fullLook = true; }
uint64_t Host::nextDeadline() const { return impl_->nextDeadline(); }

bool Host::isLocal(const Gid& address) { return impl_->addresses.contains(address, impl_->clock.now()); }

bool Host::watchPeer(uint32_t slot) { return impl_->started && impl_->slots.watch(slot); }

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Host::Host(const Clock& clock) : impl_(new Impl(clock)) {}
Host::~Host() { stop(); }

void Host::Impl::openWire(Wire& wire, uint32_t receiveBufferBytes) {
  const int error = wire.udp.open(wire.family, receiveBufferBytes);
  if (error == 0) {
    watchFd(epoll.get(), wire.udp.fd(), EPOLLIN, EventKind::kWire, static_cast<uint32_t>(wire.family));
    wire.steering.start(wire.udp.fd(), slots.slot(), clock.now());
    wire.udp.flush();
    return;
  }
  const bool absent = error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT;
  if (absent && wire.family == AF_INET6) return;  // a host without IPv6 lacks nothing
  const char* family = wire.family == AF_INET ? "IPv4" : "IPv6";
  if (!problem.empty()) problem += "; ";
  problem += std::string("UDP port 4791 (RoCEv2) on ") + family;
  if (error == EADDRINUSE)
    problem += " is held by " + describePortHolder(wire.family, kRocePort) +
               "; until it is released only processes of this host can be reached";
  else
    problem += std::string(" cannot be bound: ") + std::strerror(error);
}

Status Host::start(const HostOptions& options, Engine& engine) {
  Impl& h = *impl_;
  if (!h.epoll.valid() || !h.localWake.valid()) return Status::kInsufficientResources;
  if (h.started) return Status::kInvalidDeviceState;
  const int error = h.slots.claim();
  if (error != 0) {
    h.slots.release();
    return error == EADDRINUSE ? Status::kTooManyAddresses : Status::kInsufficientResources;
  }
  h.engine = &engine;
  h.gsi.setEngine(&engine);
  engine.setSlot(h.slots.slot());
  engine.setGsi(
      [](void* gsi, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
        static_cast<Gsi*>(gsi)->onPacket(meta, bth, length);
      },
      &h.gsi);
  std::lock_guard<std::mutex> guard(engine.mutex());
  h.openWire(h.wire4, options.receiveBufferBytes);
  h.openWire(h.wire6, options.receiveBufferBytes);
  h.wired = h.wire4.udp.isOpen() || h.wire6.udp.isOpen();
  h.started = true;
  configure(options);
  return Status::kSuccess;
}

void Host::stop() {
  Impl& h = *impl_;
  if (!h.started) return;
  h.engine->setGsi(nullptr, nullptr);
  std::lock_guard<std::mutex> guard(h.engine->mutex());
  if (!h.started.exchange(false)) return;
  flush();
  h.slots.release();
  h.ports.releaseAll();
  h.inbound.closeAll();
  h.wire4.udp.close();
  h.wire6.udp.close();
  h.hot = nullptr;
  h.held.packetsToGo = 0;
  h.held.due = UINT64_MAX;
  h.localQueue.clear();
  h.capture.close();
}

void Host::configure(const HostOptions& options) {
  impl_->faults.configure(options.faults);
  if (impl_->capture.open(options.capturePath) != 0) impl_->counters.add(HostCounter::kCaptureErrors);
}

uint32_t Host::slot() const { return impl_->slots.slot(); }
bool Host::wireReady() const { return impl_->wired; }
std::string Host::wireProblem() const { return impl_->problem; }
int Host::pollFd() const { return impl_->epoll.get(); }

// ── Ports and QP1 ───────────────────────────────────────────────────────────────────────────────────────────

Status Host::claimPort(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
  return impl_->ports.claim(kernel, service, address, port, claim);
}
void Host::releasePort(uint32_t claim) { impl_->ports.release(claim); }
void Host::releaseKernel(KernelId kernel) { impl_->ports.releaseKernel(kernel); }

uint32_t Host::commIdBase(KernelId kernel) const { return impl_->slots.slot() << 24 | kernel << 18; }

Status Host::sendMad(const Path& path, const uint8_t mad[256]) {
  Impl& h = *impl_;
  if (!h.started) return Status::kInvalidDeviceState;
  std::lock_guard<std::mutex> guard(h.engine->mutex());
  if (!h.started) return Status::kInvalidDeviceState;
  if (!isUnicast(path.destination)) return Status::kInvalidAddress;
  if (!isLocal(path.source)) return Status::kInvalidAddress;
  OutPacket packet;
  std::memset(packet.header, 0, mad::kBthDethBytes);
  packet.header[0] = mad::kOpUdSendOnly;
  packet.header[2] = packet.header[3] = 0xff;
  packet.header[7] = mad::kGsiQpn;
  const uint32_t psn = h.madPsn++ & 0xffffff;
  packet.header[9] = static_cast<uint8_t>(psn >> 16);
  packet.header[10] = static_cast<uint8_t>(psn >> 8);
  packet.header[11] = static_cast<uint8_t>(psn);
  packet.header[12] = mad::kGsiQkey >> 24;
  packet.header[13] = mad::kGsiQkey >> 16 & 0xff;
  packet.header[19] = mad::kGsiQpn;
  packet.headerLength = mad::kBthDethBytes;
  packet.pieces[0] = {const_cast<uint8_t*>(mad), mad::kMadBytes};
  packet.pieceCount = 1;
  packet.payloadLength = mad::kMadBytes;
  flush();  // so that the error found below is this packet's
  if (!send(path, packet)) return Status::kHostUnreachable;
  h.counters.add(HostCounter::kMadsSent);
  UdpWire& udp = h.wireTo(path.destination).udp;
  return udp.isOpen() ? statusOfErrno(udp.flush()) : Status::kSuccess;
}

const std::vector<const char*>& Host::counterNames() { return HostCounters::names(); }
std::vector<uint64_t> Host::counters() { return impl_->counters.values(); }

}  // namespace nd
