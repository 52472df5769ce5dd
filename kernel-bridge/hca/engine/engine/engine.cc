// The face of the HCA: takes the lock, checks handles, and leaves the work to the core.

#include "engine/engine_impl.h"
#include "platform/os.h"

namespace nd {

using namespace abi;

Engine::Engine(Link& link, const Clock& clock, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(link, clock, options)) {}
Engine::~Engine() = default;

EngineLock& Engine::lock() { return impl_->core.lock; }
const EngineOptions& Engine::options() const { return impl_->core.options; }

void Engine::setSlot(uint32_t slot) {
  Command command(impl_->core);
  impl_->core.slot = slot & 0xFF;
}

// ── Kernels ─────────────────────────────────────────────────────────────────────────────────────

Status Engine::attachKernel(KernelPort* port, KernelId* kernelOut) {
  Core& core = impl_->core;
  Command command(core);
  if (!port) return Status::kInvalidParameter;
  for (KernelId k = 1; k < Core::kKernels; k++) {
    if (core.kernels[k]) continue;
    core.kernels[k] = port;
    core.defaultPkeys[k] = PkeyTable{};
    *kernelOut = k;
    return Status::kSuccess;
  }
  return Status::kInsufficientResources;
}

void Engine::detachKernel(KernelId kernel) {
  Command command(impl_->core);
  if (kernelPort(kernel)) impl_->core.detach(kernel);
}

KernelPort* Engine::kernelPort(KernelId kernel) {
  return kernel < Core::kKernels ? impl_->core.kernels[kernel] : nullptr;
}

KernelId Engine::anyKernel() {
  for (KernelId k = 1; k < Core::kKernels; k++)
    if (impl_->core.kernels[k]) return k;
  return 0;
}

// ── Memory ──────────────────────────────────────────────────────────────────────────────────────

Status Engine::pinRange(uint64_t address, uint64_t length, uint64_t* id) {
  Command command(impl_->core);
  return impl_->core.memory.pinRange(address, length, id);
}

void Engine::unpinRange(uint64_t id) {
  std::shared_ptr<const SharedRange> shared;  // dropped after the lock
  Command command(impl_->core);
  shared = impl_->core.memory.unpinRange(id);
}

std::shared_ptr<const SharedRange> Engine::sharedAt(uint64_t address, uint64_t length) {
  Command command(impl_->core);
  return impl_->core.memory.sharedAt(address, length) ? sharedRangeAt(address, length) : nullptr;
}

Status Engine::allocateRing(uint64_t bytes, uint64_t* address) {
  Core& core = impl_->core;
  constexpr uint64_t kLargest = uint64_t(1) << 31;
  if (bytes == 0 || bytes > kLargest) return Status::kInvalidParameter;
  std::shared_ptr<Ring> ring = core.memory.makeRing(bytes);  // zeroing takes its time: not under the lock
  if (!ring) return Status::kNoMemory;
  Command command(core);
  core.memory.addRing(ring);
  *address = reinterpret_cast<uint64_t>(ring->base);
  return Status::kSuccess;
}

void Engine::releaseRing(uint64_t address) {
  Command command(impl_->core);
  impl_->core.memory.releaseRing(address);
}

std::shared_ptr<void> Engine::ringMemory(uint64_t address) {
  Command command(impl_->core);
  return impl_->core.memory.ringAt(address, 1);
}

Status Engine::allocatePd(KernelId kernel, Handle* pdOut) {
  Core& core = impl_->core;
  Command command(core);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  auto pd = std::make_unique<Pd>();
  Pd* raw = pd.get();
  raw->kernel = kernel;
  const Handle handle = core.pds.add(std::move(pd));
  if (!handle) return Status::kInsufficientResources;
  *pdOut = raw->handle = handle;
  return Status::kSuccess;
}

Status Engine::deallocatePd(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  Pd* pd = core.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  if (pd->users) return Status::kDeviceBusy;
  core.pds.remove(handle);
  return Status::kSuccess;
}

Status Engine::registerMr(Handle handle, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                          uint32_t* rkey) {
  Core& core = impl_->core;
  Command command(core);
  Pd* pd = core.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return core.memory.registerRegion(*pd, address, length, access, lkey, rkey);
}

Status Engine::deregisterMr(Handle handle, uint32_t lkey) {
  Core& core = impl_->core;
  Command command(core);
  Pd* pd = core.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return core.memory.deregisterRegion(*pd, lkey);
}

Status Engine::allocateMw(Handle handle, Handle* mw, uint32_t* rkey) {
  Core& core = impl_->core;
  Command command(core);
  Pd* pd = core.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return core.memory.allocateWindow(*pd, mw, rkey);
}

Status Engine::deallocateMw(Handle mw) {
  Command command(impl_->core);
  return impl_->core.memory.deallocateWindow(mw);
}

// ── Speed path ──────────────────────────────────────────────────────────────────────────────────

void Engine::doorbell(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp || core.ringFast(*qp)) return;
  if (qp->state() == kQpsError) {
    core.flushSends(*qp, 0, 0);
    core.flushReceives(*qp, 0, 0);
    return;
  }
  if (qp->state() == kQpsSqError) return core.flushSends(*qp, 0, 0);
  // →RTS looks at the send queue; before, a receive may have been waited for.
  if (!stateRules(qp->state()).receivesRequests) return;
  core.now = std::max(core.now, core.clock.recent());
  if (core.run(*qp, Core::kShare)) core.schedule(*qp);
  core.settle();
  core.link.flush();
  // What queue pairs of this process send each other is there already.
  for (uint32_t i = 0; i < Core::kSelfSteps && core.link.selfPending(); i++) core.step(core.now);
}

