// A range of this process's memory, for gathering and scattering.
#pragma once
#include <cstdint>

namespace nd {

struct Piece {
  void* data = nullptr;
  uint64_t length = 0;
};

}  // namespace nd
