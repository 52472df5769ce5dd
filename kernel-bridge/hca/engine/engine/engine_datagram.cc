// Commands of address handles and multicast groups (IBA 1 §11.2.2, §11.3).
#include <algorithm>

#include "engine/engine_impl.h"

namespace nd {

Status Engine::createAh(Handle pdHandle, const Path& path, uint32_t pathMtu, Handle* out) {
  Core& core = impl_->core;
  Command command(core);
  Pd* pd = core.pds.find(pdHandle);
  if (!pd) return Status::kInvalidHandle;
  if (!powerOfTwo(pathMtu) || pathMtu < 256 || pathMtu > wire::kLargestMtu) return Status::kInvalidParameter;
  const Gid& to = path.destination;
  if (path.source.isV4() != to.isV4() || !path.source.isUnicast() || !(to.isUnicast() || to.isMulticast()))
    return Status::kInvalidAddress;
  const uint32_t scopeId = path.scopeId || !to.isMulticast() ? path.scopeId : core.link.interfaceOf(path.source);
  if (to.isMulticast() && !scopeId) return Status::kInvalidAddress;
  auto owned = std::make_unique<AddressHandle>();
  AddressHandle* ah = owned.get();
  const Handle handle = core.ahs.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  ah->handle = handle;
  ah->pd = pd;
  ah->path = path;
  ah->path.scopeId = scopeId;
  ah->pathMtu = pathMtu;
  pd->users++;
  *out = handle;
  return Status::kSuccess;
}

Status Engine::destroyAh(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  AddressHandle* ah = core.ahs.find(handle);
  if (!ah) return Status::kInvalidHandle;
  ah->pd->users--;
  core.ahs.remove(handle);
  return Status::kSuccess;
}

Status Engine::attachMulticast(Handle handle, const Gid& gid, uint32_t interface) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  if (!qp->datagram()) return Status::kInvalidDeviceRequest;
  if (!gid.isMulticast()) return Status::kInvalidAddress;
  if (!interface) return Status::kInvalidParameter;
  const Group group{gid, interface};
  const auto found = core.groups.find(group);
  const bool full = core.attached >= core.options.maxAttached;
  if (found == core.groups.end()) {
    if (full || core.groups.size() >= core.options.maxGroups) return Status::kInsufficientResources;
    const Status status = core.link.joinGroup(gid, interface);
    if (status != Status::kSuccess) return status;
    core.groups[group].push_back(qp);
  } else {
    std::vector<Qp*>& members = found->second;
    if (std::find(members.begin(), members.end(), qp) != members.end()) return Status::kInvalidDeviceState;
    if (full || members.size() >= core.options.maxGroupQps) return Status::kInsufficientResources;
    members.push_back(qp);
  }
  qp->groups++;
  core.attached++;
  return Status::kSuccess;
}

Status Engine::detachMulticast(Handle handle, const Gid& gid, uint32_t interface) {
  Core& core = impl_->core;
  Command command(core);
  Qp* qp = core.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  return core.detachFrom(*qp, {gid, interface}) ? Status::kSuccess : Status::kInvalidParameter;
}

uint32_t Engine::ahCount() {
  Command command(impl_->core);
  return impl_->core.ahs.size();
}

}  // namespace nd
