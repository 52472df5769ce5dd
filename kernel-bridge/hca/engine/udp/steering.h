// Selects which of the sockets that share port 4791 gets a packet, by a rule on the slot in the destination QPN. The OS
// assigns the sockets' indexes, and changes them when a socket is closed (the last one takes its place). A process that
// receives packets for others therefore determines the current order: it sends a probe that the rule steers to each
// index, and the receiver of a probe replies with its slot.
#pragma once
#include <array>
#include <cstdint>

#include "schema/numbers.h"
#include "base/host_counters.h"
#include "base/types.h"
#include "platform/datagram_socket.h"

namespace nd {

// The UDP payload of a probe: a BTH with DestQP 0xFF00ii, followed by this.
struct SteeringProbe {
  static constexpr uint8_t kOpcode = 0x1f;  // not an RC operation
  static constexpr uint32_t kQpnMark = 0xff0000;
  static constexpr uint32_t kMaxIndex = kSlots;
  static constexpr uint32_t kMark = 0x4e44;  // the magic's upper half, in all dialects
  static constexpr uint32_t kMagic = kMark << 16 | kDialect;
  uint32_t magic = kMagic;
  uint32_t slot = 0;  // the slot of the sender
  uint32_t nonce = 0;
  uint32_t index = 0;
};
// The body of the reply frame.
struct ProbeReply {
  uint32_t nonce = 0;
  uint32_t index = 0;
  uint32_t slot = 0;  // the slot of the process at this index
};

class Steering {
 public:
  // `sendProbe` sends a probe to this host's loopback address of the family.
  using SendProbe = void (*)(void* argument, const SteeringProbe& probe);
  Steering(HostCounters& counters, SendProbe sendProbe, void* argument)
      : counters_(counters), sendProbe_(sendProbe), argument_(argument) {}

  void start(Descriptor socket, uint32_t ownSlot, uint64_t now);
  // Called when a packet for another slot was received, so the order may have changed. Acts at most every 100 ms.
  void onMisdirected(uint64_t now);
  void onReply(const ProbeReply& reply);
  // Returns when onTime() is due, or UINT64_MAX if no round is running.
  uint64_t deadline() const { return deadline_; }
  void onTime(uint64_t now);

 private:
  static constexpr uint8_t kUnknown = 0xff;
  static constexpr uint32_t kFirstRound = 8;
  static constexpr uint64_t kRoundNs = 20'000'000, kMinIntervalNs = 100'000'000;
  void probe(uint64_t now);
  void sendRound(uint64_t now);
  void finishRound(uint64_t now);
  void setRule();

  HostCounters& counters_;
  SendProbe sendProbe_;
  void* argument_;
  Descriptor socket_ = kNoDescriptor;
  bool ruled_ = false;  // whether this package's rule has been set
  uint32_t ownSlot_ = 0;
  uint32_t nonce_ = 0;
  uint32_t probed_ = 0;  // indexes probed in this round; 0: no round
  uint32_t answered_ = 0;
  uint64_t deadline_ = UINT64_MAX;
  uint64_t lastProbe_ = 0;
  std::array<uint8_t, kSlots> slotOfIndex_{};  // as found in the current round
  std::array<uint8_t, kSlots> indexOfSlot_{};  // as used by the rule
};

}  // namespace nd
