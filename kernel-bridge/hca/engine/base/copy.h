// Copies of user data. Source and destination may overlap, as for memmove.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nd {

// Copies at most 64 bytes without a function call, by overlapping copies of one size.
inline void copySmall(uint8_t* to, const uint8_t* from, size_t length) {
  const auto ends = [&](auto piece) {
    constexpr size_t size = sizeof piece;
    auto last = piece;
    std::memcpy(&piece, from, size);
    std::memcpy(&last, from + length - size, size);
    std::memcpy(to, &piece, size);
    std::memcpy(to + length - size, &last, size);
  };
  struct Half {
    uint64_t words[2];
  };
  struct Whole {
    uint64_t words[4];
  };
  if (length >= 32) return ends(Whole{});
  if (length >= 16) return ends(Half{});
  if (length >= 8) return ends(uint64_t(0));
  if (length >= 4) return ends(uint32_t(0));
  if (length >= 2) return ends(uint16_t(0));
  if (length != 0) *to = *from;
}

// From about 2 KiB on, the C library copies with `rep movsb`. On Zen 3 this runs at a twentieth of its normal speed if
// the destination is 1 to 31 bytes above the source, modulo the page size. The case is common: a large malloc
// allocation starts 16 bytes above a page boundary, and shared memory starts on one. Pieces of 2 KiB are copied with
// other instructions.
constexpr size_t kCopyPiece = 2048;
inline bool needsPieces(uintptr_t to, uintptr_t from, size_t length) {
  const uintptr_t above = to - from;
  // A destination that starts within the source must be written from its end.
  return above % 4096 - 1 < 31 && above >= length;
}

// Copies any number of bytes; with 0 bytes the addresses are not used.
inline void copyBytes(void* to, const void* from, size_t length) {
  auto* at = static_cast<uint8_t*>(to);
  auto* source = static_cast<const uint8_t*>(from);
  if (length <= 64) return copySmall(at, source, length);
  if (length > kCopyPiece && needsPieces(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), length)) {
    for (; length > kCopyPiece; at += kCopyPiece, source += kCopyPiece, length -= kCopyPiece)
      std::memmove(at, source, kCopyPiece);
  }
  std::memmove(at, source, length);
}

}  // namespace nd
