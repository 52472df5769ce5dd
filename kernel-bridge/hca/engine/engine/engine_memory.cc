// Commands of pinned ranges, rings, protection domains, memory regions and memory windows (IBA 1 §10.6).
#include "engine/engine_impl.h"

namespace nd {

Status Engine::pinRange(uint64_t address, uint64_t length, uint64_t* id) {
  Command command(impl_->transport);
  return impl_->transport.context.memory.pinRange(address, length, id);
}

void Engine::unpinRange(uint64_t id) {
  std::shared_ptr<const SharedRange> shared;  // released after the lock
  Command command(impl_->transport);
  impl_->transport.context.memory.retireRange(id);
  command.letPeersLeave();
  shared = impl_->transport.context.memory.unpinRange(id);
}

std::shared_ptr<const SharedRange> Engine::sharedAt(uint64_t address, uint64_t length) {
  Command command(impl_->transport);
  return impl_->transport.context.memory.sharedAt(address, length) ? sharedRangeAt(address, length) : nullptr;
}

Status Engine::allocateRing(uint64_t bytes, uint64_t* address) {
  Transport& t = impl_->transport;
  constexpr uint64_t kLargest = uint64_t(1) << 31;
  if (bytes == 0 || bytes > kLargest) return Status::kInvalidParameter;
  std::shared_ptr<Ring> ring = t.context.memory.makeRing(bytes);  // zeroing takes time: not under the lock
  if (!ring) return Status::kNoMemory;
  Command command(t);
  t.context.memory.addRing(ring);
  *address = reinterpret_cast<uint64_t>(ring->base);
  return Status::kSuccess;
}

void Engine::releaseRing(uint64_t address) {
  Command command(impl_->transport);
  impl_->transport.context.memory.releaseRing(address);
}

std::shared_ptr<void> Engine::ringMemory(uint64_t address) {
  Command command(impl_->transport);
  return impl_->transport.context.memory.ringAt(address, 1);
}

Status Engine::allocatePd(Owner kernel, Handle* pdOut) {
  Transport& t = impl_->transport;
  Command command(t);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  auto pd = std::make_unique<Pd>();
  Pd* raw = pd.get();
  raw->kernel = kernel;
  const Handle handle = t.context.pds.add(std::move(pd));
  if (!handle) return Status::kInsufficientResources;
  *pdOut = raw->handle = handle;
  return Status::kSuccess;
}

Status Engine::deallocatePd(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  if (pd->users) return Status::kDeviceBusy;
  t.context.pds.remove(handle);
  return Status::kSuccess;
}

Status Engine::registerMr(Handle handle, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                          uint32_t* rkey) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return t.context.memory.registerRegion(*pd, address, length, access, lkey, rkey);
}

Status Engine::allocateMr(Handle handle, uint64_t mostBytes, uint32_t* lkey) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return t.context.memory.allocateRegion(*pd, mostBytes, lkey);
}

Status Engine::deregisterMr(Handle handle, uint32_t lkey) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  t.context.memory.retireRegion(*pd, lkey);
  command.letPeersLeave();
  pd = t.context.pds.find(handle);
  return pd ? t.context.memory.deregisterRegion(*pd, lkey) : Status::kInvalidHandle;
}

Status Engine::allocateMw(Handle handle, Handle* mw, uint32_t* rkey) {
  Transport& t = impl_->transport;
  Command command(t);
  Pd* pd = t.context.pds.find(handle);
  if (!pd) return Status::kInvalidHandle;
  return t.context.memory.allocateWindow(*pd, mw, rkey);
}

Status Engine::deallocateMw(Handle mw) {
  Command command(impl_->transport);
  impl_->transport.context.memory.retireWindow(mw);
  command.letPeersLeave();
  return impl_->transport.context.memory.deallocateWindow(mw);
}

}  // namespace nd
