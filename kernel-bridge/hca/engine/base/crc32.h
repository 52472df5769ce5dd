// CRC-32 (reflected polynomial 0xEDB88320), computed by the fastest method that the CPU supports.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nd {

// Returns the register after `length` more bytes, without inversion at either end.
uint32_t crc32Register(uint32_t state, const uint8_t* data, size_t length);

// Copies `length` bytes and returns the register after them. The result is that of the copied bytes, even if the source
// changes meanwhile. The ranges must not overlap.
uint32_t crc32Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);

// Returns the register after 16 bytes and `length` more. The 16 bytes are in `low` and `high`, lowest bits first; the
// others are copied as by crc32Copy if `to` is not null. The initial register is 0. To continue from a register r, XOR
// r into the first 4 message bytes (after zero padding).
uint32_t crc32Behind(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);

// Does the same as crc32Register for a few bytes (at least 4) that are preceded by kCrc32Room writable bytes.
// Overwrites that room and the first 4 bytes.
constexpr size_t kCrc32Room = 16;
uint32_t crc32Short(uint32_t state, uint8_t* data, size_t length);

// Does the same as crc32Register by tables, on any CPU.
uint32_t crc32RegisterPortable(uint32_t state, const uint8_t* data, size_t length);

// All methods that this CPU supports, fastest first; for tests and measurements.
struct Crc32Way {
  const char* name;
  uint32_t (*run)(uint32_t state, const uint8_t* data, size_t length);
  uint32_t (*copy)(uint32_t state, uint8_t* to, const uint8_t* from, size_t length);
  uint32_t (*behind)(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length);  // as crc32Behind
  uint32_t (*few)(uint32_t state, uint8_t* data, size_t length);                                     // as crc32Short
};
const std::vector<Crc32Way>& crc32Ways();

}  // namespace nd
