#include "hca_events.h"

#include "convert.h"
#include "hca.h"

namespace nd::js {

void HcaPort::push(HcaEvent&& event) {
  events_.push_back(std::move(event));
  if (armed_) {
    armed_ = false;
    signal_->wake();
  }
}

void HcaPort::onMad(const PacketMeta& meta, uint16_t pkey, const uint8_t mad[256]) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kMad;
  event.meta = meta;
  event.pkey = pkey;
  std::memcpy(event.mad.data(), mad, event.mad.size());
  std::lock_guard<std::mutex> lock(mutex_);
  if (mads_ >= kMaxMads) {
    ++droppedMads_;
    return;
  }
  ++mads_;
  push(std::move(event));
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

void HcaPort::onCqEvent(Handle cq, uint32_t type) {
  HcaEvent event;
  event.kind = HcaEvent::Kind::kCq;
  event.handle = cq;
  event.event = type;
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

bool HcaPort::take(HcaEvent* out) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (events_.empty()) {
    armed_ = true;
    return false;
  }
  *out = std::move(events_.front());
  events_.pop_front();
  if (out->kind == HcaEvent::Kind::kMad) --mads_;
  return true;
}

uint64_t HcaPort::droppedMads() {
  std::lock_guard<std::mutex> lock(mutex_);
  return droppedMads_;
}

Napi::Value NativeHca::takeEvent(const Info& info) {
  Napi::Env env = info.Env();
  HcaEvent event;
  while (open_ && port_->take(&event)) {
    Napi::Object out = Napi::Object::New(env);
    switch (event.kind) {
      case HcaEvent::Kind::kMad:
        out.Set("type", "mad");
        out.Set("source", copyToJs(env, event.meta.source.raw.data(), event.meta.source.raw.size()));
        out.Set("destination", copyToJs(env, event.meta.destination.raw.data(), event.meta.destination.raw.size()));
        out.Set("scopeId", event.meta.scopeId);
        out.Set("pkey", event.pkey);
        out.Set("mad", copyToJs(env, event.mad.data(), event.mad.size()));
        return out;
      case HcaEvent::Kind::kQp:
        out.Set("type", "qp");
        out.Set("qp", event.handle);
        out.Set("token", event.token);
        out.Set("event", event.event);
        out.Set("reason", event.reason);
        return out;
      case HcaEvent::Kind::kCq:
        out.Set("type", "cq");
        out.Set("cq", event.handle);
        out.Set("event", event.event);
        return out;
      case HcaEvent::Kind::kSrq:
        out.Set("type", "srq");
        out.Set("srq", event.handle);
        out.Set("event", event.event);
        return out;
      case HcaEvent::Kind::kNotified:
        waiters_.erase(WaiterKey{event.channel, event.slot, event.serial});
        if (!event.won) continue;  // the kernel completed it itself and knows
        out.Set("type", "notified");
        out.Set("slot", event.slot);
        out.Set("serial", event.serial);
        return out;
    }
  }
  return env.Undefined();
}

}  // namespace nd::js
