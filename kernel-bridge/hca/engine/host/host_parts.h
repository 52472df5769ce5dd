// State shared by all parts of the host.
#pragma once
#include "host/host_addresses.h"
#include "host/group_copies.h"
#include "host/intake.h"
#include "slots/slots.h"

namespace nd {

// Packets that the sockets' buffers can hold. A drain stops after this many, since any further ones came later.
constexpr uint32_t kMostDrained = 16384;

struct HostParts {
  const Clock& clock;
  HostCounters& counters;
  Slots& slots;
  Addresses& addresses;
  GroupCopies& copies;
  PacketTap& tap;
  Intake& intake;
  Readiness& readiness;
};

}  // namespace nd
