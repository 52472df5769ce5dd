#include "host/host.h"


#include <cerrno>

#include "base/mad.h"
#include "host/host_impl.h"
#include "platform/host_events.h"
#include "platform/port_holder.h"
#include "platform/event.h"

namespace nd {
namespace {

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

// ── Life ────────────────────────────────────────────────────────────────────────────────────────────────────

Host::Impl::Impl(const Clock& c) : clock(c), epoll(epoll_create1(EPOLL_CLOEXEC)) {
  localWake = makeEvent();
  if (epoll.valid() && localWake.valid())
    watchFd(epoll.get(), localWake.get(), EPOLLIN, EventKind::kLocalQueue, 0);
}

Host::Host(const Clock& clock) : impl_(new Impl(clock)) {}
Host::~Host() { stop(); }

int Host::Impl::openRaw(const HostOptions& options) {
  return options.icrc == IcrcCheck::kExact ? wire4.raw.open(options.receiveBufferBytes) : 0;
}

void Host::Impl::openWire(Wire& wire, uint32_t receiveBufferBytes) {
  wire.receiveBufferBytes = receiveBufferBytes;
  // Packets that were joined would come to the raw socket so, too, which is not told where they end.
  int error = wire.udp.open(wire.family, receiveBufferBytes, !wire.raw.isOpen());
  if (error == 0 && wire.raw.isOpen()) {
    error = wire.raw.divide(wire.udp.fd(), slots.slot());
    if (error == 0)
      watchFd(epoll.get(), wire.raw.fd(), EPOLLIN, EventKind::kWire, static_cast<uint32_t>(wire.family));
    else
      wire.udp.close();
  }
  if (error != 0) wire.raw.close();
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
               "; until it is released only this user's processes on this host can be reached";
  else
    problem += std::string(" cannot be bound: ") + std::strerror(error);
}

void Host::Impl::closeWire(Wire& wire) {
  wire.udp.close();
  wire.raw.close();
  wire.inlets.close();
  wire.turn = wire.wanted = nullptr;
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
  if (const int refused = h.openRaw(options)) {
    h.slots.release();
    return refused == EPERM || refused == EACCES ? Status::kAccessDenied : Status::kInsufficientResources;
  }
  h.engine = &engine;
  h.gsi.setEngine(&engine);
  engine.setSlot(h.slots.slot());
  engine.setGsi(
      [](void* gsi, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
        static_cast<Gsi*>(gsi)->onPacket(meta, bth, length);
      },
      &h.gsi);
  std::lock_guard<EngineLock> guard(engine.lock());
  h.openWire(h.wire4, options.receiveBufferBytes);
  h.openWire(h.wire6, options.receiveBufferBytes);
  h.wired = h.wire4.udp.isOpen() || h.wire6.udp.isOpen();
  h.started = true;
  configure(options);
  h.startLocalLink(options);
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
  h.inbound.acceptAll(h.slots.listener());  // who has only just connected hears the goodbye too
  h.slots.release();
  h.ports.releaseAll();
  h.inbound.sayGoodbye();
  h.inbound.closeAll();
  h.closeWire(h.wire4);
  h.closeWire(h.wire6);
  h.held.packetsToGo = 0;
  h.held.due = h.listenDue = h.rareDue = UINT64_MAX;
  h.deaf.clear();
  h.localQueue.clear();
  h.silenceLocal();
  h.capture.close();
}

void Host::configure(const HostOptions& options) {
  impl_->faults.configure(options.faults);
  if (impl_->capture.open(options.capturePath) != 0) impl_->counters.add(HostCounter::kCaptureErrors);
  impl_->seePackets();
}

void Host::join(const HostOptions& options) {
  if (asksForFaults(options.faults)) impl_->faults.configure(options.faults);
  if (!options.capturePath.empty() && impl_->capture.open(options.capturePath) != 0)
    impl_->counters.add(HostCounter::kCaptureErrors);
  impl_->seePackets();
}

uint32_t Host::slot() const { return impl_->slots.slot(); }
bool Host::wireReady() const { return impl_->wired; }
std::string Host::wireProblem() const { return impl_->problem; }
int Host::pollFd() const { return impl_->epoll.get(); }

// ── Ports and QP1 ───────────────────────────────────────────────────────────────────────────────────────────

Status Host::claimPort(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
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

// A claim goes together with the connections to it, by whose end others learn that: nothing that comes by one of them is taken
// when the name may be another process's already.
std::unique_lock<EngineLock> Host::Impl::holdIfStarted() {
  return started ? engine->hold() : std::unique_lock<EngineLock>();
}

uint32_t Host::commIdBase(KernelId kernel) const { return impl_->slots.slot() << 24 | kernel << 18; }

Status Host::sendMad(const Path& path, const uint8_t mad[256], uint16_t pkey) {
  Impl& h = *impl_;
  if (!h.started) return Status::kInvalidDeviceState;
  std::lock_guard<EngineLock> guard(h.engine->lock());
  if (!h.started) return Status::kInvalidDeviceState;
  if ((pkey & 0x7fff) == 0) return Status::kInvalidParameter;
  if (!path.destination.isUnicast()) return Status::kInvalidAddress;
  if (!isLocal(path.source)) return Status::kInvalidAddress;
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
  flush();  // so that the error found below is this packet's
  h.carriesOn = h.localQueue.empty();
  const bool sent = send(path, packet);
  // What goes to this host is there before this returns, and the engine's thread need not wake up for it.
  if (std::exchange(h.carriesOn, false) && !h.localQueue.empty()) {
    const auto deliver = [](void* self, PacketSink& sink) {
      Impl& host = *static_cast<Impl*>(self);
      host.sink = &sink;
      host.drainLocalQueue(Impl::kMaxDrained);
      host.sink = nullptr;
    };
    h.engine->deliver(deliver, &h);
    if (!h.localQueue.empty()) h.ringLocal();
  }
  if (!sent) return Status::kHostUnreachable;
  h.counters.add(HostCounter::kMadsSent);
  UdpWire& udp = h.wireTo(path.destination).udp;
  return udp.isOpen() ? statusOfErrno(udp.flush()) : Status::kSuccess;
}

const std::vector<const char*>& Host::counterNames() { return HostCounters::names(); }
std::vector<uint64_t> Host::counters() { return impl_->counters.values(); }

}  // namespace nd
