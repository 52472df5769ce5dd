// Packets of one flow that were received joined in one buffer, without their segment size.
#pragma once
#include <cstring>

#include "base/icrc.h"

namespace nd {

constexpr uint32_t kMostGuesses = 16;  // maximum number of ICRCs to compute

// Returns whether a buffer that starts with one packet may hold several of `segment` bytes, of which the last may be
// shorter. Each packet must be followed by another BTH for the same queue pair. The ICRC of the first packet then
// decides.
inline bool mayBeJoined(const uint8_t* first, uint32_t length, uint32_t segment) {
  constexpr uint8_t kVersionBits = 0x0f;  // in the BTH's second byte
  for (uint32_t at = segment; at < length; at += segment) {
    const uint8_t* bth = first + at;
    if (length - at < kBthBytes + kIcrcBytes || ((bth[0] ^ first[0]) & wire::kTransportBits) != 0 ||
        ((bth[1] ^ first[1]) & kVersionBits) != 0 ||
        std::memcmp(bth + wire::kBthPkeyAt, first + wire::kBthPkeyAt, 2) != 0 ||
        std::memcmp(bth + wire::kBthQpnAt, first + wire::kBthQpnAt, 3) != 0)
      return false;
  }
  return true;
}

}  // namespace nd
