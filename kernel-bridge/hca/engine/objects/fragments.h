// What a connection remembers where large packets vanish on its path (transport/path/fragments.h). Its memory comes with the first suspicion.
#pragma once
#include <cstdint>

#include "base/link.h"
#include "base/wire.h"

namespace nd {

// The sender's: how large its packets may be.
struct FragmentPath {
  uint32_t size = 0;       // bytes of a fragment, a power of two; 0: packets leave whole
  uint32_t suspected = 0;  // the PSN that did not get through, of a request
  uint64_t since = 0;      // when `size` was chosen or the last probe was lost
  uint64_t every = 0;      // from then on until a larger size is tried
  bool probing = false;    // `probe` left with the next larger size
  uint32_t probe = 0;      // PSN
  uint32_t lostProbes = 0; // in a row
};

// The receiver's: the beginning of a packet.
struct FragmentAssembly {
  static constexpr uint32_t kMostBytes = OutPacket::kMaxHeader + wire::kLargestMtu;
  uint32_t psn = 0, total = 0, filled = 0;
  uint8_t bytes[kMostBytes];
};

}  // namespace nd
