// Commands of P_Key tables, and the check of MADs against them (IBA 1 §10.9).
#include <algorithm>

#include "engine/engine_impl.h"

namespace nd {

bool Engine::acceptsGsiPkey(KernelId kernel, const Gid& destination, uint16_t pkey) {
  Core& core = impl_->core;
  PkeyTable* refuses = nullptr;
  bool fits = false;
  const auto ask = [&](PkeyTable& table) {
    const auto entry = [&](uint16_t own) { return pkeysFit(own, pkey); };
    fits = fits || std::any_of(table.entries.begin(), table.entries.end(), entry);
    if (!refuses) refuses = &table;
  };
  // Several interfaces may have the same link-local address.
  core.pkeyTables.forEach([&](PkeyTable& table) {
    if (table.kernel != kernel) return;
    if (std::find(table.gids.begin(), table.gids.end(), destination) != table.gids.end()) ask(table);
  });
  if (!refuses) ask(core.defaultPkeys[kernel]);
  if (fits) return true;
  core.counters.wrongPkey++;
  refuses->violations.badPkeys++;
  return false;
}

Status Engine::createPkeyTable(KernelId kernel, Handle* out) {
  Core& core = impl_->core;
  Command command(core);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  auto owned = std::make_unique<PkeyTable>();
  PkeyTable* table = owned.get();
  table->kernel = kernel;
  const Handle handle = core.pkeyTables.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  *out = table->handle = handle;
  return Status::kSuccess;
}

Status Engine::setPkeyTable(Handle handle, std::vector<uint16_t> pkeys, std::vector<Gid> gids) {
  Core& core = impl_->core;
  Command command(core);
  PkeyTable* table = core.pkeyTables.find(handle);
  if (!table) return Status::kInvalidHandle;
  if (pkeys.empty() || pkeys.size() > core.options.maxPkeys) return Status::kInvalidParameter;
  table->entries = std::move(pkeys);
  table->gids = std::move(gids);
  return Status::kSuccess;
}

Status Engine::queryPkeyTable(KernelId kernel, Handle handle, PkeyViolations* out) {
  Core& core = impl_->core;
  Command command(core);
  const PkeyTable* table = core.pkeyTable(kernel, handle);
  if (!table) return Status::kInvalidHandle;
  *out = table->violations;
  return Status::kSuccess;
}

Status Engine::destroyPkeyTable(Handle handle) {
  Core& core = impl_->core;
  Command command(core);
  PkeyTable* table = core.pkeyTables.find(handle);
  if (!table) return Status::kInvalidHandle;
  if (table->users) return Status::kDeviceBusy;
  core.pkeyTables.remove(handle);
  return Status::kSuccess;
}

uint32_t Engine::pkeyTableCount() {
  Command command(impl_->core);
  return impl_->core.pkeyTables.size();
}

}  // namespace nd
