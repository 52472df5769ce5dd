// Commands of queue pairs.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "objects/qp_states.h"
#include "verbs/verbs_hca.h"

namespace nd::verbs {

using namespace abi;

namespace {

// Maximum wait for the device's flush when a queue pair ends. Devices need microseconds, emulated ones ten
// milliseconds.
constexpr auto kFlushTime = std::chrono::milliseconds(500);
constexpr uint32_t kGlobalHops = 64;

// Returns the IB code of an MTU in bytes; that of 256 is 1.
int mtuCode(uint32_t bytes) {
  int code = 0;
  while (code < 5 && (128u << code) < bytes) ++code;
  return code;
}

struct MaskPair {
  uint32_t ours;
  int theirs;
};
constexpr MaskPair kMasks[] = {
    {qpmask::kAccess, kQpAccess},
    {qpmask::kPkeyIndex, kQpPkeyIndex},
    {qpmask::kPort, kQpPort},
    {qpmask::kQkey, kQpQkey},
    {qpmask::kPath, kQpAv},
    {qpmask::kPathMtu, kQpPathMtu},
    {qpmask::kDestinationQpn, kQpDestQpn},
    {qpmask::kReceivePsn, kQpRqPsn},
    {qpmask::kResponderResources, kQpMaxDestRdAtomic},
    {qpmask::kMinRnrTimer, kQpMinRnrTimer},
    {qpmask::kAckTimeout, kQpTimeout},
    {qpmask::kRetryCount, kQpRetryCnt},
    {qpmask::kRnrRetry, kQpRnrRetry},
    {qpmask::kSendPsn, kQpSqPsn},
    {qpmask::kInitiatorDepth, kQpMaxRdAtomic},
    {qpmask::kCurrentState, kQpCurState},
    {qpmask::kDrainNotify, kQpDrainNotify},
};

int theirMask(uint32_t mask) {
  int out = 0;
  for (const MaskPair& pair : kMasks)
    if ((mask & pair.ours) != 0) out |= pair.theirs;
  return out;
}

bool sizesFit(const QpCreate& q) {
  const uint64_t sendStride = kSendWqeHeaderBytes + std::max<uint64_t>(uint64_t{q.sendSge} * kSgeBytes, q.maxInline);
  const uint64_t receiveStride = kReceiveWqeHeaderBytes + uint64_t{q.receiveSge} * kSgeBytes;
  if (!powerOfTwo(q.sendEntries) || q.sendStride % 64 != 0 || q.sendStride < sendStride) return false;
  if (q.srq == 0 && (!powerOfTwo(q.receiveEntries) || q.receiveStride % 16 != 0 || q.receiveStride < receiveStride))
    return false;
  const uint64_t bytes = kQpHeaderBytes + uint64_t{q.sendEntries} * q.sendStride +
                         (q.srq == 0 ? uint64_t{q.receiveEntries} * q.receiveStride : 0);
  return q.ringBytes >= bytes;
}

int typeOf(uint32_t type) {
  return type == kQptRc ? kQptIbRc : type == kQptUc ? kQptIbUc : type == kQptUd ? kQptIbUd : -1;
}

}  // namespace

Status VerbsHca::createQp(const QpCreate& q, Handle* out, uint32_t* qpn) {
  Tables& all = Tables::all();
  PdObject* const pd = all.pds.find(q.pd);
  CqObject *const sendCq = all.cqs.find(q.sendCq), *const receiveCq = all.cqs.find(q.receiveCq);
  SrqObject* const srq = q.srq != 0 ? all.srqs.find(q.srq) : nullptr;
  if (pd == nullptr || sendCq == nullptr || receiveCq == nullptr || (q.srq != 0 && srq == nullptr))
    return Status::kInvalidHandle;
  Device& device = *pd->device;
  if (sendCq->device != &device || receiveCq->device != &device || (srq != nullptr && srq->device != &device))
    return Status::kInvalidHandle;
  if (device.context == nullptr) return Status::kDeviceRemoved;
  if (typeOf(q.type) < 0 || (device.iwarp && q.type != kQptRc))
    return typeOf(q.type) < 0 ? Status::kInvalidParameter : Status::kNotSupported;
  std::shared_ptr<RingMemory> memory = sizesFit(q) ? Rings::all().find(q.ringAddress, q.ringBytes) : nullptr;
  if (memory == nullptr) return Status::kInvalidParameter;
  Handle handle;
  QpObject* const qp = all.qps.take(&handle);
  if (qp == nullptr) return Status::kInsufficientResources;
  std::lock_guard<std::mutex> lock(qp->mutex);
  ibv_qp_init_attr create{};
  create.qp_context = reinterpret_cast<void*>(uintptr_t{handle});
  create.send_cq = sendCq->cq;
  create.recv_cq = receiveCq->cq;
  create.srq = srq != nullptr ? srq->srq : nullptr;
  // This is one more than the ring has, for the marker request that shows that all others have completed.
  create.cap = {q.sendEntries + 1, srq != nullptr ? 0 : q.receiveEntries, std::max(q.sendSge, 1u),
                srq != nullptr ? 0 : std::max(q.receiveSge, 1u), q.maxInline};
  create.qp_type = typeOf(q.type);
  create.sq_sig_all = q.signalAll ? 1 : 0;
  qp->qp = lib_.ibv_create_qp(pd->pd, &create);
  if (qp->qp == nullptr) {
    const Status status = statusOf(errno);
    all.qps.release(qp, handle);
    return status;
  }
  qp->device = &device;
  qp->memory = std::move(memory);
  qp->header = reinterpret_cast<uint32_t*>(q.ringAddress);
  qp->sendEntries = q.sendEntries;
  qp->sendStride = q.sendStride;
  qp->sendSge = q.sendSge;
  qp->maxInline = q.maxInline;
  qp->receiveEntries = srq != nullptr ? 0 : q.receiveEntries;
  qp->receiveStride = q.receiveStride;
  qp->receiveSge = q.receiveSge;
  qp->type = q.type;
  qp->token = q.token;
  qp->qpn = qp->qp->qp_num;
  qp->physicalPort = q.pkeyTable != 0 ? q.pkeyTable : 1;
  qp->pd = q.pd;
  qp->sendCq = sendCq;
  qp->receiveCq = receiveCq;
  qp->srq = srq;
  qp->attributes.type = q.type;
  qp->attributes.qpn = qp->qpn;
  qp->attributes.port = 1;
  qp->sendDone = loadWord(qp->header + kQpSendProducer);
  qp->sendSeen = qp->sendDone;
  qp->receiveDone = loadWord(qp->header + kQpReceiveProducer);
  for (CqObject* cq : {sendCq, receiveCq}) ++cq->users;
  if (srq != nullptr) ++srq->users;
  storeWord(qp->header + kQpReceiveBell, 1);
  qp->publish(kQpsReset);
  qp->handle = *out = handle;
  *qpn = qp->qpn;
  std::lock_guard<std::mutex> numbers(device.qpns);
  device.byQpn[qp->qpn] = qp;
  return Status::kSuccess;
}

int VerbsHca::sgidIndex(Device& device, uint32_t port, const Gid& source) {
  PortInfo info;
  if (!queryPort(device, port, &info)) return -1;
  int found = -1;
  for (const ibv_gid_entry& entry : info.gids) {
    if (std::memcmp(entry.gid, source.raw.data(), sizeof entry.gid) != 0) continue;
    if (entry.gid_type == kGidRoceV2 || info.attributes.link_layer != kLinkEthernet)
      return static_cast<int>(entry.gid_index);
    found = static_cast<int>(entry.gid_index);
  }
  return found;
}

bool VerbsHca::fillAh(Device& device, uint32_t port, const Path& path, ibv_ah_attr* out) {
  const int index = sgidIndex(device, port, path.source);
  if (index < 0) return false;
  std::memcpy(out->dgid, path.destination.raw.data(), sizeof out->dgid);
  out->flow_label = path.flowLabel;
  out->sgid_index = static_cast<uint8_t>(index);
  out->hop_limit = path.hopLimit != 0 ? path.hopLimit : kGlobalHops;
  out->traffic_class = path.trafficClass;
  out->is_global = 1;
  out->port_num = static_cast<uint8_t>(port);
  return true;
}

// Moves the queue pair, which must not be locked, to ERROR or RESET. When this returns, posted requests have been
// flushed or discarded.
Status VerbsHca::toEnd(QpObject& qp, uint32_t state) {
  const Handle handle = qp.handle;
  const auto both = [&] {
    drain(*qp.sendCq, qp.sendCq->handle);
    if (qp.receiveCq != qp.sendCq) drain(*qp.receiveCq, qp.receiveCq->handle);
  };
  if (state == kQpsError) {
    {
      std::lock_guard<std::mutex> lock(qp.mutex);
      enterError(qp);
    }
    const auto end = std::chrono::steady_clock::now() + kFlushTime;
    auto pause = std::chrono::microseconds(5);
    for (;;) {
      both();
      if (qp.sendsDrained && qp.receivesOut.load() <= 0) break;
      if (std::chrono::steady_clock::now() > end) break;
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(1000));
    }
    std::lock_guard<std::mutex> lock(qp.mutex);
    if (qp.handle == handle) flushHeld(qp, true);
    return Status::kSuccess;
  }
  both();
  std::unique_lock<std::mutex> lock(qp.mutex);
  if (qp.qp != nullptr) {
    ibv_qp_attr attributes{};
    attributes.qp_state = static_cast<int>(kQpsReset);
    const int error = lib_.ibv_modify_qp(qp.qp, &attributes, kQpState_);
    if (error != 0) return statusOf(error);
    drainOf(qp);
  }
  qp.sendDone = loadWord(qp.header + kQpSendProducer);
  qp.sendSeen = qp.sendDone;
  qp.receiveDone = loadWord(qp.header + kQpReceiveProducer);
  qp.failStatus = 0;
  qp.receivesOut = 0;
  qp.sendsDrained = qp.failed = qp.sendsForced = qp.receivesForced = false;
  qp.errorEntered = qp.markerPosted = qp.lastWqeReported = false;
  QpAttributes fresh;
  fresh.type = qp.type;
  fresh.qpn = qp.qpn;
  fresh.port = 1;
  qp.attributes = fresh;
  qp.publish(kQpsReset);
  lock.unlock();
  settleLater(*qp.sendCq);
  settleLater(*qp.receiveCq);
  return Status::kSuccess;
}

