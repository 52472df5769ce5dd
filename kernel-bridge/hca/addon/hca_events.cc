#include "hca_events.h"

#include <algorithm>
#include <iterator>

#include "convert.h"
#include "hca.h"

namespace nd::js {

void HcaPort::push(const QueuedEvent& event) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push(event);
  wake();
}

void HcaPort::wake() {
  if (armed_) {
    armed_ = false;
    signal_->wake();
  }
}

void HcaPort::onMad(const PacketMeta& meta, bool addressed, uint16_t pkey, const uint8_t mad[256]) {
  QueuedEvent event;
  event.source = meta.source;
  event.destination = meta.destination;
  std::memcpy(event.mad.data(), mad, event.mad.size());
  std::lock_guard<std::mutex> lock(mutex_);
  const bool known = peers_.knows(mad, meta.source);
  event.event = HcaEvent::mad(meta.scopeId, pkey, meta.sender, !known);
  const MadVerdict verdict = known ? queue_.pushKnown(event) : queue_.pushOther(meta, addressed, event);
  switch (verdict) {
    case MadVerdict::kTaken: return wake();
    case MadVerdict::kFull: ++drops_.full; return;
    case MadVerdict::kSourceFull: ++drops_.sourceFull; return;
  }
}

void HcaPort::onSent(const uint8_t mad[256], const Gid& destination) {
  std::lock_guard<std::mutex> lock(mutex_);
  peers_.onSent(mad, destination);
}

void HcaPort::onEvent(const HcaEvent& event) {
  QueuedEvent queued;
  queued.event = event;
  push(queued);
}

void HcaPort::onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won) {
  QueuedEvent queued;
  queued.event = HcaEvent::notified(slot, serial);
  queued.channel = channel;
  queued.won = won;
  push(queued);
}

bool HcaPort::take(QueuedEvent* out, bool alsoOthers) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.take(out, alsoOthers)) return true;
  armed_ = queue_.empty();
  return false;
}

HcaPort::Drops HcaPort::drops() {
  std::lock_guard<std::mutex> lock(mutex_);
  return drops_;
}

Napi::Value NativeHca::takeEvent(const Info& info) {
  bool alsoOthers = false;
  toBool(info.Env(), info[0], &alsoOthers);  // works even in a thread that is being terminated
  const Words& words = face_.words();
  QueuedEvent queued;
  while (open_ && port_->take(&queued, alsoOthers)) {
    const HcaEvent& event = queued.event;
    if (event.kind == HcaEvent::Kind::kMad) {
      std::memcpy(words.bytes, queued.source.raw.data(), 16);
      std::memcpy(words.bytes + 16, queued.destination.raw.data(), 16);
      std::memcpy(words.bytes + Words::kMadAt, queued.mad.data(), wire::kMadBytes);
    } else if (event.kind == HcaEvent::Kind::kNotified) {
      waiters_.erase(WaiterKey{queued.channel, event.words[0], event.words[1]});
      if (!queued.won) continue;  // the kernel completed it itself
    }
    std::copy(std::begin(event.words), std::end(event.words), words.words);
    return Napi::Number::New(info.Env(), static_cast<uint32_t>(event.kind));
  }
  return Napi::Number::New(info.Env(), static_cast<uint32_t>(HcaEvent::Kind::kNone));
}

}  // namespace nd::js
