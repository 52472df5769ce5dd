// Address handles and multicast groups, for UD queue pairs.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

Napi::Value NativeHca::createAhWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle pd, ah = 0;
  Path path;
  uint32_t pathMtu;
  if (!open_) return number(env, Status::kDeviceRemoved);
  const bool good = toU32(env, info[0], &pd) && toU32(env, info[1], &pathMtu) && words_.path(&path);
  const Status status = good ? engine_->createAh(pd, path, pathMtu, &ah) : Status::kInvalidParameter;
  words_.words[0] = ah;
  return number(env, status);
}

Napi::Value NativeHca::destroyAh(const Info& info) { return handleCommand(info, &Engine::destroyAh); }

Napi::Value NativeHca::attachMulticast(const Info& info) { return groupCommand(info, &Engine::attachMulticast); }
Napi::Value NativeHca::detachMulticast(const Info& info) { return groupCommand(info, &Engine::detachMulticast); }

Napi::Value NativeHca::groupCommand(const Info& info, Status (Engine::*command)(Handle, const Gid&, uint32_t)) {
  Napi::Env env = info.Env();
  Handle qp;
  Gid group;
  uint32_t interface;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &qp) || !toGid(env, info[1], &group) || !toU32(env, info[2], &interface)) {
    return number(env, Status::kInvalidParameter);
  }
  return number(env, (engine_->*command)(qp, group, interface));
}

}  // namespace nd::js
