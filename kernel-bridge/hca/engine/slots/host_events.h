// Names of descriptors in the host's set (Readiness). A name consists of the kind of descriptor and its number.
#pragma once
#include <cstdint>

#include "platform/readiness.h"

namespace nd {

enum class EventKind : uint32_t {
  kWire,
  kSlotListener,
  kInbound,
  kOutbound,
  kClaim,
  kLocalQueue,
  kPair,
  kPeerSocket,
  kPortName,
  kPortOwner
};

inline uint64_t eventTag(EventKind kind, uint32_t id) { return static_cast<uint64_t>(kind) << 32 | id; }
inline EventKind eventKind(uint64_t tag) { return static_cast<EventKind>(tag >> 32); }
inline uint32_t eventId(uint64_t tag) { return static_cast<uint32_t>(tag); }

}  // namespace nd
