// HcaOptions of hca-parameters.ts as the engine and the host take them.
#pragma once
#include "convert.h"
#include "host/host.h"

namespace nd::js {

// False: `problem` names the property that is wrong.
bool readOptions(Napi::Env env, napi_value value, EngineOptions* engine, HostOptions* host, std::string* problem);

}  // namespace nd::js
