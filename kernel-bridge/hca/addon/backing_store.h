// V8's hold of the memory of a buffer. It outlives the ArrayBuffer, and whatever detaches that.
//
// N-API has no call for it. V8 exports the functions, so they are found by name when the addon runs: one binary serves all versions of
// Node.js, as with N-API alone. A test shows once that they are what they seem; docs/architecture.md says what else was weighed.
#pragma once
#include "napi_header.h"

#include <cstdint>
#include <memory>

namespace nd::js {

struct V8BackingStore;  // v8::BackingStore

enum class StoreFound {
  kYes,
  kUnknown,    // this runtime does not give it, or not this buffer's
  kResizable,  // JavaScript can take a part of this memory away
};

struct FoundStore {
  StoreFound found = StoreFound::kUnknown;
  std::shared_ptr<V8BackingStore> store;  // kYes
  bool detachable = false;                // by JavaScript; what WebAssembly made is not
};

// The memory under `length` bytes at `data`, which lie in `buffer`, an ArrayBuffer or a SharedArrayBuffer. The last hold may be dropped on
// the environment's thread only.
FoundStore backingStoreOf(napi_env env, napi_value buffer, const uint8_t* data, size_t length);

}  // namespace nd::js