bool Engine::progress() {
  Core& core = impl_->core;
  const uint64_t now = core.clock.recent();
  core.attendance.mark(now);
  bool moved = false, impatient = true;  // who has the lock does this thread's work: it must get to run
  if (std::unique_lock<EngineLock> lock(core.lock, std::try_to_lock); lock.owns_lock()) {
    if (!core.quiet(now)) {
      moved = core.step(now, true);
    } else {
      core.now = std::max(core.now, now);
      moved = core.stepLocal(core.waits());
    }
    if (core.firstScheduled) {
      core.rouse(0);
      moved = true;
    }
    impatient = core.losesPatience(moved, now);
  }
  if (impatient) {
    yieldThread();
    core.lastPoll.store(core.clock.now(), std::memory_order_relaxed);  // others' time is no other work of this thread
  }
  return moved;
}

bool Engine::progressLocked(bool returns, bool slept) {
  Core& core = impl_->core;
  const bool moved = core.step(returns || slept ? core.clock.recent() : core.clock.now(), returns, slept);
  if (returns && moved) core.waitingSince = core.now;  // for those who poll in between, too
  return moved || core.firstScheduled;
}

uint64_t Engine::nextDeadline() { return impl_->core.announced = impl_->core.deadline(); }

uint64_t Engine::pollerMark() const { return impl_->core.attendance.marked(); }
Attendance& Engine::attendance() { return impl_->core.attendance; }
void Engine::stay() { impl_->core.attendance.stay(impl_->core.clock.recent()); }
void Engine::putOffAlarm() { impl_->core.attendance.putOff(impl_->core.clock.recent()); }
void Engine::attend() { impl_->core.attendance.mark(impl_->core.clock.recent()); }

void Engine::wakeThread() {
  Core& core = impl_->core;
  Command command(core);
  if (core.wake) core.wake(core.wakeArgument);
}

void Engine::take(void (*deliver)(void* self, PacketSink& sink), void* self) {
  Core& core = impl_->core;
  core.now = std::max(core.now, core.clock.now());
  deliver(self, core);
  core.settle();
  core.link.flush();
  if (core.firstScheduled || core.link.selfPending()) core.rouse(0);
}

std::unique_lock<EngineLock> Engine::hold() { return lockCore(impl_->core); }
bool Engine::commandsWait() const { return impl_->core.commandsWaiting.load(std::memory_order_relaxed) != 0; }

void Engine::setWake(void (*wake)(void*), void* argument) {
  Command command(impl_->core);
  impl_->core.wake = wake;
  impl_->core.wakeArgument = argument;
}

void Engine::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  impl_->core.onPacket(meta, bth, length);
}

void Engine::onCaptureFailed(int error) { impl_->core.onCaptureFailed(error); }
void Engine::onPeerProcessGone(uint32_t slot, bool orderly) { impl_->core.onPeerProcessGone(slot, orderly); }

void Engine::onLocalPair(LocalPair& pair) { impl_->core.onLocalPair(pair); }

void Engine::setGsi(GsiHandler handler, void* argument) {
  Command command(impl_->core);
  impl_->core.gsi = handler;
  impl_->core.gsiArgument = argument;
}

// ── Counters ────────────────────────────────────────────────────────────────────────────────────

const std::vector<const char*>& Engine::counterNames() {
  static const std::vector<const char*> names = {
#define X(field, name) name,
      ND_ENGINE_COUNTERS(X)
#undef X
  };
  return names;
}

std::vector<uint64_t> Engine::counters() {
  Command command(impl_->core);
  const Counters& c = impl_->core.counters;
  return {
#define X(field, name) c.field,
      ND_ENGINE_COUNTERS(X)
#undef X
  };
}

std::array<uint32_t, 7> Engine::objectCounts() {
  Core& core = impl_->core;
  Command command(core);
  return {core.pds.size(), core.memory.regionCount(), core.memory.windowCount(), core.cqs.size(),
          core.qps.size(), core.memory.ringCount(),   core.memory.rangeCount()};
}

}  // namespace nd
