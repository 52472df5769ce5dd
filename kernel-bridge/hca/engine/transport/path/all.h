// The roles that serve long distances between two instances of this package.
#pragma once
#include "transport/path/answers.h"
#include "transport/path/fragments.h"
#include "transport/path/long_window.h"
#include "transport/path/recovery.h"

namespace nd {

constexpr uint32_t kPathExtensions = extensions::kAll;

}  // namespace nd
