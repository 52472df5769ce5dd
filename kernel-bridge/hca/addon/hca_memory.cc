// Protection domains, memory regions and windows.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

Napi::Value NativeHca::allocatePd(const Info& info) {
  Handle pd = 0;
  const Status status = open_ ? engine_->allocatePd(kernel_, &pd) : Status::kDeviceRemoved;
  Napi::Object out = result(info.Env(), status);
  out.Set("pd", pd);
  return out;
}

Napi::Value NativeHca::deallocatePd(const Info& info) { return handleCommand(info, &Engine::deallocatePd); }

Napi::Value NativeHca::registerMr(const Info& info) {
  Napi::Env env = info.Env();
  Handle pd;
  uint64_t address, length;
  uint32_t access, lkey = 0, rkey = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &pd) && toUint(env, info[1], &address) && toUint(env, info[2], &length) &&
             toU32(env, info[3], &access)) {
    status = engine_->registerMr(pd, address, length, access, &lkey, &rkey);
  }
  Napi::Object out = result(env, status);
  out.Set("lkey", lkey);
  out.Set("rkey", rkey);
  return out;
}

Napi::Value NativeHca::allocateMr(const Info& info) {
  Napi::Env env = info.Env();
  Handle pd;
  uint64_t length;
  uint32_t lkey = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &pd) && toUint(env, info[1], &length)) {
    status = engine_->allocateMr(pd, length, &lkey);
  }
  Napi::Object out = result(env, status);
  out.Set("lkey", lkey);
  return out;
}

Napi::Value NativeHca::deregisterMr(const Info& info) {
  uint32_t pd, lkey;
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  if (!toU32(info.Env(), info[0], &pd) || !toU32(info.Env(), info[1], &lkey)) {
    return number(info.Env(), Status::kInvalidParameter);
  }
  return number(info.Env(), engine_->deregisterMr(pd, lkey));
}

Napi::Value NativeHca::allocateMw(const Info& info) {
  Handle pd, mw = 0;
  uint32_t rkey = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(info.Env(), info[0], &pd)) {
    status = engine_->allocateMw(pd, &mw, &rkey);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("mw", mw);
  out.Set("rkey", rkey);
  return out;
}

Napi::Value NativeHca::deallocateMw(const Info& info) { return handleCommand(info, &Engine::deallocateMw); }

}  // namespace nd::js
