// Methods that JavaScript calls again and again, as functions of one object. For a method of the class Node-API looks the native
// object up in a hidden member of `this` at each call, a quarter of what a short one costs; these bring its address along.
#pragma once
#include "napi_header.h"

namespace nd::js {

template <typename T, Napi::Value (T::*kMethod)(const Napi::CallbackInfo&)>
Napi::Value callOwn(const Napi::CallbackInfo& info) {
  return (static_cast<T*>(info.Data())->*kMethod)(info);
}

// A member of `holder`. `self` is the object that wraps `native`; it may be the holder itself, but V8 makes a table that is slower to
// read of an object that is given more than a dozen.
template <typename T, Napi::Value (T::*kMethod)(const Napi::CallbackInfo&)>
void addOwnMethod(Napi::Object holder, Napi::Object self, T* native, const char* name) {
  const Napi::Function method = Napi::Function::New<&callOwn<T, kMethod>>(self.Env(), name, native);
  // Who keeps the method alone keeps the object, too, and nobody can take it away: the address would be that of freed memory.
  method.DefineProperty(Napi::PropertyDescriptor::Value("object", self));
  holder.Set(name, method);
}

}  // namespace nd::js
