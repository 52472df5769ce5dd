#include "process/hca_context.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include <algorithm>
#include <utility>
#include <vector>

#include "platform/os.h"
#include "platform/thread.h"
#include "process/hosted_engine.h"
#include "progress/engine_thread.h"

namespace nd {
namespace {

class MonotonicClock final : public Clock {
 public:
  uint64_t now() const override { return monotonicNs(); }

#if defined(__x86_64__)
  MonotonicClock() {
    // The age of a reading can only be taken from a counter that has a constant rate and never stops.
    unsigned a, b, c, d = 0;
    steadyTicks_ = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
  }
  // Between two readings of the OS clock the counter gives the elapsed time, once its rate is known.
  uint64_t recent() const override {
    static thread_local struct {
      uint64_t ticks, ns, baseTicks, baseNs;
      uint64_t pace;  // nanoseconds per tick, in 2^-kPaceBits; 0: unknown
    } last;
    if (!steadyTicks_) return now();
    const uint64_t ticks = __rdtsc(), passed = ticks - last.ticks;
    if (last.pace != 0 && passed < kReadTicks) return last.ns + (passed * last.pace >> kPaceBits);
    if (last.ns != 0 && passed < kRecentTicks) return last.ns;
    last.ns = now();
    last.ticks = ticks;
    if (__rdtsc() - ticks > kRecentTicks) return last.ns;  // interrupted in between: not usable to measure the rate
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

const Clock& monotonicClock() {
  static const auto* clock = new MonotonicClock();  // never destroyed: threads may use it until the process has ended
  return *clock;
}

// How long the end of a context waits for the engine's lock and thread. Both are available immediately unless the
// engine is held.
constexpr uint64_t kEndTimeoutNs = 500'000'000;

}  // namespace

struct HcaContext::Parts {
  Host host{monotonicClock()};
  Engine engine;
  HostedEngine hosted{engine, host};
  EngineThread thread{hosted, monotonicClock()};

  explicit Parts(const EngineOptions& options) : engine(host, monotonicClock(), options) {}

  // Stops the thread and closes the host, so that peers and captures see an orderly end. Returns false if the thread is
  // still running or another thread holds the engine; all of this is then in use.
  bool end(uint64_t deadline) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (stopped_) return true;
    thread.requestStop();
    if (!lockAvailable(deadline)) return false;
    const uint64_t now = monotonicNs(), left = deadline > now ? deadline - now : 0;
    stopped_ = thread.stop(static_cast<uint32_t>(left / 1'000'000 + 1));
    if (stopped_) host.stop();
    return stopped_;
  }

 private:
  // The remaining steps take the lock, which its holder may never release.
  bool lockAvailable(uint64_t deadline) {
    while (!engine.lock().try_lock()) {
      if (monotonicNs() >= deadline) return false;
      yieldThread();
    }
    engine.lock().unlock();
    return true;
  }

  std::mutex mutex_;
  bool stopped_ = false;
};

namespace {

// The process-wide state of contexts: the barrier of all threads, and process exit. A context that has not ended in
// time is kept here, and its end is retried.
class Registry {
 public:
  using Parts = std::shared_ptr<HcaContext::Parts>;

  static Registry& instance() {
    static auto* registry = new Registry();  // never destroyed, as above
    return *registry;
  }

  void add(const Parts& parts) {
    Barrier known = nullptr;
    bool first = false;
    endLate();
    {
      std::lock_guard<std::mutex> guard(mutex_);
      all_.push_back(parts);
      known = barrier_;
      first = !std::exchange(begun_, true);
    }
    if (known != nullptr) parts->engine.setBarrier(known);
    if (!first) return;
    atEndOfProcess([] { instance().endAll(); });
    // Linux takes about 20 ms to prepare the barrier. A separate thread does this, so that no caller has to wait.
    Thread thread;
    if (thread.start(
            "rdma-barrier", [](void*) { instance().prepareBarrier(); }, nullptr))
      thread.detach();
  }

