// The face of the HCA: takes the lock, checks handles, and leaves the work to the core.

#include "engine/engine_impl.h"
#include "platform/os.h"

namespace nd {

using namespace abi;

namespace {

Status checkCqRing(Core& core, uint64_t address, uint64_t bytes, uint32_t entries, std::shared_ptr<Ring>* ring) {
  if (!powerOfTwo(entries) || entries > core.options.maxCqEntries) return Status::kInvalidParameter;
  return checkRing(core, address, bytes, kCqHeaderBytes + uint64_t(entries) * kCqeBytes, ring);
}

}  // namespace

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

// ── Completion queues ───────────────────────────────────────────────────────────────────────────

Status Engine::createCq(KernelId kernel, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* out) {
  Core& core = impl_->core;
  Command command(core);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  std::shared_ptr<Ring> ring;
  const Status status = checkCqRing(core, ringAddress, ringBytes, entries, &ring);
  if (status != Status::kSuccess) return status;
  auto cq = std::make_unique<Cq>();
  Cq* raw = cq.get();
  raw->kernel = kernel;
  raw->events = &core.counters.cqEvents;
  const Handle handle = core.cqs.add(std::move(cq));
  if (!handle) return Status::kInsufficientResources;
  raw->attach(std::move(ring), ringAddress, entries, 0, 0);
  *out = raw->handle = handle;
  return Status::kSuccess;
}

Status Engine::resizeCq(Handle handle, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  std::shared_ptr<Ring> ring;
  const Status status = checkCqRing(core, ringAddress, ringBytes, entries, &ring);
  if (status != Status::kSuccess) return status;
  return cq->resize(std::move(ring), ringAddress, entries);
}

Status Engine::destroyCq(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->users) return Status::kDeviceBusy;
  cq->notifyAll(Status::kCancelled);
  core.cqs.remove(handle);
  return Status::kSuccess;
}

Status Engine::armCq(Handle handle, bool solicitedOnly) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->dead) return Status::kBufferOverflow;
  cq->arm(solicitedOnly);
  return Status::kSuccess;
}

Status Engine::armCqBatch(Handle handle, uint32_t count) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->dead) return Status::kBufferOverflow;
  if (count == 0 || !cq->fits(count)) return Status::kInvalidParameter;
  cq->armBatch(count);
  return Status::kSuccess;
}

Status Engine::addCqWaiter(Handle handle, uint32_t type, std::shared_ptr<NotifySink> sink) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (type > kCqNotifySolicited || !sink) return Status::kInvalidParameter;
  const bool watches = sink->watches();
  cq->addWaiter(type, std::move(sink));
  // The poller may be about to sleep: the engine's thread takes over.
  if (!watches && core.wake) core.wake(core.wakeArgument);
  return Status::kSuccess;
}

Status Engine::listenCq(Handle handle, std::shared_ptr<NotifySink> sink) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (!sink) return Status::kInvalidParameter;
  cq->listen(std::move(sink));
  if (core.wake) core.wake(core.wakeArgument);
  return Status::kSuccess;
}

Status Engine::removeCqWaiter(Handle handle, const NotifySink* sink) {
  Core& core = impl_->core;
  Command command(core);
  Cq* cq = core.cqs.find(handle);
  return cq && cq->removeWaiter(sink) ? Status::kSuccess : Status::kInvalidHandle;
}

// ── Queue pairs ─────────────────────────────────────────────────────────────────────────────────

