#include "host/host.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/mad.h"
#include "host/dispatcher.h"
#include "host/udp_port_warning.h"
#include "slots/observing.h"

namespace nd {
namespace {

Status statusOfErrno(int error) {
  switch (error) {
    case 0:
    case EAGAIN:
    case ENOBUFS:  // lost, as any datagram may be
      return Status::kSuccess;
    case ENETUNREACH:
    case ENETDOWN: return Status::kNetworkUnreachable;
    case EHOSTUNREACH: return Status::kHostUnreachable;
    case EINVAL:
    case EADDRNOTAVAIL: return Status::kInvalidAddress;
    case EPERM:
    case EACCES: return Status::kAccessDenied;
    default: return Status::kUnsuccessful;
  }
}

// How long a process may wait for its turn to take the port.
constexpr uint64_t kPortTimeoutNs = 1'000'000'000;

}  // namespace

// The parts of the host, and how they are connected. Outgoing packets pass through the tap to the senders or the local
// delivery; received ones go from the receivers or the local delivery to the intake. The dispatcher decides which part
// runs next.
struct Host::Impl {
  explicit Impl(const Clock& c) : clock(c) {
    wire4.receiver.setSibling(wire6.receiver);
    wire6.receiver.setSibling(wire4.receiver);
  }

  // The sockets of one address family.
  struct Wire {
    Wire(const HostParts& parts, RawReceiver* raw, IpFamily family)
        : udp(parts.counters), sender(parts, udp, family), receiver(parts, udp, sender, raw, family) {}
    UdpWire udp;
    WireSender sender;
    WireReceiver receiver;
  };

  const Clock& clock;
  HostCounters counters;
  Readiness readiness;
  LocalNames names;
  Inbound inbound{counters, names, readiness};
  Slots slots{counters, names, readiness};
  RdmaPorts ports{names, readiness};
  Gsi gsi{clock, counters, ports, slots};
  Addresses addresses{clock};
  GroupCopies copies;
  PacketTap tap{clock, counters};
  Intake intake{counters, tap};
  const HostParts parts{clock, counters, slots, addresses, copies, tap, intake, readiness};
  RawReceiver raw{parts};
  Wire wire4{parts, &raw, IpFamily::kV4}, wire6{parts, nullptr, IpFamily::kV6};
  UdpPortClaim claim{clock, counters, names, readiness, wire4.receiver, wire6.receiver};
  LocalPairs pairs{counters, slots, readiness};
  LocalDelivery local{parts, pairs, gsi, raw, wire4.receiver, wire6.receiver};
  Dispatcher dispatcher{parts, wire4.receiver, wire6.receiver, claim, inbound, ports, pairs, local, &onFrame, this};

  Observers observers;

  Engine* engine = nullptr;
  uint32_t madPsn = 0;
  std::atomic<bool> started{false};
  std::atomic<bool> wired{false};
  LinkChoice link = LinkChoice::kAuto;
  uint32_t receiveBufferBytes = 0;
  std::mutex opening;               // of the wire
  std::atomic<bool> opened{false};  // or attempted

