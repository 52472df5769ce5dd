// Names shared by all parts of the software HCA. No part of engine/ depends on N-API or on IRPs.
#pragma once
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "schema/events.h"
#include "schema/numbers.h"

namespace nd {

// Handles of HCA objects, for the driver and the user-mode provider: an index in the low bits and a generation in the
// high bits, so that a stale handle is an error and never refers to another object. 0 is not a valid handle.
using Handle = uint32_t;
// Number of generations, in the upper 12 bits. 0 is unused.
constexpr uint32_t kHandleGenerations = 1u << 12;
// A freed slot is reused only once this many others are free, so that late packets and stale handles miss.
constexpr size_t kPlacesAtRest = 64;
// The id of a soft kernel attached to this process's engine, 1..63. 0 is not a valid id.
using KernelId = uint32_t;

// A P_Key: a partition in the low 15 bits, and full membership in the high bit (IBA 1 §10.9.1–10.9.3).
inline bool isPkey(uint16_t key) { return (key & 0x7FFF) != 0; }
// Returns whether both name the same partition and not both are limited members.
inline bool pkeysFit(uint16_t a, uint16_t b) { return isPkey(a) && ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000) != 0; }

// A GID is an IPv6 address; ::ffff:a.b.c.d stands for IPv4 (roce-wire §1.5).
struct Gid {
  std::array<uint8_t, 16> raw{};
  bool isV4() const {
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(raw.data(), prefix, 12) == 0;
  }
  bool isMulticast() const { return isV4() ? (raw[12] & 0xF0) == 0xE0 : raw[0] == 0xFF; }
  // Returns whether a host can have this address.
  bool isUnicast() const { return isV4() ? raw[12] != 0 && raw[12] < 224 : raw[0] != 0xFF && *this != Gid{}; }
  bool operator==(const Gid& o) const {  // compares without a call
    uint64_t a[2], b[2];
    std::memcpy(a, raw.data(), sizeof a);
    std::memcpy(b, o.raw.data(), sizeof b);
    return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
  }
  bool operator!=(const Gid& o) const { return !(*this == o); }
};

// Returns whether this errno means that descriptors, as opposed to another resource, are exhausted.
inline bool isDescriptorLack(int error) { return error == EMFILE || error == ENFILE; }
inline Status statusOfLack(int error) {
  return isDescriptorLack(error) ? Status::kTooManyOpenedFiles : Status::kInsufficientResources;
}

enum class IpFamily : uint8_t { kV4 = 4, kV6 = 6 };

// The destination of a queue pair's packets: an address vector resolved to what the network needs.
struct Path {
  Gid source;
  Gid destination;
  uint32_t flowLabel = 0;
  uint8_t trafficClass = 0;
  uint8_t hopLimit = 64;
  uint32_t scopeId = 0;  // interface index for IPv6 link-local destinations and multicast groups, 0 otherwise
};

// Metadata of a received packet.
struct PacketMeta {
  Gid source;
  Gid destination;
  uint8_t trafficClass = 0;  // TOS byte if the socket reports it; the low two bits are ECN
  uint8_t hopLimit = 0;
  uint32_t flowLabel = 0;     // IPv6 only
  uint32_t scopeId = 0;       // index of the receiving interface, for IPv6 link-local sources and multicast groups
  uint32_t sender = kByWire;  // for a MAD: the slot of the process on this host that sent it without using the network
};

// Monotonic nanoseconds. Tests of the transport replace it with a clock that they set.
class Clock {
 public:
  static constexpr uint64_t kRecentTicks = 2048;  // about a microsecond
  virtual ~Clock() = default;
  virtual uint64_t now() const = 0;
  // The same clock, cheaper to read and up to a microsecond off; for frequent callers.
  virtual uint64_t recent() const { return now(); }
};

// The thread that takes a step, which decides when ACKs are sent.
enum class Stepper {
  kEngine,  // may not return soon, so everything due is sent
  kPoller,  // returns immediately; ACKs wait until then, because a reply of the program can carry them
  kWoken,   // woken by a message; the peer is not polling either, so the ACKs that it waits for are sent
};

// A waiter for a completion queue's event. It is called at most once, from any thread, with the engine's lock held. It
// must only store the outcome and wake the waiter.
class NotifySink {
 public:
  virtual ~NotifySink() = default;
  virtual void notify(Status status) = 0;
  // Returns whether the waiting thread watches the host meanwhile (progress/waiting_thread.h), so that the engine's
  // thread need not be woken.
  virtual bool watches() const { return false; }
};

// Receives events of the HCA for a soft kernel. Called from any thread with the engine's lock held; must only enqueue
// and wake.
class KernelPort {
 public:
  virtual ~KernelPort() = default;
  // `addressed`: the MAD names a service or an id that this kernel may have. Otherwise any kernel can reply to it.
  virtual void onMad(const PacketMeta& meta, bool addressed, uint16_t pkey, const uint8_t mad[256]) = 0;
  virtual void onEvent(const HcaEvent& event) = 0;  // all others
};

}  // namespace nd