// Makes one transition, for which all attributes are given and have been checked. The queue pair must be locked.
Status VerbsHca::moveQp(QpObject& qp, uint32_t mask, const QpAttributes& a) {
  ibv_qp_attr out{};
  int theirs = theirMask(mask);
  if ((mask & qpmask::kState) != 0) {
    out.qp_state = static_cast<int>(a.state);
    theirs |= kQpState_;
  }
  out.cur_qp_state = static_cast<int>(a.currentState);
  out.qp_access_flags = static_cast<unsigned>(accessOf(a.access)) & ~unsigned{kMwBindBit};
  if (qp.device->attributes.atomic_cap == 0) out.qp_access_flags &= ~unsigned{kRemoteAtomicBit};
  out.pkey_index = static_cast<uint16_t>(a.pkeyIndex);
  out.port_num = static_cast<uint8_t>(qp.physicalPort);
  out.qkey = a.qkey;
  if ((mask & qpmask::kPath) != 0 && !fillAh(*qp.device, qp.physicalPort, a.path, &out.ah_attr))
    return Status::kInvalidAddress;
  out.path_mtu = mtuCode(a.pathMtu);
  out.dest_qp_num = a.destinationQpn;
  out.rq_psn = a.receivePsn;
  out.sq_psn = a.sendPsn;
  out.max_dest_rd_atomic = static_cast<uint8_t>(std::min(a.responderResources, 255u));
  out.max_rd_atomic = static_cast<uint8_t>(std::min(a.initiatorDepth, 255u));
  out.min_rnr_timer = static_cast<uint8_t>(a.minRnrTimer);
  out.timeout = static_cast<uint8_t>(a.ackTimeout);
  out.retry_cnt = static_cast<uint8_t>(a.retryCount);
  out.rnr_retry = static_cast<uint8_t>(a.rnrRetry);
  out.en_sqd_async_notify = (mask & qpmask::kDrainNotify) != 0 ? 1 : 0;
  const int error = lib_.ibv_modify_qp(qp.qp, &out, theirs);
  if (error != 0) return statusOf(error);
  applyAttributes(qp.attributes, mask, a);
  if ((mask & qpmask::kState) != 0) qp.publish(a.state);
  return Status::kSuccess;
}

