// The functions of libibverbs that rdma_core_library.h names.
#include <algorithm>

#include "fake_state.h"

#define FAKE extern "C" __attribute__((visibility("default")))

using namespace fake;

namespace {

State& s() { return State::get(); }
Context& of(ibv_context* context) { return *static_cast<Context*>(context); }

// An object of a context, which is created and destroyed once.
template <typename T, typename B>
T* made(std::set<B*>& all, T* object, Kind kind) {
  std::lock_guard<std::mutex> hold(s().mutex);
  all.insert(object);
  s().count(kind, 1);
  return object;
}

template <typename B>
int ended(std::set<B*>& all, B* object, Kind kind) {
  {
    std::lock_guard<std::mutex> hold(s().mutex);
    if (all.erase(object) == 0) std::abort();  // the object is destroyed twice
    s().count(kind, -1);
  }
  delete object;
  return 0;
}

uint32_t powerFrom(uint32_t least) {
  uint32_t n = 1;
  while (n < least) n *= 2;
  return n;
}

// Events of an object that is being destroyed are dropped unless they were fetched.
void dropAsyncs(Context& context, const void* element) {
  std::lock_guard<std::mutex> hold(s().mutex);
  auto& events = context.events;
  const auto gone = [&](const ibv_async_event& e) {
    return e.event_type <= kEventLastWqe && static_cast<void*>(e.element.qp) == element;
  };
  events.erase(std::remove_if(events.begin(), events.end(), gone), events.end());
}

template <typename B>
void orphans(std::set<B*>& all, Kind kind, const char* name) {
  for (B* one : all) {
    s().orphan(name);
    s().count(kind, -1);
    delete one;
  }
  all.clear();
}

}  // namespace

FAKE ibv_device** ibv_get_device_list(int* count) {
  if (s().fails(__func__)) return nullptr;
  s().device.transport_type = s().iwarp ? kTransportIwarp : 0;
  s().device.node_type = s().iwarp ? kNodeRnic : 1;
  s().count(kList, 1);
  *count = 1;
  return new ibv_device* [2] { &s().device, nullptr };
}

FAKE void ibv_free_device_list(ibv_device** list) {
  s().count(kList, -1);
  delete[] list;
}

FAKE ibv_context* ibv_open_device(ibv_device* device) {
  if (s().fails(__func__)) return nullptr;
  auto* const context = new Context;
  static_cast<ibv_context&>(*context) = ibv_context{};
  context->device = device;
  context->async_fd = context->bell.fd();
  context->cmd_fd = context->commands.fd();
  fillOps(&context->ops);
  s().count(kContext, 1);
  s().opened(context);
  std::lock_guard<std::mutex> hold(s().mutex);
  s().contexts.insert(context);
  return context;
}

void fake::endAll(Context& context) {
  orphans(context.qps, kQp, "QP");
  orphans(context.srqs, kSrq, "SRQ");
  orphans(context.cqs, kCq, "CQ");
  orphans(context.ahs, kAh, "AH");
  orphans(context.mws, kMw, "MW");
  orphans(context.mrs, kMr, "MR");
  orphans(context.pds, kPd, "PD");
  orphans(context.channels, kCompletionChannel, "completion channel");
}

FAKE int ibv_close_device(ibv_context* closing) {
  if (s().fails(__func__)) return errno;
  Context& context = of(closing);
  std::lock_guard<std::mutex> hold(s().mutex);
  endAll(context);
  s().contexts.erase(&context);
  s().count(kContext, -1);
  delete &context;
  return 0;
}

FAKE int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  if (s().fails(__func__)) return errno;
  *out = s().attributes;
  return 0;
}

FAKE int ibv_query_port(ibv_context*, uint8_t, ibv_port_attr* out) {
  if (s().fails(__func__)) return errno;
  *out = ibv_port_attr{};
  out->state = 4;
  out->max_mtu = 5;
  out->active_mtu = 3;
  out->gid_tbl_len = 16;
  out->max_msg_sz = 1u << 30;
  out->pkey_tbl_len = static_cast<uint16_t>(s().pkeys.size());
  out->active_width = 1;
  out->active_speed = 4;
  out->phys_state = 5;
  out->link_layer = kLinkEthernet;
  return 0;
}

