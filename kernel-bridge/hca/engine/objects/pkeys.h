// Partitions: a P_Key is 15 bits and, in the high bit, full membership (IBA 1 §10.9.1–10.9.3).
#pragma once
#include <vector>
#include "base/wire.h"
#include "objects/attributes.h"

namespace nd {

inline bool isPkey(uint16_t key) { return (key & 0x7FFF) != 0; }
// Same partition, and not both limited members.
inline bool pkeysFit(uint16_t a, uint16_t b) {
  return isPkey(a) && ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000) != 0;
}

struct PkeyTable {
  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t users = 0;
  std::vector<uint16_t> entries{wire::kDefaultPkey};
  std::vector<Gid> gids;
  PkeyViolations violations;
  // 0, which fits nothing, where the table has no such entry any more.
  uint16_t at(uint32_t index) const { return index < entries.size() ? entries[index] : uint16_t(0); }
};

}  // namespace nd