Status VerbsHca::modifyQp(Handle handle, uint32_t mask, const QpAttributes& attributes) {
  QpObject* const qp = Tables::all().qps.find(handle);
  if (qp == nullptr) return Status::kInvalidHandle;
  uint32_t target;
  const Status checked = checkModify(qp->device->limits, qp->type, qp->state.load(), mask, attributes, &target);
  if (checked != Status::kSuccess) return checked;
  if ((mask & qpmask::kState) != 0 && (target == kQpsError || target == kQpsReset)) return toEnd(*qp, target);
  std::lock_guard<std::mutex> lock(qp->mutex);
  if (qp->qp == nullptr) return Status::kDeviceRemoved;
  const Status moved = moveQp(*qp, mask, attributes);
  if (moved != Status::kSuccess) return moved;
  // Sends, and receives that were posted before the state allowed them.
  postReceives(*qp);
  postSends(*qp);
  return moved;
}

Status VerbsHca::connectQp(Handle handle, const ConnectMasks& masks, const QpAttributes& a, Handle connection) {
  QpObject* const qp = Tables::all().qps.find(handle);
  rdma_cm_id* const id = idOf(connection);
  if (qp == nullptr || id == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(qp->mutex);
  if (qp->qp == nullptr) return Status::kDeviceRemoved;
  if (qp->state.load() > kQpsInit) return Status::kInvalidDeviceState;
  const std::pair<uint32_t, uint32_t> steps[] = {{kQpsInit, masks[0]}, {kQpsRtr, masks[1]}, {kQpsRts, masks[2]}};
  for (const auto& [state, mask] : steps) {
    // On iWARP, connecting has already moved the queue pair, or accepting will do so.
    if (!qp->device->iwarp) {
      ibv_qp_attr out{};
      int theirs = 0;
      out.qp_state = static_cast<int>(state);
      // EINVAL means that the connection no longer has such a state, because its peer has given up.
      if (lib_.rdma_init_qp_attr(id, &out, &theirs) != 0)
        return errno == EINVAL ? Status::kConnectionAborted : statusOf(errno);
      out.qp_access_flags = static_cast<unsigned>(accessOf(a.access));
      if (qp->device->attributes.atomic_cap == 0) out.qp_access_flags &= ~unsigned{kRemoteAtomicBit};
      out.max_dest_rd_atomic = static_cast<uint8_t>(std::min(a.responderResources, 255u));
      out.max_rd_atomic = static_cast<uint8_t>(std::min(a.initiatorDepth, 255u));
      out.min_rnr_timer = static_cast<uint8_t>(a.minRnrTimer);
      out.timeout = static_cast<uint8_t>(a.ackTimeout);
      out.retry_cnt = static_cast<uint8_t>(a.retryCount);
      out.rnr_retry = static_cast<uint8_t>(a.rnrRetry);
      const int error = lib_.ibv_modify_qp(qp->qp, &out, theirs);
      if (error != 0) return statusOf(error);
    }
    applyAttributes(qp->attributes, mask, a);
    qp->publish(state);
    if (state == kQpsInit) postReceives(*qp);
  }
  return Status::kSuccess;
}

Status VerbsHca::queryQp(Handle handle, QpAttributes* out) {
  QpObject* const qp = Tables::all().qps.find(handle);
  if (qp == nullptr) return Status::kInvalidHandle;
  std::lock_guard<std::mutex> lock(qp->mutex);
  *out = qp->attributes;
  out->state = out->currentState = qp->state.load();
  return Status::kSuccess;
}

Status VerbsHca::destroyQp(Handle handle) {
  Tables& all = Tables::all();
  QpObject* const qp = all.qps.find(handle);
  if (qp == nullptr) return Status::kInvalidHandle;
  ibv_qp* ended;
  {
    std::lock_guard<std::mutex> lock(qp->mutex);
    drainOf(*qp);
    ended = std::exchange(qp->qp, nullptr);
  }
  // This waits for the event thread, which may need the lock.
  const int error = ended != nullptr ? lib_.ibv_destroy_qp(ended) : 0;
  std::unique_lock<std::mutex> lock(qp->mutex);
  if (error != 0) {
    qp->qp = ended;
    return statusOf(error);
  }
  drainOf(*qp);
  {
    std::lock_guard<std::mutex> numbers(qp->device->qpns);
    const auto it = qp->device->byQpn.find(qp->qpn);
    if (it != qp->device->byQpn.end() && it->second == qp) qp->device->byQpn.erase(it);
  }
  CqObject *const sendCq = qp->sendCq, *const receiveCq = qp->receiveCq;
  if (qp->srq != nullptr) --qp->srq->users;
  {
    // Threads that fetch completions look up queue pairs with only the CQ's lock.
    std::unique_lock<std::mutex> first(sendCq->mutex), second;
    if (receiveCq != sendCq) {
      first.unlock();
      second = std::unique_lock<std::mutex>(receiveCq->mutex, std::defer_lock);
      std::lock(first, second);
    }
    all.qps.release(qp, handle);
  }
  lock.unlock();
  for (CqObject* cq : {sendCq, receiveCq}) {
    settleLater(*cq);
    --cq->users;
  }
  return Status::kSuccess;
}

Status VerbsHca::attachMulticast(Handle qp, const Gid& group, uint32_t) { return changeGroup(qp, group, true); }

Status VerbsHca::detachMulticast(Handle qp, const Gid& group, uint32_t) { return changeGroup(qp, group, false); }

Status VerbsHca::changeGroup(Handle handle, const Gid& group, bool attach) {
  QpObject* const qp = Tables::all().qps.find(handle);
  if (qp == nullptr) return Status::kInvalidHandle;
  if (qp->type != kQptUd) return Status::kInvalidDeviceRequest;
  if (qp->qp == nullptr) return attach ? Status::kDeviceRemoved : Status::kSuccess;
  alignas(8) uint8_t gid[16];
  std::memcpy(gid, group.raw.data(), sizeof gid);
  return statusOf(attach ? lib_.ibv_attach_mcast(qp->qp, gid, 0) : lib_.ibv_detach_mcast(qp->qp, gid, 0));
}

}  // namespace nd::verbs