  void remove(const Parts& parts) {
    std::lock_guard<std::mutex> guard(mutex_);
    all_.erase(std::remove(all_.begin(), all_.end(), parts), all_.end());
  }

  // The context did not end in time, and its owner has gone.
  void keepLate(const Parts& parts) {
    std::lock_guard<std::mutex> guard(mutex_);
    late_.push_back(parts);
  }

  // Called at process exit. The OS releases everything anyway, but peers should get a goodbye.
  void endAll() {
    const std::vector<Parts> started = all();
    for (const Parts& parts : started) parts->thread.requestStop();
    const uint64_t deadline = monotonicNs() + kEndTimeoutNs;
    for (const Parts& parts : started) parts->end(deadline);
  }

 private:
  std::vector<Parts> all() {
    std::lock_guard<std::mutex> guard(mutex_);
    return all_;
  }

  void endLate() {
    std::vector<Parts> late;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      late.swap(late_);
    }
    for (const Parts& parts : late) {
      if (parts->end(monotonicNs())) remove(parts);
      else keepLate(parts);
    }
  }

  void prepareBarrier() {
    const Barrier barrier = barrierOfAllThreads();
    if (barrier == nullptr) return;  // posters use fences
    std::vector<Parts> started;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      barrier_ = barrier;
      started = all_;
    }
    for (const Parts& parts : started) parts->engine.setBarrier(barrier);
  }

  std::mutex mutex_;
  std::vector<Parts> all_, late_;
  Barrier barrier_ = nullptr;
  bool begun_ = false;
};

}  // namespace

HcaContext::~HcaContext() {
  if (parts_ == nullptr) return;
  if (parts_->end(monotonicNs() + kEndTimeoutNs)) Registry::instance().remove(parts_);
  else Registry::instance().keepLate(parts_);
}

Status HcaContext::start(const EngineOptions& engineOptions, const HostOptions& hostOptions, std::string* problem) {
  const auto fail = [&](Status status, const std::string& why) {
    if (problem != nullptr) *problem = why;
    return status;
  };
  std::lock_guard<std::mutex> guard(mutex_);
  if (parts_ != nullptr) {
    std::lock_guard<EngineLock> lock(parts_->engine.lock());
    if (parts_->host.join(hostOptions)) return Status::kSuccess;
    return fail(Status::kNotSupported,
                "the option link must be 'local' for all kernels of this thread or for none; the first one has "
                "decided for the thread's HCA");
  }
  auto parts = std::make_shared<Parts>(engineOptions);
  const Status status = parts->host.start(hostOptions, parts->engine);
  if (status == Status::kTooManyAddresses)
    return fail(status, "the processes of this user already have " + std::to_string(kSlots) +
                            " HCAs on this host, the maximum; each thread that uses RDMA has one");
  if (status == Status::kAccessDenied)
    return fail(
        status,
        "the option icrc is 'exact', which needs a raw socket and therefore the privilege CAP_NET_RAW; grant it "
        "to the process (as root, or by setcap cap_net_raw+ep for its node), or choose 'solved'");
  if (status == Status::kNotSupported)
    return fail(
        status,
        "the option icrc is 'exact', which needs a raw socket for received packets, which this OS does not support; "
        "choose 'solved'");
  if (status != Status::kSuccess)
    return fail(status,
                "cannot create the sockets and events of the HCA "
                "(is the limit of open files too low?)");
  // The engine's thread runs this library's code. The isolate that loaded the library may end first, and the library
  // would then be unloaded while it is in use.
  keepLibraryLoaded();
  if (!parts->thread.start()) {
    parts->host.stop();
    return fail(Status::kInsufficientResources, "cannot create a thread for the HCA");
  }
  Registry::instance().add(parts);
  parts_ = std::move(parts);
  engine_.store(&parts_->engine, std::memory_order_release);  // last: a thread that sees it also uses host()
  return Status::kSuccess;
}

void HcaContext::endAll() { Registry::instance().endAll(); }

Host& HcaContext::host() { return parts_->host; }
ProgressEngine& HcaContext::progress() { return parts_->hosted; }

}  // namespace nd
