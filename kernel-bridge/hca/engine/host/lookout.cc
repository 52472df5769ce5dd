#include "host/lookout.h"

#include <algorithm>
#include <utility>

#include "slots/host_events.h"

namespace nd {

Lookout::Lookout(const HostParts& parts, WireReceiver& receiver4, WireReceiver& receiver6, PortClaim& claim, Inbound& inbound,
                 Ports& ports, LocalPairs& pairs, LocalDelivery& local, Inbound::Handler handler, void* argument)
    : parts_(parts), receiver4_(receiver4), receiver6_(receiver6), claim_(claim), inbound_(inbound), ports_(ports), pairs_(pairs),
      local_(local), handler_(handler), argument_(argument) {}

void Lookout::stop() {
  paused_.clear();
  resumeDue_ = UINT64_MAX;
}

// ── Looking ─────────────────────────────────────────────────────────────────────────────────────

uint32_t Lookout::look(uint32_t budget, uint64_t now) {
  uint32_t n = 0;
  const bool all = std::exchange(all_, false) || crowded_;
  if (busy_ != nullptr && !all) n = lookAgain(budget);
  if (n == 0 || ++pollsWithoutAll_ >= kPollsWithoutAll) {
    pollsWithoutAll_ = 0;
    n += lookAtAll(std::max(budget - std::min(n, budget), budget / 2));
  }
  // A look is a system call, many times what a packet costs on the local link. A thread that is busy there, or waits there for an
  // answer, looks less often as long as looks find nothing.
  gap_ = n != 0 ? 0 : std::min(2 * gap_ + kFirstGapNs, pairs_.copiedMuch() ? kCopyGapNs : kLongestGapNs);
  due_ = now + gap_;
  return n;
}

void Lookout::lookMore(uint32_t budget, const std::atomic<uint32_t>& wanted) {
  if (busy_ == nullptr) return;
  for (uint32_t looks = moreLooks_; looks != 0 && wanted.load(std::memory_order_relaxed) == 0; looks--)
    if (lookAgain(budget) != 0) return;
}

uint32_t Lookout::lookAgain(uint32_t budget) {
  const uint32_t n = busy_->receive(budget);
  if (n != 0) moreLooks_ = std::min(2 * moreLooks_ + 1, kMostMoreLooks);
  return n;
}

uint32_t Lookout::onReceiver(WireReceiver& receiver, uint32_t socket, uint32_t budget) {
  const bool turned = receiver.turnTo(socket);
  if (std::exchange(busy_, &receiver) != &receiver || turned) moreLooks_ = 0;
  return receiver.receive(budget);
}

uint32_t Lookout::lookAtAll(uint32_t budget) {
  Readiness::Event events[Readiness::kMostEvents];
  const uint32_t count = parts_.readiness.take(events);
  // The system reports sockets that stay readable in the same order each time: none may take what is for the others.
  const auto isSocket = [](const Readiness::Event& event) {
    const EventKind kind = eventKind(event.tag);
    return kind == EventKind::kWire || kind == EventKind::kPeerSocket || kind == EventKind::kInbound;
  };
  const auto sockets = static_cast<uint32_t>(std::count_if(events, events + count, isSocket));
  crowded_ = sockets > 1;
  const uint32_t share = std::max(budget / std::max(sockets, 1u), kLeastShare);
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t tag = events[i].tag;
    const uint32_t id = eventId(tag);
    switch (eventKind(tag)) {
      case EventKind::kWire:
        n += onReceiver(id == static_cast<uint32_t>(IpFamily::kV4) ? receiver4_ : receiver6_, WireReceiver::kPortSocket, share);
        break;
      case EventKind::kPeerSocket:
        n += onReceiver((id & WireReceiver::kPeers6) == 0 ? receiver4_ : receiver6_, id & ~WireReceiver::kPeers6, share);
        break;
      case EventKind::kSlotListener:
        if (!inbound_.acceptFrom(parts_.slots.listener())) pause(tag);
        break;
      case EventKind::kInbound:
        moreLooks_ = 0;
        n += inbound_.read(id, std::min(share, kFramesPerConnection), handler_, argument_);
        if (inbound_.has(id)) break;
        receiver4_.onMemberEnded(id);
        receiver6_.onMemberEnded(id);
        break;
      case EventKind::kOutbound:
        local_.onOutbound(id, events[i].kinds);
        break;
      case EventKind::kClaim:
        if (!ports_.acceptOn(id, inbound_)) pause(tag);
        break;
      case EventKind::kPortName:
        if (!inbound_.acceptFrom(claim_.listener())) pause(tag);
        break;
      case EventKind::kPortOwner:
        claim_.onOwnerEnded();
        break;
      case EventKind::kPair:
        pairs_.rang(id);
        break;
      case EventKind::kLocalQueue:
        break;  // looked at in every poll
    }
  }
  return n;
}

// ── Paused listeners ────────────────────────────────────────────────────────────────────────────

// A connection waits there, and the system has no descriptor for it. It would wake sleepers again and again until there is one.
void Lookout::pause(uint64_t listener) {
  paused_.push_back(listener);
  listen(listener, false);
  resumeDue_ = parts_.clock.now() + kPauseNs;
}

void Lookout::resume() {
  resumeDue_ = UINT64_MAX;
  for (const uint64_t listener : std::exchange(paused_, {})) listen(listener, true);
}

void Lookout::listen(uint64_t listener, bool on) {
  if (eventKind(listener) == EventKind::kClaim) return ports_.hear(eventId(listener), on);
  if (eventKind(listener) == EventKind::kPortName) return claim_.listen(on);
  parts_.readiness.change(parts_.slots.listener(), on ? Readiness::kReadable : Readiness::kNothing,
                          eventTag(EventKind::kSlotListener, 0));
}

// ── Sleepers ────────────────────────────────────────────────────────────────────────────────────

bool Lookout::fallAsleep(Sleeper& sleeper) {
  if (std::find(sleepers_.begin(), sleepers_.end(), &sleeper) == sleepers_.end()) sleepers_.push_back(&sleeper);
  // Others may not have seen yet that the descriptor was readable.
  sleeper.asleep = false;
  if (pairs_.anyRang()) wakeSleepers();
  sleeper.asleep = pairs_.fallAsleep(anyAsleep());
  return sleeper.asleep;
}

void Lookout::forget(Sleeper& sleeper) {
  sleepers_.erase(std::remove(sleepers_.begin(), sleepers_.end(), &sleeper), sleepers_.end());
}

bool Lookout::anyAsleep() const {
  return std::any_of(sleepers_.begin(), sleepers_.end(), [](const Sleeper* s) { return s->asleep.load(); });
}

void Lookout::wakeSleepers() {
  for (Sleeper* sleeper : sleepers_)
    if (sleeper->asleep.exchange(false)) sleeper->wake(sleeper->self);
}

}  // namespace nd
