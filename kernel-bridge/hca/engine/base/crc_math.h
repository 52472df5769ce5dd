// Arithmetic modulo the CRC-32 polynomial, in the reflected order of the CRC register: bit 31 is x^0.
#pragma once
#include <cstdint>

namespace nd::crc {

constexpr uint32_t kPolynomial = 0xEDB88320;  // x^32 is implied
constexpr uint32_t kOne = 0x80000000;

// Returns the product of two residues.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// Returns the residue of x^n.
constexpr uint32_t powerOfX(uint64_t n) {
  uint32_t result = kOne, square = kOne >> 1;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

}  // namespace nd::crc
