// A received packet that has passed the checks that need no queue pair.
#pragma once
#include "base/packet_headers.h"
#include "local/local_pair.h"

namespace nd {

struct Packet {
  wire::Bth bth;
  uint32_t flags = 0;
  const uint8_t* extension = nullptr;
  const uint8_t* payload = nullptr;
  uint32_t length = 0;                 // length of the payload
  uint32_t span = 1;                   // number of PSNs; a payload by reference takes as many as its pieces would
  LocalPair* pair = nullptr;           // the pair that delivered it; null: the wire
  const LocalPacket* local = nullptr;  // the payload has yet to be pulled
  bool inRing() const { return local && (local->flags & LocalEntry::kInRing); }
};

}  // namespace nd
