// Connections through librdmacm. It does not own the queue pairs. It gets their numbers, and this package changes their
// states.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/verbs_hca.h"

namespace nd::verbs {

namespace {

socklen_t fillAddress(const CmAddress& from, sockaddr_storage* out) {
  std::memset(out, 0, sizeof *out);
  if (from.gid.isV4()) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(from.port);
    std::memcpy(&v4->sin_addr, from.gid.raw.data() + 12, 4);
    return sizeof *v4;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(out);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(from.port);
  v6->sin6_scope_id = from.scopeId;
  std::memcpy(&v6->sin6_addr, from.gid.raw.data(), 16);
  return sizeof *v6;
}

CmAddress addressOf(const sockaddr_storage& from) {
  CmAddress out;
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    out.gid.raw[10] = out.gid.raw[11] = 0xFF;
    std::memcpy(out.gid.raw.data() + 12, &v4.sin_addr, 4);
    out.port = ntohs(v4.sin_port);
  } else if (from.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(out.gid.raw.data(), &v6.sin6_addr, 16);
    out.port = ntohs(v6.sin6_port);
    out.scopeId = v6.sin6_scope_id;
  }
  return out;
}

// librdmacm's calls return -1 and set errno.
Status done(int result) { return result == 0 ? Status::kSuccess : statusOf(errno); }

rdma_conn_param paramOf(const CmParameters& from) {
  rdma_conn_param out{};
  out.private_data = from.length > 0 ? from.data : nullptr;
  out.private_data_len = static_cast<uint8_t>(std::min<size_t>(from.length, 255));
  out.responder_resources = from.responderResources;
  out.initiator_depth = from.initiatorDepth;
  out.flow_control = 1;
  out.retry_count = from.retryCount;
  out.rnr_retry_count = from.rnrRetryCount;
  out.srq = from.srq ? 1 : 0;
  out.qp_num = from.qpn;
  return out;
}

Handle handleOf(const rdma_cm_id* id) { return static_cast<Handle>(reinterpret_cast<uintptr_t>(id->context)); }

}  // namespace

rdma_cm_id* VerbsHca::idOf(Handle handle) const {
  const CmObject* const object = Tables::all().cms.find(handle);
  return object != nullptr ? object->id : nullptr;
}

Status VerbsHca::cmCreate(bool datagrams, Handle* out) {
  Handle handle;
  CmObject* const object = Tables::all().cms.take(&handle);
  if (object == nullptr) return Status::kInsufficientResources;
  rdma_cm_id* id = nullptr;
  const int failed = lib_.rdma_create_id(cm_, &id, reinterpret_cast<void*>(uintptr_t{handle}),
                                         datagrams ? kPortSpaceUdp : kPortSpaceTcp);
  if (failed != 0) {
    const Status status = statusOf(errno);
    Tables::all().cms.release(object, handle);
    return status;
  }
  object->id = id;
  object->handle = *out = handle;
  std::lock_guard<std::mutex> lock(idMutex_);
  cmIds_.push_back(handle);
  return Status::kSuccess;
}

Status VerbsHca::cmDestroy(Handle handle) {
  CmObject* const object = Tables::all().cms.find(handle);
  if (object == nullptr) return Status::kInvalidHandle;
  rdma_cm_id* const id = object->id;
  {
    std::lock_guard<std::mutex> lock(idMutex_);
    const auto it = std::find(cmIds_.begin(), cmIds_.end(), handle);
    if (it == cmIds_.end()) return Status::kInvalidHandle;  // belongs to another kernel
    *it = cmIds_.back();
    cmIds_.pop_back();
  }
  lib_.rdma_destroy_id(id);
  Tables::all().cms.release(object, handle);
  return Status::kSuccess;
}

