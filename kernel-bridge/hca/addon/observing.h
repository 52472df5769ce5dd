// Statistics of this HCA for its kernel, and of other processes for any caller.
#pragma once
#include "napi_header.h"

namespace nd::js {

// observeProcesses(longestMs): a promise.
Napi::Value observeProcessesJs(const Napi::CallbackInfo& info);
// otherDialectAt(service, port, address): the process id, or undefined.
Napi::Value otherDialectAtJs(const Napi::CallbackInfo& info);

}  // namespace nd::js
