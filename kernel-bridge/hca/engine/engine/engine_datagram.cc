// Commands of address handles and multicast groups (IBA 1 §11.2.2, §11.3).
#include <algorithm>

#include "engine/engine_impl.h"

namespace nd {

Status Engine::createAh(Handle pdHandle, const Path& path, uint32_t pathMtu, Handle* out) {
  Transport& t = impl_->transport;
  const Status wire = openWireTo(path.destination);
  if (wire != Status::kSuccess) return wire;
  Command command(t);
  Pd* pd = t.context.pds.find(pdHandle);
  if (!pd) return Status::kInvalidHandle;
  if (!powerOfTwo(pathMtu) || pathMtu < 256 || pathMtu > wire::kLargestMtu) return Status::kInvalidParameter;
  const Gid& to = path.destination;
  if (path.source.isV4() != to.isV4() || !path.source.isUnicast() || !(to.isUnicast() || to.isMulticast()))
    return Status::kInvalidAddress;
  const uint32_t scopeId = path.scopeId || !to.isMulticast() ? path.scopeId : t.context.link.interfaceOf(path.source);
  if (to.isMulticast() && !scopeId) return Status::kInvalidAddress;
  auto owned = std::make_unique<AddressHandle>();
  AddressHandle* ah = owned.get();
  const Handle handle = t.context.ahs.add(std::move(owned));
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
  Transport& t = impl_->transport;
  Command command(t);
  AddressHandle* ah = t.context.ahs.find(handle);
  if (!ah) return Status::kInvalidHandle;
  ah->pd->users--;
  t.context.ahs.remove(handle);
  return Status::kSuccess;
}

Status Engine::attachMulticast(Handle handle, const Gid& gid, uint32_t interface) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  if (!qp->datagram()) return Status::kInvalidDeviceRequest;
  if (!gid.isMulticast()) return Status::kInvalidAddress;
  if (!interface) return Status::kInvalidParameter;
  const Group group{gid, interface};
  const auto found = t.datagrams.groups.find(group);
  const bool full = t.datagrams.attached >= t.context.options.maxAttached;
  if (found == t.datagrams.groups.end()) {
    if (full || t.datagrams.groups.size() >= t.context.options.maxGroups) return Status::kInsufficientResources;
    const Status status = t.context.link.joinGroup(gid, interface);
    if (status != Status::kSuccess) return status;
    t.datagrams.groups[group].push_back(qp);
  } else {
    std::vector<Qp*>& members = found->second;
    if (std::find(members.begin(), members.end(), qp) != members.end()) return Status::kInvalidDeviceState;
    if (full || members.size() >= t.context.options.maxGroupQps) return Status::kInsufficientResources;
    members.push_back(qp);
  }
  qp->groups++;
  t.datagrams.attached++;
  return Status::kSuccess;
}

Status Engine::detachMulticast(Handle handle, const Gid& gid, uint32_t interface) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  return t.datagrams.detachFrom(*qp, {gid, interface}) ? Status::kSuccess : Status::kInvalidParameter;
}

uint32_t Engine::ahCount() {
  Command command(impl_->transport);
  return impl_->transport.context.ahs.size();
}

}  // namespace nd
