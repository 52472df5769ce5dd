// CRC-32 (reflected polynomial 0xEDB88320) by the fastest method of the processor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nd {

// The register after `length` more bytes. No inversion at either end.
uint32_t crc32Register(uint32_t state, const uint8_t* data, size_t length);

// Copies `length` bytes and returns the register after them. It is the register of the copied bytes, even if the source
// changes meanwhile. The ranges do not overlap.
uint32_t crc32Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);

// The register after 16 bytes, which `low` and `high` hold from their lowest bits on, and `length` more, which are
// copied as by crc32Copy if `to` is not null. Initial register 0; to continue from register r, XOR r into the first 4
// message bytes (after zero padding).
uint32_t crc32Behind(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);

// As crc32Register, for few bytes (at least 4) with kCrc32Room bytes before them. Changes those and the first 4.
constexpr size_t kCrc32Room = 16;
uint32_t crc32Short(uint32_t state, uint8_t* data, size_t length);

// The same by tables, on any processor.
uint32_t crc32RegisterPortable(uint32_t state, const uint8_t* data, size_t length);

// All methods of this processor, the best one first. For tests and measurements.
struct Crc32Way {
  const char* name;
  uint32_t (*run)(uint32_t state, const uint8_t* data, size_t length);
  uint32_t (*copy)(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);
  uint32_t (*behind)(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);  // as crc32Behind
  uint32_t (*few)(uint32_t state, uint8_t* data, size_t length);                                     // as crc32Short
};
const std::vector<Crc32Way>& crc32Ways();

}  // namespace nd
