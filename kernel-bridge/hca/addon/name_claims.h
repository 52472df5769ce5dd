// Names of listeners: a program finds the port of another program of the same user by name.
#pragma once
#include "napi_header.h"

namespace nd::js {

// claimName(name): the claim, or an errno.
Napi::Value claimName(const Napi::CallbackInfo& info);
// publishPort(claim, port): 0 or an errno.
Napi::Value publishPort(const Napi::CallbackInfo& info);
// releaseName(claim)
Napi::Value releaseName(const Napi::CallbackInfo& info);
// portsOfName(name): strings, several while the last one of a dead owner disappears. Null: no descriptor or memory for
// the query.
Napi::Value portsOfName(const Napi::CallbackInfo& info);

}  // namespace nd::js
