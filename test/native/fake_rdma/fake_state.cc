#include "fake_state.h"

#include <algorithm>

namespace fake {

namespace {
const char* const kKindNames[kKinds] = {"device list", "context", "PD",    "MR",       "MW",
                                        "CQ",          "SRQ",     "QP",    "AH",       "completion channel",
                                        "CM channel",  "CM id",   "group", "CQ event", "asynchronous event",
                                        "CM event"};

uint32_t contextOf(const void* pointer) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)); }
}  // namespace

State& State::get() {
  static State* const state = new State;
  return *state;
}

State::State() { setDefaults(); }

void State::setDefaults() {
  std::memset(&device, 0, sizeof device);
  device.node_type = 1;
  std::strcpy(device.name, "fake0");
  std::strcpy(device.dev_name, "uverbs0");
  attributes = ibv_device_attr{};
  std::strcpy(attributes.fw_ver, "1.2.3");
  attributes.node_guid = attributes.sys_image_guid = __builtin_bswap64(0x0102030405060708);
  attributes.max_mr_size = UINT64_MAX;
  attributes.vendor_id = 0x1234;
  attributes.device_cap_flags = kCapMemWindow2B;
  attributes.max_qp = attributes.max_cq = attributes.max_mr = attributes.max_pd = attributes.max_mw =
      attributes.max_ah = attributes.max_srq = 1000;
  attributes.max_qp_wr = attributes.max_srq_wr = 4096;
  attributes.max_sge = attributes.max_srq_sge = 16;
  attributes.max_cqe = 32767;
  attributes.max_qp_rd_atom = attributes.max_qp_init_rd_atom = 16;
  attributes.atomic_cap = 1;
  attributes.max_mcast_grp = attributes.max_mcast_qp_attach = attributes.max_total_mcast_qp_attach = 64;
  attributes.max_pkeys = 1;
  attributes.phys_port_cnt = 1;
  iwarp = takesNewest = false;
  echo = std::getenv("FAKE_RDMA_ECHO") != nullptr;
  hasWindows = canResize = true;
  mostInline = 256;
  flushAfterPolls = 0;
  hasMoment = false;
  failWith = ENOMEM;
  ibv_gid_entry entry{};
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1};
  std::memcpy(entry.gid, gid, sizeof gid);
  entry.port_num = 1;
  entry.gid_index = 3;
  entry.gid_type = kGidRoceV2;
  gids = {entry};
  pkeys = {0xFFFF};
  neverFail();
}

bool State::fails(const char* name) {
  const long number = calls_.fetch_add(failName.empty() || failName == name ? 1 : 0);
  if (failAt.load() < 0 || number != failAt.load() || (!failName.empty() && failName != name)) return false;
  failed_ = name;
  errno = failWith;
  return true;
}

std::string State::failed() const { return failed_; }

void State::neverFail() {
  failAt = -1;
  failName.clear();
  failed_.clear();
  calls_ = 0;
}

std::string State::left() const {
  std::string out = orphans_.empty() ? "" : "at the close of its device: " + orphans_ + "; ";
  for (int kind = 0; kind < kKinds; ++kind)
    if (alive_[kind] != 0) out += std::to_string(alive_[kind].load()) + " " + kKindNames[kind] + "; ";
  return out;
}

void State::reset() {
  // A test of failing cleanup calls has left these objects behind.
  for (Context* context : contexts) {
    endAll(*context);
    delete context;
  }
  for (CmId* id : ids) delete id;
  contexts.clear();
  ids.clear();
  orphans_.clear();
  sizes_.clear();
  for (auto& count : alive_) count = 0;
  setDefaults();
}

void State::keepParam(const rdma_conn_param* param) {
  if (param == nullptr) return;
  lastParam_ = *param;
  const auto* data = static_cast<const uint8_t*>(param->private_data);
  lastData_.assign(data, data + (data != nullptr ? param->private_data_len : 0));
}

void State::noteSize(int size) {
  std::lock_guard<std::mutex> hold(mutex);
  sizes_.push_back(size);
}

std::vector<int> State::takePostSizes() {
  std::lock_guard<std::mutex> hold(mutex);
  return std::exchange(sizes_, {});
}

QueuePair* State::find(uint32_t qpn) {
  std::lock_guard<std::mutex> hold(mutex);
  for (Context* context : contexts)
    for (QueuePair* qp : context->qps)
      if (qp->qp_num == qpn) return qp;
  return nullptr;
}

CompletionQueue* State::cqOf(uint32_t number) {
  std::lock_guard<std::mutex> hold(mutex);
  for (Context* context : contexts)
    for (CompletionQueue* cq : context->cqs)
      if (contextOf(cq->cq_context) == number) return cq;
  return nullptr;
}

SharedQueue* State::srqOf(uint32_t number) {
  std::lock_guard<std::mutex> hold(mutex);
  for (Context* context : contexts)
    for (SharedQueue* srq : context->srqs)
      if (contextOf(srq->srq_context) == number) return srq;
  return nullptr;
}

CmId* State::idOf(uint32_t number) {
  for (CmId* id : ids)
    if (contextOf(id->context) == number) return id;
  return nullptr;
}

std::vector<Send> State::takeSends(uint32_t qpn) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return {};
  std::lock_guard<SpinLock> hold(qp->lock);
  return std::exchange(qp->sendLog, {});
}

std::vector<Receive> State::takeReceives(uint32_t qpn) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return {};
  std::lock_guard<SpinLock> hold(qp->lock);
  return std::exchange(qp->receiveLog, {});
}

