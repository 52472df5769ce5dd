#include "verbs/kernel_side.h"

#include <algorithm>
#include <cstring>

#include "verbs/user_side.h"

namespace nd::verbs {

namespace {

Napi::Value answer(Napi::Env env, Status status) { return Napi::Number::New(env, static_cast<uint32_t>(status)); }

Napi::Object attributesOf(Napi::Env env, const Device& device) {
  const ibv_device_attr& a = device.attributes;
  Napi::Object out = Napi::Object::New(env);
  const auto big = [&](uint64_t swapped) { return Napi::BigInt::New(env, __builtin_bswap64(swapped)); };
  out.Set("number", device.number);
  out.Set("iwarp", device.iwarp);
  out.Set("firmware", std::string(a.fw_ver, strnlen(a.fw_ver, sizeof a.fw_ver)));
  out.Set("nodeGuid", big(a.node_guid));
  out.Set("vendorId", a.vendor_id);
  out.Set("vendorPartId", a.vendor_part_id);
  out.Set("hardwareVersion", a.hw_ver);
  out.Set("capabilities", a.device_cap_flags);
  out.Set("atomics", a.atomic_cap);
  out.Set("ports", a.phys_port_cnt);
  out.Set("ackDelay", a.local_ca_ack_delay);
  out.Set("resizesCqs", device.resizes);
  out.Set("limits", js::numbersToJs(env, device.limits));
  return out;
}

}  // namespace

// Whole unsigned 32-bit arguments from the first one on. False: one is none, or the kernel is closed.
template <typename... T>
bool KernelSide::numbers(const Info& info, T*... out) {
  size_t at = 0;
  return host_ != nullptr && (js::toUint(info.Env(), info[at++], out) && ...);
}

Device* KernelSide::deviceOf(const Info& info, size_t at) {
  uint32_t number;
  return host_ != nullptr && js::toU32(info.Env(), info[at], &number) ? host_->device(number) : nullptr;
}

template <Status (Host::*kCommand)(Handle)>
Napi::Value KernelSide::onHandle(const Info& info) {
  Handle handle;
  if (host_ == nullptr) return answer(info.Env(), Status::kDeviceRemoved);
  return answer(info.Env(), numbers(info, &handle) ? (host_.get()->*kCommand)(handle) : Status::kInvalidParameter);
}

template <Status (Host::*kCommand)(Handle, const CmParameters&)>
Napi::Value KernelSide::onParameters(const Info& info) {
  Handle id;
  uint32_t length;
  CmParameters p;
  bool good = numbers(info, &id, &length) && length <= wire::kMadBytes;
  good = good && words_.uint(0, &p.qpn) && words_.uint(1, &p.responderResources, 255) && words_.uint(2, &p.initiatorDepth, 255) &&
         words_.uint(3, &p.retryCount, 7) && words_.uint(4, &p.rnrRetryCount, 7) && words_.uint(5, &p.srq, 1);
  p.data = words_.mad();
  p.length = length;
  return answer(info.Env(), good ? (host_.get()->*kCommand)(id, p) : Status::kInvalidParameter);
}

KernelSide::KernelSide(const Info& info) : Napi::ObjectWrap<KernelSide>(info), env_(info.Env()) {
  Napi::Env env = info.Env();
  std::string why;
  if (!info[0].IsExternal()) {
    napi_throw_type_error(env, nullptr, "VerbsHost(waker): a waker of createWaker()");
    return;
  }
  host_ = Host::open(info[0].As<Napi::External<Waker>>().Data(), &why);
  if (host_ == nullptr) {
    napi_throw_error(env, nullptr, why.c_str());
    return;
  }
  waker_ = Napi::Persistent(Napi::Value(info[0]));
  Napi::Float64Array words = Napi::Float64Array::New(env, js::Words::kCount);
  Napi::Uint8Array bytes = Napi::Uint8Array::New(env, js::Words::kBytes);
  wordsArray_ = Napi::Persistent(words);
  bytesArray_ = Napi::Persistent(bytes);
  words_ = {words.Data(), bytes.Data()};
  napi_add_env_cleanup_hook(env, closeAtEnd, this);
  Ref();  // until close()
}

KernelSide::~KernelSide() { closeNow(); }

void KernelSide::closeAtEnd(void* self) { static_cast<KernelSide*>(self)->host_.reset(); }

void KernelSide::closeNow() {
  if (host_ == nullptr) return;
  host_.reset();
  napi_remove_env_cleanup_hook(env_, closeAtEnd, this);
  Unref();
}

Napi::Value KernelSide::deviceNames(const Info& info) {
  Napi::Array out = Napi::Array::New(info.Env());
  if (host_ == nullptr) return out;
  for (const std::string& name : host_->deviceNames()) out.Set(out.Length(), name);
  return out;
}

Napi::Value KernelSide::openDevice(const Info& info) {
  Napi::Env env = info.Env();
  std::string name, why = "the kernel has closed";
  Device* const device = host_ != nullptr && js::toString(env, info[0], &name) ? (why.clear(), host_->openDevice(name, &why)) : nullptr;
  if (device != nullptr) return attributesOf(env, *device);
  return Napi::String::New(env, why);
}

void KernelSide::closeDevice(const Info& info) {
  if (Device* device = deviceOf(info, 0)) host_->closeDevice(*device);
}

Napi::Value KernelSide::queryPort(const Info& info) {
  Napi::Env env = info.Env();
  Device* const device = deviceOf(info, 0);
  uint32_t port;
  PortInfo found;
  if (device == nullptr || !js::toU32(env, info[1], &port) || !host_->queryPort(*device, port, &found)) return env.Undefined();
  const ibv_port_attr& a = found.attributes;
  Napi::Object out = Napi::Object::New(env);
  const std::pair<const char*, double> values[] = {
      {"state", a.state}, {"maxMtu", a.max_mtu}, {"activeMtu", a.active_mtu}, {"capabilities", a.port_cap_flags},
      {"maxMessageSize", a.max_msg_sz}, {"badPkeys", a.bad_pkey_cntr}, {"badQkeys", a.qkey_viol_cntr}, {"maxVls", a.max_vl_num},
      {"activeWidth", a.active_width}, {"activeSpeed", a.active_speed}, {"linkLayer", a.link_layer}};
  for (const auto& [name, value] : values) out.Set(name, value);
  Napi::Array gids = Napi::Array::New(env), pkeys = Napi::Array::New(env);
  for (const ibv_gid_entry& entry : found.gids) {
    Napi::Object gid = Napi::Object::New(env);
    gid.Set("gid", js::copyToJs(env, entry.gid, sizeof entry.gid));
    gid.Set("type", entry.gid_type);
    gid.Set("index", entry.gid_index);
    gid.Set("interfaceIndex", entry.ndev_ifindex);
    gids.Set(gids.Length(), gid);
  }
  for (const uint16_t pkey : found.pkeys) pkeys.Set(pkeys.Length(), pkey);
  out.Set("gids", gids);
  out.Set("pkeys", pkeys);
  return out;
}

Napi::Value KernelSide::takeEvent(const Info& info) {
  Event e;
  if (host_ == nullptr || !host_->events().take(&e)) return Napi::Number::New(info.Env(), 0);
  double* const w = words_.words;
  if (e.kind != Event::Kind::kCm) {
    const uint32_t values[] = {e.device, e.handle, e.token, e.event, e.reason};
    std::copy(std::begin(values), std::end(values), w);
  } else {
    const size_t length = std::min(e.data.size(), size_t{wire::kMadBytes});
    const double values[] = {static_cast<double>(e.event), static_cast<double>(e.status), static_cast<double>(e.handle),
                             static_cast<double>(e.listener), static_cast<double>(e.responderResources),
                             static_cast<double>(e.initiatorDepth), static_cast<double>(e.retryCount),
                             static_cast<double>(e.rnrRetryCount), static_cast<double>(e.srq), static_cast<double>(e.qpn),
                             static_cast<double>(e.qkey), static_cast<double>(length)};
    std::copy(std::begin(values), std::end(values), w);
    std::copy(e.data.begin(), e.data.begin() + static_cast<std::ptrdiff_t>(length), words_.bytes + js::Words::kMadAt);
  }
  return Napi::Number::New(info.Env(), static_cast<uint32_t>(e.kind));
}

Napi::Value KernelSide::counters(const Info& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  std::vector<std::pair<const char*, uint64_t>> values;
  if (host_ != nullptr) host_->counters(&values);
  for (const auto& [name, value] : values) out.Set(name, static_cast<double>(value));
  return out;
}

// ── Commands

Napi::Value KernelSide::allocatePd(const Info& info) {
  Device* const device = deviceOf(info, 0);
  Handle pd = 0;
  const Status status = device != nullptr ? host_->allocatePd(*device, &pd) : Status::kDeviceRemoved;
  words_.words[0] = pd;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::registerMr(const Info& info) {
  Handle pd;
  uint64_t address, length;
  uint32_t access, lkey = 0, rkey = 0;
  const bool good = numbers(info, &pd, &address, &length, &access);
  const Status status = good ? host_->registerMr(pd, address, length, access, &lkey, &rkey) : Status::kInvalidParameter;
  words_.words[0] = lkey;
  words_.words[1] = rkey;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::deregisterMr(const Info& info) {
  uint32_t pd, lkey;
  return answer(info.Env(), numbers(info, &pd, &lkey) ? host_->deregisterMr(pd, lkey) : Status::kInvalidParameter);
}

Napi::Value KernelSide::allocateMw(const Info& info) {
  Handle pd, mw = 0;
  uint32_t rkey = 0;
  const Status status = numbers(info, &pd) ? host_->allocateMw(pd, &mw, &rkey) : Status::kInvalidParameter;
  words_.words[0] = mw;
  words_.words[1] = rkey;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::createCq(const Info& info) {
  Device* const device = deviceOf(info, 0);
  uint32_t number, entries;
  uint64_t address, bytes;
  Handle cq = 0;
  Status status = Status::kInvalidParameter;
  if (device == nullptr) {
    status = Status::kDeviceRemoved;
  } else if (numbers(info, &number, &address, &bytes, &entries)) {
    status = host_->createCq(*device, address, bytes, entries, &cq);
  }
  words_.words[0] = cq;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::resizeCq(const Info& info) {
  Handle cq;
  uint64_t address, bytes;
  uint32_t entries;
  const bool good = numbers(info, &cq, &address, &bytes, &entries);
  return answer(info.Env(), good ? host_->resizeCq(cq, address, bytes, entries) : Status::kInvalidParameter);
}

Napi::Value KernelSide::armCqOf(const Info& info) {
  Handle cq;
  bool solicitedOnly;
  const bool good = numbers(info, &cq) && js::toBool(info.Env(), info[1], &solicitedOnly);
  return answer(info.Env(), good ? armCq(cq, solicitedOnly) : Status::kInvalidParameter);
}

Napi::Value KernelSide::createSrq(const Info& info) {
  SrqCreate create;
  Handle srq = 0;
  const bool good = host_ != nullptr && words_.read(&create);
  const Status status = good ? host_->createSrq(create, &srq) : Status::kInvalidParameter;
  words_.words[0] = srq;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::modifySrq(const Info& info) {
  Handle srq;
  uint32_t mask;
  SrqAttributes attributes;
  const bool good = numbers(info, &srq, &mask) && words_.read(&attributes, mask);
  return answer(info.Env(), good ? host_->modifySrq(srq, mask, attributes) : Status::kInvalidParameter);
}

Napi::Value KernelSide::querySrq(const Info& info) {
  Handle srq;
  SrqAttributes attributes;
  const Status status = numbers(info, &srq) ? host_->querySrq(srq, &attributes) : Status::kInvalidParameter;
  words_.words[0] = attributes.entries;
  words_.words[1] = attributes.limit;
  words_.words[2] = attributes.sge;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::createQp(const Info& info) {
  QpCreate q;
  const bool good = host_ != nullptr && words_.read(&q);
  Handle qp = 0;
  uint32_t qpn = 0;
  const Status status = good ? host_->createQp(q, &qp, &qpn) : Status::kInvalidParameter;
  words_.words[0] = qp;
  words_.words[1] = qpn;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::modifyQp(const Info& info) {
  Handle qp;
  uint32_t mask;
  QpAttributes attributes;
  const bool good = numbers(info, &qp, &mask) && words_.attributes(mask, &attributes);
  return answer(info.Env(), good ? host_->modifyQp(qp, mask, attributes) : Status::kInvalidParameter);
}

Napi::Value KernelSide::connectQp(const Info& info) {
  Handle qp, connection;
  uint32_t init, rtr, rts;
  bool good = numbers(info, &qp, &init, &rtr, &rts, &connection);
  QpAttributes attributes;
  // Each step implies its own states.
  const uint32_t named = good ? (init | rtr | rts) & ~(qpmask::kState | qpmask::kCurrentState) : 0;
  good = good && words_.attributes(named, &attributes);
  return answer(info.Env(), good ? host_->connectQp(qp, init, rtr, rts, attributes, connection) : Status::kInvalidParameter);
}

Napi::Value KernelSide::queryQp(const Info& info) {
  Napi::Env env = info.Env();
  Handle qp;
  QpAttributes attributes;
  const Status status = numbers(info, &qp) ? host_->queryQp(qp, &attributes) : Status::kInvalidParameter;
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  out.Set("attributes", js::attributesToJs(env, attributes));
  return out;
}

Napi::Value KernelSide::queryQpState(const Info& info) {
  Handle qp;
  QpAttributes attributes;
  const bool known = numbers(info, &qp) && host_->queryQp(qp, &attributes) == Status::kSuccess;
  return Napi::Number::New(info.Env(), known ? static_cast<double>(attributes.state) : -1.0);
}

Napi::Value KernelSide::createAh(const Info& info) {
  Handle pd, ah = 0;
  uint32_t port, pathMtu;
  Path path;
  const bool good = numbers(info, &pd, &port, &pathMtu) && words_.path(&path);
  const Status status = good ? host_->createAh(pd, path, port, pathMtu, &ah) : Status::kInvalidParameter;
  words_.words[0] = ah;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::changeGroup(const Info& info) {
  Handle qp;
  bool attach;
  const bool good = numbers(info, &qp) && js::toBool(info.Env(), info[1], &attach);
  return answer(info.Env(), good ? host_->changeGroup(qp, words_.gid(0), attach) : Status::kInvalidParameter);
}

// ── Connections

Napi::Value KernelSide::cmCreate(const Info& info) {
  bool datagrams;
  Handle id = 0;
  const bool good = host_ != nullptr && js::toBool(info.Env(), info[0], &datagrams);
  const Status status = good ? host_->cmCreate(datagrams, &id) : Status::kInvalidParameter;
  words_.words[0] = id;
  return answer(info.Env(), status);
}

void KernelSide::cmDestroy(const Info& info) {
  Handle id;
  if (numbers(info, &id)) host_->cmDestroy(id);
}

Napi::Value KernelSide::cmBind(const Info& info) {
  Handle id;
  CmAddress local;
  bool shared = false;
  uint16_t port = 0;
  const bool good = numbers(info, &id, &local.port, &local.scopeId) && js::toBool(info.Env(), info[3], &shared);
  local.gid = words_.gid(0);
  const Status status = good ? host_->cmBind(id, local, shared, &port) : Status::kInvalidParameter;
  words_.words[0] = port;
  return answer(info.Env(), status);
}

Napi::Value KernelSide::cmResolve(const Info& info) {
  Handle id;
  CmAddress local, peer;
  uint32_t timeout;
  const bool good = numbers(info, &id, &local.port, &peer.port, &local.scopeId, &timeout);
  local.gid = words_.gid(0);
  peer.gid = words_.gid(16);
  peer.scopeId = local.scopeId;
  return answer(info.Env(), good ? host_->cmResolve(id, local, peer, static_cast<int>(timeout)) : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmResolveRoute(const Info& info) {
  Handle id;
  uint32_t timeout;
  const bool good = numbers(info, &id, &timeout);
  return answer(info.Env(), good ? host_->cmResolveRoute(id, static_cast<int>(timeout)) : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmSetOptions(const Info& info) {
  Handle id;
  uint32_t ackTimeout, trafficClass;
  const bool good = numbers(info, &id, &ackTimeout, &trafficClass);
  return answer(info.Env(), good ? host_->cmSetOptions(id, static_cast<int>(ackTimeout), static_cast<int>(trafficClass))
                                 : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmListen(const Info& info) {
  Handle id;
  uint32_t backlog;
  return answer(info.Env(), numbers(info, &id, &backlog) ? host_->cmListen(id, backlog) : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmReject(const Info& info) {
  Handle id;
  uint32_t length;
  const bool good = numbers(info, &id, &length) && length <= wire::kMadBytes;
  return answer(info.Env(), good ? host_->cmReject(id, words_.mad(), length) : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmJoin(const Info& info) {
  Handle id;
  CmAddress group;
  const bool good = numbers(info, &id, &group.scopeId);
  group.gid = words_.gid(0);
  return answer(info.Env(), good ? host_->cmJoin(id, group) : Status::kInvalidParameter);
}

Napi::Value KernelSide::cmAddresses(const Info& info) {
  Handle id;
  CmAddress local, peer;
  Device* at = nullptr;
  const bool good = numbers(info, &id) && host_->cmAddresses(id, &local, &peer, &at);
  const double values[] = {static_cast<double>(local.port), static_cast<double>(local.scopeId), static_cast<double>(peer.port),
                           static_cast<double>(peer.scopeId), at != nullptr ? static_cast<double>(at->number) : 0};
  std::copy(std::begin(values), std::end(values), words_.words);
  std::copy(local.gid.raw.begin(), local.gid.raw.end(), words_.bytes);
  std::copy(peer.gid.raw.begin(), peer.gid.raw.end(), words_.bytes + 16);
  return Napi::Boolean::New(info.Env(), good);
}

Napi::Value KernelSide::cmAttributes(const Info& info) {
  Handle id;
  CmAttributes a;
  const bool good = numbers(info, &id) && host_->cmAttributes(id, &a);
  const uint32_t values[] = {a.pathMtu, a.destinationQpn, a.receivePsn, a.sendPsn, a.pkeyIndex, a.ackTimeout, a.flowLabel, a.hopLimit, a.trafficClass};
  std::copy(std::begin(values), std::end(values), words_.words);
  return Napi::Boolean::New(info.Env(), good);
}

void KernelSide::define(Napi::Env env, Napi::Object exports) {
  using K = KernelSide;
  exports.Set(
      "VerbsHost",
      DefineClass(
          env, "VerbsHost",
          {InstanceAccessor<&K::getWords>("words"), InstanceAccessor<&K::getBytes>("bytes"),
           InstanceMethod<&K::deviceNames>("deviceNames"), InstanceMethod<&K::openDevice>("openDevice"),
           InstanceMethod<&K::closeDevice>("closeDevice"), InstanceMethod<&K::queryPort>("queryPort"),
           InstanceMethod<&K::takeEvent>("takeEvent"), InstanceMethod<&K::counters>("counters"), InstanceMethod<&K::close>("close"),
           InstanceMethod<&K::allocatePd>("allocatePd"), InstanceMethod<&K::onHandle<&Host::deallocatePd>>("deallocatePd"),
           InstanceMethod<&K::registerMr>("registerMr"), InstanceMethod<&K::deregisterMr>("deregisterMr"),
           InstanceMethod<&K::allocateMw>("allocateMw"), InstanceMethod<&K::onHandle<&Host::deallocateMw>>("deallocateMw"),
           InstanceMethod<&K::createCq>("createCq"), InstanceMethod<&K::resizeCq>("resizeCq"),
           InstanceMethod<&K::onHandle<&Host::destroyCq>>("destroyCq"), InstanceMethod<&K::onHandle<&Host::listenCq>>("listenCq"),
           InstanceMethod<&K::armCqOf>("armCq"), InstanceMethod<&K::createSrq>("createSrq"),
           InstanceMethod<&K::modifySrq>("modifySrq"), InstanceMethod<&K::querySrq>("querySrq"),
           InstanceMethod<&K::onHandle<&Host::destroySrq>>("destroySrq"), InstanceMethod<&K::createQp>("createQp"),
           InstanceMethod<&K::modifyQp>("modifyQp"), InstanceMethod<&K::connectQp>("connectQp"),
           InstanceMethod<&K::queryQp>("queryQp"), InstanceMethod<&K::queryQpState>("queryQpState"),
           InstanceMethod<&K::onHandle<&Host::destroyQp>>("destroyQp"), InstanceMethod<&K::createAh>("createAh"),
           InstanceMethod<&K::onHandle<&Host::destroyAh>>("destroyAh"), InstanceMethod<&K::changeGroup>("changeGroup"),
           InstanceMethod<&K::cmCreate>("cmCreate"), InstanceMethod<&K::cmDestroy>("cmDestroy"), InstanceMethod<&K::cmBind>("cmBind"),
           InstanceMethod<&K::cmResolve>("cmResolve"), InstanceMethod<&K::cmResolveRoute>("cmResolveRoute"),
           InstanceMethod<&K::cmSetOptions>("cmSetOptions"), InstanceMethod<&K::cmListen>("cmListen"),
           InstanceMethod<&K::onParameters<&Host::cmConnect>>("cmConnect"), InstanceMethod<&K::onHandle<&Host::cmEstablish>>("cmEstablish"),
           InstanceMethod<&K::onParameters<&Host::cmAccept>>("cmAccept"), InstanceMethod<&K::cmReject>("cmReject"),
           InstanceMethod<&K::onHandle<&Host::cmDisconnect>>("cmDisconnect"), InstanceMethod<&K::onHandle<&Host::cmNotify>>("cmNotify"),
           InstanceMethod<&K::onHandle<&Host::cmCloseRemoved>>("cmCloseRemoved"), InstanceMethod<&K::cmJoin>("cmJoin"),
           InstanceMethod<&K::cmAddresses>("cmAddresses"), InstanceMethod<&K::cmAttributes>("cmAttributes")}));
}

namespace {

Napi::Object init(Napi::Env env, Napi::Object exports) {
  UserSide::define(env, exports);
  KernelSide::define(env, exports);
  return exports;
}

NODE_API_MODULE(networkdirect_verbs, init)

}  // namespace

}  // namespace nd::verbs
