// Numbers and bytes that JavaScript and the HCA's commands exchange instead of objects (hca-words-put.ts, hca-words-event.ts).
#pragma once
#include "convert.h"
#include "qp_words.h"

namespace nd::js {

struct Words {
  static constexpr size_t kCount = 24, kPathAt = 18, kMadAt = 32, kMadBytes = wire::kMadBytes, kBytes = kMadAt + kMadBytes;
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
    size_t at = kPathAt;
    return eachWordOfPath(*out, [&](const char*, auto& member, double max) { return uint(at++, &member, max); });
  }
  const uint8_t* mad() const { return bytes + kMadAt; }
};

}  // namespace nd::js
