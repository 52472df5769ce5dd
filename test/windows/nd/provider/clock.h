// The provider's thread, which runs delayed actions and handles frames of other processes.
#pragma once
#include <functional>
#include "object.h"

namespace nd2 {

/// Runs `action` on the provider's thread, with the lock, in `ms` milliseconds.
void after(INT64 ms, std::function<void()> action);
/// Runs `action` on the provider's thread, with the lock, as soon as possible. The caller need not hold the lock.
void soon(std::function<void()> action);

}  // namespace nd2
