#include "network_watch.h"

#include "loop_poll.h"

namespace nd::js {

// The uv handle exists longer than the watch. Its close callback frees it and closes the socket.
struct NetworkWatch::Holder {
  LoopPoll poll;
  NetworkEvents events;
  std::shared_ptr<Teardown> teardown;
  NetworkWatch* watch = nullptr;  // null once it is closing
};

Napi::Value NetworkWatch::watch(const Napi::CallbackInfo& info, NetworkPart part) {
  Napi::Env env = info.Env();
  if (!info[0].IsFunction()) {
    napi_throw_type_error(env, nullptr,
                          "watchInterfaces(onChange), watchRoutes(onChange): `onChange` must be a function");
    return env.Undefined();
  }
  EnvData& data = EnvData::of(env);
  std::unique_ptr<NetworkWatch> watch(new NetworkWatch(data, info[0].As<Napi::Function>()));
  if (!watch->open(data, part)) return env.Undefined();
  NetworkWatch* kept = watch.get();
  data.watches.push_back(std::move(watch));  // while the function may be called
  return Napi::Function::New(
      env, [kept](const Napi::CallbackInfo&) { kept->closeNow(); }, "stop");
}

NetworkWatch::NetworkWatch(EnvData& data, Napi::Function onChange)
    : onChange_(data.env(), onChange, "networkdirect:network"), teardown_(data.teardown()) {}

NetworkWatch::~NetworkWatch() {
  closeNow();
  teardown_->items.erase(this);
}

bool NetworkWatch::open(EnvData& data, NetworkPart part) {
  uv_loop_t* loop = nullptr;
  if (teardown_->ending || napi_get_uv_event_loop(data.env(), &loop) != napi_ok) return false;
  auto holder = std::make_unique<Holder>();
  if (!holder->events.open(part) || !holder->poll.open(loop, holder->events.fd())) return false;
  holder->poll.handle()->data = holder.get();
  holder->watch = this;
  holder->teardown = teardown_;
  ++teardown_->openHandles;
  teardown_->items.insert(this);
  holder_ = holder.release();
  uv_unref(holder_->poll.handle());
  const bool started = holder_->poll.start([](void* self) {
    auto* h = static_cast<Holder*>(self);
    if (h->watch != nullptr && h->events.take()) LoopCallback::Scope(h->watch->onChange_).call(0, nullptr);
  });
  if (!started) closeNow();
  return started;
}

void NetworkWatch::closeNow() {
  if (holder_ == nullptr) return;
  Holder* holder = std::exchange(holder_, nullptr);
  holder->watch = nullptr;
  uv_close(holder->poll.handle(), [](uv_handle_t* handle) {
    std::unique_ptr<Holder> h(static_cast<Holder*>(handle->data));
    --h->teardown->openHandles;
    h->teardown->finishIfIdle();
  });
}

}  // namespace nd::js
