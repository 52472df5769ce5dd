// An HCA of this process, with its host, its engine and the engine's thread. Each isolate of the program that opens a
// device has its own context, with its own slot, sockets, objects and lock. Two contexts of a process communicate as
// two processes do.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "engine/engine.h"
#include "host/host.h"
#include "progress/progress_engine.h"

namespace nd {

class HcaContext {
 public:
  HcaContext() = default;
  // Ends the context in any state: peers get a goodbye, and the slot is released. engine() and host() must no longer be
  // used. If the engine's thread does not end within half a second, or another thread holds the engine, the next
  // context or the end of the process completes this.
  ~HcaContext();
  HcaContext(const HcaContext&) = delete;
  HcaContext& operator=(const HcaContext&) = delete;

  // Starts on the first call; later calls only call Host::join(). `problem` explains a failure.
  Status start(const EngineOptions& engine, const HostOptions& host, std::string* problem);
  // Returns null before start() has succeeded. Any thread.
  Engine* engine() const { return engine_.load(std::memory_order_acquire); }
  // Only after start().
  Host& host();
  ProgressEngine& progress();  // for threads that wait (progress/waiting_thread.h)

  // Ends all contexts of this process as ~HcaContext does, because the process is about to end.
  static void endAll();

  struct Parts;

 private:
  std::mutex mutex_;
  std::atomic<Engine*> engine_{nullptr};
  std::shared_ptr<Parts> parts_;
};

}  // namespace nd
