// V8's reference to the memory of a buffer. It outlives the ArrayBuffer, also if that is detached.
//
// N-API has no call for it. V8 exports the functions, so they are found by name when the addon runs: one binary serves
// all versions of Node.js, as with N-API alone. A test at run time verifies once that they behave as expected;
// docs/internals/memory-and-rings.md has the rejected alternatives.
#pragma once
#include "v8_functions.h"

#include <cstdint>
#include <memory>

namespace nd::js {

enum class StoreFound {
  kYes,
  kUnknown,    // this runtime does not give it, or not that of this buffer
  kResizable,  // JavaScript can shrink this memory
};

struct FoundStore {
  StoreFound found = StoreFound::kUnknown;
  StoreHold store;          // kYes
  bool detachable = false;  // by JavaScript; WebAssembly memory is not
};

// The memory of the `length` bytes at `data` in `buffer`, an ArrayBuffer or a SharedArrayBuffer. The last reference may
// be dropped on the environment's thread only.
FoundStore backingStoreOf(napi_env env, napi_value buffer, const uint8_t* data, size_t length);

}  // namespace nd::js
