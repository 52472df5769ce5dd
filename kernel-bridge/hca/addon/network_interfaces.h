// The host's network interfaces and routes, for JavaScript.
#pragma once
#include "napi_header.h"

namespace nd::js {

// interfaces(): NativeInterface[]
Napi::Value interfaces(const Napi::CallbackInfo& info);
// findRoute(destination, source, interfaceIndex): { status, source, interfaceIndex, mtu }
Napi::Value findRouteJs(const Napi::CallbackInfo& info);
// hostIdentity(): string
Napi::Value hostIdentityJs(const Napi::CallbackInfo& info);

}  // namespace nd::js
