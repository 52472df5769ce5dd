// wordTables() of binding.ts.
#pragma once
#include "napi_header.h"

namespace nd::js {

Napi::Value wordTables(const Napi::CallbackInfo& info);

}  // namespace nd::js