FAKE int ibv_query_pkey(ibv_context*, uint8_t, int index, uint16_t* out) {
  if (s().fails(__func__)) return -1;
  *out = __builtin_bswap16(s().pkeys[static_cast<size_t>(index)]);
  return 0;
}

FAKE ssize_t _ibv_query_gid_table(ibv_context*, ibv_gid_entry* out, size_t most, uint32_t, size_t size) {
  if (s().fails(__func__)) return -errno;
  if (size != sizeof(ibv_gid_entry)) return -EINVAL;
  const size_t count = std::min(most, s().gids.size());
  std::copy_n(s().gids.begin(), count, out);
  return static_cast<ssize_t>(count);
}

// ── Protection domains and memory

FAKE ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (s().fails(__func__)) return nullptr;
  return made(of(context).pds, new ibv_pd{context}, kPd);
}

FAKE int ibv_dealloc_pd(ibv_pd* pd) {
  if (s().fails(__func__)) return errno;
  return ended(of(pd->context).pds, pd, kPd);
}

FAKE ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (s().fails(__func__)) return nullptr;
  if ((access & (kRemoteWriteBit | kRemoteAtomicBit)) != 0 && (access & kAccessLocalWriteBit) == 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = of(pd->context).nextKey++ << 8;
  mr->rkey = mr->lkey | 1;
  return made(of(pd->context).mrs, mr, kMr);
}

FAKE int ibv_dereg_mr(ibv_mr* mr) {
  if (s().fails(__func__)) return errno;
  return ended(of(mr->context).mrs, mr, kMr);
}

FAKE ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr*) {
  if (s().fails(__func__)) return nullptr;
  return made(of(pd->context).ahs, new ibv_ah{pd->context}, kAh);
}

FAKE int ibv_destroy_ah(ibv_ah* ah) {
  if (s().fails(__func__)) return errno;
  return ended(of(ah->context).ahs, ah, kAh);
}

// ── Completions

FAKE ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (s().fails(__func__)) return nullptr;
  auto* const channel = new Channel;
  static_cast<ibv_comp_channel&>(*channel) = {context, channel->bell.fd(), 0};
  return made(of(context).channels, channel, kCompletionChannel);
}

FAKE int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (s().fails(__func__)) return errno;
  return ended(of(channel->context).channels, static_cast<Channel*>(channel), kCompletionChannel);
}

FAKE ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel, int) {
  if (s().fails(__func__)) return nullptr;
  auto* const cq = new CompletionQueue;
  const uint32_t size = powerFrom(static_cast<uint32_t>(entries));
  static_cast<ibv_cq&>(*cq) = {context, channel, user, 0, entries};
  cq->ring.resize(size);
  cq->mask = size - 1;
  return made(of(context).cqs, cq, kCq);
}

FAKE int ibv_resize_cq(ibv_cq* which, int entries) {
  if (s().fails(__func__)) return errno;
  if (!s().canResize) return EOPNOTSUPP;
  auto& cq = static_cast<CompletionQueue&>(*which);
  std::lock_guard<SpinLock> hold(cq.lock);
  const uint32_t size = powerFrom(static_cast<uint32_t>(entries));
  if (cq.head - cq.tail > size) return EINVAL;
  std::vector<ibv_wc> ring(size);
  for (uint32_t at = cq.tail; at != cq.head; ++at) ring[at & (size - 1)] = cq.ring[at & cq.mask];
  cq.ring.swap(ring);
  cq.mask = size - 1;
  cq.cqe = entries;
  return 0;
}

