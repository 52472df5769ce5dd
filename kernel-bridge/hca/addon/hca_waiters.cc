// Requests that wait for a completion queue's event without involving the kernel.
#include "hca.h"

#include <algorithm>

namespace nd::js {

namespace {

// Completes a pended request when the CQ's event comes, without running the kernel's JavaScript.
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

}  // namespace

Napi::Value NativeHca::addCqWaiter(const Info& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t type, slot, serial;
  NativeChannelServer* server = NativeChannelServer::from(info[2]);
  if (!open_) return statusToJs(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &type) || server == nullptr || !toU32(env, info[3], &slot) ||
      !toU32(env, info[4], &serial)) {
    return statusToJs(env, Status::kInvalidParameter);
  }
  const WaiterKey key{server->channel().get(), slot, serial};
  auto sink = std::make_shared<SlotSink>(server->channel(), slot, serial, port_);
  // The waiter is registered before the engine is called, because a stored event fires inside the call.
  if (!waiters_.emplace(key, Waiter{cq, sink}).second) return statusToJs(env, Status::kInvalidParameter);
  const Status status = engine_->addCqWaiter(cq, type, sink);
  if (status != Status::kSuccess) {
    waiters_.erase(key);
    return statusToJs(env, status);
  }
  // From now on the user's thread calls the HCA directly.
  std::vector<std::shared_ptr<CqEvents>>& all = cqEvents_[cq];
  const door::Channel* const channel = server->channel().get();
  auto it = std::find_if(all.begin(), all.end(), [&](const auto& events) { return events->isOf(channel); });
  if (it == all.end()) it = all.insert(all.end(), std::make_shared<CqEvents>(*engine_, cq, server->channel()));
  server->channel()->bindEvent(slot, serial, *it);
  return statusToJs(env, status);
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
  if (!open_) return statusToJs(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &cq) || !toU32(env, info[1], &slot) || !toU32(env, info[2], &serial)) {
    return statusToJs(env, Status::kInvalidParameter);
  }
  for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
    if (it->second.cq != cq || std::get<1>(it->first) != slot || std::get<2>(it->first) != serial) continue;
    const Status status = engine_->removeCqWaiter(cq, it->second.sink.get());
    if (status == Status::kSuccess) waiters_.erase(it);  // otherwise it has fired, and its event follows
    return statusToJs(env, status);
  }
  return statusToJs(env, Status::kInvalidHandle);
}

}  // namespace nd::js
