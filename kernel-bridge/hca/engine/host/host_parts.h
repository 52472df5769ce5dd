// State shared by all parts of the host.
#pragma once
#include "host/host_addresses.h"
#include "host/group_copies.h"
#include "host/intake.h"
#include "slots/slots.h"

namespace nd {

// Number of packets that the sockets' buffers can hold. Draining stops after this many, since any others have arrived
// later.
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