  Wire& wireTo(const Gid& address) { return address.isV4() ? wire4 : wire6; }
  void leaveWire();
  // Returns whether openWire() has anything to do or to reject.
  bool mayOpenWire() const { return !opened.load(std::memory_order_acquire); }
  // If the tap is active, new connections use a link that it can see.
  void seePackets() { pairs.refuseMore(!tap.idle()); }
  static void onFrame(void* self, const Frame& frame, FrameOrigin& origin);
  void onObserve(Descriptor connection);
  void sendToOwner(FrameKind kind, const Gid& group, uint32_t interface) const;
  std::unique_lock<EngineLock> holdIfStarted();
  uint64_t nextDeadline() const {
    return std::min({tap.deadline(), dispatcher.deadline(), pairs.deadline(), claim.deadline(),
                     wire4.receiver.deadline(), wire6.receiver.deadline()});
  }
  void runTimers();
};

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Host::Host(const Clock& clock) : impl_(new Impl(clock)) {}
Host::~Host() { stop(); }

// A process of another dialect shares the port and would receive packets meant for this one.
void Host::Impl::leaveWire() {
  wired = false;
  Frame lost;
  lost.kind = FrameKind::kPortLost;  // processes that have already left do not announce it again
  for (const uint32_t other : slots.live())
    if (other != slots.slot()) slots.send(other, lost);
  intake.sink().onWireLost();
}

Status Host::start(const HostOptions& options, Engine& engine) {
  Impl& h = *impl_;
  if (!h.readiness.valid() || !h.local.valid()) return Status::kTooManyOpenedFiles;
  if (h.started) return Status::kInvalidDeviceState;
  if (options.link == LinkChoice::kLocal && options.icrc == IcrcCheck::kExact) return Status::kNotSupported;
  const int error = h.slots.claim();
  if (error != 0) {
    h.slots.release();
    return error == EADDRINUSE ? Status::kTooManyAddresses : statusOfLack(error);
  }
  if (const int refused = options.icrc == IcrcCheck::kExact ? h.raw.open(options.receiveBufferBytes) : 0) {
    h.slots.release();
    if (refused == ENOTSUP) return Status::kNotSupported;
    return refused == EPERM || refused == EACCES ? Status::kAccessDenied : statusOfLack(refused);
  }
  h.engine = &engine;
  h.gsi.setEngine(&engine);
  engine.setSlot(h.slots.slot());
  engine.setGsi([](void* gsi, const PacketMeta& meta, const uint8_t* bth,
                   uint32_t length) { static_cast<Gsi*>(gsi)->onPacket(meta, bth, length); },
                &h.gsi);
  h.link = options.link;
  h.receiveBufferBytes = options.receiveBufferBytes;
  {
    std::lock_guard<EngineLock> guard(engine.lock());
    h.started = true;
    configure(options);
    h.local.start(options.link != LinkChoice::kWire);
    h.pairs.start(options.link != LinkChoice::kWire, options.direct);
  }
  const bool now = options.link == LinkChoice::kWire || options.icrc == IcrcCheck::kExact;
  return now ? openWire() : Status::kSuccess;
}

bool Host::lacksWire(const Gid& destination) {
  const Impl& h = *impl_;
  if (!h.started || !h.mayOpenWire()) return false;
  // A connection within this host that gets no pair uses the wire, or frames if there is no wire.
  return !isLocal(destination) || (h.link != LinkChoice::kLocal && !h.tap.idle());
}

// The engine keeps running meanwhile, because names are read and sockets bound without its lock.
Status Host::openWire() {
  Impl& h = *impl_;
  if (!h.mayOpenWire()) return Status::kSuccess;
  if (h.link == LinkChoice::kLocal) return Status::kNotSupported;
  const std::lock_guard<std::mutex> one(h.opening);
  if (!h.mayOpenWire()) return Status::kSuccess;
  if (!h.started) return Status::kInvalidDeviceState;
  UdpPortClaim::Bound bound;
  if (portsAreShared()) {
    // Processes that open it at the same time take the port one after the other.
    const uint64_t deadline = h.clock.now() + kPortTimeoutNs;
    while (!h.claim.bind(h.receiveBufferBytes, h.clock.now() >= deadline, &bound)) h.claim.awaitTurn(deadline);
  }
  const std::lock_guard<EngineLock> guard(h.engine->lock());
  if (!h.started) return Status::kInvalidDeviceState;
  if (portsAreShared()) h.claim.open(std::move(bound));
  else h.claim.open(h.receiveBufferBytes);
  h.wired = h.wire4.udp.isOpen() || h.wire6.udp.isOpen();
  h.opened.store(true, std::memory_order_release);
  if (h.claim.problem(IpFamily::kV4) != 0 || h.claim.problem(IpFamily::kV6) != 0) h.engine->onWireLost();
  return Status::kSuccess;
}

void Host::stop() {
  Impl& h = *impl_;
  if (!h.started) return;
  h.engine->setGsi(nullptr, nullptr);
  std::lock_guard<EngineLock> guard(h.engine->lock());
  if (!h.started.exchange(false)) return;
  flush();
  h.pairs.stop();
  h.ports.releaseAll();
  h.slots.refuse();
  h.inbound.acceptAll(h.slots.listener());  // a process that has only just connected also gets the goodbye
  h.observers.end();
  h.inbound.sayGoodbye();
  h.inbound.closeAll();
  h.slots.release();  // last: peers see the end of all connections before anything from the slot's next owner
  h.claim.close();
  h.opened = h.wired = false;
  h.addresses.forgetOthers();
  h.dispatcher.stop();
  h.local.stop();
  h.tap.close();
}

void Host::configure(const HostOptions& options) {
  impl_->tap.configure(options);
  impl_->seePackets();
}

bool Host::join(const HostOptions& options) {
  const bool local = impl_->link == LinkChoice::kLocal;
  if (options.link == LinkChoice::kLocal ? !local : local && options.link == LinkChoice::kWire) return false;
  impl_->tap.join(options);
  impl_->seePackets();
  return true;
}

uint32_t Host::slot() const { return impl_->slots.slot(); }
Host::Links Host::links() const {
  if (impl_->link != LinkChoice::kAuto) return impl_->link == LinkChoice::kWire ? Links::kWire : Links::kLocal;
  const auto hold = impl_->holdIfStarted();
  return impl_->tap.idle() ? Links::kFree : Links::kSeen;
}
bool Host::wireReady() const { return impl_->wired; }
Host::WireState Host::wireState() const {
  if (impl_->link == LinkChoice::kLocal) return WireState::kNever;
  if (impl_->mayOpenWire()) return WireState::kUnused;
  return impl_->wired ? WireState::kOpen : WireState::kHeld;
}
std::string Host::wireProblem() const {
  int errors[2];
  {
    const auto hold = impl_->holdIfStarted();
    for (IpFamily family : {IpFamily::kV4, IpFamily::kV6})
      errors[family == IpFamily::kV6] = impl_->claim.problem(family);
  }
  return udpPortWarning(errors[0], errors[1]);
}
Descriptor Host::pollFd() const { return impl_->readiness.fd(); }

// ── RDMA ports and QP1 ──────────────────────────────────────────────────────────────────────────────────────

Status Host::claimPort(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
  if (address == nullptr || !isLoopback(*address)) {
    const Status status = openWire();
    if (status != Status::kSuccess) return status;
  }
  return impl_->ports.claim(kernel, service, address, port, claim);
}
Status Host::openPort(uint32_t claim) { return impl_->ports.open(claim); }
void Host::releasePort(uint32_t claim) {
  Impl& h = *impl_;
  const auto hold = h.holdIfStarted();
  h.ports.release(claim);
  h.inbound.closeClaim(claim);
}

void Host::releaseKernel(KernelId kernel) {
  Impl& h = *impl_;
  const auto hold = h.holdIfStarted();
  for (uint32_t claim : h.ports.releaseKernel(kernel)) h.inbound.closeClaim(claim);
}

// A claim and the connections to it are released under one lock, because a message from one of them must not be
// accepted once another process may have the name. The other processes notice the end when the connections are closed.
std::unique_lock<EngineLock> Host::Impl::holdIfStarted() {
  return started ? engine->hold() : std::unique_lock<EngineLock>();
}

uint32_t Host::commIdBase(KernelId kernel) const { return impl_->slots.slot() << 24 | kernel << 18; }

Status Host::sendMad(const Path& path, const uint8_t mad[256], uint16_t pkey) {
  Impl& h = *impl_;
  if (!h.started) return Status::kInvalidDeviceState;
  if ((pkey & 0x7fff) == 0) return Status::kInvalidParameter;
  if (!path.destination.isUnicast()) return Status::kInvalidAddress;
  std::unique_lock<EngineLock> guard(h.engine->lock());
  if (h.started && !isLocal(path.source)) return Status::kInvalidAddress;
  if (lacksWire(path.destination)) {
    guard.unlock();
    const Status status = openWire();
    if (status != Status::kSuccess) return status;
    guard.lock();
  }
  if (!h.started) return Status::kInvalidDeviceState;
  OutPacket packet;
  wire::Bth bth;
  bth.opcode = wire::kOpUdSendOnly;
  bth.pkey = pkey;
  bth.destinationQpn = wire::kGsiQpn;
  bth.psn = h.madPsn;
  h.madPsn = wire::psnAdd(h.madPsn, 1);
  wire::emitBth(packet.header, bth);
  wire::emitDeth(packet.header + wire::kBthBytes, {wire::kGsiQkey, wire::kGsiQpn});
  packet.headerLength = mad::kPacketMadOffset;
  packet.pieces[0] = {const_cast<uint8_t*>(mad), wire::kMadBytes};
  packet.pieceCount = 1;
  packet.payloadLength = wire::kMadBytes;
  flush();  // so that an error found below belongs to this packet
  // Packets to this host are delivered before this returns, and the engine's thread need not wake up for them.
  h.local.beginNow();
  h.gsi.takeLacked();
  const bool sent = send(path, packet);
  h.local.endNow(*h.engine);
  if (!sent) return Status::kHostUnreachable;
  if (h.gsi.takeLacked()) return Status::kTooManyOpenedFiles;
  h.counters.add(HostCounter::kMadsSent);
  return statusOfErrno(h.wireTo(path.destination).sender.flush());
}

// ── Sending ─────────────────────────────────────────────────────────────────────────────────────────────────

bool Host::send(const Path& path, const OutPacket& packet) {
  Impl& h = *impl_;
  const uint32_t length = checkedLength(packet);
  if (length == 0) {
    h.counters.add(HostCounter::kTxTooLong);
    return false;
  }
  WireSender& sender = h.wireTo(path.destination).sender;
  // The OS would deliver a group's datagram only to the port's owner, and would not always show that it came from this
  // host.
  const bool toMembersHere =
      path.destination.isMulticast() && !portsAreShared() && h.started && h.local.send(path, packet, length);
  if (sender.reaches(path) && !h.local.prefers(path, packet)) {
    sender.send(path, packet, length);
    return true;
  }
  if (toMembersHere || (h.started && h.local.send(path, packet, length))) return true;
  h.counters.add(HostCounter::kTxUnroutable);
  return false;
}

bool Host::sendSingle(const Path& path, uint8_t* bth, uint32_t length) {
  return impl_->wireTo(path.destination).sender.sendSingle(path, bth, length);
}

void Host::flush() {
  impl_->wire4.sender.flush();
  impl_->wire6.sender.flush();
  if (impl_->pairs.any()) impl_->pairs.flush();
}

// ── Receiving ───────────────────────────────────────────────────────────────────────────────────────────────

// Handles a frame from another process on this host.
void Host::Impl::onFrame(void* self, const Frame& frame, FrameOrigin& origin) {
  Impl& h = *static_cast<Impl*>(self);
  h.counters.add(HostCounter::kForwardedIn);
  switch (frame.kind) {
    case FrameKind::kPacket:
    case FrameKind::kMad:
    case FrameKind::kStray: return h.local.onFrame(frame, origin);
    case FrameKind::kPairRequest:
    case FrameKind::kPairOffer:
    case FrameKind::kPairReply:
    case FrameKind::kMemoryOffer:
    case FrameKind::kMemoryReply:
    case FrameKind::kMemoryGone:
    case FrameKind::kDirectTable:
    case FrameKind::kMemoryRequest: return h.pairs.onFrame(frame, origin, h.clock.now(), h.intake.sink());
    case FrameKind::kProbeReply: {
      ProbeReply reply;
      if (frame.bodyLength != sizeof reply) break;
      std::memcpy(&reply, frame.body, sizeof reply);
      h.wire4.receiver.onProbeReply(reply);
      return h.wire6.receiver.onProbeReply(reply);
    }
    case FrameKind::kPortRequest:
      if (frame.bodyLength != sizeof(PortRequest)) break;
      return h.ports.onRequest(frame, origin.connection);
    case FrameKind::kObserve: return h.onObserve(origin.connection);
    case FrameKind::kGroupJoined:
    case FrameKind::kGroupLeft: return h.wireTo(frame.meta.destination).receiver.onGroup(origin.id, frame);
    case FrameKind::kPortLost: h.wire4.receiver.onProbedByOther(); return h.wire6.receiver.onProbedByOther();
    case FrameKind::kPortReply:
    case FrameKind::kObserved:
    case FrameKind::kGoodbye: break;  // these arrive on other connections
  }
  h.counters.add(HostCounter::kSlotBadFrames);
}

void Host::Impl::onObserve(Descriptor connection) {
  const uint32_t number = observers.accept(connection);
  KernelPort* kernel = engine->kernelPort(engine->anyKernel());
  if (number == 0) return;
  if (kernel != nullptr) kernel->onEvent(HcaEvent::observed(number));
  else observers.reply(number, nullptr, 0);
}

void Host::Impl::sendToOwner(FrameKind kind, const Gid& group, uint32_t interface) const {
  Frame frame;
  frame.kind = kind;
  frame.meta.destination = group;
  frame.meta.scopeId = interface;
  claim.sendToOwner(frame);
}

void Host::replyToObserver(uint32_t number, const void* text, uint64_t bytes) {
  impl_->observers.reply(number, text, bytes);
}

void Host::Impl::runTimers() {
  const uint64_t now = clock.now();
  tap.onTime(now, intake.sink());
  dispatcher.onTime(now);
  claim.onTime(now);
  if (claim.leaveToOther()) leaveWire();
  if (pairs.deadline() <= now) pairs.onTime(now, intake.sink());
  wire4.receiver.onTime(now);
  wire6.receiver.onTime(now);
}

bool Host::poll(PacketSink& sink, uint32_t budget) {
  Impl& h = *impl_;
  if (!h.started || budget == 0) return false;
  const Intake::Step step(h.intake, sink);
  uint32_t n = 0;
  if (h.pairs.any()) n = h.local.receivePairs(budget);
  if (h.local.queued()) n += h.local.deliverQueue(budget);
  const uint64_t now = h.pairs.any() ? h.clock.recent() : 0;
  // Rings that are never empty must not block the sockets, which therefore have a share of their own.
  if (now == 0 || h.dispatcher.schedule.due(now))
    n += h.dispatcher.poll(std::max(budget - std::min(n, budget), budget / 2), now);
  if (h.local.hasDeferred()) n += h.local.deliverDeferred();
  if (h.nextDeadline() != UINT64_MAX) {
    h.runTimers();
    flush();
  }
  if (h.pairs.grown()) h.dispatcher.sleepers.wakeAll();  // they do not wait for the new pairs yet
  return n >= std::min(budget, UdpWire::kReceiveBatch) || h.local.queued() || h.pairs.pending();
}

void Host::pollBusiest(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>& wanted) {
  Impl& h = *impl_;
  if (!h.started || h.pairs.any() || h.local.queued()) return;
  const Intake::Step step(h.intake, sink);
  h.dispatcher.pollBusiest(budget, wanted);
}

void Host::pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>* wanted) {
  Impl& h = *impl_;
  if (!h.started) return;
  const Intake::Step step(h.intake, sink);
  if (h.local.receivePairs(budget) == 0 && wanted != nullptr && h.pairs.spin(*wanted)) h.local.receivePairs(budget);
}

