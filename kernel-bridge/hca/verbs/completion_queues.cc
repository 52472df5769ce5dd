// Commands of completion queues, and the delivery of their events to the kernel.
#include <cerrno>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

using namespace abi;

namespace {

// Passes the events of a CQ to the kernel. Called with the CQ's lock.
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

// nd::Cq holds its memory by the engine's type and does not look inside it.
std::shared_ptr<Ring> held(const std::shared_ptr<RingMemory>& memory) {
  return {memory, reinterpret_cast<Ring*>(memory.get())};
}

}  // namespace

Status VerbsHca::createCq(Owner owner, uint64_t address, uint64_t bytes, uint32_t entries, Handle* out) {
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
  const Status status = armDevice(*cq);
  if (status != Status::kSuccess) {
    lib_.ibv_destroy_cq(cq->cq);
    Tables::all().cqs.release(cq, handle);
    return status;
  }
  cq->handle = *out = handle;
  return Status::kSuccess;
}

Status VerbsHca::resizeCq(Handle handle, uint64_t address, uint64_t bytes, uint32_t entries) {
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
  // A size below that of the device's own queue needs no resize of the device.
  if (size > cq->cq->cqe) {
    const int error = lib_.ibv_resize_cq(cq->cq, size);
    if (error != 0) return statusOf(error);
  }
  return cq->ring.resize(held(memory), address, entries);
}

Status VerbsHca::destroyCq(Handle handle) {
  CqObject* const cq = Tables::all().cqs.find(handle);
  if (cq == nullptr) return Status::kInvalidHandle;
  std::unique_lock<std::mutex> lock(cq->mutex);
  if (cq->users > 0) return Status::kDeviceBusy;
  ibv_cq* const ended = std::exchange(cq->cq, nullptr);
  lock.unlock();
  // This waits for the event thread, which may need the lock.
  const int error = ended != nullptr ? lib_.ibv_destroy_cq(ended) : 0;
  lock.lock();
  if (error != 0) {
    cq->cq = ended;
    return statusOf(error);
  }
  Tables::all().cqs.release(cq, handle);
  return Status::kSuccess;
}

Status VerbsHca::listenCq(Handle handle) {
  CqObject* const cq = Tables::all().cqs.find(handle);
  if (cq == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(cq->mutex);
  cq->ring.listen(std::make_shared<Listener>(events_, cq->device->number, handle));
  return Status::kSuccess;
}

}  // namespace nd::verbs
