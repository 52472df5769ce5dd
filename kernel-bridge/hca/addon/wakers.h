// Implements createWaker() of soft-hca-binding.ts.
#pragma once
#include "env.h"
#include "waker.h"

namespace nd::js {

Napi::Value createWaker(const Napi::CallbackInfo& info);

}  // namespace nd::js
