// Includes the roles that support long distances between two instances of this package.
#pragma once
#include "transport/extensions/lost_responses.h"
#include "transport/extensions/fragments.h"
#include "transport/extensions/long_window.h"
#include "transport/extensions/selective_ack.h"

namespace nd {

constexpr uint32_t kBuiltExtensions = extensions::kAll;

}  // namespace nd