Status VerbsHca::cmBind(Handle handle, const CmAddress& local, bool shared, uint16_t* port) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  int yes = 1;
  if (shared) lib_.rdma_set_option(id, kOptionId, kOptionReuseAddress, &yes, sizeof yes);
  sockaddr_storage address;
  fillAddress(local, &address);
  // All IPv6 addresses and no others: see rdma-port-claims.ts.
  if (local.gid == Gid()) lib_.rdma_set_option(id, kOptionId, kOptionOneFamily, &yes, sizeof yes);
  const Status status = done(lib_.rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)));
  if (status == Status::kSuccess) *port = addressOf(id->source).port;
  return status;
}

Status VerbsHca::cmResolve(Handle handle, const CmAddress& local, const CmAddress& peer, uint32_t timeoutMs) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  sockaddr_storage from, to;
  fillAddress(local, &from);
  fillAddress(peer, &to);
  int yes = 1;
  lib_.rdma_set_option(id, kOptionId, kOptionReuseAddress, &yes, sizeof yes);
  const int timeout = static_cast<int>(timeoutMs);
  return done(
      lib_.rdma_resolve_addr(id, reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to), timeout));
}

Status VerbsHca::cmResolveRoute(Handle handle, uint32_t timeoutMs) {
  rdma_cm_id* const id = idOf(handle);
  return id != nullptr ? done(lib_.rdma_resolve_route(id, static_cast<int>(timeoutMs))) : Status::kInvalidHandle;
}

Status VerbsHca::cmSetOptions(Handle handle, uint32_t ackTimeout, uint32_t trafficClass) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  auto timeout = static_cast<uint8_t>(ackTimeout), tos = static_cast<uint8_t>(trafficClass);
  // Older kernels lack these options, and the connection works without them.
  if (ackTimeout > 0) lib_.rdma_set_option(id, kOptionId, kOptionAckTimeout, &timeout, sizeof timeout);
  if (trafficClass > 0) lib_.rdma_set_option(id, kOptionId, kOptionTos, &tos, sizeof tos);
  return Status::kSuccess;
}

Status VerbsHca::cmListen(Handle handle, uint32_t backlog) {
  rdma_cm_id* const id = idOf(handle);
  return id != nullptr ? done(lib_.rdma_listen(id, static_cast<int>(std::min(backlog, 1024u))))
                       : Status::kInvalidHandle;
}

Status VerbsHca::cmConnect(Handle handle, const CmParameters& parameters) {
  rdma_cm_id* const id = idOf(handle);
  rdma_conn_param param = paramOf(parameters);
  return id != nullptr ? done(lib_.rdma_connect(id, &param)) : Status::kInvalidHandle;
}

Status VerbsHca::cmEstablish(Handle handle) {
  rdma_cm_id* const id = idOf(handle);
  return id != nullptr ? done(lib_.rdma_establish(id)) : Status::kInvalidHandle;
}

Status VerbsHca::cmAccept(Handle handle, const CmParameters& parameters) {
  rdma_cm_id* const id = idOf(handle);
  rdma_conn_param param = paramOf(parameters);
  return id != nullptr ? done(lib_.rdma_accept(id, &param)) : Status::kInvalidHandle;
}

Status VerbsHca::cmReject(Handle handle, const PrivateData& from) {
  rdma_cm_id* const id = idOf(handle);
  const auto length = static_cast<uint8_t>(std::min<size_t>(from.length, 255));
  return id != nullptr ? done(lib_.rdma_reject(id, from.data, length)) : Status::kInvalidHandle;
}

Status VerbsHca::cmDisconnect(Handle handle) {
  rdma_cm_id* const id = idOf(handle);
  return id != nullptr ? done(lib_.rdma_disconnect(id)) : Status::kInvalidHandle;
}

Status VerbsHca::cmNotify(Handle handle) {
  rdma_cm_id* const id = idOf(handle);
  return id != nullptr ? done(lib_.rdma_notify(id, kEventCommEst)) : Status::kInvalidHandle;
}