std::vector<Receive> State::takeShared(uint32_t number) {
  SharedQueue* const srq = srqOf(number);
  if (srq == nullptr) return {};
  std::lock_guard<SpinLock> hold(srq->lock);
  return std::exchange(srq->log, {});
}

int State::state(uint32_t qpn) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return -1;
  std::lock_guard<SpinLock> hold(qp->lock);
  return qp->state;
}

ibv_qp_attr State::attributesOf(uint32_t qpn) {
  QueuePair* const qp = find(qpn);
  return qp != nullptr ? qp->attributes : ibv_qp_attr{};
}

void State::push(CompletionQueue& cq, const ibv_wc& wc, bool solicited) {
  bool ring = false;
  {
    std::lock_guard<SpinLock> hold(cq.lock);
    if (cq.head - cq.tail > cq.mask) return;  // the queue has overrun
    cq.ring[cq.head & cq.mask] = wc;
    ++cq.head;
    ring = cq.arm == CompletionQueue::Arm::kAny ||
           (cq.arm == CompletionQueue::Arm::kSolicited && (solicited || wc.status != 0));
    if (ring) cq.arm = CompletionQueue::Arm::kNone;
  }
  if (!ring || cq.channel == nullptr) return;
  auto* const channel = static_cast<Channel*>(cq.channel);
  {
    std::lock_guard<std::mutex> hold(mutex);
    channel->events.push_back(&cq);
  }
  channel->bell.add();
}

namespace {
ibv_wc flushed(const QueuePair& qp, uint64_t id) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.status = kIbFlushed;
  wc.opcode = 0x5A5A;  // the opcode is not valid in an error
  wc.qp_num = qp.qp_num;
  return wc;
}
}  // namespace

void State::flush(QueuePair& qp) {
  while (!qp.sends.empty()) {
    push(static_cast<CompletionQueue&>(*qp.send_cq), flushed(qp, qp.sends.front().id), false);
    qp.sends.pop_front();
  }
  while (!qp.receives.empty()) {
    push(static_cast<CompletionQueue&>(*qp.recv_cq), flushed(qp, qp.receives.front()), false);
    qp.receives.pop_front();
  }
  qp.flushIn = -1;
}

void State::completeSends(uint32_t qpn, int count, int status) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return;
  std::lock_guard<SpinLock> hold(qp->lock);
  for (; count > 0 && !qp->sends.empty(); --count) {
    const Outstanding one = qp->sends.front();
    qp->sends.pop_front();
    ibv_wc wc = flushed(*qp, one.id);
    wc.status = status;
    if (status == 0) wc.opcode = one.opcode;
    wc.byte_len = 77;
    wc.vendor_err = status != 0 ? 0xBAD : 0;
    if (one.signaled || status != 0) push(static_cast<CompletionQueue&>(*qp->send_cq), wc, false);
  }
  if (status == 0) return;
  qp->state = 6;
  flush(*qp);
}

bool State::completeReceive(uint32_t qpn, ibv_wc wc) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return false;
  std::lock_guard<SpinLock> hold(qp->lock);
  auto* const srq = static_cast<SharedQueue*>(qp->srq);
  if (srq != nullptr) {
    std::lock_guard<SpinLock> shared(srq->lock);
    if (srq->receives.empty()) return false;
    wc.wr_id = takesNewest ? srq->receives.back() : srq->receives.front();
    if (takesNewest) srq->receives.pop_back();
    else srq->receives.pop_front();
  } else {
    if (qp->receives.empty()) return false;
    wc.wr_id = qp->receives.front();
    qp->receives.pop_front();
  }
  wc.qp_num = qpn;
  push(static_cast<CompletionQueue&>(*qp->recv_cq), wc, (wc.slid & 0x8000) != 0);
  if (wc.status != 0) {
    qp->state = 6;
    flush(*qp);
  }
  return true;
}

int State::queued(uint32_t number) {
  CompletionQueue* const cq = cqOf(number);
  if (cq == nullptr) return -1;
  std::lock_guard<SpinLock> hold(cq->lock);
  return static_cast<int>(cq->head - cq->tail);
}

void State::async(ibv_context* at, const ibv_async_event& event) {
  auto* const context = static_cast<Context*>(at);
  {
    std::lock_guard<std::mutex> hold(mutex);
    context->events.push_back(event);
  }
  context->bell.add();
}

void State::qpEvent(uint32_t qpn, int type) {
  QueuePair* const qp = find(qpn);
  if (qp == nullptr) return;
  ibv_async_event event{};
  event.element.qp = qp;
  event.event_type = type;
  async(qp->ibv_qp::context, event);
}

void State::srqEvent(uint32_t number, int type) {
  SharedQueue* const srq = srqOf(number);
  if (srq == nullptr) return;
  ibv_async_event event{};
  event.element.srq = srq;
  event.event_type = type;
  async(srq->ibv_srq::context, event);
}

void State::overrun(uint32_t number) {
  CompletionQueue* const cq = cqOf(number);
  if (cq == nullptr) return;
  ibv_async_event event{};
  event.element.cq = cq;
  event.event_type = kEventCqErr;
  async(cq->ibv_cq::context, event);
}

void State::portEvent(int type) {
  ibv_async_event event{};
  event.element.port_num = 1;
  event.event_type = type;
  async(last_, event);
}

void State::await(Acknowledged& events) {
  std::unique_lock<std::mutex> hold(mutex);
  acknowledged.wait(hold, [&] { return events.taken == events.acknowledged; });
}

}  // namespace fake

extern "C" __attribute__((visibility("default"))) fake::Fake* fake_rdma() { return &fake::State::get(); }