Status Engine::createQp(const QpCreate& r, Handle* handleOut, uint32_t* qpnOut) {
  Core& core = impl_->core;
  Command command(core);
  if (r.type != kQptRc && r.type != kQptUc && r.type != kQptUd) return Status::kInvalidParameter;
  Pd* pd = core.pds.find(r.pd);
  Cq* sendCq = core.cqs.find(r.sendCq);
  Cq* receiveCq = core.cqs.find(r.receiveCq);
  if (!kernelPort(r.kernel) || !pd || !sendCq || !receiveCq) return Status::kInvalidHandle;
  Srq* srq = r.srq ? core.srqs.find(r.srq) : nullptr;
  if (r.srq && (!srq || srq->kernel != r.kernel)) return Status::kInvalidHandle;
  if (srq && r.receiveEntries != 0) return Status::kInvalidParameter;  // one or the other
  PkeyTable* pkeyTable = core.pkeyTable(r.kernel, r.pkeyTable);
  if (!pkeyTable) return Status::kInvalidHandle;
  if (pd->kernel != r.kernel || sendCq->kernel != r.kernel || receiveCq->kernel != r.kernel)
    return Status::kInvalidHandle;
  if (sendCq->dead || receiveCq->dead) return Status::kInvalidDeviceState;
  if (!queueFits(core.options, r.sendEntries, r.sendStride, r.sendSge, kSendWqeHeaderBytes, r.maxInline, 64) ||
      !queueFits(core.options, r.receiveEntries, r.receiveStride, r.receiveSge, kReceiveWqeHeaderBytes, 0, 16))
    return Status::kInvalidParameter;
  const uint64_t sendBytes = uint64_t(r.sendEntries) * r.sendStride;
  const uint64_t receiveBytes = uint64_t(r.receiveEntries) * r.receiveStride;
  std::shared_ptr<Ring> ring;
  const Status status =
      checkRing(core, r.ringAddress, r.ringBytes, kQpHeaderBytes + sendBytes + receiveBytes, &ring);
  if (status != Status::kSuccess) return status;

  auto owned = std::make_unique<Qp>();
  Qp* qp = owned.get();
  const Handle handle = core.qps.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  qp->handle = handle;
  const uint32_t place = HandleTable<Qp>::indexOf(qp->handle) + core.qpBase;
  qp->qpn = core.slot << 16 |
            (Core::kFirstQpIndex + (place >= Core::kQpIndexes ? place - Core::kQpIndexes : place));
  qp->kernel = r.kernel;
  qp->token = r.token;
  qp->pd = pd;
  qp->sendCq = sendCq;
  qp->receiveCq = receiveCq;
  pd->users++;
  sendCq->users++;
  receiveCq->users++;
  if (srq) {
    srq->users++;
    qp->srq = srq;
    qp->shared.sges.resize(size_t(srq->sge) * (kSgeBytes / 4));
  }
  qp->pkeyTable = pkeyTable;
  pkeyTable->users++;
  qp->signalAll = r.signalAll;
  qp->ring = std::move(ring);
  qp->header = reinterpret_cast<uint32_t*>(r.ringAddress);
  qp->sendRing = reinterpret_cast<uint8_t*>(r.ringAddress) + kQpHeaderBytes;
  qp->receiveRing = qp->sendRing + sendBytes;
  qp->sendEntries = r.sendEntries;
  qp->sendStride = r.sendStride;
  qp->sendSge = r.sendSge;
  qp->maxInline = r.maxInline;
  qp->receiveEntries = r.receiveEntries;
  qp->receiveStride = r.receiveStride;
  qp->receiveSge = r.receiveSge;
  qp->rq.entries.resize(r.sendEntries);
  qp->attributes.type = r.type;
  qp->attributes.qpn = qp->qpn;
  storeWord(qp->header + kQpSendProducer, 0);
  storeWord(qp->header + kQpReceiveProducer, 0);
  storeWord(qp->header + kQpUnfenced, core.barrier ? 1 : 0);
  qp->setState(kQpsReset);
  core.timers.reserve(core.qps.size());
  *handleOut = qp->handle;
  *qpnOut = qp->qpn;
  return Status::kSuccess;
}

void Engine::setBarrier(void (*barrier)()) {
  Core& core = impl_->core;
  Command command(core);
  core.barrier = barrier;
  core.lock.setBarrier(barrier);
  core.qps.forEach([&](Qp& qp) { storeWord(qp.header + kQpUnfenced, 1); });
}

Status Engine::modifyQp(Handle handle, uint32_t mask, const QpAttributes& attributes) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  return qp ? core.modify(*qp, mask, attributes) : Status::kInvalidHandle;
}

Status Engine::connectQp(Handle handle, const std::array<uint32_t, 3>& masks, QpAttributes attributes) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  Status status = qp ? Status::kSuccess : Status::kInvalidHandle;
  attributes.state = kQpsReset;
  for (size_t step = 0; step < masks.size() && status == Status::kSuccess; ++step) {
    ++attributes.state;
    status = core.modify(*qp, masks[step] | qpmask::kState, attributes);
  }
  return status;
}

Status Engine::queryQp(Handle handle, QpAttributes* attributes) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  *attributes = qp->attributes;
  attributes->currentState = qp->state();
  if (stateRules(qp->state()).receivesRequests) attributes->receivePsn = qp->rs.expected;
  if (stateRules(qp->state()).continuesWork) attributes->sendPsn = qp->rq.maxPsn;
  return Status::kSuccess;
}

Status Engine::destroyQp(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  core.destroy(*qp);
  return Status::kSuccess;
}

Status Engine::setWill(Handle handle, const Path& path, const uint8_t mad[256]) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  if (!mad) return Status::kInvalidParameter;
  qp->will = std::make_unique<Will>();
  qp->will->path = path;
  std::memcpy(qp->will->mad, mad, wire::kMadBytes);
  qp->lastActivity = core.clock.now();  // the connection begins
  return Status::kSuccess;
}

// ── Speed path ──────────────────────────────────────────────────────────────────────────────────

void Engine::doorbell(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp || (qp->local ? core.ringStraight(*qp) : core.ringAlone(*qp))) return;
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
