// Shared receive queues.
#include "hca.h"
#include "hca_commands.h"

namespace nd::js {

Napi::Value NativeHca::createSrq(const Info& info) {
  SrqCreate request;
  request.kernel = kernel_;
  Reader reader(info.Env(), info[0]);
  reader.uint("pd", &request.pd)
      .uint("ringAddress", &request.ringAddress, kMaxSafe)
      .uint("ringBytes", &request.ringBytes, kMaxSafe)
      .uint("entries", &request.entries)
      .uint("stride", &request.stride)
      .uint("sge", &request.sge);
  Handle srq = 0;
  Status status = Status::kInvalidParameter;
  if (!open_) {
    status = Status::kDeviceRemoved;
  } else if (reader.ok()) {
    status = engine_->createSrq(request, &srq);
  }
  Napi::Object out = result(info.Env(), status);
  out.Set("srq", srq);
  return out;
}

Napi::Value NativeHca::modifySrq(const Info& info) {
  Napi::Env env = info.Env();
  Handle srq;
  uint32_t mask;
  if (!open_) return number(env, Status::kDeviceRemoved);
  if (!toU32(env, info[0], &srq) || !toU32(env, info[1], &mask)) return number(env, Status::kInvalidParameter);
  // Only the members of the mask are read, because the object is partial.
  SrqAttributes attributes;
  Reader reader(env, info[2]);
  if ((mask & srqmask::kEntries) != 0) {
    reader.uint("entries", &attributes.entries)
        .uint("ringAddress", &attributes.ringAddress, kMaxSafe)
        .uint("ringBytes", &attributes.ringBytes, kMaxSafe);
  }
  if ((mask & srqmask::kLimit) != 0) reader.uint("limit", &attributes.limit);
  if (!reader.ok()) return number(env, Status::kInvalidParameter);
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
