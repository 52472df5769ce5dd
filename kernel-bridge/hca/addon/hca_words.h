// What JavaScript and the HCA's commands exchange as numbers and bytes instead of objects (hca-words.ts).
#pragma once
#include "convert.h"

namespace nd::js {

struct Words {
  static constexpr size_t kCount = 24, kPathAt = 17, kMadAt = 32, kMadBytes = 256, kBytes = kMadAt + kMadBytes;
  double* words = nullptr;    // parameters and results from the first one on; a path's four numbers at kPathAt
  uint8_t* bytes = nullptr;   // a path's source and destination, then a MAD

  // A whole number in 0..max.
  template <typename T>
  bool uint(size_t index, T* out, double max = 4294967295.0) const {
    const double value = words[index];
    if (!(value >= 0 && value <= max) || value != std::floor(value)) return false;
    *out = static_cast<T>(value);
    return true;
  }
  Gid gid(size_t at) const {
    Gid out;
    std::memcpy(out.raw.data(), bytes + at, out.raw.size());
    return out;
  }
  bool path(Path* out) const {
    out->source = gid(0);
    out->destination = gid(sizeof out->source.raw);
    return uint(kPathAt, &out->flowLabel, 0xFFFFF) && uint(kPathAt + 1, &out->trafficClass, 0xFF) &&
           uint(kPathAt + 2, &out->hopLimit, 0xFF) && uint(kPathAt + 3, &out->scopeId);
  }
  const uint8_t* mad() const { return bytes + kMadAt; }
};

}  // namespace nd::js
