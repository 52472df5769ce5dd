// Parameters and results of the HCA's commands: options, sizes, attributes of objects and the masks that select them.
#pragma once
#include "base/types.h"
#include "base/packet_headers.h"
#include "schema/attributes.h"
#include "schema/options.h"
#include "schema/ring.h"

namespace nd {

struct EngineOptions : TransportOptions, HcaLimits {
  uint32_t maxPkeyTables = 4096;
};

struct SrqAttributes : SrqAttributeWords {
  uint32_t sge = 0;  // query only
};

struct QpAttributes : QpAttributeWords {
  Path path;
};

// The attributes that each step of connecting a queue pair applies: the steps to INIT, RTR and RTS.
using ConnectMasks = std::array<uint32_t, 3>;

namespace extensions {
constexpr uint32_t kAll = kLongWindow | kRecovery | kFragments | kLostResponses | kLongPackets;
// Returns the payload of a full packet in bytes; 0 means the path MTU, as in the standard.
constexpr uint32_t packetBytes(uint32_t word) { return word & kLongPackets ? word >> kPacketBytesShift : 0; }
constexpr bool isValid(uint32_t word) {
  const uint32_t bytes = word >> kPacketBytesShift, bits = word & ((1u << kPacketBytesShift) - 1);
  const bool fits =
      bytes >= 256 && bytes <= extensions::kPacketBytesLongest && bytes % extensions::kPacketBytesStep == 0;
  return (bits & ~kAll) == 0 && (bytes == 0 || (fits && (bits & kLongPackets)));
}
}  // namespace extensions

// Numbers of packets dropped at the QPs and addresses of a P_Key table.
struct PkeyViolations {
  uint64_t badPkeys = 0, badQkeys = 0;
};

}  // namespace nd
