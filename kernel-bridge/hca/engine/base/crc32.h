// CRC-32 (reflected polynomial 0xEDB88320) by the fastest method of the CPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nd {

// The register after `length` more bytes, without inversion at either end.
uint32_t crc32Register(uint32_t state, const uint8_t* data, size_t length);

// Copies `length` bytes and returns the register after them: that of the copied bytes, even if the source changes
// meanwhile. The ranges must not overlap.
uint32_t crc32Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);

// The register after 16 bytes, held in `low` and `high` from their lowest bits on, and `length` more bytes, which are
// copied as by crc32Copy if `to` is not null. Initial register 0; to continue from register r, XOR r into the first 4
// message bytes (after zero padding).
uint32_t crc32Behind(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);

// As crc32Register, for a few bytes (at least 4) preceded by kCrc32Room bytes. Overwrites those and the first 4.
constexpr size_t kCrc32Room = 16;
uint32_t crc32Short(uint32_t state, uint8_t* data, size_t length);

// The same by tables, on any CPU.
uint32_t crc32RegisterPortable(uint32_t state, const uint8_t* data, size_t length);

// All methods of this CPU, fastest first. For tests and measurements.
struct Crc32Way {
  const char* name;
  uint32_t (*run)(uint32_t state, const uint8_t* data, size_t length);
  uint32_t (*copy)(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);
  uint32_t (*behind)(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);  // as crc32Behind
  uint32_t (*few)(uint32_t state, uint8_t* data, size_t length);                                     // as crc32Short
};
const std::vector<Crc32Way>& crc32Ways();

}  // namespace nd
