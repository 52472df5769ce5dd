#include "addon/v8_functions.h"

#include <cstdint>

#include "platform/os.h"
#include "platform/windows/system.h"

// Node.js for Windows is built with Microsoft's C++ library. Its shared_ptr consists of a pointer and a reference-count
// block. The layout has been the same since Visual C++ 2015, and is the same for all compilers that use the library.
namespace nd::js {
namespace {

struct Block {
  struct Methods {
    void (*destroy)(Block*);  // the object pointed to
    void (*deleteThis)(Block*);
  };
  const Methods* methods;
  volatile LONG uses, weak;
};

struct SharedPointer {
  void* pointer = nullptr;
  Block* block = nullptr;
};

}  // namespace

// One of the shared owners.
struct V8BackingStore {
  ~V8BackingStore() {
    if (shared.block == nullptr || InterlockedDecrement(&shared.block->uses) != 0) return;
    shared.block->methods->destroy(shared.block);
    if (InterlockedDecrement(&shared.block->weak) == 0) shared.block->methods->deleteThis(shared.block);
  }
  SharedPointer shared;
};

namespace {

// The calling convention passes `this` first, and then the address of a result that is an object.
struct Found {
  void (*ofArrayBuffer)(napi_value, SharedPointer*) = nullptr;
  void (*ofSharedArrayBuffer)(napi_value, SharedPointer*) = nullptr;
  void* (*data)(const void*) = nullptr;
  size_t (*byteLength)(const void*) = nullptr;
  bool (*isResizable)(const void*) = nullptr;
};
Found found;

template <typename Function>
bool find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(findSymbol(name));
  return *out != nullptr;
}

StoreHold holdOf(void (*function)(napi_value, SharedPointer*), napi_value value) {
  auto hold = std::make_shared<V8BackingStore>();
  function(value, &hold->shared);
  return hold->shared.pointer != nullptr ? hold : nullptr;
}

}  // namespace

bool findV8Functions(V8Functions* out) {
  out->ofArrayBuffer = [](napi_value value) { return holdOf(found.ofArrayBuffer, value); };
  out->ofSharedArrayBuffer = [](napi_value value) { return holdOf(found.ofSharedArrayBuffer, value); };
  out->data = [](const V8BackingStore* store) { return found.data(store->shared.pointer); };
  out->byteLength = [](const V8BackingStore* store) { return found.byteLength(store->shared.pointer); };
  out->isResizable = [](const V8BackingStore* store) { return found.isResizable(store->shared.pointer); };
  out->uses = [](const StoreHold& hold) { return long{hold->shared.block != nullptr ? hold->shared.block->uses : 0}; };
  return find("?GetBackingStore@ArrayBuffer@v8@@QEAA?AV?$shared_ptr@VBackingStore@v8@@@std@@XZ",
              &found.ofArrayBuffer) &&
         find("?GetBackingStore@SharedArrayBuffer@v8@@QEAA?AV?$shared_ptr@VBackingStore@v8@@@std@@XZ",
              &found.ofSharedArrayBuffer) &&
         find("?IsDetachable@ArrayBuffer@v8@@QEBA_NXZ", &out->isDetachable) &&
         find("?Data@BackingStore@v8@@QEBAPEAXXZ", &found.data) &&
         find("?ByteLength@BackingStore@v8@@QEBA_KXZ", &found.byteLength) &&
         find("?IsResizableByUserJavaScript@BackingStore@v8@@QEBA_NXZ", &found.isResizable);
}

}  // namespace nd::js