// Returns true only while pairs are up and the next poll of the sockets is not due.
bool Host::quiet(uint64_t now) const {
  const Impl& h = *impl_;
  return h.started && !h.dispatcher.schedule.due(now) && h.pairs.any() && !h.local.queued() && !h.local.hasDeferred() &&
         h.nextDeadline() > now;
}

void Host::reportEnd(uint32_t slot, PacketSink& sink) {
  Impl& h = *impl_;
  if (!h.started || !h.slots.endedUnseen(slot)) return;
  const Intake::Step step(h.intake, sink);
  h.local.onOutbound(slot, Readiness::kEnded);
  if (h.local.hasDeferred()) h.local.deliverDeferred();
}

uint64_t Host::nextDeadline() const { return impl_->nextDeadline(); }
void Host::pollNext(PollScope next) {
  impl_->dispatcher.schedule.next(next, next == PollScope::kLater ? impl_->clock.recent() : 0);
}
uint64_t Host::now() const { return impl_->clock.recent(); }
bool Host::fallAsleep(Sleeper& sleeper) { return impl_->dispatcher.fallAsleep(sleeper); }
void Host::forget(Sleeper& sleeper) { impl_->dispatcher.sleepers.remove(sleeper); }

// ── Addresses, peers, memory ────────────────────────────────────────────────────────────────────────────────

