#include "transport/kernel_end.h"

#include <vector>

#include "transport/transport.h"

namespace nd {

using namespace abi;

void KernelEnd::detach(KernelId kernel) {
  t_.lifecycle.settle();
  c_.kernels[kernel] = nullptr;
  std::vector<Qp*> mine;
  c_.qps.forEach([&](Qp& qp) {
    if (qp.kernel == kernel) mine.push_back(&qp);
  });
  for (Qp* qp : mine) sendDreqOnExit(*qp);
  c_.link.flush();  // the stored DREQs are freed with their QPs
  for (Qp* qp : mine) {
    Failure quiet;
    quiet.report = false;
    t_.lifecycle.fail(*qp, quiet);
  }
  t_.lifecycle.settle();
  for (Qp* qp : mine) t_.lifecycle.destroy(*qp);
  c_.ahs.forEach([&](AddressHandle& ah) {
    if (ah.pd->kernel == kernel) c_.ahs.remove(ah.handle);
  });
  c_.srqs.forEach([&](Srq& srq) {
    if (srq.kernel == kernel) c_.srqs.remove(srq.handle);
  });
  c_.pkeyTables.forEach([&](PkeyTable& table) {
    if (table.kernel == kernel) c_.pkeyTables.remove(table.handle);
  });
  c_.memory.dropKernel(kernel);
  c_.cqs.forEach([&](Cq& cq) {
    if (cq.kernel != kernel) return;
    cq.notifyAll(Status::kCancelled);
    c_.cqs.remove(cq.handle);
  });
  c_.pds.forEach([&](Pd& pd) {
    if (pd.kernel == kernel) c_.pds.remove(pd.handle);
  });
}

// Sends the DREQ that the connection manager has stored for it.
void KernelEnd::sendDreqOnExit(Qp& qp) {
  OutPacket& out = t_.links.out;
  t_.responses.acknowledgeLast(qp);
  if (!qp.dreqOnExit || qp.state() == kQpsReset || qp.state() == kQpsInit) return;
  if (!isPkey(qp.pkey())) return;
  wire::Bth bth;
  bth.pkey = qp.pkey();
  bth.opcode = wire::kOpUdSendOnly;
  bth.destinationQpn = wire::kGsiQpn;
  bth.psn = gsiPsn_;
  gsiPsn_ = wire::psnAdd(gsiPsn_, 1);
  wire::emitDeth(t_.links.begin(bth), {wire::kGsiQkey, wire::kGsiQpn});
  out.pieces[0] = {qp.dreqOnExit->mad, wire::kMadBytes};
  out.pieceCount = 1;
  out.payloadLength = wire::kMadBytes;
  c_.counters.dreqsOnExitSent++;
  if (!c_.link.send(qp.dreqOnExit->path, out)) c_.counters.sendFailures++;
}

}  // namespace nd
