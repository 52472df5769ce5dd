// A seeded fault layer, which decides the fate of each packet that is about to be sent. The same seed and the same
// sequence of packets give the same faults.
#pragma once
#include <array>

#include "host/host.h"

namespace nd {

bool requestsFaults(const FaultOptions& options);

// xoshiro256**, seeded by SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed = 1) { reseed(seed); }
  void reseed(uint64_t seed);
  uint64_t next();
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_[4];
};

class Faults {
 public:
  struct Fate {
    bool drop = false, dropMad = false, duplicate = false, reorder = false, corrupt = false;
    uint64_t bit = 0;      // corrupt: this bit, modulo the packet's length
    uint32_t holdFor = 0;  // reorder: number of packets that overtake it, 1..4
  };
  static constexpr uint64_t kMaxHoldNs = 1'000'000;  // maximum delay of an overtaken packet

  // Options equal to those in force have no effect. They restart neither the sequence nor the counts.
  void configure(const FaultOptions& options);
  bool active() const { return active_; }
  // `bytes`: from the BTH on. Draws the same number of random values for every packet.
  Fate decide(const uint8_t* bytes, uint32_t length);

 private:
  FaultOptions given_;
  std::array<uint32_t, 32> madsToDrop_{};
  Random random_;
  bool active_ = false;
};

}  // namespace nd
