// Commands: completion queues, shared receive queues, protection domains, memory, address handles.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/host.h"

namespace nd::verbs {

using namespace abi;

namespace {

// The events of a CQ, on their way to the kernel. Called with its lock.
class Listener final : public NotifySink {
 public:
  Listener(std::shared_ptr<Events> events, uint32_t device, Handle cq)
      : events_(std::move(events)), device_(device), cq_(cq) {}
  void notify(Status) override { events_->push(device_, HcaEvent::cq(cq_, CqEvent::kCompletion)); }

 private:
  std::shared_ptr<Events> events_;
  uint32_t device_;
  Handle cq_;
};

// nd::Cq holds its memory by the engine's type and does not look into it.
std::shared_ptr<Ring> held(const std::shared_ptr<RingMemory>& memory) {
  return {memory, reinterpret_cast<Ring*>(memory.get())};
}

}  // namespace

Status Host::allocatePd(Owner owner, Handle* out) {
  Device* const device = this->device(owner);
  if (device == nullptr) return Status::kDeviceRemoved;
  Handle handle;
  PdObject* const pd = Tables::all().pds.take(&handle);
  if (pd == nullptr) return Status::kInsufficientResources;
  pd->pd = lib_.ibv_alloc_pd(device->context);
  if (pd->pd == nullptr) {
    const Status status = statusOf(errno);
    Tables::all().pds.release(pd, handle);
    return status;
  }
  pd->device = device;
  pd->handle = *out = handle;
  return Status::kSuccess;
}

Status Host::deallocatePd(Handle handle) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd != nullptr) {
    const int error = lib_.ibv_dealloc_pd(pd->pd);
    if (error != 0) return statusOf(error);
  }
  Tables::all().pds.release(pd, handle);
  return Status::kSuccess;
}

Status Host::registerMr(Handle handle, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                        uint32_t* rkey) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  Device& device = *pd->device;
  const uint64_t range = length > 0 ? Ranges::all().use(address, length) : 0;
  if (range == 0) return Status::kAccessViolation;
  unsigned flags = static_cast<unsigned>(accessOf(access));
  // The sink of an iWARP Read is written to by the peer.
  if (device.iwarp && (flags & kAccessLocalWriteBit) != 0) flags |= kRemoteWriteBit;
  // Devices demand it; WinVerbs leaves it to each access.
  if ((flags & (kRemoteWriteBit | kRemoteAtomicBit)) != 0) flags |= kAccessLocalWriteBit;
  if (device.attributes.atomic_cap == 0) flags &= ~unsigned{kRemoteAtomicBit};
  if (device.limits.maxMw == 0) flags &= ~unsigned{kMwBindBit};
  ibv_mr* const mr = lib_.ibv_reg_mr(pd->pd, reinterpret_cast<void*>(address), length, static_cast<int>(flags));
  if (mr == nullptr) {
    const Status status = statusOf(errno);
    Ranges::all().unuse(range);
    return status;
  }
  std::unique_lock<std::shared_mutex> keys(device.keys);
  device.regions[mr->lkey] = {mr, handle, range};
  *lkey = mr->lkey;
  *rkey = mr->rkey;
  return Status::kSuccess;
}

Status Host::deregisterMr(Handle handle, uint32_t lkey) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  Device& device = *pd->device;
  std::unique_lock<std::shared_mutex> keys(device.keys);
  const auto it = device.regions.find(lkey);
  if (it == device.regions.end() || it->second.pd != handle) return Status::kInvalidHandle;
  if (it->second.mr != nullptr) {
    const int error = lib_.ibv_dereg_mr(it->second.mr);
    // A window that is bound to it: some drivers call this an invalid argument.
    if (error != 0) return error == EINVAL || error == EBUSY ? Status::kDeviceBusy : statusOf(error);
  }
  Ranges::all().unuse(it->second.range);
  device.regions.erase(it);
  return Status::kSuccess;
}

void endRegistrations(uint64_t range) {
  if (!Ranges::all().used(range)) return;
  Tables& all = Tables::all();
  all.pds.forEach([&](PdObject& pd) {
    Device* const device = pd.device;
    if (device == nullptr) return;
    std::unique_lock<std::shared_mutex> keys(device->keys);
    for (auto& [lkey, region] : device->regions) {
      if (region.range != range || region.mr == nullptr) continue;
      if (device->lib->ibv_dereg_mr(region.mr) != 0) {
        // Windows hold it. They go first, as they would with the process.
        all.mws.forEach([&](MwObject& mw) {
          if (mw.device != device || mw.pd != region.pd || mw.mw == nullptr) return;
          device->windows.erase(mw.mw->rkey >> 8);
          device->context->ops.dealloc_mw(std::exchange(mw.mw, nullptr));
        });
        device->lib->ibv_dereg_mr(region.mr);
      }
      region.mr = nullptr;
    }
  });
}

