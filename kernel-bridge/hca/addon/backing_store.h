// V8's reference to the memory of a buffer. It remains valid after the ArrayBuffer has ended or was detached.
//
// N-API has no call for it. V8 exports the functions, which are looked up by name at run time, so one binary serves all
// versions of Node.js as with N-API alone. A run-time test verifies once that they behave as expected;
// docs/internals/memory-and-rings.md lists the rejected alternatives.
#pragma once
#include "v8_functions.h"

#include <cstdint>
#include <memory>

namespace nd::js {

enum class StoreFound {
  kYes,
  kUnknown,    // not available in this runtime, or not for this buffer
  kResizable,  // JavaScript can shrink this memory
};

struct FoundStore {
  StoreFound found = StoreFound::kUnknown;
  StoreHold store;          // kYes
  bool detachable = false;  // JavaScript can detach it; WebAssembly memory is not detachable
};

// Holds the memory of the `length` bytes at `data` in `buffer`, an ArrayBuffer or a SharedArrayBuffer. The last
// reference may be dropped only on the environment's thread.
FoundStore backingStoreOf(napi_env env, napi_value buffer, const uint8_t* data, size_t length);

}  // namespace nd::js
