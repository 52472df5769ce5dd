// The provider's own thread: what happens later, and what other processes send.
#pragma once
#include <functional>
#include "object.h"

namespace nd2 {

/// Runs `action` on the provider's thread, with the lock, in `ms` milliseconds.
void after(INT64 ms, std::function<void()> action);
/// Has the provider's thread run `action`, with the lock, as soon as it can; needs no lock itself.
void soon(std::function<void()> action);

}  // namespace nd2
