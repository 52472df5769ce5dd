// The module: one instance per environment (main thread, application Workers, soft kernels).
#include "base/icrc.h"
#include "convert.h"
#include "door.h"
#include "env.h"
#include "hca.h"
#include "name_claims.h"
#include "network_watch.h"
#include "network_interfaces.h"
#include "user_memory.h"
#include "observing.h"
#include "wakers.h"

namespace nd::js {

namespace {

// ringDoorbell(), direct(), progress() and shouldPoll() are on the data path, so they use plain N-API and allocate
// nothing.

napi_value ringDoorbell(napi_env env, napi_callback_info) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  const auto* const own = static_cast<const EnvData*>(data);
  if (Engine* engine = own->engine()) engine->doorbell(*own->doorbellWord);
  return nullptr;
}

// direct(operation, bytes, remoteLow, remoteHigh, rkey): the queue pair is the one in `doorbell`.
napi_value direct(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  const auto* const own = static_cast<const EnvData*>(data);
  Engine* const engine = own->engine();
  size_t count = 5;
  napi_value arguments[5];
  Bytes bytes;
  uint32_t operation = 0, low = 0, high = 0, rkey = 0;
  DirectResult outcome = DirectResult::kRefused;
  if (napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr) == napi_ok && engine != nullptr &&
      toU32(env, arguments[0], &operation) && operation <= static_cast<uint32_t>(DirectOperation::kCompareExchange) &&
      toBytes(env, arguments[1], &bytes) && toU32(env, arguments[2], &low) && toU32(env, arguments[3], &high) &&
      toU32(env, arguments[4], &rkey)) {
    // A Uint8Array is always writable.
    outcome = engine->direct(*own->doorbellWord, static_cast<DirectOperation>(operation),
                             const_cast<uint8_t*>(bytes.data), bytes.length, uint64_t{high} << 32 | low, rkey);
  }
  napi_value result = nullptr;
  napi_create_uint32(env, static_cast<uint32_t>(outcome), &result);
  return result;
}

napi_value progress(napi_env env, napi_callback_info) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  if (Engine* engine = static_cast<const EnvData*>(data)->engine()) engine->progress();
  return nullptr;
}

napi_value shouldPoll(napi_env env, napi_callback_info) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  const auto* const own = static_cast<const EnvData*>(data);
  Engine* const engine = own->engine();
  napi_value should = nullptr;
  napi_get_boolean(env, engine != nullptr && engine->shouldPoll(*own->doorbellWord), &should);
  return should;
}

Napi::Value armCq(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Handle cq;
  bool solicitedOnly;
  Status status = Status::kInvalidParameter;
  if (toU32(env, info[0], &cq) && toBool(env, info[1], &solicitedOnly)) {
    Engine* engine = EnvData::of(env).engine();
    status = engine != nullptr ? engine->armCq(cq, solicitedOnly) : Status::kInvalidDeviceState;
  }
  return statusToJs(env, status);
}

Napi::Value armCqBatch(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  Handle cq;
  uint32_t count;
  Status status = Status::kInvalidParameter;
  if (toU32(env, info[0], &cq) && toU32(env, info[1], &count)) {
    Engine* engine = EnvData::of(env).engine();
    status = engine != nullptr ? engine->armCqBatch(cq, count) : Status::kInvalidDeviceState;
  }
  return statusToJs(env, status);
}

Napi::Value endHcas(const Napi::CallbackInfo& info) {
  HcaContext::endAll();
  return info.Env().Undefined();
}

Napi::Value icrcOfJs(const Napi::CallbackInfo& info) {
  Bytes packet;
  if (!toBytes(info.Env(), info[0], &packet)) {
    napi_throw_type_error(info.Env(), nullptr, "icrcOf(ipPacket): `ipPacket` must be a Uint8Array");
    return info.Env().Undefined();
  }
  return Napi::Number::New(info.Env(), icrcOfPacket(packet.data, packet.length));
}

}  // namespace

Napi::Object init(Napi::Env env, Napi::Object exports) {
  auto* data = new EnvData(env);
  env.SetInstanceData(data);  // deleted with the environment
  data->memory = std::make_unique<Memory>(*data);
  data->channelClass = Napi::Persistent(NativeChannel::define(env));
  data->serverClass = Napi::Persistent(NativeChannelServer::define(env));
  data->hcaClass = Napi::Persistent(NativeHca::define(env));

  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("createChannel", NativeChannel::createChannel);
  add("serveChannel", NativeChannelServer::serveChannel);
  add("failChannel", NativeChannelServer::failChannel);
  add("openHca", NativeHca::openHca);
  add("allocateShared", Memory::allocateShared);
  add("view", Memory::view);
  add("allocateRing", Memory::allocateRing);
  add("releaseRing", Memory::releaseRing);
  add("pin", Memory::pin);
  add("unpin", Memory::unpin);
  add("armCq", armCq);
  add("armCqBatch", armCqBatch);
  add("interfaces", interfaces);
  add("findRoute", findRouteJs);
  add("hostIdentity", hostIdentityJs);
  add("endHcas", endHcas);
  add("createWaker", createWaker);
  add("watchInterfaces", NetworkWatch::watchInterfaces);
  add("watchRoutes", NetworkWatch::watchRoutes);
  add("observeProcesses", observeProcessesJs);
  add("otherDialectAt", otherDialectAtJs);
  add("claimName", claimName);
  add("publishPort", publishPort);
  add("releaseName", releaseName);
  add("portsOfName", portsOfName);
  add("icrcOf", icrcOfJs);
  const auto addPlain = [&](const char* name, napi_callback function) {
    napi_value made;
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &made) == napi_ok)
      exports.Set(name, Napi::Value(env, made));
  };
  addPlain("ringDoorbell", ringDoorbell);
  addPlain("direct", direct);
  addPlain("progress", progress);
  addPlain("shouldPoll", shouldPoll);
  Napi::Uint32Array doorbell = Napi::Uint32Array::New(env, 1);
  data->doorbell = Napi::Persistent(doorbell);
  data->doorbellWord = doorbell.Data();
  exports.Set("doorbell", doorbell);
  return exports;
}

NODE_API_MODULE(networkdirect_hca, init)

}  // namespace nd::js