FAKE int ibv_destroy_cq(ibv_cq* which) {
  if (s().fails(__func__)) return errno;
  auto& cq = static_cast<CompletionQueue&>(*which);
  {
    std::lock_guard<SpinLock> hold(cq.lock);
    cq.arm = CompletionQueue::Arm::kNone;
  }
  if (cq.channel != nullptr) {
    auto* const channel = static_cast<Channel*>(cq.channel);
    std::lock_guard<std::mutex> hold(s().mutex);
    auto& events = channel->events;
    events.erase(std::remove(events.begin(), events.end(), &cq), events.end());
  }
  dropAsyncs(of(cq.ibv_cq::context), static_cast<ibv_cq*>(&cq));
  s().await(cq.events);
  s().await(cq.asyncs);
  return ended(of(which->context).cqs, &cq, kCq);
}

FAKE int ibv_get_cq_event(ibv_comp_channel* which, ibv_cq** out, void** user) {
  auto* const channel = static_cast<Channel*>(which);
  for (;;) {
    s().at(Moment::kBeforeEvent, nullptr);
    if (!channel->bell.take()) return -1;
    CompletionQueue* cq = nullptr;
    {
      std::lock_guard<std::mutex> hold(s().mutex);
      if (channel->events.empty()) continue;  // the event was for a CQ that was destroyed
      cq = channel->events.front();
      channel->events.pop_front();
      ++cq->events.taken;
      s().count(kCqEvent, 1);
    }
    s().at(Moment::kAfterEvent, cq);
    *out = cq;
    *user = cq->cq_context;
    return 0;
  }
}

FAKE void ibv_ack_cq_events(ibv_cq* which, unsigned count) {
  std::lock_guard<std::mutex> hold(s().mutex);
  static_cast<CompletionQueue*>(which)->events.acknowledged += count;
  s().count(kCqEvent, -static_cast<int>(count));
  s().acknowledged.notify_all();
}

// ── Asynchronous events

namespace {
Acknowledged* asyncsOf(const ibv_async_event& event) {
  const int type = event.event_type;
  if (type == kEventCqErr) return &static_cast<CompletionQueue*>(event.element.cq)->asyncs;
  if (type == kEventSrqErr || type == kEventSrqLimit) return &static_cast<SharedQueue*>(event.element.srq)->asyncs;
  if (type <= kEventSqDrained || type == kEventLastWqe) return &static_cast<QueuePair*>(event.element.qp)->asyncs;
  return nullptr;
}
}  // namespace

FAKE int ibv_get_async_event(ibv_context* which, ibv_async_event* out) {
  Context& context = of(which);
  while (context.bell.take()) {
    std::lock_guard<std::mutex> hold(s().mutex);
    if (context.events.empty()) continue;
    *out = context.events.front();
    context.events.pop_front();
    if (Acknowledged* asyncs = asyncsOf(*out)) ++asyncs->taken;
    s().count(kAsyncEvent, 1);
    return 0;
  }
  return -1;
}

FAKE void ibv_ack_async_event(ibv_async_event* event) {
  std::lock_guard<std::mutex> hold(s().mutex);
  if (Acknowledged* asyncs = asyncsOf(*event)) ++asyncs->acknowledged;
  s().count(kAsyncEvent, -1);
  s().acknowledged.notify_all();
}

// ── Shared receive queues

FAKE ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (s().fails(__func__)) return nullptr;
  auto* const srq = new SharedQueue;
  static_cast<ibv_srq&>(*srq) = {pd->context, attributes->srq_context};
  srq->mostRequests = attributes->attr.max_wr;
  return made(of(pd->context).srqs, srq, kSrq);
}

FAKE int ibv_modify_srq(ibv_srq* which, ibv_srq_attr* attributes, int mask) {
  if (s().fails(__func__)) return errno;
  auto& srq = static_cast<SharedQueue&>(*which);
  std::lock_guard<SpinLock> hold(srq.lock);
  if ((mask & kSrqMaxWr) != 0) srq.mostRequests = attributes->max_wr;
  if ((mask & kSrqLimit) != 0) srq.limit = attributes->srq_limit;
  return 0;
}

FAKE int ibv_query_srq(ibv_srq* which, ibv_srq_attr* out) {
  if (s().fails(__func__)) return errno;
  auto& srq = static_cast<SharedQueue&>(*which);
  std::lock_guard<SpinLock> hold(srq.lock);
  *out = {srq.mostRequests, 0, srq.limit};
  return 0;
}

