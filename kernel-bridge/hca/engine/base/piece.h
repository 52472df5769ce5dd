// A range of this process's memory, for gathering and scattering.
#pragma once
#include <algorithm>
#include <cstdint>

namespace nd {

struct Piece {
  void* data = nullptr;
  uint64_t length = 0;
};

// Copies pieces to others, in order, up to the shorter total. copy(to, from, bytes) copies at most `atOnce` bytes and
// returns their number; if it copies fewer than requested, this ends. Returns the number of bytes copied; -1: the first
// copy failed.
template <typename Copy>
int64_t copyPieces(const Piece* to, uint32_t toCount, const Piece* from, uint32_t fromCount, uint64_t atOnce,
                   Copy copy) {
  uint64_t copied = 0, within = 0;
  uint32_t source = 0;
  for (uint32_t i = 0; i < toCount; i++) {
    for (uint64_t done = 0; done < to[i].length;) {
      while (source < fromCount && within == from[source].length) {
        source++;
        within = 0;
      }
      if (source == fromCount) return static_cast<int64_t>(copied);
      const uint64_t bytes = std::min({to[i].length - done, from[source].length - within, atOnce});
      const uint64_t got = copy(static_cast<uint8_t*>(to[i].data) + done,
                                static_cast<const uint8_t*>(from[source].data) + within, bytes);
      copied += got;
      if (got != bytes) return copied != 0 ? static_cast<int64_t>(copied) : -1;
      done += bytes;
      within += bytes;
    }
  }
  return static_cast<int64_t>(copied);
}

}  // namespace nd