Status Host::allocateMw(Handle handle, Handle* out, uint32_t* rkey) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  Device& device = *pd->device;
  if (device.limits.maxMw == 0) return Status::kNotSupported;
  ibv_mw* const made = device.context->ops.alloc_mw(pd->pd, kMwType2);
  if (made == nullptr) return statusOf(errno);
  Handle mwHandle;
  MwObject* const mw = Tables::all().mws.take(&mwHandle);
  if (mw == nullptr) {
    device.context->ops.dealloc_mw(made);
    return Status::kInsufficientResources;
  }
  mw->device = &device;
  mw->mw = made;
  mw->pd = handle;
  mw->handle = *out = mwHandle;
  *rkey = made->rkey;
  std::unique_lock<std::shared_mutex> keys(device.keys);
  device.windows[made->rkey >> 8] = made;
  std::lock_guard<std::mutex> bounds(device.bounds);
  device.bound[made->rkey >> 8] = false;
  return Status::kSuccess;
}

Status Host::deallocateMw(Handle handle) {
  MwObject* const mw = Tables::all().mws.find(handle);
  if (mw == nullptr) return Status::kInvalidHandle;
  if (mw->mw != nullptr) {
    std::unique_lock<std::shared_mutex> keys(mw->device->keys);
    const uint32_t index = mw->mw->rkey >> 8;
    const int error = mw->device->context->ops.dealloc_mw(mw->mw);
    if (error != 0) return statusOf(error);
    mw->device->windows.erase(index);
    std::lock_guard<std::mutex> bounds(mw->device->bounds);
    mw->device->bound.erase(index);
  }
  Tables::all().mws.release(mw, handle);
  return Status::kSuccess;
}

// ── Completion queues

Status Host::createCq(Owner owner, uint64_t address, uint64_t bytes, uint32_t entries, Handle* out) {
  Device* const device = this->device(owner);
  if (device == nullptr) return Status::kDeviceRemoved;
  if (!powerOfTwo(entries) || entries > device->limits.maxCqEntries) return Status::kInvalidParameter;
  const uint64_t needed = kCqHeaderBytes + uint64_t{entries} * kCqeBytes;
  const std::shared_ptr<RingMemory> memory = bytes >= needed ? Rings::all().find(address, bytes) : nullptr;
  if (memory == nullptr) return Status::kInvalidParameter;
  Handle handle;
  CqObject* const cq = Tables::all().cqs.take(&handle);
  if (cq == nullptr) return Status::kInsufficientResources;
  std::lock_guard<std::mutex> lock(cq->mutex);
  const int wanted = static_cast<int>(entries) + kSpareCqes;
  const int size = std::min(device->resizes ? wanted : std::max(wanted, kFixedCqes), device->attributes.max_cqe);
  cq->cq = lib_.ibv_create_cq(device->context, size, reinterpret_cast<void*>(uintptr_t{handle}), device->channel, 0);
  if (cq->cq == nullptr) {
    const Status status = statusOf(errno);
    Tables::all().cqs.release(cq, handle);
    return status;
  }
  cq->device = device;
  cq->ring.events = nullptr;
  cq->ring.handle = handle;
  cq->ring.attach(held(memory), address, entries, 0, 0);
  const Status asked = askForEvent(*cq);
  if (asked != Status::kSuccess) {
    lib_.ibv_destroy_cq(cq->cq);
    Tables::all().cqs.release(cq, handle);
    return asked;
  }
  cq->handle = *out = handle;
  return Status::kSuccess;
}

Status Host::resizeCq(Handle handle, uint64_t address, uint64_t bytes, uint32_t entries) {
  CqObject* const cq = Tables::all().cqs.find(handle);
  if (cq == nullptr) return Status::kInvalidHandle;
  drain(*cq, handle);
  std::lock_guard<std::mutex> lock(cq->mutex);
  if (cq->cq == nullptr) return Status::kDeviceRemoved;
  const uint64_t needed = kCqHeaderBytes + uint64_t{entries} * kCqeBytes;
  if (!powerOfTwo(entries) || entries > cq->device->limits.maxCqEntries || bytes < needed)
    return Status::kInvalidParameter;
  const std::shared_ptr<RingMemory> memory = Rings::all().find(address, bytes);
  if (memory == nullptr) return Status::kInvalidParameter;
  const int size = std::min(static_cast<int>(entries) + kSpareCqes, cq->device->attributes.max_cqe);
  // What is smaller than the device's own queue needs nothing of the device.
  if (size > cq->cq->cqe) {
    const int error = lib_.ibv_resize_cq(cq->cq, size);
    if (error != 0) return statusOf(error);
  }
  return cq->ring.resize(held(memory), address, entries);
}

