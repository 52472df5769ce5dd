#include "env.h"

#include <algorithm>
#include <vector>

namespace nd::js {

void Teardown::finishIfIdle() {
  if (!ending || openHandles > 0 || hook == nullptr) return;
  napi_async_cleanup_hook_handle done = hook;
  hook = nullptr;
  napi_remove_async_cleanup_hook(done);
}

EnvData::EnvData(Napi::Env env)
    : context(std::make_shared<HcaContext>()),
      env_(env),
      teardown_(std::make_shared<Teardown>()),
      parking_(std::make_shared<Parking>()) {
  napi_add_async_cleanup_hook(env, &EnvData::onEnvironmentEnd, this, &teardown_->hook);
  // V8 checks for stop requests when a JavaScript function begins, but not when a native one does.
  napi_value source, function;
  if (napi_create_string_utf8(env, "(() => {})", NAPI_AUTO_LENGTH, &source) == napi_ok &&
      napi_run_script(env, source, &function) == napi_ok) {
    empty_ = Napi::Persistent(Napi::Function(env, function));
  }
}

EnvData::~EnvData() = default;

EnvData& EnvData::of(Napi::Env env) { return *env.GetInstanceData<EnvData>(); }

bool EnvData::stopRequested() {
  if (empty_.IsEmpty()) return false;
  Napi::HandleScope scope(env_);
  napi_value receiver, exception;
  if (napi_get_undefined(env_, &receiver) != napi_ok) return true;
  if (napi_call_function(env_, receiver, empty_.Value(), 0, nullptr, nullptr) == napi_ok) return false;
  // An exception that is an object has another cause: the stack was exhausted.
  bool pending = false;
  napi_valuetype type = napi_undefined;
  const bool thrown = napi_is_exception_pending(env_, &pending) == napi_ok && pending &&
                      napi_get_and_clear_last_exception(env_, &exception) == napi_ok &&
                      napi_typeof(env_, exception, &type) == napi_ok && type == napi_object;
  return !thrown;
}

void EnvData::onEnvironmentEnd(napi_async_cleanup_hook_handle hook, void* data) {
  EnvData* self = static_cast<EnvData*>(data);
  std::shared_ptr<Teardown> teardown = self->teardown_;
  teardown->hook = hook;
  std::vector<Closable*> items(teardown->items.begin(), teardown->items.end());
  std::sort(items.begin(), items.end(), [](const Closable* a, const Closable* b) { return a->rank() < b->rank(); });
  for (Closable* item : items) item->closeNow();
  self->context.reset();  // nothing in this environment uses it any more
  teardown->ending = true;
  teardown->finishIfIdle();
}

// The uv handle exists longer than the last user of its LoopSignal. Its close callback frees it.
struct LoopSignal::Holder {
  uv_async_t async;
  std::shared_ptr<LoopSignal> self;
  std::shared_ptr<Teardown> teardown;
  std::function<void()> run;
  bool closing = false;
};

std::shared_ptr<LoopSignal> LoopSignal::open(EnvData& data, std::function<void()> run, bool keepAlive) {
  uv_loop_t* loop = nullptr;
  if (data.teardown()->ending || napi_get_uv_event_loop(data.env(), &loop) != napi_ok) return nullptr;
  auto signal = std::make_shared<LoopSignal>();
  auto* holder = new Holder;
  holder->run = std::move(run);
  const int failed = uv_async_init(loop, &holder->async, [](uv_async_t* async) {
    auto* h = static_cast<Holder*>(async->data);
    if (!h->closing) h->run();
  });
  if (failed != 0) {
    delete holder;
    return nullptr;
  }
  holder->async.data = holder;
  holder->self = signal;
  holder->teardown = data.teardown();
  ++holder->teardown->openHandles;
  signal->holder_ = holder;
  signal->parking_ = data.parking();
  signal->token_ = signal->parking_->newToken();
  signal->setKeepAlive(keepAlive);
  return signal;
}

void LoopSignal::wake() {
  if (notifiesFirst_ ? parking_->notify() : parking_->unpark(token_)) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (holder_ != nullptr) uv_async_send(&holder_->async);
  }
  parking_->wokeLoop(!parks_.load());
}

int64_t LoopSignal::untilTimer() const {
  if (holder_ == nullptr) return 0;  // only this thread changes it
  uv_loop_t* loop = holder_->async.loop;
  uv_update_time(loop);
  return int64_t{uv_backend_timeout(loop)} * 1000;
}

void LoopSignal::setKeepAlive(bool keepAlive) {
  if (keepAlive == keepAlive_) return;
  keepAlive_ = keepAlive;
  if (holder_ == nullptr) return;  // only this thread changes it
  auto* handle = reinterpret_cast<uv_handle_t*>(&holder_->async);
  if (keepAlive) {
    uv_ref(handle);
  } else {
    uv_unref(handle);
  }
}

void LoopSignal::close() {
  Holder* holder;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    holder = holder_;
    holder_ = nullptr;
  }
  if (holder == nullptr) return;
  holder->closing = true;
  uv_close(reinterpret_cast<uv_handle_t*>(&holder->async), [](uv_handle_t* handle) {
    std::unique_ptr<Holder> h(static_cast<Holder*>(handle->data));
    --h->teardown->openHandles;
    h->teardown->finishIfIdle();
  });
}

LoopCallback::LoopCallback(Napi::Env env, Napi::Function function, const char* name)
    : function_(Napi::Persistent(function)), context_(env, name) {}

LoopCallback::Scope::Scope(LoopCallback& callback)
    : handles_(callback.function_.Env()), scope_(callback.function_.Env(), callback.context_), callback_(callback) {}

void LoopCallback::Scope::call(size_t count, const napi_value* arguments) {
  napi_env env = callback_.function_.Env();
  napi_value function = callback_.function_.Value();
  napi_value receiver, error;
  if (napi_get_undefined(env, &receiver) != napi_ok) return;
  napi_call_function(env, receiver, function, count, arguments, nullptr);
  bool pending = false;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending &&
      napi_get_and_clear_last_exception(env, &error) == napi_ok) {
    napi_fatal_exception(env, error);
  }
}

}  // namespace nd::js
