#include "addon/v8_functions.h"

#include "platform/os.h"

namespace nd::js {
namespace {

template <typename Function>
bool find(const char* name, Function* out) {
  *out = reinterpret_cast<Function>(findSymbol(name));
  return *out != nullptr;
}

}  // namespace

// The member functions are called as plain functions on `this`. The Itanium C++ ABI passes `this` as the first
// argument, and a shared_ptr by a hidden pointer.
bool findV8Functions(V8Functions* out) {
  // This mangled name shows that the runtime uses libstdc++'s shared_ptr, as this addon does.
  void* newArrayBuffer = nullptr;
  out->uses = [](const StoreHold& hold) { return hold.use_count(); };
  return find("_ZN2v811ArrayBuffer3NewEPNS_7IsolateESt10shared_ptrINS_12BackingStoreEE", &newArrayBuffer) &&
         find("_ZN2v811ArrayBuffer15GetBackingStoreEv", &out->ofArrayBuffer) &&
         find("_ZN2v817SharedArrayBuffer15GetBackingStoreEv", &out->ofSharedArrayBuffer) &&
         find("_ZNK2v811ArrayBuffer12IsDetachableEv", &out->isDetachable) &&
         find("_ZNK2v812BackingStore4DataEv", &out->data) &&
         find("_ZNK2v812BackingStore10ByteLengthEv", &out->byteLength) &&
         find("_ZNK2v812BackingStore27IsResizableByUserJavaScriptEv", &out->isResizable);
}

}  // namespace nd::js
