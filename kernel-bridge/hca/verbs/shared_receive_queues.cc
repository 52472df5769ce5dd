// Commands of shared receive queues.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

using namespace abi;

Status VerbsHca::createSrq(const SrqCreate& create, Handle* out) {
  PdObject* const pd = Tables::all().pds.find(create.pd);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  if (pd->device->limits.maxSrq == 0) return Status::kNotSupported;
  const uint64_t needed = kSrqHeaderBytes + uint64_t{create.entries} * create.stride;
  const uint64_t stride = kReceiveWqeHeaderBytes + uint64_t{create.sge} * kSgeBytes;
  if (!powerOfTwo(create.entries) || create.stride < stride || create.stride % 16 != 0 || create.ringBytes < needed)
    return Status::kInvalidParameter;
  std::shared_ptr<RingMemory> memory = Rings::all().find(create.ringAddress, create.ringBytes);
  if (memory == nullptr) return Status::kInvalidParameter;
  Handle handle;
  SrqObject* const srq = Tables::all().srqs.take(&handle);
  if (srq == nullptr) return Status::kInsufficientResources;
  std::lock_guard<std::mutex> lock(srq->mutex);
  ibv_srq_init_attr attributes{};
  attributes.srq_context = reinterpret_cast<void*>(uintptr_t{handle});
  attributes.attr = {create.entries, std::max(create.sge, 1u), 0};
  srq->srq = lib_.ibv_create_srq(pd->pd, &attributes);
  if (srq->srq == nullptr) {
    const Status status = statusOf(errno);
    Tables::all().srqs.release(srq, handle);
    return status;
  }
  srq->device = pd->device;
  srq->memory = std::move(memory);
  srq->header = reinterpret_cast<uint32_t*>(create.ringAddress);
  srq->entries = create.entries;
  srq->stride = create.stride;
  srq->sge = create.sge;
  storeWord(srq->header + kSrqReceiveBell, kSharedBit | handle);
  srq->handle = *out = handle;
  return Status::kSuccess;
}

Status VerbsHca::modifySrq(Handle handle, uint32_t mask, const SrqAttributes& attributes) {
  SrqObject* const srq = Tables::all().srqs.find(handle);
  if (srq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(srq->mutex);
  if (srq->srq == nullptr) return Status::kDeviceRemoved;
  if ((mask & srqmask::kEntries) != 0) {
    const uint64_t needed = kSrqHeaderBytes + uint64_t{attributes.entries} * srq->stride;
    if (!powerOfTwo(attributes.entries) || attributes.ringBytes < needed) return Status::kInvalidParameter;
    std::shared_ptr<RingMemory> memory = Rings::all().find(attributes.ringAddress, attributes.ringBytes);
    if (memory == nullptr) return Status::kInvalidParameter;
    const uint32_t producer = loadWord(srq->header + kSrqProducer);
    {
      std::lock_guard<std::mutex> consumer(srq->consumer);
      if (producer - srq->taken > attributes.entries) return Status::kBufferOverflow;
    }
    ibv_srq_attr size{attributes.entries, srq->sge, 0};
    const int error = lib_.ibv_modify_srq(srq->srq, &size, kSrqMaxWr);
    if (error != 0) return statusOf(error);
    std::lock_guard<std::mutex> consumer(srq->consumer);
    // The device already has the receives, so only the counters move.
    srq->header = reinterpret_cast<uint32_t*>(attributes.ringAddress);
    srq->memory = std::move(memory);
    srq->entries = attributes.entries;
    storeWord(srq->header + kSrqProducer, producer);
    storeWord(srq->header + kSrqConsumer, srq->taken);
    storeWord(srq->header + kSrqReceiveBell, kSharedBit | handle);
  }
  if ((mask & srqmask::kLimit) != 0) {
    bool below;
    {
      std::lock_guard<std::mutex> consumer(srq->consumer);
      below = attributes.limit > 0 && srq->done - srq->taken < attributes.limit;
    }
    // If the queue is already below the limit, that is reported immediately. A device such as rdma_rxe may check only
    // when the next receive is consumed.
    ibv_srq_attr limit{0, 0, below ? 0 : attributes.limit};
    const int error = lib_.ibv_modify_srq(srq->srq, &limit, kSrqLimit);
    if (error != 0) return statusOf(error);
    if (below) events_->push(srq->device->number, HcaEvent::srq(handle, SrqEvent::kLimit));
  }
  return Status::kSuccess;
}

Status VerbsHca::querySrq(Handle handle, SrqAttributes* out) {
  SrqObject* const srq = Tables::all().srqs.find(handle);
  if (srq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(srq->mutex);
  out->entries = srq->entries;
  out->sge = srq->sge;
  out->limit = 0;
  if (srq->srq == nullptr) return Status::kSuccess;
  // The device clears the limit when it reports it.
  ibv_srq_attr now{};
  const int error = lib_.ibv_query_srq(srq->srq, &now);
  if (error != 0) return statusOf(error);
  out->limit = now.srq_limit;
  return Status::kSuccess;
}

Status VerbsHca::destroySrq(Handle handle) {
  SrqObject* const srq = Tables::all().srqs.find(handle);
  if (srq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(srq->mutex);
  if (srq->users > 0) return Status::kDeviceBusy;
  if (srq->srq != nullptr) {
    const int error = lib_.ibv_destroy_srq(srq->srq);
    if (error != 0) return statusOf(error);
  }
  Tables::all().srqs.release(srq, handle);
  return Status::kSuccess;
}

}  // namespace nd::verbs
