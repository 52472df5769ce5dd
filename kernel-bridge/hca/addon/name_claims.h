// Names of listeners, by which a program finds the port of another program of the same user.
#pragma once
#include "napi_header.h"

namespace nd::js {

// claimName(name): the claim, or an errno.
Napi::Value claimName(const Napi::CallbackInfo& info);
// publishPort(claim, port): 0 or an errno.
Napi::Value publishPort(const Napi::CallbackInfo& info);
// releaseName(claim)
Napi::Value releaseName(const Napi::CallbackInfo& info);
// portsOfName(name): strings; several while that of a dead owner is still disappearing. Null if descriptors or memory
// are exhausted.
Napi::Value portsOfName(const Napi::CallbackInfo& info);

}  // namespace nd::js
