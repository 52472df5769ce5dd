// Tables of P_Keys (IBA 1 §10.9.1–10.9.3).
#pragma once
#include <vector>
#include "base/types.h"
#include "base/packet_headers.h"
#include "objects/parameters.h"

namespace nd {

struct PkeyTable {
  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t users = 0;
  std::vector<uint16_t> entries{wire::kDefaultPkey};
  std::vector<Gid> gids;
  PkeyViolations violations;
  // Returns 0, which never matches, if the table no longer has such an entry.
  uint16_t at(uint32_t index) const { return index < entries.size() ? entries[index] : uint16_t(0); }
};

}  // namespace nd
