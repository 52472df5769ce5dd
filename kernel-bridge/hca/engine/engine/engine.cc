// The interface of the HCA. It takes the lock, checks handles, and leaves the work to the transport. The files
// engine_*.cc implement the commands of objects.

#include "engine/engine_impl.h"
#include "platform/os.h"

namespace nd {

using namespace abi;

Engine::Engine(Link& link, const Clock& clock, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(link, clock, options)) {}
Engine::~Engine() = default;

EngineLock& Engine::lock() { return impl_->transport.lock; }
const EngineOptions& Engine::options() const { return impl_->transport.context.options; }

uint32_t Engine::extensions() { return kBuiltExtensions; }

void Engine::setSlot(uint32_t slot) {
  Command command(impl_->transport);
  impl_->transport.context.slot = slot & 0xFF;
}

// ── Kernels ─────────────────────────────────────────────────────────────────────────────────────

Status Engine::attachKernel(KernelPort* port, KernelId* kernelOut) {
  Transport& t = impl_->transport;
  Command command(t);
  if (!port) return Status::kInvalidParameter;
  for (KernelId k = 1; k < Context::kKernels; k++) {
    if (t.context.kernels[k]) continue;
    t.context.kernels[k] = port;
    t.context.defaultPkeys[k] = PkeyTable{};
    *kernelOut = k;
    return Status::kSuccess;
  }
  return Status::kInsufficientResources;
}

void Engine::detachKernel(KernelId kernel) {
  Command command(impl_->transport);
  if (!kernelPort(kernel)) return;
  impl_->transport.direct.retireKernel(kernel);
  command.letPeersLeave();
  if (kernelPort(kernel)) impl_->transport.kernelEnd.detach(kernel);
}

KernelPort* Engine::kernelPort(KernelId kernel) {
  return kernel < Context::kKernels ? impl_->transport.context.kernels[kernel] : nullptr;
}

KernelId Engine::anyKernel() {
  for (KernelId k = 1; k < Context::kKernels; k++)
    if (impl_->transport.context.kernels[k]) return k;
  return 0;
}

// ── Speed path ──────────────────────────────────────────────────────────────────────────────────

void Engine::doorbell(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp || t.fastPath.ring(*qp)) return;
  if (qp->state() == kQpsError) {
    t.lifecycle.flushSends(*qp, 0, 0);
    t.lifecycle.flushReceives(*qp, 0, 0);
    return;
  }
  if (qp->state() == kQpsSqError) return t.lifecycle.flushSends(*qp, 0, 0);
  // Before RTS the send queue is not read, but a message may be waiting for a receive.
  if (!stateRules(qp->state()).receivesRequests) return;
  t.context.now = std::max(t.context.now, t.context.clock.recent());
  if (t.run(*qp, Transport::kShare)) t.scheduler.schedule(*qp);
  t.lifecycle.settle();
  t.context.link.flush();
  // Packets between queue pairs of this process are delivered immediately.
  for (uint32_t i = 0; i < Transport::kSelfSteps && t.context.link.selfPending(); i++)
    t.step(t.context.now, Stepper::kEngine);
}

DirectResult Engine::direct(Handle handle, DirectOperation operation, uint8_t* data, size_t length, uint64_t remote,
                            uint32_t rkey) {
  Transport& t = impl_->transport;
  // The lock is released between pieces, so that others need not wait for all of them.
  for (size_t done = 0;;) {
    Command command(t);
    Qp* const qp = t.context.qps.find(handle);
    if (!qp) return DirectResult::kRefused;
    const auto bytes = static_cast<uint32_t>(std::min<size_t>(length - done, DirectAccessRecord::kMostBytes));
    const DirectResult result = t.direct.access(*qp, operation, data + done, bytes, length - done, remote + done, rkey);
    if (result == DirectResult::kNotMapped) t.context.link.flush();  // requests the file from the peer
    done += bytes;
    if (result != DirectResult::kDone || done == length) return result;
  }
}

DirectResult Engine::view(Handle handle, uint64_t length, uint64_t remote, uint32_t rkey, FilePart* part) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* const qp = t.context.qps.find(handle);
  if (!qp) return DirectResult::kRefused;
  const DirectResult result = t.direct.view(*qp, remote, rkey, length, part);
  if (result == DirectResult::kNotMapped) t.context.link.flush();  // requests the file from the peer
  return result;
}