Status Host::destroyCq(Handle handle) {
  CqObject* const cq = Tables::all().cqs.find(handle);
  if (cq == nullptr) return Status::kInvalidHandle;
  std::unique_lock<std::mutex> lock(cq->mutex);
  if (cq->users > 0) return Status::kDeviceBusy;
  ibv_cq* const ended = std::exchange(cq->cq, nullptr);
  lock.unlock();
  // It waits for the event thread, which may want the lock.
  const int error = ended != nullptr ? lib_.ibv_destroy_cq(ended) : 0;
  lock.lock();
  if (error != 0) {
    cq->cq = ended;
    return statusOf(error);
  }
  Tables::all().cqs.release(cq, handle);
  return Status::kSuccess;
}

Status Host::listenCq(Handle handle) {
  CqObject* const cq = Tables::all().cqs.find(handle);
  if (cq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(cq->mutex);
  cq->ring.listen(std::make_shared<Listener>(events_, cq->device->number, handle));
  return Status::kSuccess;
}

// ── Shared receive queues

Status Host::createSrq(const SrqCreate& create, Handle* out) {
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

Status Host::modifySrq(Handle handle, uint32_t mask, const SrqAttributes& attributes) {
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
    // The device has the receives already: only the counters move.
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
    // Below it already: told at once. A device may look at it only when it takes the next receive, as rdma_rxe does.
    ibv_srq_attr limit{0, 0, below ? 0 : attributes.limit};
    const int error = lib_.ibv_modify_srq(srq->srq, &limit, kSrqLimit);
    if (error != 0) return statusOf(error);
    if (below) events_->push(srq->device->number, HcaEvent::srq(handle, SrqEvent::kLimit));
  }
  return Status::kSuccess;
}

Status Host::querySrq(Handle handle, SrqAttributes* out) {
  SrqObject* const srq = Tables::all().srqs.find(handle);
  if (srq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(srq->mutex);
  out->entries = srq->entries;
  out->sge = srq->sge;
  out->limit = 0;
  if (srq->srq == nullptr) return Status::kSuccess;
  // The device clears it when it tells.
  ibv_srq_attr now{};
  const int error = lib_.ibv_query_srq(srq->srq, &now);
  if (error != 0) return statusOf(error);
  out->limit = now.srq_limit;
  return Status::kSuccess;
}

Status Host::destroySrq(Handle handle) {
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

// ── Address handles

Status Host::createAh(Handle handle, const Path& path, uint32_t pathMtu, Handle* out) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  if (pd->device->iwarp) return Status::kNotSupported;
  if (!powerOfTwo(pathMtu) || pathMtu < 256 || pathMtu > 4096) return Status::kInvalidParameter;
  ibv_ah_attr attributes{};
  // The port that has the address.
  uint32_t port = 1;
  while (!fillAh(*pd->device, port, path, &attributes))
    if (++port > pd->device->attributes.phys_port_cnt) return Status::kInvalidAddress;
  Handle ahHandle;
  AhObject* const ah = Tables::all().ahs.take(&ahHandle);
  if (ah == nullptr) return Status::kInsufficientResources;
  ah->ah = lib_.ibv_create_ah(pd->pd, &attributes);
  if (ah->ah == nullptr) {
    const Status status = statusOf(errno);
    Tables::all().ahs.release(ah, ahHandle);
    return status;
  }
  ah->device = pd->device;
  ah->pd = handle;
  ah->pathMtu = pathMtu;
  ah->handle = *out = ahHandle;
  return Status::kSuccess;
}

Status Host::destroyAh(Handle handle) {
  AhObject* const ah = Tables::all().ahs.find(handle);
  if (ah == nullptr) return Status::kInvalidHandle;
  std::unique_lock<std::shared_mutex> keys(ah->device->keys);
  if (ah->ah != nullptr) {
    const int error = lib_.ibv_destroy_ah(ah->ah);
    if (error != 0) return statusOf(error);
  }
  Tables::all().ahs.release(ah, handle);
  return Status::kSuccess;
}

}  // namespace nd::verbs
