#include "host/faults.h"

#include <tuple>

#include "base/mad.h"

namespace nd {
namespace {

uint64_t rotateLeft(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }

// A new field must be compared here as well.
static_assert(sizeof(FaultOptions) == sizeof(uint64_t) + 4 * sizeof(double) + sizeof(FaultOptions::dropMadCount));
bool equal(const FaultOptions& a, const FaultOptions& b) {
  const auto rates = [](const FaultRates& r) { return std::tie(r.seed, r.drop, r.duplicate, r.reorder, r.corrupt); };
  return rates(a) == rates(b) && a.dropMadCount == b.dropMadCount;
}

}  // namespace

void Random::reseed(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9E3779B97F4A7C15;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::next() {
  const uint64_t result = rotateLeft(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotateLeft(state_[3], 45);
  return result;
}

bool requestsFaults(const FaultOptions& options) {
  bool any = options.drop > 0 || options.duplicate > 0 || options.reorder > 0 || options.corrupt > 0;
  for (uint32_t count : options.dropMadCount) any = any || count > 0;
  return any;
}

void Faults::configure(const FaultOptions& options) {
  if (active_ && equal(options, given_)) return;
  given_ = options;
  madsToDrop_ = options.dropMadCount;
  random_.reseed(options.seed);
  active_ = requestsFaults(options);
}

Faults::Fate Faults::decide(const uint8_t* bytes, uint32_t length) {
  Fate fate;
  fate.drop = random_.uniform() < given_.drop;
  fate.duplicate = random_.uniform() < given_.duplicate;
  fate.reorder = random_.uniform() < given_.reorder;
  fate.corrupt = random_.uniform() < given_.corrupt;
  const uint64_t extra = random_.next();
  fate.bit = extra >> 8;
  fate.holdFor = 1 + static_cast<uint32_t>(extra & 3);
  if (mad::isMadPacket(bytes, length)) {
    const uint32_t index = mad::attribute(bytes + mad::kPacketMadOffset) - mad::kFirstAttribute;
    if (index < madsToDrop_.size() && madsToDrop_[index] > 0) {
      madsToDrop_[index]--;
      fate.drop = fate.dropMad = true;
    }
  }
  return fate;
}

}  // namespace nd
