#include "verbs/kernel_side.h"

#include <algorithm>
#include <cstring>

#include "verbs/user_side.h"

namespace nd::verbs {

namespace {

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

// ── Arguments and results of connections (addon/command_face.h)

bool readArgument(js::Arguments& from, CmAddress* out) {
  out->gid = from.gid();
  return js::toUint(from.info.Env(), from.info[from.at++], &out->port, 65535) && from.number(&out->scopeId);
}

// The length is an argument. The bytes are where a MAD would be.
bool readArgument(js::Arguments& from, PrivateData* out) {
  out->data = from.words.mad();
  return js::toUint(from.info.Env(), from.info[from.at++], &out->length, wire::kMadBytes);
}

bool readArgument(js::Arguments& from, CmParameters* out) {
  const js::Words& words = from.words;
  return words.uint(0, &out->qpn) && words.uint(1, &out->responderResources, 255) &&
         words.uint(2, &out->initiatorDepth, 255) && words.uint(3, &out->retryCount, 7) &&
         words.uint(4, &out->rnrRetryCount, 7) && words.uint(5, &out->srq, 1) &&
         readArgument(from, static_cast<PrivateData*>(out));
}

void writeResult(js::Results& to, const CmAddress& address) {
  to.numbers(address.port, address.scopeId);
  to.gid(address.gid);
}

void writeResult(js::Results& to, const CmAttributes& a) {
  to.numbers(a.pathMtu, a.destinationQpn, a.receivePsn, a.sendPsn, a.pkeyIndex);
  to.numbers(a.ackTimeout, a.flowLabel, a.hopLimit, a.trafficClass);
}

// ── Life

Device* KernelSide::deviceOf(const Info& info) {
  uint32_t number;
  return host_ != nullptr && js::toU32(info.Env(), info[0], &number) ? host_->device(number) : nullptr;
}

KernelSide::KernelSide(const Info& info) : Napi::ObjectWrap<KernelSide>(info), env_(info.Env()) {
  Napi::Env env = info.Env();
  std::string why;
  if (!info[0].IsExternal()) {
    napi_throw_type_error(env, nullptr, "VerbsHca(waker): `waker` must be a waker of createWaker()");
    return;
  }
  if (!face_.open(env)) return;
  host_ = VerbsHca::open(info[0].As<Napi::External<Waker>>().Data(), &why);
  if (host_ == nullptr) {
    napi_throw_error(env, nullptr, why.c_str());
    return;
  }
  waker_ = Napi::Persistent(Napi::Value(info[0]));
  js::CommandFace::Members members = face_.define(Value(), host_.get());
  members.add<&VerbsHca::cmCreate>("cmCreate");
  members.add<&VerbsHca::cmDestroy>("cmDestroy");
  members.add<&VerbsHca::cmBind>("cmBind");
  members.add<&VerbsHca::cmResolve>("cmResolve");
  members.add<&VerbsHca::cmResolveRoute>("cmResolveRoute");
  members.add<&VerbsHca::cmSetOptions>("cmSetOptions");
  members.add<&VerbsHca::cmListen>("cmListen");
  members.add<&VerbsHca::cmConnect>("cmConnect");
  members.add<&VerbsHca::cmEstablish>("cmEstablish");
  members.add<&VerbsHca::cmAccept>("cmAccept");
  members.add<&VerbsHca::cmReject>("cmReject");
  members.add<&VerbsHca::cmDisconnect>("cmDisconnect");
  members.add<&VerbsHca::cmNotify>("cmNotify");
  members.add<&VerbsHca::cmJoin>("cmJoin");
  members.add<&VerbsHca::cmCloseRemoved>("cmCloseRemoved");
  members.add<&VerbsHca::cmAddresses>("cmAddresses");
  members.add<&VerbsHca::cmAttributes>("cmAttributes");
  napi_add_env_cleanup_hook(env, closeAtEnd, this);
  Ref();  // until close()
}

KernelSide::~KernelSide() { closeNow(); }

void KernelSide::closeAtEnd(void* self) { static_cast<KernelSide*>(self)->endHost(); }

void KernelSide::endHost() {
  face_.close();
  host_.reset();
}

void KernelSide::closeNow() {
  if (host_ == nullptr) return;
  endHost();
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
  std::string name, why = "the kernel has been closed";
  Device* const device =
      host_ != nullptr && js::toString(env, info[0], &name) ? (why.clear(), host_->openDevice(name, &why)) : nullptr;
  if (device != nullptr) return attributesOf(env, *device);
  return Napi::String::New(env, why);
}

void KernelSide::closeDevice(const Info& info) {
  if (Device* device = deviceOf(info)) host_->closeDevice(*device);
}

Napi::Value KernelSide::queryPort(const Info& info) {
  Napi::Env env = info.Env();
  Device* const device = deviceOf(info);
  uint32_t port;
  PortInfo found;
  if (device == nullptr || !js::toU32(env, info[1], &port) || !host_->queryPort(*device, port, &found))
    return env.Undefined();
  const ibv_port_attr& a = found.attributes;
  Napi::Object out = Napi::Object::New(env);
  const std::pair<const char*, double> values[] = {{"state", a.state},
                                                   {"maxMtu", a.max_mtu},
                                                   {"activeMtu", a.active_mtu},
                                                   {"capabilities", a.port_cap_flags},
                                                   {"maxMessageSize", a.max_msg_sz},
                                                   {"badPkeys", a.bad_pkey_cntr},
                                                   {"badQkeys", a.qkey_viol_cntr},
                                                   {"maxVls", a.max_vl_num},
                                                   {"activeWidth", a.active_width},
                                                   {"activeSpeed", a.active_speed},
                                                   {"linkLayer", a.link_layer}};
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
  Event event;
  if (host_ != nullptr && host_->events().take(&event)) {
    const js::Words& words = face_.words();
    std::copy(std::begin(event.words), std::end(event.words), words.words);
    words.words[js::Words::kOwnerAt] = event.device;
    std::copy(event.data.begin(), event.data.end(), words.bytes + js::Words::kMadAt);
  }
  return Napi::Number::New(info.Env(), static_cast<uint32_t>(event.kind));
}

Napi::Value KernelSide::counters(const Info& info) {
  Napi::Object out = Napi::Object::New(info.Env());
  std::vector<std::pair<const char*, uint64_t>> values;
  if (host_ != nullptr) host_->counters(&values);
  for (const auto& [name, value] : values) out.Set(name, static_cast<double>(value));
  return out;
}

void KernelSide::define(Napi::Env env, Napi::Object exports) {
  using K = KernelSide;
  exports.Set("VerbsHca",
              DefineClass(env, "VerbsHca",
                          {InstanceMethod<&K::deviceNames>("deviceNames"), InstanceMethod<&K::openDevice>("openDevice"),
                           InstanceMethod<&K::closeDevice>("closeDevice"), InstanceMethod<&K::queryPort>("queryPort"),
                           InstanceMethod<&K::takeEvent>("takeEvent"), InstanceMethod<&K::counters>("counters"),
                           InstanceMethod<&K::close>("close")}));
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
