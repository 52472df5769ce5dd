// Commands of completion queues, and waiters for their events (IBA 1 §10.2.6, §11.2.8, §11.4.2.2).
#include "engine/engine_impl.h"

namespace nd {

using namespace abi;

namespace {

Status checkCqRing(Transport& t, uint64_t address, uint64_t bytes, uint32_t entries, std::shared_ptr<Ring>* ring) {
  if (!powerOfTwo(entries) || entries > t.context.options.maxCqEntries) return Status::kInvalidParameter;
  return checkRing(t, address, bytes, kCqHeaderBytes + uint64_t(entries) * kCqeBytes, ring);
}

// Reports a CQ's events to its kernel, which outlives the CQ.
class Listener final : public NotifySink {
 public:
  Listener(KernelPort& kernel, Handle cq) : kernel_(kernel), cq_(cq) {}
  void notify(Status) override { kernel_.onEvent(HcaEvent::cq(cq_, CqEvent::kCompletion)); }

 private:
  KernelPort& kernel_;
  const Handle cq_;
};

}  // namespace

Status Engine::createCq(Owner kernel, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* out) {
  Transport& t = impl_->transport;
  Command command(t);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  std::shared_ptr<Ring> ring;
  const Status status = checkCqRing(t, ringAddress, ringBytes, entries, &ring);
  if (status != Status::kSuccess) return status;
  auto cq = std::make_unique<Cq>();
  Cq* raw = cq.get();
  raw->kernel = kernel;
  raw->events = &t.context.counters.cqEvents;
  const Handle handle = t.context.cqs.add(std::move(cq));
  if (!handle) return Status::kInsufficientResources;
  raw->attach(std::move(ring), ringAddress, entries, 0, 0);
  *out = raw->handle = handle;
  return Status::kSuccess;
}

Status Engine::resizeCq(Handle handle, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  std::shared_ptr<Ring> ring;
  const Status status = checkCqRing(t, ringAddress, ringBytes, entries, &ring);
  if (status != Status::kSuccess) return status;
  return cq->resize(std::move(ring), ringAddress, entries);
}

Status Engine::destroyCq(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->users) return Status::kDeviceBusy;
  cq->notifyAll(Status::kCancelled);
  t.context.cqs.remove(handle);
  return Status::kSuccess;
}

Status Engine::armCq(Handle handle, bool solicitedOnly) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->dead) return Status::kBufferOverflow;
  cq->arm(solicitedOnly);
  return Status::kSuccess;
}

Status Engine::armCqBatch(Handle handle, uint32_t count) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (cq->dead) return Status::kBufferOverflow;
  if (count == 0 || !cq->fits(count)) return Status::kInvalidParameter;
  cq->armBatch(count);
  return Status::kSuccess;
}

Status Engine::addCqWaiter(Handle handle, uint32_t type, std::shared_ptr<NotifySink> sink) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  if (type > kCqNotifySolicited || !sink) return Status::kInvalidParameter;
  const bool watches = sink->watches();
  cq->addWaiter(type, std::move(sink));
  // The poller may be about to sleep, so the engine's thread takes over.
  if (!watches) t.scheduler.wakeNow();
  return Status::kSuccess;
}

Status Engine::listenCq(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  if (!cq) return Status::kInvalidHandle;
  cq->listen(std::make_shared<Listener>(*kernelPort(cq->kernel), handle));
  t.scheduler.wakeNow();
  return Status::kSuccess;
}

Status Engine::removeCqWaiter(Handle handle, const NotifySink* sink) {
  Transport& t = impl_->transport;
  Command command(t);
  Cq* cq = t.context.cqs.find(handle);
  return cq && cq->removeWaiter(sink) ? Status::kSuccess : Status::kInvalidHandle;
}

}  // namespace nd
