// Commands of address handles.
#include <cerrno>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

Status VerbsHca::createAh(Handle handle, const Path& path, uint32_t pathMtu, Handle* out) {
  PdObject* const pd = Tables::all().pds.find(handle);
  if (pd == nullptr) return Status::kInvalidHandle;
  if (pd->pd == nullptr) return Status::kDeviceRemoved;
  if (pd->device->iwarp) return Status::kNotSupported;
  if (!powerOfTwo(pathMtu) || pathMtu < 256 || pathMtu > 4096) return Status::kInvalidParameter;
  ibv_ah_attr attributes{};
  // Returns the port that has the address.
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

Status VerbsHca::destroyAh(Handle handle) {
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
