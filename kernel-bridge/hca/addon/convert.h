// Checked conversion of JavaScript values to C++. Every reader returns false for a value that is not exactly of the
// required kind, and leaves no exception pending (a getter that throws counts as a wrong value).
#pragma once
#include "napi_header.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "engine/engine.h"

namespace nd::js {

constexpr double kMaxSafe = 9007199254740991.0;
// Bytes of a ring (allocateRing).
constexpr double kMaxRing = 1u << 30;

inline bool clearException(napi_env env) {
  bool pending = false;
  napi_value ignored;
  if (napi_is_exception_pending(env, &pending) == napi_ok && pending) {
    napi_get_and_clear_last_exception(env, &ignored);
    return true;
  }
  return false;
}

inline bool toDouble(napi_env env, napi_value value, double* out) {
  return value != nullptr && napi_get_value_double(env, value, out) == napi_ok && !std::isnan(*out);
}

// Reads an integer in 0..max.
template <typename T>
bool toUint(napi_env env, napi_value value, T* out, double max = kMaxSafe) {
  double number;
  if (!toDouble(env, value, &number) || number < 0 || number > max || number != std::floor(number)) return false;
  *out = static_cast<T>(number);
  return true;
}

inline bool toU32(napi_env env, napi_value value, uint32_t* out) { return toUint(env, value, out, 4294967295.0); }

inline bool toBool(napi_env env, napi_value value, bool* out) {
  return value != nullptr && napi_get_value_bool(env, value, out) == napi_ok;
}

struct Bytes {
  const uint8_t* data = nullptr;
  size_t length = 0;
};

// Reads a Uint8Array (over an ArrayBuffer or SharedArrayBuffer); with `optional`, also null or undefined.
inline bool toBytes(napi_env env, napi_value value, Bytes* out, bool optional = false) {
  *out = Bytes{};
  if (value == nullptr) return optional;
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok) return false;
  if (type == napi_undefined || type == napi_null) return optional;
  bool isTyped = false;
  napi_typedarray_type kind;
  void* data = nullptr;
  if (napi_is_typedarray(env, value, &isTyped) != napi_ok || !isTyped) return false;
  if (napi_get_typedarray_info(env, value, &kind, &out->length, &data, nullptr, nullptr) != napi_ok) return false;
  if (kind != napi_uint8_array) return false;
  out->data = static_cast<const uint8_t*>(data);
  if (out->data == nullptr) out->length = 0;
  return true;
}

inline bool toGid(napi_env env, napi_value value, Gid* out) {
  Bytes bytes;
  if (!toBytes(env, value, &bytes) || bytes.length != out->raw.size()) return false;
  std::memcpy(out->raw.data(), bytes.data, bytes.length);
  return true;
}

inline bool toString(napi_env env, napi_value value, std::string* out) {
  size_t length = 0;
  if (value == nullptr || napi_get_value_string_utf8(env, value, nullptr, 0, &length) != napi_ok) return false;
  out->resize(length + 1);
  if (napi_get_value_string_utf8(env, value, &(*out)[0], length + 1, &length) != napi_ok) return false;
  out->resize(length);
  return true;
}

// Reads properties of one object. ok() is false once any read has failed.
class Reader {
 public:
  Reader(napi_env env, napi_value object) : env_(env), object_(object) {
    napi_valuetype type;
    ok_ = object != nullptr && napi_typeof(env, object, &type) == napi_ok && type == napi_object;
  }
  bool ok() const { return ok_; }
  // The name of the first invalid property, for messages.
  const std::string& wrong() const { return wrong_; }

  napi_value get(const char* name) {
    napi_value value = nullptr;
    if (!ok_) return nullptr;
    if (napi_get_named_property(env_, object_, name, &value) != napi_ok) {
      clearException(env_);
      return nullptr;
    }
    return value;
  }
  bool has(const char* name) {
    bool result = false;
    return ok_ && napi_has_named_property(env_, object_, name, &result) == napi_ok && result;
  }
  template <typename T>
  Reader& uint(const char* name, T* out, double max = 4294967295.0) {
    return note(toUint(env_, get(name), out, max), name);
  }
  template <typename T>
  Reader& uint(const char* name, T* out, double min, double max) {
    T value = 0;
    const bool good = toUint(env_, get(name), &value, max) && static_cast<double>(value) >= min;
    if (good) *out = value;
    return note(good, name);
  }
  // Reads a time in milliseconds and converts it to nanoseconds.
  Reader& milliseconds(const char* name, uint64_t* out, double min, double max) {
    uint(name, out, min, max);
    *out *= 1'000'000;
    return *this;
  }
  // Reads one of several strings; the enumerators are in the same order.
  template <typename E>
  Reader& choice(const char* name, E* out, std::initializer_list<const char*> texts) {
    std::string text;
    const bool isText = toString(env_, get(name), &text);
    const auto* const found = std::find(texts.begin(), texts.end(), text);
    if (isText && found != texts.end()) *out = static_cast<E>(found - texts.begin());
    return note(isText && found != texts.end(), name);
  }
  Reader& number(const char* name, double* out, double min, double max) {
    double value;
    const bool good = toDouble(env_, get(name), &value) && value >= min && value <= max;
    if (good) *out = value;
    return note(good, name);
  }
  Reader& boolean(const char* name, bool* out) { return note(toBool(env_, get(name), out), name); }
  Reader& string(const char* name, std::string* out) { return note(toString(env_, get(name), out), name); }
  Reader& note(bool good, const char* name) {
    if (ok_ && !good) {
      ok_ = false;
      wrong_ = name;
    }
    return *this;
  }

 private:
  napi_env env_;
  napi_value object_;
  bool ok_ = false;
  std::string wrong_;
};

// Returns the numbers of a schema record as an object.
template <typename T>
Napi::Object numbersToJs(Napi::Env env, const T& record) {
  Napi::Object out = Napi::Object::New(env);
  T::each([&](const char* name, auto member, double, uint32_t) {
    out.Set(name, static_cast<double>(record.*member));
    return true;
  });
  return out;
}

// Returns undefined while the environment is being terminated, since V8 then creates no buffers and the result is never
// read.
inline Napi::Value copyToJs(Napi::Env env, const uint8_t* data, size_t length) {
  void* bytes = nullptr;
  napi_value buffer, array;
  if (napi_create_arraybuffer(env, length, &bytes, &buffer) != napi_ok ||
      napi_create_typedarray(env, napi_uint8_array, length, buffer, 0, &array) != napi_ok)
    return env.Undefined();
  if (length > 0) std::memcpy(bytes, data, length);
  return Napi::Value(env, array);
}

inline Napi::Value statusToJs(Napi::Env env, Status status) {
  return Napi::Number::New(env, static_cast<uint32_t>(status));
}

inline Napi::Value pathToJs(Napi::Env env, const Path& path) {
  const auto gid = [&env](const Gid& g) { return copyToJs(env, g.raw.data(), g.raw.size()); };
  Napi::Object out = Napi::Object::New(env);
  out.Set("source", gid(path.source));
  out.Set("destination", gid(path.destination));
  out.Set("flowLabel", path.flowLabel);
  out.Set("trafficClass", path.trafficClass);
  out.Set("hopLimit", path.hopLimit);
  out.Set("scopeId", path.scopeId);
  return out;
}

}  // namespace nd::js
