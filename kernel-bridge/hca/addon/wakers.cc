#include "wakers.h"

namespace nd::js {

namespace {

// wake() may be called while its External exists.
struct LoopWaker final : Waker, Closable {
  explicit LoopWaker(EnvData& data, Napi::Function function)
      : callback(data.env(), function, "networkdirect:waker"), teardown(data.teardown()) {
    wake = [](Waker* self) {
      auto* const own = static_cast<LoopWaker*>(self);
      if (own->signal != nullptr) own->signal->wake();
    };
    signal = LoopSignal::open(
        data, [this] { LoopCallback::Scope(callback).call(0, nullptr); }, false);
    if (signal == nullptr) return;
    signal->notifyFirst();
    teardown->items.insert(this);
  }
  ~LoopWaker() override {
    closeNow();
    teardown->items.erase(this);
  }
  Rank rank() const override { return Rank::kHca; }
  void closeNow() override {
    if (signal != nullptr) signal->close();
  }

  LoopCallback callback;
  std::shared_ptr<Teardown> teardown;
  std::shared_ptr<LoopSignal> signal;
};

}  // namespace

Napi::Value createWaker(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  if (!info[0].IsFunction()) {
    napi_throw_type_error(env, nullptr, "createWaker(onWake): `onWake` must be a function");
    return env.Undefined();
  }
  auto* const waker = new LoopWaker(EnvData::of(env), info[0].As<Napi::Function>());
  if (waker->signal == nullptr) {
    delete waker;
    napi_throw_error(env, nullptr, "cannot create a waker: the event loop of this thread is ending");
    return env.Undefined();
  }
  return Napi::External<Waker>::New(env, waker, [](Napi::Env, Waker* ended) { delete static_cast<LoopWaker*>(ended); });
}

}  // namespace nd::js
