#include "hca_events.h"

#include "convert.h"
#include "hca.h"

namespace nd::js {

void HcaPort::push(HcaEvent&& event) {
  queue_.push(std::move(event));
  wake();
}

void HcaPort::wake() {
  if (armed_) {
    armed_ = false;
    signal_->wake();
  }
}

void HcaPort::onMad(const PacketMeta& meta, bool addressed, uint16_t pkey, const uint8_t mad[256]) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kMad;
  event.meta = meta;
  event.pkey = pkey;
  std::memcpy(event.mad.data(), mad, event.mad.size());
  std::lock_guard<std::mutex> lock(mutex_);
  event.known = peers_.knows(mad, meta.source);
  const MadVerdict verdict =
      event.known ? queue_.pushKnown(std::move(event)) : queue_.pushOther(meta, addressed, std::move(event));
  switch (verdict) {
    case MadVerdict::kTaken:
      return wake();
    case MadVerdict::kFull:
      ++drops_.full;
      return;
    case MadVerdict::kSourceFull:
      ++drops_.sourceFull;
      return;
  }
}

void HcaPort::onSent(const uint8_t mad[256], const Gid& destination) {
  std::lock_guard<std::mutex> lock(mutex_);
  peers_.onSent(mad, destination);
}

void HcaPort::onQpEvent(Handle qp, uint32_t token, QpEvent type, uint32_t reason) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kQp;
  event.handle = qp;
  event.token = token;
  event.event = static_cast<uint32_t>(type);
  event.reason = reason;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onCqEvent(Handle cq, CqEvent type) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kCq;
  event.handle = cq;
  event.event = static_cast<uint32_t>(type);
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onSrqEvent(Handle srq, SrqEvent type) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kSrq;
  event.handle = srq;
  event.event = static_cast<uint32_t>(type);
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onCaptureFailed(int error) { report(HcaEvent::Kind::kCapture, error); }

void HcaPort::onEngineFailed(int error) { report(HcaEvent::Kind::kFatal, error); }

void HcaPort::onObserved(uint32_t number) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kObserved;
  event.token = number;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::report(HcaEvent::Kind kind, int error) {
  HcaEvent event;
  event.kind = kind;
  event.reason = static_cast<uint32_t>(error);
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

void HcaPort::onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kNotified;
  event.channel = channel;
  event.slot = slot;
  event.serial = serial;
  event.won = won;
  std::lock_guard<std::mutex> lock(mutex_);
  push(std::move(event));
}

bool HcaPort::take(HcaEvent* out, bool alsoOthers) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.take(out, alsoOthers)) return true;
  armed_ = queue_.empty();
  return false;
}

HcaPort::Drops HcaPort::drops() {
  std::lock_guard<std::mutex> lock(mutex_);
  return drops_;
}

Napi::Value NativeHca::takeEventWords(const Info& info) {
  bool alsoOthers = false;
  toBool(info.Env(), info[0], &alsoOthers);  // works in a thread that is being terminated, too
  HcaEvent event;
  while (open_ && port_->take(&event, alsoOthers)) {
    if (event.kind == HcaEvent::Kind::kMad) {
      std::memcpy(words_.bytes, event.meta.source.raw.data(), 16);
      std::memcpy(words_.bytes + 16, event.meta.destination.raw.data(), 16);
      std::memcpy(words_.bytes + Words::kMadAt, event.mad.data(), Words::kMadBytes);
    } else if (event.kind == HcaEvent::Kind::kNotified) {
      waiters_.erase(WaiterKey{event.channel, event.slot, event.serial});
      if (!event.won) continue;  // the kernel completed it itself and knows
    }
    size_t at = 0;
    eachWordOfEvent(event, [&](const char*, uint32_t value) { words_.words[at++] = value; });
    return Napi::Number::New(info.Env(), static_cast<uint32_t>(event.kind));
  }
  return Napi::Number::New(info.Env(), static_cast<uint32_t>(HcaEvent::Kind::kNone));
}

}  // namespace nd::js
