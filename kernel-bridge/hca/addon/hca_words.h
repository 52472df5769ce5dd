// Numbers and bytes that JavaScript and the HCA's commands exchange instead of objects (schema/generated).
#pragma once
#include "convert.h"
#include "objects/parameters.h"

namespace nd::js {

struct Words : WordPlaces {
  Words() = default;
  Words(double* w, uint8_t* b) : words(w), bytes(b) {}
  double* words = nullptr;   // parameters and results start at the first; a path's four numbers are at kPathAt
  uint8_t* bytes = nullptr;  // a path's source and destination, then a MAD

  // Reads an integer in 0..max.
  template <typename T>
  bool uint(size_t index, T* out, double max = 4294967295.0) const {
    const double value = words[index];
    if (!(value >= 0 && value <= max) || value != std::floor(value)) return false;
    *out = static_cast<T>(value);
    return true;
  }
  // Reads a record, or only the members that its mask names if it has one. Returns false if a member has an invalid
  // value.
  template <typename T>
  bool read(T* out, uint32_t mask = 0) const {
    size_t at = 0;
    return T::each([&](const char*, auto member, double max, uint32_t bit) {
      const size_t index = at++;
      return (bit != 0 && (mask & bit) == 0) || uint(index, &(out->*member), max);
    });
  }
  bool attributes(uint32_t mask, QpAttributes* out) const {
    return ((mask & qpmask::kPath) == 0 || path(&out->path)) && read(out, mask);
  }
  Gid gid(size_t at) const {
    Gid out;
    std::memcpy(out.raw.data(), bytes + at, out.raw.size());
    return out;
  }
  bool path(Path* out) const {
    out->source = gid(0);
    out->destination = gid(sizeof out->source.raw);
    size_t at = kPathAt;
    return eachWordOfPath(*out, [&](const char*, auto& member, double max) { return uint(at++, &member, max); });
  }
  const uint8_t* mad() const { return bytes + kMadAt; }
};

static_assert(Words::kBytes == Words::kMadAt + wire::kMadBytes, "the MAD comes last");

// Returns the attributes of a queue pair as an object.
inline Napi::Object attributesToJs(Napi::Env env, const QpAttributes& attributes) {
  Napi::Object out = numbersToJs<QpAttributeWords>(env, attributes);
  out.Set("type", attributes.type);
  out.Set("qpn", attributes.qpn);
  out.Set("path", pathToJs(env, attributes.path));
  return out;
}

}  // namespace nd::js
