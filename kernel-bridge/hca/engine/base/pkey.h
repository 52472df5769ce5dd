// A P_Key: a partition in 15 bits and, in the high bit, full membership (IBA 1 §10.9.1–10.9.3).
#pragma once
#include <cstdint>

namespace nd {

inline bool isPkey(uint16_t key) { return (key & 0x7FFF) != 0; }
// Same partition, and not both limited members.
inline bool pkeysFit(uint16_t a, uint16_t b) {
  return isPkey(a) && ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000) != 0;
}

}  // namespace nd
