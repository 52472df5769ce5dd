// Commands of queue pairs (IBA 1 §10.3, §11.2.4).
#include "engine/engine_impl.h"

namespace nd {

using namespace abi;

// Opens the wire for a command, before it takes the lock.
Status Engine::openWireTo(const Gid& destination) {
  Link& link = impl_->transport.context.link;
  {
    const auto hold = lockOf(impl_->transport);
    if (!link.lacksWire(destination)) return Status::kSuccess;
  }
  return link.openWire();
}

Status Engine::createQp(const QpCreate& r, Handle* handleOut, uint32_t* qpnOut) {
  Transport& t = impl_->transport;
  if (r.type == kQptUd) {
    const Status status = t.context.link.openWire();
    if (status != Status::kSuccess) return status;
  }
  Command command(t);
  if (r.type != kQptRc && r.type != kQptUc && r.type != kQptUd) return Status::kInvalidParameter;
  Pd* pd = t.context.pds.find(r.pd);
  Cq* sendCq = t.context.cqs.find(r.sendCq);
  Cq* receiveCq = t.context.cqs.find(r.receiveCq);
  if (!pd || !sendCq || !receiveCq) return Status::kInvalidHandle;
  const KernelId kernel = pd->kernel;
  Srq* srq = r.srq ? t.context.srqs.find(r.srq) : nullptr;
  if (r.srq && (!srq || srq->kernel != kernel)) return Status::kInvalidHandle;
  if (srq && r.receiveEntries != 0) return Status::kInvalidParameter;  // one or the other, not both
  PkeyTable* pkeyTable = t.context.pkeyTable(kernel, r.pkeyTable);
  if (!pkeyTable) return Status::kInvalidHandle;
  if (sendCq->kernel != kernel || receiveCq->kernel != kernel) return Status::kInvalidHandle;
  if (sendCq->dead || receiveCq->dead) return Status::kInvalidDeviceState;
  if (!queueFits(t.context.options, r.sendEntries, r.sendStride, r.sendSge, kSendWqeHeaderBytes, r.maxInline, 64) ||
      !queueFits(t.context.options, r.receiveEntries, r.receiveStride, r.receiveSge, kReceiveWqeHeaderBytes, 0, 16))
    return Status::kInvalidParameter;
  const uint64_t sendBytes = uint64_t(r.sendEntries) * r.sendStride;
  const uint64_t receiveBytes = uint64_t(r.receiveEntries) * r.receiveStride;
  std::shared_ptr<Ring> ring;
  const Status status = checkRing(t, r.ringAddress, r.ringBytes, kQpHeaderBytes + sendBytes + receiveBytes, &ring);
  if (status != Status::kSuccess) return status;

  auto owned = std::make_unique<Qp>();
  Qp* qp = owned.get();
  const Handle handle = t.context.qps.add(std::move(owned));
  if (!handle) return Status::kInsufficientResources;
  qp->handle = handle;
  const uint32_t place = HandleTable<Qp>::indexOf(qp->handle) + t.context.qpBase;
  qp->qpn = t.context.slot << 16 |
            (Context::kFirstQpIndex + (place >= Context::kQpIndexes ? place - Context::kQpIndexes : place));
  qp->kernel = kernel;
  qp->token = r.token;
  qp->pd = pd;
  qp->sendCq = sendCq;
  qp->receiveCq = receiveCq;
  pd->users++;
  sendCq->users++;
  receiveCq->users++;
  if (srq) {
    srq->users++;
    qp->srq = srq;
    qp->shared.sges.resize(size_t(srq->sge) * (kSgeBytes / 4));
  }
  qp->pkeyTable = pkeyTable;
  pkeyTable->users++;
  qp->signalAll = r.signalAll;
  qp->ring = std::move(ring);
  qp->header = reinterpret_cast<uint32_t*>(r.ringAddress);
  qp->sendRing = reinterpret_cast<uint8_t*>(r.ringAddress) + kQpHeaderBytes;
  qp->receiveRing = qp->sendRing + sendBytes;
  qp->sendEntries = r.sendEntries;
  qp->sendStride = r.sendStride;
  qp->sendSge = r.sendSge;
  qp->maxInline = r.maxInline;
  qp->receiveEntries = r.receiveEntries;
  qp->receiveStride = r.receiveStride;
  qp->receiveSge = r.receiveSge;
  qp->rq.entries.resize(r.sendEntries);
  qp->attributes.type = r.type;
  qp->attributes.qpn = qp->qpn;
  storeWord(qp->header + kQpSendProducer, 0);
  storeWord(qp->header + kQpReceiveProducer, 0);
  storeWord(qp->header + kQpUnfenced, t.context.barrier ? 1 : 0);
  qp->setState(kQpsReset);
  t.context.timers.reserve(t.context.qps.size());
  *handleOut = qp->handle;
  *qpnOut = qp->qpn;
  return Status::kSuccess;
}

void Engine::setBarrier(void (*barrier)()) {
  Transport& t = impl_->transport;
  Command command(t);
  t.context.barrier = barrier;
  t.lock.setBarrier(barrier);
  t.context.qps.forEach([&](Qp& qp) { storeWord(qp.header + kQpUnfenced, 1); });
}

Status Engine::modifyQp(Handle handle, uint32_t mask, const QpAttributes& attributes) {
  Transport& t = impl_->transport;
  if ((mask & qpmask::kPath) != 0) {
    const Status wire = openWireTo(attributes.path.destination);
    if (wire != Status::kSuccess) return wire;
  }
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  const bool ends = (mask & qpmask::kState) != 0 && (attributes.state == kQpsError || attributes.state == kQpsReset);
  if (ends || (mask & (qpmask::kAccess | qpmask::kPkeyIndex)) != 0) {
    t.direct.retire(*qp, ends);
    command.letPeersLeave();
    qp = t.context.qps.find(handle);
    if (!qp) return Status::kInvalidHandle;
  }
  const Status status = t.lifecycle.modify(*qp, mask, attributes);
  if (status != Status::kSuccess) t.direct.publish(*qp);
  return status;
}

Status Engine::connectQp(Handle handle, const ConnectMasks& masks, const QpAttributes& given, Handle) {
  Transport& t = impl_->transport;
  const Status wire = openWireTo(given.path.destination);
  if (wire != Status::kSuccess) return wire;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  Status status = qp ? Status::kSuccess : Status::kInvalidHandle;
  QpAttributes attributes = given;
  attributes.state = kQpsReset;
  for (size_t step = 0; step < masks.size() && status == Status::kSuccess; ++step) {
    ++attributes.state;
    status = t.lifecycle.modify(*qp, masks[step] | qpmask::kState, attributes);
  }
  return status;
}

Status Engine::queryQp(Handle handle, QpAttributes* attributes) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  *attributes = qp->attributes;
  attributes->currentState = qp->state();
  if (stateRules(qp->state()).receivesRequests) attributes->receivePsn = qp->rs.expected;
  if (stateRules(qp->state()).continuesWork) attributes->sendPsn = qp->rq.maxPsn;
  return Status::kSuccess;
}

Status Engine::destroyQp(Handle handle) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  t.direct.retire(*qp, true);
  command.letPeersLeave();
  qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  t.lifecycle.destroy(*qp);
  return Status::kSuccess;
}

Status Engine::setDreqOnExit(Handle handle, const Path& path, const uint8_t mad[256]) {
  Transport& t = impl_->transport;
  Command command(t);
  Qp* qp = t.context.qps.find(handle);
  if (!qp) return Status::kInvalidHandle;
  if (!mad) return Status::kInvalidParameter;
  qp->dreqOnExit = std::make_unique<DreqOnExit>();
  qp->dreqOnExit->path = path;
  std::memcpy(qp->dreqOnExit->mad, mad, wire::kMadBytes);
  qp->lastActivity = t.context.clock.now();  // the connection starts
  return Status::kSuccess;
}

}  // namespace nd
