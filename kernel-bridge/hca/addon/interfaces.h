// The host's network interfaces, for JavaScript.
#pragma once
#include "napi_header.h"

namespace nd::js {

// interfaces(): NativeInterface[]
Napi::Value interfaces(const Napi::CallbackInfo& info);

}  // namespace nd::js
