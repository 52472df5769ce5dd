// Seeded random numbers, and the bytes of messages, which are derived from their numbers.
#pragma once
#include <cstdint>
#include <cstring>

namespace simulation {

// SplitMix64's finalizer: every bit of the result depends on every bit of x.
inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Returns a number in [0, 1).
inline double unit(uint64_t bits) { return double(bits >> 11) * 0x1.0p-53; }

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_++); }
  uint32_t below(uint32_t n) { return n == 0 ? 0 : uint32_t(next() % n); }
  uint64_t upTo(uint64_t n) { return next() % (n + 1); }
  bool chance(double p) { return p > 0 && unit(next()) < p; }

 private:
  uint64_t state_;
};

// Writes the bytes of the message with this key.
inline uint64_t wordOf(uint64_t key, uint32_t i) { return (key + i) * 0x9E3779B97F4A7C15ull; }

inline void fill(uint8_t* to, uint32_t length, uint64_t key) {
  uint32_t i = 0;
  for (; i + 8 <= length; i += 8) {
    const uint64_t word = wordOf(key, i / 8);
    std::memcpy(to + i, &word, 8);
  }
  const uint64_t word = wordOf(key, i / 8);
  std::memcpy(to + i, &word, length - i);
}

// Returns the first offset at which the bytes differ, or `length`.
inline uint32_t firstWrong(const uint8_t* from, uint32_t length, uint64_t key) {
  for (uint32_t i = 0; i < length; i += 8) {
    const uint64_t word = wordOf(key, i / 8);
    const uint32_t n = length - i < 8 ? length - i : 8;
    if (std::memcmp(from + i, &word, n) == 0) continue;
    while (from[i] == uint8_t(word >> 8 * (i & 7))) i++;
    return i;
  }
  return length;
}

}  // namespace simulation
