// Converts HcaOptions of hca-parameters.ts to the options of engine and host.
#pragma once
#include "convert.h"
#include "host/host.h"

namespace nd::js {

// False: `problem` names the property that is wrong.
bool readOptions(Napi::Env env, napi_value value, EngineOptions* engine, HostOptions* host, std::string* problem);

}  // namespace nd::js
