// The check of a packet's P_Key against the table of its queue pair (IBA 1 §9.6.1.1.1, §10.9).
#include "transport/pkeys.h"

#include "transport/core.h"

namespace nd {

PkeyTable* Core::pkeyTable(KernelId kernel, Handle handle) {
  if (kernel >= kKernels || !kernels[kernel]) return nullptr;
  if (!handle) return &defaultPkeys[kernel];
  PkeyTable* table = pkeyTables.find(handle);
  return table && table->kernel == kernel ? table : nullptr;
}

bool Core::pkeyFits(Qp& qp, const Packet& p) {
  if (pkeysFit(p.bth.pkey, qp.pkey())) return true;
  counters.wrongPkey++;
  qp.pkeyTable->violations.badPkeys++;
  return false;
}

}  // namespace nd
