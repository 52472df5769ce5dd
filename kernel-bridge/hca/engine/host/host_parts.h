// What all parts of the host share.
#pragma once
#include "host/host_addresses.h"
#include "host/group_copies.h"
#include "host/intake.h"
#include "slots/slots.h"

namespace nd {

// Packets: what the sockets' buffers can hold. Of what is taken out at once, more than that came later.
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