bool Host::isLocal(const Gid& address) { return impl_->addresses.isOwn(address); }
uint32_t Host::interfaceOf(const Gid& address) { return Addresses::interfaceOf(address); }
Status Host::joinGroup(const Gid& group, uint32_t interface) {
  const Status status = impl_->addresses.join(impl_->wireTo(group).udp, group, interface);
  if (status == Status::kSuccess) impl_->sendToOwner(FrameKind::kGroupJoined, group, interface);
  return status;
}
void Host::leaveGroup(const Gid& group, uint32_t interface) {
  impl_->addresses.leave(impl_->wireTo(group).udp, group, interface);
  impl_->sendToOwner(FrameKind::kGroupLeft, group, interface);
}
Status Host::watchPeer(uint32_t slot) {
  const int error = impl_->started ? impl_->slots.watch(slot) : ECONNREFUSED;
  return error == 0 ? Status::kSuccess : isDescriptorLack(error) ? statusOfLack(error) : Status::kHostUnreachable;
}
std::shared_ptr<LocalPair> Host::localPair(uint32_t slot) {
  return impl_->started ? impl_->pairs.pairWith(slot, impl_->clock.now()) : nullptr;
}
void Host::revoke(uint64_t epoch) { impl_->pairs.revoke(epoch); }
DirectOwner* Host::directOwner() { return impl_->pairs.directOwner(); }
void Host::settleDirect() { impl_->pairs.settle(); }
bool Host::directOccupied(const std::vector<DirectWithdrawn>& withdrawn) { return impl_->pairs.occupied(withdrawn); }
bool Host::selfPending() const { return impl_->pairs.selfPending(); }

const std::vector<const char*>& Host::counterNames() { return HostCounters::names(); }
std::vector<uint64_t> Host::counters() { return impl_->counters.values(); }

}  // namespace nd
