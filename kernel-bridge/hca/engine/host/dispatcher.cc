#include "host/dispatcher.h"

#include <algorithm>
#include <utility>

#include "slots/host_events.h"

namespace nd {

Dispatcher::Dispatcher(const HostParts& parts, WireReceiver& receiver4, WireReceiver& receiver6, UdpPortClaim& claim,
                       Inbound& inbound, RdmaPorts& ports, LocalPairs& pairs, LocalDelivery& local,
                       Inbound::Handler handler, void* argument)
    : parts_(parts),
      receiver4_(receiver4),
      receiver6_(receiver6),
      claim_(claim),
      inbound_(inbound),
      ports_(ports),
      pairs_(pairs),
      local_(local),
      handler_(handler),
      argument_(argument) {}

void Dispatcher::stop() {
  paused_.clear();
  resumeDue_ = UINT64_MAX;
}

// ── Polls ───────────────────────────────────────────────────────────────────────────────────────

uint32_t Dispatcher::poll(uint32_t budget, uint64_t now) {
  uint32_t n = 0;
  if (schedule.beginsWithBusiest() && busiest_ != nullptr) n = pollOne(budget);
  if (schedule.allDue(n)) n += pollAll(std::max(budget - std::min(n, budget), budget / 2));
  schedule.ends(n, now);
  return n;
}

void Dispatcher::pollBusiest(uint32_t budget, const std::atomic<uint32_t>& wanted) {
  if (busiest_ == nullptr) return;
  for (uint32_t polls = schedule.repeats(); polls != 0 && wanted.load(std::memory_order_relaxed) == 0; polls--)
    if (pollOne(budget) != 0) return;
}

uint32_t Dispatcher::pollOne(uint32_t budget) {
  const uint32_t n = busiest_->receive(budget);
  if (n != 0) schedule.delivered();
  return n;
}

uint32_t Dispatcher::onReceiver(WireReceiver& receiver, uint32_t socket, uint32_t budget) {
  const bool turned = receiver.turnTo(socket);
  if (std::exchange(busiest_, &receiver) != &receiver || turned) schedule.cameElsewhere();
  return receiver.receive(budget);
}

uint32_t Dispatcher::pollAll(uint32_t budget) {
  Readiness::Event events[Readiness::kMostEvents];
  const uint32_t count = parts_.readiness.take(events);
  // Linux reports sockets that stay readable in the same order each time, so none may use up the share of the others.
  const auto isSocket = [](const Readiness::Event& event) {
    const EventKind kind = eventKind(event.tag);
    return kind == EventKind::kWire || kind == EventKind::kPeerSocket || kind == EventKind::kInbound;
  };
  const auto sockets = static_cast<uint32_t>(std::count_if(events, events + count, isSocket));
  schedule.sawSockets(sockets);
  const uint32_t share = std::max(budget / std::max(sockets, 1u), kLeastShare);
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t tag = events[i].tag;
    const uint32_t id = eventId(tag);
    switch (eventKind(tag)) {
      case EventKind::kWire:
        n += onReceiver(id == static_cast<uint32_t>(IpFamily::kV4) ? receiver4_ : receiver6_, WireReceiver::kPortSocket,
                        share);
        break;
      case EventKind::kPeerSocket:
        n +=
            onReceiver((id & WireReceiver::kPeers6) == 0 ? receiver4_ : receiver6_, id & ~WireReceiver::kPeers6, share);
        break;
      case EventKind::kSlotListener:
        if (!inbound_.acceptFrom(parts_.slots.listener())) pause(tag);
        break;
      case EventKind::kInbound:
        schedule.cameElsewhere();
        n += inbound_.read(id, std::min(share, kFramesPerConnection), handler_, argument_);
        if (inbound_.has(id)) break;
        receiver4_.onMemberEnded(id);
        receiver6_.onMemberEnded(id);
        break;
      case EventKind::kOutbound: local_.onOutbound(id, events[i].kinds); break;
      case EventKind::kClaim:
        if (!ports_.acceptOn(id, inbound_)) pause(tag);
        break;
      case EventKind::kPortName:
        if (!inbound_.acceptFrom(claim_.listener())) pause(tag);
        break;
      case EventKind::kPortOwner: claim_.onOwnerEnded(); break;
      case EventKind::kPair: pairs_.rang(id); break;
      case EventKind::kLocalQueue: break;  // polled in any case
    }
  }
  return n;
}

// ── Paused listeners ────────────────────────────────────────────────────────────────────────────

// A connection is waiting on the listener, but no descriptor is available to accept it. Until one is, the listener
// would wake sleepers again and again.
void Dispatcher::pause(uint64_t listener) {
  paused_.push_back(listener);
  listen(listener, false);
  resumeDue_ = parts_.clock.now() + kPauseNs;
}

void Dispatcher::resume() {
  resumeDue_ = UINT64_MAX;
  for (const uint64_t listener : std::exchange(paused_, {})) listen(listener, true);
}

void Dispatcher::listen(uint64_t listener, bool on) {
  if (eventKind(listener) == EventKind::kClaim) return ports_.hear(eventId(listener), on);
  if (eventKind(listener) == EventKind::kPortName) return claim_.listen(on);
  parts_.readiness.change(parts_.slots.listener(), on ? Readiness::kReadable : Readiness::kNothing,
                          eventTag(EventKind::kSlotListener, 0));
}

// ── Sleepers ────────────────────────────────────────────────────────────────────────────────────

bool Dispatcher::fallAsleep(Sleeper& sleeper) {
  sleepers.add(sleeper);
  // Other threads may not yet have seen that the descriptor was readable.
  sleeper.asleep = false;
  if (pairs_.anyRang()) sleepers.wakeAll();
  sleeper.asleep = pairs_.fallAsleep(sleepers.anyAsleep());
  return sleeper.asleep;
}

}  // namespace nd