Status VerbsHca::cmJoin(Handle handle, const CmAddress& group) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  sockaddr_storage address;
  fillAddress(group, &address);
  return done(lib_.rdma_join_multicast(id, reinterpret_cast<sockaddr*>(&address), nullptr));
}

Status VerbsHca::cmCloseRemoved(Handle handle) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  if (id->verbs == nullptr) return Status::kSuccess;
  // The descriptor numbers stay allocated, because librdmacm closes them in the end.
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.valid()) return Status::kInsufficientResources;
  for (const int fd : {id->verbs->cmd_fd, id->verbs->async_fd})
    if (dup3(nothing.get(), fd, O_CLOEXEC) < 0) return statusOf(errno);
  return Status::kSuccess;
}

Status VerbsHca::cmAddresses(Handle handle, CmAddress* local, CmAddress* peer, Owner* number) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  *local = addressOf(id->source);
  *peer = addressOf(id->destination);
  *number = 0;
  for (Device* device : devices_)
    if (device->context != nullptr && id->verbs != nullptr && device->name == id->verbs->device->name)
      *number = device->number;
  return Status::kSuccess;
}

Status VerbsHca::cmAttributes(Handle handle, CmAttributes* out) {
  rdma_cm_id* const id = idOf(handle);
  if (id == nullptr) return Status::kInvalidHandle;
  ibv_qp_attr rtr{}, rts{};
  int mask = 0;
  rtr.qp_state = static_cast<int>(abi::kQpsRtr);
  rts.qp_state = static_cast<int>(abi::kQpsRts);
  if (lib_.rdma_init_qp_attr(id, &rtr, &mask) != 0 || lib_.rdma_init_qp_attr(id, &rts, &mask) != 0)
    return statusOf(errno);
  out->pathMtu = rtr.path_mtu >= 1 && rtr.path_mtu <= 5 ? static_cast<uint32_t>(rtr.path_mtu) : 0;
  out->destinationQpn = rtr.dest_qp_num;
  out->receivePsn = rtr.rq_psn;
  out->sendPsn = rts.sq_psn;
  out->pkeyIndex = rtr.pkey_index;
  out->ackTimeout = rts.timeout;
  out->flowLabel = rtr.ah_attr.flow_label;
  out->hopLimit = rtr.ah_attr.hop_limit;
  out->trafficClass = rtr.ah_attr.traffic_class;
  return Status::kSuccess;
}

void VerbsHca::serveCm() {
  rdma_cm_event* event;
  while (lib_.rdma_get_cm_event(cm_, &event) == 0) {
    Handle listener = 0;
    if (event->event == kCmConnectRequest) {
      listener = handleOf(event->listen_id);
      Handle handle;
      CmObject* const object = Tables::all().cms.take(&handle);
      rdma_cm_id* const id = event->id;
      if (object == nullptr) {
        lib_.rdma_ack_cm_event(event);
        lib_.rdma_destroy_id(id);
        continue;
      }
      id->context = reinterpret_cast<void*>(uintptr_t{handle});
      object->id = id;
      object->handle = handle;
      std::lock_guard<std::mutex> lock(idMutex_);
      cmIds_.push_back(handle);
    }
    // Both kinds of parameters begin with the private data.
    const rdma_conn_param& p = event->param.conn;
    const auto* data = static_cast<const uint8_t*>(p.private_data);
    std::vector<uint8_t> copy;
    if (data != nullptr) copy.assign(data, data + p.private_data_len);
    const HcaEvent out =
        HcaEvent::cm(static_cast<uint32_t>(event->event), statusOfEvent(event->status), handleOf(event->id), listener,
                     p.responder_resources, p.initiator_depth, p.retry_count, p.rnr_retry_count, p.srq != 0,
                     event->param.ud.qp_num, event->param.ud.qkey, static_cast<uint32_t>(copy.size()));
    lib_.rdma_ack_cm_event(event);
    events_->push(0, out, std::move(copy));
  }
}

}  // namespace nd::verbs
