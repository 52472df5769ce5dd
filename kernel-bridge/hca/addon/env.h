// The objects of one environment (isolate) of the addon, and how the environment ends.
//
// An environment may end at any moment (worker.terminate). Everything that other threads can reach is a Closable,
// closed by one asynchronous clean-up hook before V8 frees any memory; the environment then waits until libuv has
// closed the handles of this addon.
#pragma once
#include "napi_header.h"
#include <uv.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "request_channel.h"
#include "progress/parking.h"
#include "process/hca_context.h"

namespace nd::js {

// The order in which an environment that ends closes its objects: first no new requests are accepted, then the HCA is
// closed, then memory is unpinned.
enum class Rank { kServer, kHca, kChannel, kMemory };

class Closable {
 public:
  virtual ~Closable() = default;
  virtual Rank rank() const = 0;
  virtual void closeNow() = 0;  // idempotent, on the environment's thread
};

// The Closables and open libuv handles of an environment; closing the last handle completes the clean-up hook. Shared
// by all of them, because finalizers and close callbacks may run after the instance data is gone.
struct Teardown {
  std::unordered_set<Closable*> items;
  uint32_t openHandles = 0;
  bool ending = false;
  napi_async_cleanup_hook_handle hook = nullptr;
  void finishIfIdle();
};

class EnvData {
 public:
  explicit EnvData(Napi::Env env);
  ~EnvData();
  static EnvData& of(Napi::Env env);

  Napi::Env env() const { return env_; }
  const std::shared_ptr<Teardown>& teardown() const { return teardown_; }
  const std::shared_ptr<Parking>& parking() const { return parking_; }
  // Returns whether V8 has to stop the running code (worker.terminate, process.exit, the timeout of a vm script). It
  // calls an empty JavaScript function, which fails in that case, and can be used only while a function of this addon
  // runs. A waiting thread calls it now and then.
  bool stopRequested();
  // The HCA of this environment; null until a soft kernel has opened it, and during teardown.
  Engine* engine() const { return context != nullptr ? context->engine() : nullptr; }

  // Soft kernels of this environment hold it as well, on their own threads. The last holder ends the context.
  std::shared_ptr<HcaContext> context;
  Napi::FunctionReference channelClass;
  Napi::FunctionReference serverClass;
  Napi::FunctionReference hcaClass;
  Napi::Reference<Napi::Uint32Array> doorbell;  // one word: the queue pair of the new work requests
  const uint32_t* doorbellWord = nullptr;
  std::unique_ptr<Closable> memory;                // the Memory of this environment (user_memory.h)
  std::vector<std::unique_ptr<Closable>> watches;  // network_watch.h

 private:
  static void onEnvironmentEnd(napi_async_cleanup_hook_handle hook, void* data);

  Napi::Env env_;
  std::shared_ptr<Teardown> teardown_;
  std::shared_ptr<Parking> parking_;
  Napi::FunctionReference empty_;
};

// Runs a function on this environment's loop after any thread has called wake(). Several calls may be merged into one
// run.
class LoopSignal final : public door::Wake, public std::enable_shared_from_this<LoopSignal> {
 public:
  // With `keepAlive`, the open signal keeps the loop alive; setKeepAlive() changes that.
  static std::shared_ptr<LoopSignal> open(EnvData& data, std::function<void()> run, bool keepAlive);
  void wake() override;               // any thread
  void setKeepAlive(bool keepAlive);  // the loop's thread
  void close();                       // the loop's thread; wake() then does nothing
  // While a thread of this environment serves another signal, wake() only notifies it. Must be called before the first
  // wake().
  void notifyFirst() { notifiesFirst_ = true; }
  // Waits until `look` returns true, at most for this time and not beyond the loop's next timer, and returns the result
  // of `look`. Returns immediately when any signal of this environment is woken. For the loop's thread.
  template <typename Ready>
  bool park(int64_t microseconds, Ready ready);
  // See Parking. For the loop's thread.
  void begin() { parking_->begin(token_); }
  void end() { parking_->end(); }
  bool notified() { return parking_->notified(); }
  void acceptNotifications() { parking_->acceptNotifications(); }

 private:
  struct Holder;
  int64_t untilTimer() const;  // in microseconds, negative without a timer
  std::shared_ptr<Parking> parking_;
  std::atomic<bool> parks_{false};
  bool notifiesFirst_ = false;
  int32_t token_ = 0;  // used by other threads to end the wait
  std::mutex mutex_;
  Holder* holder_ = nullptr;
  bool keepAlive_ = true;
};

template <typename Ready>
bool LoopSignal::park(int64_t microseconds, Ready ready) {
  parks_.store(true);
  const int64_t timer = untilTimer();
  return parking_->park(token_, timer < 0 ? microseconds : std::min(timer, microseconds), ready);
}

// A JavaScript function that native code calls from the loop. An exception in it becomes an uncaughtException of the
// environment, as in any event handler.
class LoopCallback {
 public:
  LoopCallback(Napi::Env env, Napi::Function function, const char* name);
  // Calls within one callback scope. Microtasks run when the scope ends.
  class Scope {
   public:
    explicit Scope(LoopCallback& callback);
    void call(size_t count, const napi_value* arguments);

   private:
    Napi::HandleScope handles_;
    Napi::CallbackScope scope_;
    LoopCallback& callback_;
  };

 private:
  Napi::FunctionReference function_;
  Napi::AsyncContext context_;
};

}  // namespace nd::js
