// Completion queues and the waiters for their events.
#include "hca.h"

#include <algorithm>

#include "hca_commands.h"

namespace nd::js {

namespace {

// Completes a pended request when the CQ's event comes, without the kernel's JavaScript.
class SlotSink final : public NotifySink {
 public:
  SlotSink(std::shared_ptr<door::Channel> channel, uint32_t slot, uint32_t serial, std::weak_ptr<HcaPort> port)
      : channel_(std::move(channel)), slot_(slot), serial_(serial), port_(std::move(port)) {}
  void notify(Status status) override {
    const bool won = channel_->complete(slot_, serial_, static_cast<uint32_t>(status), 0, nullptr, 0);
    if (std::shared_ptr<HcaPort> port = port_.lock()) port->onNotified(channel_.get(), slot_, serial_, won);
  }
  bool watches() const override { return channel_->watches; }

 private:
  std::shared_ptr<door::Channel> channel_;
  uint32_t slot_, serial_;
  std::weak_ptr<HcaPort> port_;
};

// Reports a CQ's events to the kernel, which may end before the CQ.
class ListenSink final : public NotifySink {
 public:
  ListenSink(Handle cq, std::weak_ptr<HcaPort> port) : cq_(cq), port_(std::move(port)) {}
  void notify(Status) override {
    if (std::shared_ptr<HcaPort> port = port_.lock()) port->onEvent(HcaEvent::cq(cq_, CqEvent::kCompletion));
  }

 private:
  Handle cq_;
  std::weak_ptr<HcaPort> port_;
};

}  // namespace

Napi::Value NativeHca::createCq(const Info& info) {
  Napi::Env env = info.Env();
  uint64_t address, bytes;
  uint32_t entries;
  Handle cq = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toUint(env, info[0], &address) && toUint(env, info[1], &bytes) && toU32(env, info[2], &entries)) {
    status = engine_->createCq(kernel_, address, bytes, entries, &cq);
  }
  Napi::Object out = result(env, status);
  out.Set("cq", cq);
  return out;
}

Napi::Value NativeHca::resizeCq(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint64_t address, bytes;
  uint32_t entries;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toUint(env, info[1], &address) || !toUint(env, info[2], &bytes) ||
      !toU32(env, info[3], &entries)) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, engine_->resizeCq(cq, address, bytes, entries));
}

Napi::Value NativeHca::destroyCq(const Info& info) { return handleCommand(info, &Engine::destroyCq); }

Napi::Value NativeHca::listenCq(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq)) return number(env, Status::kInvalidParameter);
  return number(env, engine_->listenCq(cq, std::make_shared<ListenSink>(cq, port_)));
}

Napi::Value NativeHca::armCq(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !info[1].IsBoolean()) return number(env, Status::kInvalidParameter);
  return number(env, engine_->armCq(cq, info[1].As<Napi::Boolean>().Value()));
}

Napi::Value NativeHca::addCqWaiter(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t type, slot, serial;
  NativeChannelServer* server = NativeChannelServer::from(info[2]);
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &type) || server == nullptr || !toU32(env, info[3], &slot) ||
      !toU32(env, info[4], &serial)) {
    return number(env, Status::kInvalidParameter);
  }
  const WaiterKey key{server->channel().get(), slot, serial};
  auto sink = std::make_shared<SlotSink>(server->channel(), slot, serial, port_);
  // Registered before the engine is called, because a stored event fires inside the call.
  if (!waiters_.emplace(key, Waiter{cq, sink}).second) return number(env, Status::kInvalidParameter);
  const Status status = engine_->addCqWaiter(cq, type, sink);
  if (status != Status::kSuccess) {
    waiters_.erase(key);
    return number(env, status);
  }
  // From now on the user's thread calls the HCA directly.
  std::vector<std::shared_ptr<CqEvents>>& all = cqEvents_[cq];
  const door::Channel* const channel = server->channel().get();
  auto it = std::find_if(all.begin(), all.end(), [&](const auto& events) { return events->isOf(channel); });
  if (it == all.end()) it = all.insert(all.end(), std::make_shared<CqEvents>(*engine_, cq, server->channel()));
  server->channel()->bindEvent(slot, serial, *it);
  return number(env, status);
}

void NativeHca::endCqEvents(const Info& info) {
  Handle cq;
  uint32_t status;
  if (!toU32(info.Env(), info[0], &cq) || !toU32(info.Env(), info[1], &status)) return;
  const auto it = cqEvents_.find(cq);
  if (it == cqEvents_.end()) return;
  for (const std::shared_ptr<CqEvents>& events : it->second) events->end(status);
  cqEvents_.erase(it);
}

Napi::Value NativeHca::removeCqWaiter(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t slot, serial;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &slot) || !toU32(env, info[2], &serial)) {
    return number(env, Status::kInvalidParameter);
  }
  for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
    if (it->second.cq != cq || std::get<1>(it->first) != slot || std::get<2>(it->first) != serial) continue;
    const Status status = engine_->removeCqWaiter(cq, it->second.sink.get());
    if (status == Status::kSuccess) waiters_.erase(it);  // otherwise it has fired, and its event follows
    return number(env, status);
  }
  return number(env, Status::kInvalidHandle);
}

}  // namespace nd::js
