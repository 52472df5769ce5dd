// Packets of one flow that came in one piece, where nobody has told how long each is.
#pragma once
#include <cstring>

#include "base/icrc.h"

namespace nd {

constexpr uint32_t kMostGuesses = 16;  // lengths to compute an ICRC for

// Whether what begins with one packet may be several of `segment` bytes, but for the last, which may be shorter: where one
// ends there is another BTH to the same queue pair. The ICRC of the first then tells.
inline bool mayBeJoined(const uint8_t* first, uint32_t length, uint32_t segment) {
  constexpr uint8_t kVersionBits = 0x0f;  // of the BTH's second byte
  for (uint32_t at = segment; at < length; at += segment) {
    const uint8_t* bth = first + at;
    if (length - at < kBthBytes + kIcrcBytes || ((bth[0] ^ first[0]) & wire::kTransportBits) != 0 ||
        ((bth[1] ^ first[1]) & kVersionBits) != 0 || std::memcmp(bth + wire::kBthPkeyAt, first + wire::kBthPkeyAt, 2) != 0 ||
        std::memcmp(bth + wire::kBthQpnAt, first + wire::kBthQpnAt, 3) != 0)
      return false;
  }
  return true;
}

}  // namespace nd
