// Member functions of V8 that Node.js exports and N-API lacks, looked up by name.
#pragma once
#include "napi_header.h"

#include <memory>

namespace nd::js {

struct V8BackingStore;  // v8::BackingStore, or a holder of one
using StoreHold = std::shared_ptr<V8BackingStore>;

struct V8Functions {
  StoreHold (*ofArrayBuffer)(napi_value) = nullptr;
  StoreHold (*ofSharedArrayBuffer)(napi_value) = nullptr;
  bool (*isDetachable)(napi_value) = nullptr;  // an ArrayBuffer
  void* (*data)(const V8BackingStore*) = nullptr;
  size_t (*byteLength)(const V8BackingStore*) = nullptr;
  bool (*isResizable)(const V8BackingStore*) = nullptr;
  long (*uses)(const StoreHold&) = nullptr;  // number of holders, including V8 itself
};

// Returns false if this runtime lacks one of them.
bool findV8Functions(V8Functions* out);

}  // namespace nd::js