bool Engine::progress() {
  Transport& t = impl_->transport;
  Context& context = t.context;
  const uint64_t now = context.clock.recent();
  t.owner.poll(now);
  bool moved = false, impatient = true;  // the lock's holder does this thread's work, and needs a CPU
  if (std::unique_lock<EngineLock> lock(t.lock, std::try_to_lock); lock.owns_lock()) {
    if (!t.quiet(now)) {
      moved = t.step(now, Stepper::kPoller);
    } else {
      context.now = std::max(context.now, now);
      moved = t.stepLocal(t.busyPoll.waits(context.now));
    }
    if (!t.scheduler.idle()) {
      t.scheduler.wakeThread(0);
      moved = true;
    }
    impatient = t.busyPoll.shouldYield(moved, now, context.now);
    if (impatient) context.counters.pollerYields++;
  }
  if (impatient) {
    yieldThread();
    t.busyPoll.cameBack(context.clock.now());
  }
  return moved;
}

bool Engine::shouldPoll(Handle handle) {
  Transport& t = impl_->transport;
  std::unique_lock<EngineLock> lock(t.lock, std::try_to_lock);
  if (!lock.owns_lock()) return true;  // the lock's holder does this thread's work
  Cq* cq = t.context.cqs.find(handle);
  return cq && cq->pollHint.shouldPoll(cq->taken(), t.context.clock.recent());
}

bool Engine::poll(Stepper stepper) {
  Transport& t = impl_->transport;
  const Clock& clock = t.context.clock;
  const bool moved = t.step(stepper == Stepper::kEngine ? clock.now() : clock.recent(), stepper);
  if (stepper == Stepper::kPoller && moved)
    t.busyPoll.foundWork(t.context.now);  // also for threads that poll in between
  return moved || !t.scheduler.idle();
}

uint64_t Engine::nextDeadline() { return impl_->transport.scheduler.announceDeadline(); }

ProgressOwner& Engine::owner() { return impl_->transport.owner; }

void Engine::wakeThread() {
  Transport& t = impl_->transport;
  Command command(t);
  t.scheduler.wakeNow();
}

void Engine::deliver(void (*packets)(void* self, PacketSink& sink), void* self) {
  Transport& t = impl_->transport;
  t.context.now = std::max(t.context.now, t.context.clock.now());
  packets(self, t);
  t.lifecycle.settle();
  t.context.link.flush();
  if (t.hasWork()) t.scheduler.wakeThread(0);
}

std::unique_lock<EngineLock> Engine::hold() { return lockOf(impl_->transport); }
bool Engine::contended() const { return impl_->transport.commandsWaiting.load(std::memory_order_relaxed) != 0; }

void Engine::setWake(void (*wake)(void*), void* argument) {
  Command command(impl_->transport);
  impl_->transport.scheduler.wake = wake;
  impl_->transport.scheduler.wakeArgument = argument;
}

void Engine::onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) {
  impl_->transport.onPacket(meta, bth, length);
}

void Engine::onCaptureFailed(int error) { impl_->transport.onCaptureFailed(error); }
void Engine::onWireLost() { impl_->transport.onWireLost(); }
void Engine::onThreadFailed(int error) { impl_->transport.report(HcaEvent::fatal(error)); }
void Engine::onPeerProcessGone(uint32_t slot, bool orderly) { impl_->transport.onPeerProcessGone(slot, orderly); }

void Engine::onLocalPair(LocalPair& pair) { impl_->transport.onLocalPair(pair); }

void Engine::setGsi(GsiHandler handler, void* argument) {
  Command command(impl_->transport);
  impl_->transport.gsi = handler;
  impl_->transport.gsiArgument = argument;
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
  Command command(impl_->transport);
  const Counters& c = impl_->transport.context.counters;
  return {
#define X(field, name) c.field,
      ND_ENGINE_COUNTERS(X)
#undef X
  };
}

std::array<uint32_t, 7> Engine::objectCounts() {
  Transport& t = impl_->transport;
  Command command(t);
  return {t.context.pds.size(), t.context.memory.regionCount(), t.context.memory.windowCount(), t.context.cqs.size(),
          t.context.qps.size(), t.context.memory.ringCount(),   t.context.memory.rangeCount()};
}

}  // namespace nd
