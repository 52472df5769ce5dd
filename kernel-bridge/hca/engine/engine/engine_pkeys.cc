// Commands of P_Key tables, and the check of MADs against them (IBA 1 §10.9).
#include <algorithm>

#include "engine/engine_impl.h"

namespace nd {

bool Engine::acceptsGsiPkey(KernelId kernel, const Gid& destination, uint16_t pkey) {
  Transport& t = impl_->transport;
  PkeyTable* refuses = nullptr;
  bool fits = false;
  const auto check = [&](PkeyTable& table) {
    const auto entry = [&](uint16_t own) { return pkeysFit(own, pkey); };
    fits = fits || std::any_of(table.entries.begin(), table.entries.end(), entry);
    if (!refuses) refuses = &table;
  };
  // Several interfaces may have the same link-local address.
  t.context.pkeyTables.forEach([&](PkeyTable& table) {
    if (table.kernel != kernel) return;
    if (std::find(table.gids.begin(), table.gids.end(), destination) != table.gids.end()) check(table);
  });
  if (!refuses) check(t.context.defaultPkeys[kernel]);
  if (fits) return true;
  t.context.counters.wrongPkey++;
  refuses->violations.badPkeys++;
  return false;
}

Status Engine::createPkeyTable(Owner kernel, Handle* out) {
  Transport& t = impl_->transport;
  Command command(t);
  if (!kernelPort(kernel)) return Status::kInvalidHandle;
  auto owned = std::make_unique<PkeyTable>();
  PkeyTable* table = owned.get();
  table->kernel = kernel;
  const Handle handle = t.context.pkeyTables.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  *out = table->handle = handle;
  return Status::kSuccess;
}

Status Engine::setPkeyTable(Handle handle, std::vector<uint16_t> pkeys, std::vector<Gid> gids) {
  Transport& t = impl_->transport;
  Command command(t);
  PkeyTable* table = t.context.pkeyTables.find(handle);
  if (!table) return Status::kInvalidHandle;
  if (pkeys.empty() || pkeys.size() > t.context.options.maxPkeys) return Status::kInvalidParameter;
  t.context.qps.forEach([&](Qp& qp) {
    if (qp.pkeyTable == table) t.direct.retire(qp, false);
  });
  command.letPeersLeave();
  table = t.context.pkeyTables.find(handle);
  if (!table) return Status::kInvalidHandle;
  table->entries = std::move(pkeys);
  table->gids = std::move(gids);
  t.context.qps.forEach([&](Qp& qp) {
    if (qp.pkeyTable == table) t.direct.publish(qp);
  });
  return Status::kSuccess;
}

Status Engine::queryPkeyTable(Owner kernel, Handle handle, PkeyViolations* out) {
  Transport& t = impl_->transport;
  Command command(t);
  const PkeyTable* table = t.context.pkeyTable(kernel, handle);
  if (!table) return Status::kInvalidHandle;
  *out = table->violations;
  return Status::kSuccess;
}

Status Engine::destroyPkeyTable(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  PkeyTable* table = t.context.pkeyTables.find(handle);
  if (!table) return Status::kInvalidHandle;
  if (table->users) return Status::kDeviceBusy;
  t.context.pkeyTables.remove(handle);
  return Status::kSuccess;
}

uint32_t Engine::pkeyTableCount() {
  Command command(impl_->transport);
  return impl_->transport.context.pkeyTables.size();
}

}  // namespace nd
