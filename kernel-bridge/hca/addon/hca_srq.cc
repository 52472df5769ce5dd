// Shared receive queues.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

Napi::Value NativeHca::createSrqWords(const Info& info) {
  if (!open_) return number(info.Env(), Status::kDeviceRemoved);
  SrqCreate request;
  request.kernel = kernel_;
  Handle srq = 0;
  const Status status = words_.read(&request) ? engine_->createSrq(request, &srq) : Status::kInvalidParameter;
  words_.words[0] = srq;
  return number(info.Env(), status);
}

Napi::Value NativeHca::modifySrqWords(const Info& info) {
  Napi::Env env = info.Env();
  Handle srq;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &srq) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  SrqAttributes attributes;
  if (!words_.read(&attributes, mask)) return number(env, Status::kInvalidParameter);
  return number(env, engine_->modifySrq(srq, mask, attributes));
}

Napi::Value NativeHca::querySrq(const Info& info) {
  Napi::Env env = info.Env();
  Handle srq;
  SrqAttributes attributes;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (toU32(env, info[0], &srq)) {
    status = engine_->querySrq(srq, &attributes);
  }
  Napi::Object out = result(env, status);
  out.Set("entries", attributes.entries);
  out.Set("limit", attributes.limit);
  out.Set("sge", attributes.sge);
  return out;
}

Napi::Value NativeHca::destroySrq(const Info& info) { return handleCommand(info, &Engine::destroySrq); }

}  // namespace nd::js
