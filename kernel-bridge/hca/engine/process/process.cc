#include "process/process.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include <atomic>
#include <cstdlib>

#include "platform/os.h"
#include "platform/thread.h"
#include "process/engine_thread.h"

namespace nd {
namespace {

class MonotonicClock final : public Clock {
 public:
  uint64_t now() const override { return monotonicNs(); }

#if defined(__x86_64__)
  MonotonicClock() {
    // Only a counter of constant rate that never stops can tell the age of a reading.
    unsigned a, b, c, d = 0;
    steadyTicks_ = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
  }
  // Between two readings of the system's clock the counter gives the elapsed time, once its rate is known.
  uint64_t recent() const override {
    static thread_local struct {
      uint64_t ticks, ns, baseTicks, baseNs;
      uint64_t pace;  // nanoseconds of a tick, in 2^-kPaceBits; 0: unknown
    } last;
    if (!steadyTicks_) return now();
    const uint64_t ticks = __rdtsc(), passed = ticks - last.ticks;
    if (last.pace != 0 && passed < kReadTicks) return last.ns + (passed * last.pace >> kPaceBits);
    if (last.ns != 0 && passed < kRecentTicks) return last.ns;
    last.ns = now();
    last.ticks = ticks;
    if (__rdtsc() - ticks > kRecentTicks) return last.ns;  // interrupted in between: no measure of the rate
    const uint64_t span = ticks - last.baseTicks;
    if (span >= kPaceTicks && span < kLongestTicks) last.pace = ((last.ns - last.baseNs) << kPaceBits) / span;
    if (span >= kLongestTicks) {
      last.baseTicks = ticks;
      last.baseNs = last.ns;
    }
    return last.ns;
  }

 private:
  static constexpr uint32_t kPaceBits = 20;
  static constexpr uint64_t kReadTicks = 1u << 16;       // some 20 µs
  static constexpr uint64_t kPaceTicks = 1u << 25;       // some 10 ms
  static constexpr uint64_t kLongestTicks = 1ull << 33;  // some seconds; then the rate is measured again
  bool steadyTicks_ = false;
#endif
};

// The system takes some 20 ms to prepare the barrier. Nobody should wait for that, so a thread of its own does it; it uses only an
// engine that exists until the process ends.
void askForBarriers(Engine& engine) {
  const auto ask = [](void* argument) {
    if (const Barrier barrier = barrierOfAllThreads()) static_cast<Engine*>(argument)->setBarrier(barrier);
  };
  Thread thread;
  if (thread.start("rdma-barrier", ask, &engine)) thread.detach();  // if it fails, posters use fences
}

}  // namespace

struct Process::Impl {
  MonotonicClock clock;
  std::mutex mutex;
  std::atomic<bool> started{false};
  std::string problem;
  std::unique_ptr<Host> host;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<EngineThread> thread;

  // At exit(): ends the thread and closes the host, so that peers and captures see an orderly end. Bounded, because a process
  // must not hang in its exit if the engine is held; the system releases all of it anyway.
  void shutDown() {
    constexpr uint32_t kPatienceMs = 500;
    if (started && thread->stop(kPatienceMs)) host->stop();
  }
};

Process::Process() : impl_(new Impl()) {}
Process::~Process() = default;

Process& Process::instance() {
  static auto* process = new Process();  // never destroyed: other threads may use it until the very end
  return *process;
}

Status Process::start(const EngineOptions& engineOptions, const HostOptions& hostOptions, std::string* problem) {
  Impl& p = *impl_;
  std::lock_guard<std::mutex> guard(p.mutex);
  if (p.started) {
    std::lock_guard<EngineLock> lock(p.engine->lock());
    p.host->join(hostOptions);
    return Status::kSuccess;
  }
  const auto fail = [&](Status status, const std::string& why) {
    p.thread.reset();
    p.engine.reset();
    p.host.reset();
    if (problem != nullptr) *problem = why;
    return status;
  };
  p.host = std::make_unique<Host>(p.clock);
  p.engine = std::make_unique<Engine>(*p.host, p.clock, engineOptions);
  const Status status = p.host->start(hostOptions, *p.engine);
  if (status == Status::kTooManyAddresses)
    return fail(status, std::to_string(kSlots) + " processes of this user use RDMA on this host already; that is the limit");
  if (status == Status::kAccessDenied)
    return fail(status, "the option icrc is 'exact', which takes a raw socket and so the privilege CAP_NET_RAW; give it "
                        "to the process (as root, or by setcap cap_net_raw+ep for its node), or choose 'solved'");
  if (status != Status::kSuccess)
    return fail(status, "the host side of the HCA needs some sockets and events, and the system refused them "
                        "(is the limit of open files too low?)");
  p.thread = std::make_unique<EngineThread>(*p.engine, *p.host, p.clock);
  // The thread runs this library's code until the process ends; the isolate that loaded the library may end before,
  // and then the library would be unloaded under it.
  keepLibraryLoaded();
  if (!p.thread->start()) {
    p.host->stop();
    return fail(Status::kInsufficientResources, "the system refused a thread for the HCA");
  }
  p.started = true;
  askForBarriers(*p.engine);
  std::atexit([] { Process::instance().impl_->shutDown(); });
  return Status::kSuccess;
}

bool Process::started() const { return impl_->started; }
Engine& Process::engine() { return *impl_->engine; }
Host& Process::host() { return *impl_->host; }

}  // namespace nd
