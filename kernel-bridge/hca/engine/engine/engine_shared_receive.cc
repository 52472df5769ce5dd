// Commands of shared receive queues (IBA 1 §10.2.9; networkdirect §6.12).
#include "engine/engine_impl.h"

namespace nd {

using namespace abi;

namespace {

bool shapeFits(const EngineOptions& o, uint32_t entries, uint32_t stride, uint32_t sge) {
  return entries != 0 && entries <= o.maxSrqWr && sge <= o.maxSrqSge &&
         queueFits(o, entries, stride, sge, kReceiveWqeHeaderBytes, 0, 16);
}

Status checkSrqRing(Transport& t, uint64_t address, uint64_t bytes, uint32_t entries, uint32_t stride,
                    std::shared_ptr<Ring>* ring) {
  return checkRing(t, address, bytes, kSrqHeaderBytes + uint64_t(entries) * stride, ring);
}

}  // namespace

Status Engine::createSrq(const SrqCreate& r, Handle* out) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(r.pd);
  if (!pd) return Status::kInvalidHandle;
  if (!shapeFits(t.context.options, r.entries, r.stride, r.sge)) return Status::kInvalidParameter;
  std::shared_ptr<Ring> ring;
  const Status status = checkSrqRing(t, r.ringAddress, r.ringBytes, r.entries, r.stride, &ring);
  if (status != Status::kSuccess) return status;
  auto owned = std::make_unique<Srq>();
  Srq* srq = owned.get();
  const Handle handle = t.context.srqs.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  srq->handle = handle;
  srq->kernel = pd->kernel;
  srq->pd = pd;
  pd->users++;
  srq->ring = std::move(ring);
  srq->header = reinterpret_cast<uint32_t*>(r.ringAddress);
  srq->entries = r.entries;
  srq->stride = r.stride;
  srq->sge = r.sge;
  storeWord(srq->header + kSrqProducer, 0);
  storeWord(srq->header + kSrqConsumer, 0);
  storeWord(srq->header + kSrqReceiveBell, 0);
  *out = handle;
  return Status::kSuccess;
}

Status Engine::modifySrq(Handle handle, uint32_t mask, const SrqAttributes& a) {
  Transport& t = impl_->transport;
  Command command(t);
  Srq* srq = t.context.srqs.find(handle);
  if (!srq) return Status::kInvalidHandle;
  if (mask & ~(srqmask::kEntries | srqmask::kLimit)) return Status::kInvalidParameter;
  const uint32_t entries = mask & srqmask::kEntries ? a.entries : srq->entries;
  if (!shapeFits(t.context.options, entries, srq->stride, srq->sge)) return Status::kInvalidParameter;
  if ((mask & srqmask::kLimit) && a.limit > entries) return Status::kInvalidParameter;
  if (mask & srqmask::kEntries) {
    std::shared_ptr<Ring> ring;
    Status status = checkSrqRing(t, a.ringAddress, a.ringBytes, entries, srq->stride, &ring);
    if (status == Status::kSuccess && ring == srq->ring) status = Status::kInvalidParameter;  // both are in use
    if (status == Status::kSuccess) status = t.sharedReceives.resize(*srq, std::move(ring), a.ringAddress, entries);
    if (status != Status::kSuccess) return status;
  }
  if (mask & srqmask::kLimit) {
    srq->limit = a.limit;
    t.sharedReceives.checkLimit(*srq);
  }
  return Status::kSuccess;
}

Status Engine::querySrq(Handle handle, SrqAttributes* out) {
  Transport& t = impl_->transport;
  Command command(t);
  const Srq* srq = t.context.srqs.find(handle);
  if (!srq) return Status::kInvalidHandle;
  *out = {};
  out->entries = srq->entries;
  out->limit = srq->limit;
  out->sge = srq->sge;
  return Status::kSuccess;
}

Status Engine::destroySrq(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Srq* srq = t.context.srqs.find(handle);
  if (!srq) return Status::kInvalidHandle;
  if (srq->users) return Status::kDeviceBusy;
  srq->pd->users--;
  t.context.srqs.remove(handle);
  return Status::kSuccess;
}

uint32_t Engine::srqCount() {
  Command command(impl_->transport);
  return impl_->transport.context.srqs.size();
}

}  // namespace nd
