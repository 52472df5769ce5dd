// Commands of protection domains, memory regions and memory windows.
#include <cerrno>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

using namespace abi;

Status VerbsHca::allocatePd(Owner owner, Handle* out) {
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

Status VerbsHca::deallocatePd(Handle handle) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd != nullptr) {
    const int error = lib_.ibv_dealloc_pd(pd->pd);
    if (error != 0) return statusOf(error);
  }
  Tables::all().pds.release(pd, handle);
  return Status::kSuccess;
}

Status VerbsHca::registerMr(Handle handle, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                            uint32_t* rkey) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  Device& device = *pd->device;
  const uint64_t range = length > 0 ? Ranges::all().use(address, length) : 0;
  if (range == 0) return Status::kAccessViolation;
  unsigned flags = static_cast<unsigned>(accessOf(access));
  // The peer writes to the sink of an iWARP Read.
  if (device.iwarp && (flags & kAccessLocalWriteBit) != 0) flags |= kRemoteWriteBit;
  // Devices require this combination; WinVerbs leaves it to each access.
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

Status VerbsHca::deregisterMr(Handle handle, uint32_t lkey) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  Device& device = *pd->device;
  std::unique_lock<std::shared_mutex> keys(device.keys);
  const auto it = device.regions.find(lkey);
  if (it == device.regions.end() || it->second.pd != handle) return Status::kInvalidHandle;
  if (it->second.mr != nullptr) {
    const int error = lib_.ibv_dereg_mr(it->second.mr);
    // A window is still bound to the region, which some drivers report as an invalid argument.
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
    for (auto& entry : device->regions) {
      auto& region = entry.second;  // clang cannot capture a structured binding in C++17
      if (region.range != range || region.mr == nullptr) continue;
      if (device->lib->ibv_dereg_mr(region.mr) != 0) {
        // Windows keep the region in use, so they are destroyed first, as they would be with the process.
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

Status VerbsHca::allocateMw(Handle handle, Handle* out, uint32_t* rkey) {
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

Status VerbsHca::deallocateMw(Handle handle) {
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

}  // namespace nd::verbs
