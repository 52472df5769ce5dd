// Frequently called methods, as functions that belong to one object. For a method of a class, Node-API reads the native
// object from a hidden member of `this` on each call, which is a quarter of the cost of a short call. These functions
// carry the object's address instead.
#pragma once
#include "napi_header.h"

namespace nd::js {

template <typename T, Napi::Value (T::*kMethod)(const Napi::CallbackInfo&)>
Napi::Value callOwn(const Napi::CallbackInfo& info) {
  return (static_cast<T*>(info.Data())->*kMethod)(info);
}

// In a thread that is being terminated, Node-API creates no objects. The objects of node-addon-api are then empty, and
// most of their methods end the process.
inline bool anyEmpty(std::initializer_list<Napi::Value> values) {
  for (const Napi::Value& value : values)
    if (value.IsEmpty()) return true;
  return false;
}

// Adds a member to `holder`, unless the thread is being terminated. `self` is the object that wraps `native`. The
// holder may be that object itself, but V8 turns an object with more than a dozen such members into a hash table, which
// is slower to read.
template <Napi::Value (*kFunction)(const Napi::CallbackInfo&)>
void addOwnFunction(Napi::Object holder, Napi::Object self, void* native, const char* name) {
  if (anyEmpty({holder, self})) return;
  const Napi::Function method = Napi::Function::New<kFunction>(self.Env(), name, native);
  if (method.IsEmpty()) return;
  // The function refers to the object by a property that cannot be removed; otherwise the address could point to freed
  // memory.
  method.DefineProperty(Napi::PropertyDescriptor::Value("object", self));
  holder.Set(name, method);
}

template <typename T, Napi::Value (T::*kMethod)(const Napi::CallbackInfo&)>
void addOwnMethod(Napi::Object holder, Napi::Object self, T* native, const char* name) {
  addOwnFunction<&callOwn<T, kMethod>>(holder, self, native, name);
}

}  // namespace nd::js
