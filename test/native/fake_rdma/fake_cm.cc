// The functions of librdmacm that rdma_core_library.h names.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "fake_state.h"

#define FAKE extern "C" __attribute__((visibility("default")))

using namespace fake;

namespace {

State& s() { return State::get(); }

// Calls that fail return -1 and set errno.
int answer(const char* name) { return s().fails(name) ? -1 : 0; }

void keepAddress(const sockaddr* from, sockaddr_storage* to) {
  if (from != nullptr) std::memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
}

void enqueue(CmChannel& channel, CmEvent* event) {
  {
    std::lock_guard<std::mutex> hold(s().mutex);
    channel.events.push_back(event);
  }
  channel.bell.add();
}

CmId* makeId(rdma_event_channel* channel, void* context, int portSpace) {
  auto* const id = new CmId;
  static_cast<rdma_cm_id&>(*id) = rdma_cm_id{};
  id->channel = channel;
  id->context = context;
  id->portSpace = portSpace;
  s().count(kCmId, 1);
  std::lock_guard<std::mutex> hold(s().mutex);
  s().ids.insert(id);
  return id;
}

void drop(CmId* id) {
  std::lock_guard<std::mutex> hold(s().mutex);
  if (s().ids.erase(id) == 0) std::abort();  // the id is destroyed twice
  s().count(kCmId, -1);
  delete id;
}

}  // namespace

void State::cmEvent(uint32_t number, int type, int status, const rdma_conn_param& param) {
  auto* const event = new CmEvent;
  static_cast<rdma_cm_event&>(*event) = rdma_cm_event{};
  CmId* id = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex);
    id = idOf(number);
  }
  if (id == nullptr) std::abort();
  event->id = id;
  if (type == kCmConnectRequest) {
    event->listen_id = id;
    event->id = makeId(id->channel, nullptr, id->portSpace);
    event->id->source = id->source;
    event->id->verbs = id->verbs;
  }
  event->event = type;
  event->status = status;
  event->param.conn = param;
  const auto* data = static_cast<const uint8_t*>(param.private_data);
  if (data != nullptr) event->data.assign(data, data + param.private_data_len);
  event->param.conn.private_data = event->data.empty() ? nullptr : event->data.data();
  enqueue(static_cast<CmChannel&>(*id->channel), event);
}

FAKE rdma_event_channel* rdma_create_event_channel(void) {
  if (s().fails(__func__)) return nullptr;
  auto* const channel = new CmChannel;
  channel->fd = channel->bell.fd();
  s().count(kCmChannel, 1);
  return channel;
}

FAKE void rdma_destroy_event_channel(rdma_event_channel* which) {
  auto* const channel = static_cast<CmChannel*>(which);
  for (CmEvent* event : channel->events) {
    if (event->event == kCmConnectRequest) drop(static_cast<CmId*>(event->id));
    delete event;
  }
  delete channel;
  s().count(kCmChannel, -1);
}

FAKE int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** out, void* context, int portSpace) {
  if (s().fails(__func__)) return -1;
  *out = makeId(channel, context, portSpace);
  return 0;
}

FAKE int rdma_destroy_id(rdma_cm_id* which) {
  if (s().fails(__func__)) return -1;
  auto* const id = static_cast<CmId*>(which);
  std::vector<CmId*> children;
  {
    std::unique_lock<std::mutex> hold(s().mutex);
    auto& events = static_cast<CmChannel*>(id->channel)->events;
    const auto gone = [&](CmEvent* event) {
      if (event->id != id && event->listen_id != id) return false;
      if (event->id != id) children.push_back(static_cast<CmId*>(event->id));
      delete event;
      return true;
    };
    events.erase(std::remove_if(events.begin(), events.end(), gone), events.end());
    s().acknowledged.wait(hold, [&] { return id->events.taken == id->events.acknowledged; });
  }
  for (CmId* child : children) drop(child);
  drop(id);
  return 0;
}

FAKE int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  if (s().fails(__func__)) return -1;
  keepAddress(address, &id->source);
  id->verbs = s().context();
  auto& port = reinterpret_cast<sockaddr_in&>(id->source).sin_port;  // at the same offset in both families
  if (port == 0) port = htons(s().nextPort++);
  return 0;
}

FAKE int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int) {
  if (s().fails(__func__)) return -1;
  keepAddress(from, &id->source);
  keepAddress(to, &id->destination);
  id->verbs = s().context();
  return 0;
}

FAKE int rdma_resolve_route(rdma_cm_id*, int) { return answer(__func__); }
FAKE int rdma_establish(rdma_cm_id*) { return answer(__func__); }
FAKE int rdma_listen(rdma_cm_id*, int) { return answer(__func__); }
FAKE int rdma_notify(rdma_cm_id*, int) { return answer(__func__); }
FAKE int rdma_disconnect(rdma_cm_id*) { return answer(__func__); }
FAKE int rdma_set_option(rdma_cm_id*, int, int, void*, size_t) { return answer(__func__); }
FAKE int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) { return answer(__func__); }

FAKE int rdma_reject(rdma_cm_id*, const void* data, uint8_t length) {
  rdma_conn_param param{};
  param.private_data = data;
  param.private_data_len = length;
  s().keepParam(&param);
  return answer(__func__);
}

FAKE int rdma_connect(rdma_cm_id*, rdma_conn_param* param) {
  s().keepParam(param);
  return answer(__func__);
}

FAKE int rdma_accept(rdma_cm_id*, rdma_conn_param* param) {
  s().keepParam(param);
  return answer(__func__);
}

FAKE int rdma_get_cm_event(rdma_event_channel* which, rdma_cm_event** out) {
  auto* const channel = static_cast<CmChannel*>(which);
  while (channel->bell.take()) {
    std::lock_guard<std::mutex> hold(s().mutex);
    if (channel->events.empty()) continue;
    CmEvent* const event = channel->events.front();
    channel->events.pop_front();
    ++static_cast<CmId*>(event->id)->events.taken;
    if (event->listen_id != nullptr) ++static_cast<CmId*>(event->listen_id)->events.taken;
    s().count(kCmEvent, 1);
    *out = event;
    return 0;
  }
  return -1;
}

FAKE int rdma_ack_cm_event(rdma_cm_event* which) {
  auto* const event = static_cast<CmEvent*>(which);
  std::lock_guard<std::mutex> hold(s().mutex);
  ++static_cast<CmId*>(event->id)->events.acknowledged;
  if (event->listen_id != nullptr) ++static_cast<CmId*>(event->listen_id)->events.acknowledged;
  s().count(kCmEvent, -1);
  s().acknowledged.notify_all();
  delete event;
  return 0;
}

FAKE int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* out, int* mask) {
  if (s().fails(__func__)) return -1;
  const int state = out->qp_state;
  *mask = kQpState_ | (state == 1   ? kQpPkeyIndex | kQpPort | kQpAccess
                       : state == 2 ? kQpAv | kQpPathMtu | kQpDestQpn | kQpRqPsn | kQpMaxDestRdAtomic | kQpMinRnrTimer
                                    : kQpSqPsn | kQpTimeout | kQpRetryCnt | kQpRnrRetry | kQpMaxRdAtomic);
  out->port_num = 1;
  out->path_mtu = 3;
  out->dest_qp_num = 0x77;
  out->rq_psn = 0x1234;
  out->sq_psn = 0x4321;
  out->timeout = 14;
  out->retry_cnt = 7;
  out->rnr_retry = 7;
  out->ah_attr.hop_limit = 64;
  out->ah_attr.is_global = 1;
  (void)id;
  return 0;
}