FAKE int ibv_destroy_srq(ibv_srq* which) {
  if (s().fails(__func__)) return errno;
  auto& srq = static_cast<SharedQueue&>(*which);
  dropAsyncs(of(srq.ibv_srq::context), static_cast<ibv_srq*>(&srq));
  s().await(srq.asyncs);
  return ended(of(which->context).srqs, &srq, kSrq);
}

// ── Queue pairs

FAKE ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* create) {
  if (s().fails(__func__)) return nullptr;
  const ibv_qp_cap& cap = create->cap;
  const auto most = static_cast<uint32_t>(s().attributes.max_qp_wr),
             sges = static_cast<uint32_t>(s().attributes.max_sge);
  if (cap.max_inline_data > s().mostInline || cap.max_send_wr > most || cap.max_recv_wr > most ||
      cap.max_send_sge > sges || cap.max_recv_sge > sges) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const qp = new QueuePair;
  static_cast<ibv_qp&>(*qp) = {pd->context,     create->qp_context, pd, create->send_cq,
                               create->recv_cq, create->srq,        0,  0};
  qp->type = create->qp_type;
  qp->signalAll = create->sq_sig_all != 0;
  qp->cap = cap;
  {
    std::lock_guard<std::mutex> hold(s().mutex);
    qp->qp_num = of(pd->context).nextQpn++;
  }
  return made(of(pd->context).qps, qp, kQp);
}

FAKE int ibv_modify_qp(ibv_qp* which, ibv_qp_attr* attributes, int mask) {
  if (s().fails(__func__)) return errno;
  auto& qp = static_cast<QueuePair&>(*which);
  std::lock_guard<SpinLock> hold(qp.lock);
  qp.attributes = *attributes;
  if ((mask & kQpState_) == 0) return 0;
  qp.state = attributes->qp_state;
  if (qp.state == 6) {
    const int polls = s().flushAfterPolls.load();
    if (polls == 0) s().flush(qp);
    else qp.flushIn = polls;
  }
  if (qp.state != 0) return 0;
  qp.sends.clear();
  qp.receives.clear();
  qp.flushIn = -1;
  return 0;
}

FAKE int ibv_destroy_qp(ibv_qp* which) {
  if (s().fails(__func__)) return errno;
  auto& qp = static_cast<QueuePair&>(*which);
  dropAsyncs(of(qp.ibv_qp::context), static_cast<ibv_qp*>(&qp));
  s().await(qp.asyncs);
  for (ibv_cq* one : {qp.send_cq, qp.recv_cq}) {
    // The completions of the queue pair are dropped with it.
    auto& cq = static_cast<CompletionQueue&>(*one);
    std::lock_guard<SpinLock> hold(cq.lock);
    uint32_t to = cq.tail;
    for (uint32_t at = cq.tail; at != cq.head; ++at)
      if (cq.ring[at & cq.mask].qp_num != qp.qp_num) cq.ring[to++ & cq.mask] = cq.ring[at & cq.mask];
    cq.head = to;
  }
  s().count(kGroup, -static_cast<int>(qp.groups.size()));
  std::lock_guard<std::shared_mutex> alone(s().ends);
  return ended(of(which->context).qps, &qp, kQp);
}

FAKE int ibv_attach_mcast(ibv_qp* which, const void* gid, uint16_t) {
  if (s().fails(__func__)) return errno;
  static_cast<QueuePair*>(which)->groups.emplace(static_cast<const char*>(gid), 16);
  s().count(kGroup, 1);
  return 0;
}

FAKE int ibv_detach_mcast(ibv_qp* which, const void* gid, uint16_t) {
  if (s().fails(__func__)) return errno;
  auto& groups = static_cast<QueuePair*>(which)->groups;
  const auto it = groups.find(std::string(static_cast<const char*>(gid), 16));
  if (it == groups.end()) return EINVAL;
  groups.erase(it);
  s().count(kGroup, -1);
  return 0;
}
