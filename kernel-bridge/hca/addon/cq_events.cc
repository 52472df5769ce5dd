#include "cq_events.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace nd::js {

struct CqEvents::Sink final : NotifySink {
  Sink(std::weak_ptr<door::Channel> c, uint32_t atSlot, uint32_t withSerial, uint64_t begunAs)
      : channel(std::move(c)), slot(atSlot), serial(withSerial), number(begunAs) {}
  void notify(Status status) override { complete(static_cast<uint32_t>(status)); }
  bool watches() const override {
    const std::shared_ptr<door::Channel> c = channel.lock();
    return c != nullptr && c->watches;
  }
  void complete(uint32_t status) const {
    if (const std::shared_ptr<door::Channel> c = channel.lock()) c->complete(slot, serial, status, 0, nullptr, 0);
  }
  const std::weak_ptr<door::Channel> channel;
  const uint32_t slot, serial;
  const uint64_t number;  // in the order of the requests
};

bool CqEvents::wait(uint32_t type, uint32_t slot, uint32_t serial) {
  auto sink = std::make_shared<Sink>(channel_, slot, serial, begun_++);
  std::shared_ptr<Sink>& place = sinks_[slot];  // the previous one has fired: its slot was released
  place = sink;
  if (engine_.addCqWaiter(cq_, type, sink) == Status::kSuccess) return true;
  sinks_.erase(slot);
  return false;
}

void CqEvents::cancel(uint32_t slot, uint32_t status) {
  const auto it = sinks_.find(slot);
  if (it == sinks_.end()) return;
  const std::shared_ptr<Sink> sink = std::move(it->second);
  sinks_.erase(it);
  if (engine_.removeCqWaiter(cq_, sink.get()) == Status::kSuccess) sink->complete(status);  // otherwise it has fired
}

void CqEvents::endAll(uint32_t status) {
  std::vector<std::pair<uint64_t, uint32_t>> slots;
  for (const auto& [slot, sink] : sinks_) slots.emplace_back(sink->number, slot);
  std::sort(slots.begin(), slots.end());
  for (const auto& [number, slot] : slots) cancel(slot, status);
}

void CqEvents::end(uint32_t status) {
  if (const std::shared_ptr<door::Channel> channel = channel_.lock()) channel->unbindEvent(*this, status);
}

}  // namespace nd::js
