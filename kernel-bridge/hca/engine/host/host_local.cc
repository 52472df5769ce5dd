// The local link as the host side sees it: which pairs there are, and whole packets for capture and faults.
#include <sys/prctl.h>

#include <algorithm>

#include "base/mad.h"
#include "host/host_impl.h"

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

namespace nd {

void Host::Impl::startLocalLink(const HostOptions& options) {
  // Where the system restricts who may read a process's memory (Yama), any process of this user may from now on.
  if (options.allowPtrace) prctl(PR_SET_PTRACER, static_cast<unsigned long>(-1), 0, 0, 0);
  localLink = options.link == LinkChoice::kAuto;
  seePackets();
  pairs.start(localLink);
}

// Pairs that are set up from now on carry whole packets if there is somebody to see them.
void Host::Impl::seePackets() { pairs.setPlain(faults.active() || capture.active()); }

// Messages of QP1 to processes of this host need no wire: they are routed by the ids in them in any case.
bool Host::Impl::staysOffTheWire(const Path& path, const OutPacket& packet) {
  const uint32_t qpn = wire::destinationQpn(packet.header);
  return localLink && qpn == wire::kGsiQpn && started &&
         addresses.contains(path.destination, clock);
}

std::shared_ptr<LocalPair> Host::localPair(uint32_t slot) {
  return impl_->started ? impl_->pairs.pairWith(slot, impl_->clock.now()) : nullptr;
}

void Host::sendPlain(LocalPair& pair, const Path& path, const OutPacket& packet) {
  Impl& h = *impl_;
  const uint32_t length = checkedLength(packet);
  if (length == 0) return h.counters.add(HostCounter::kTxTooLong);
  uint8_t bytes[kMaxDatagram];
  gather(bytes, packet);
  h.transmitLocal(&pair, path, bytes, length);
}

void Host::revoke(uint64_t epoch) { impl_->pairs.revoke(epoch); }
bool Host::selfPending() const { return impl_->pairs.selfPending(); }
void Host::lookNext() { impl_->lookDue = 0; }
void Host::lookAllNext() {
  impl_->lookDue = 0;
  impl_->lookAll = true;
}
void Host::lookLater() { impl_->lookDue = impl_->clock.recent() + Impl::kLongestLookGapNs; }
uint64_t Host::now() const { return impl_->clock.recent(); }
bool Host::fallAsleep(Sleeper& sleeper) {
  Impl& h = *impl_;
  if (std::find(h.sleepers.begin(), h.sleepers.end(), &sleeper) == h.sleepers.end()) h.sleepers.push_back(&sleeper);
  // Others may not have seen yet that it was readable.
  sleeper.asleep = false;
  if (h.pairs.anyRang()) h.tellSleepers();
  sleeper.asleep = h.pairs.fallAsleep(h.anyAsleep());
  return sleeper.asleep;
}
void Host::forget(Sleeper& sleeper) {
  impl_->sleepers.erase(std::remove(impl_->sleepers.begin(), impl_->sleepers.end(), &sleeper), impl_->sleepers.end());
}

bool Host::Impl::anyAsleep() const {
  return std::any_of(sleepers.begin(), sleepers.end(), [](const Sleeper* s) { return s->asleep.load(); });
}

void Host::Impl::tellSleepers() {
  for (Sleeper* sleeper : sleepers)
    if (sleeper->asleep.exchange(false)) sleeper->tell(sleeper->self);
}

// A packet that came whole: captured, then like any other.
void Host::Impl::PlainSink::onPlainPacket(LocalPair& pair, const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  if (length < kBthBytes || length % 4 != 0 || length + kIcrcBytes > kMaxDatagram)
    return host.counters.add(HostCounter::kSlotBadFrames);
  IcrcHeaders headers;
  headers.source = meta.source;
  headers.destination = meta.destination;
  host.captureIn(meta, headers, bth, length, nullptr);
  host.sink->onPlainPacket(pair, meta, bth, length);
}

// What came by the pairs before a message that ends a connection, or a process's end, is delivered before it.
void Host::Impl::drainPairs() {
  uint32_t n = 0;
  for (uint32_t got = 1; got != 0 && n < kMaxDrained; n += got) got = pairs.receive(*sink, plainSink, kMaxDrained);
}

// A look at the sockets is a system call, many times what a packet costs on the local link. Who is busy there, or
// waits there for an answer, looks less often as long as looks find nothing.
void Host::Impl::looked(uint64_t now, bool found) {
  const uint64_t longest = pairs.copiedMuch() ? kCopyLookGapNs : kLongestLookGapNs;
  lookGap = found ? 0 : std::min(2 * lookGap + kFirstLookGapNs, longest);
  lookDue = now + lookGap;
}

// With pairs up, between two looks at the sockets.
bool Host::quiet(uint64_t now) const {
  const Impl& h = *impl_;
  return h.started && now < h.lookDue && h.pairs.any() && h.localQueue.empty() && h.deferred.empty() &&
         h.nextDeadline() > now;
}

void Host::pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>* wanted) {
  Impl& h = *impl_;
  if (!h.started) return;
  h.sink = &sink;
  if (h.pairs.receive(sink, h.plainSink, budget) == 0 && wanted != nullptr && h.pairs.lookOut(*wanted))
    h.pairs.receive(sink, h.plainSink, budget);
  h.sink = nullptr;
}

}  // namespace nd
