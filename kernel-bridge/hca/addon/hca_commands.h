// Return values of NativeHca's commands.
#pragma once
#include "convert.h"

namespace nd::js {

inline Napi::Value number(Napi::Env env, Status status) { return Napi::Number::New(env, static_cast<uint32_t>(status)); }

// {status, …}: the fields are 0 when the status is not SUCCESS.
inline Napi::Object result(Napi::Env env, Status status) {
  Napi::Object out = Napi::Object::New(env);
  out.Set("status", static_cast<uint32_t>(status));
  return out;
}

}  // namespace nd::js
