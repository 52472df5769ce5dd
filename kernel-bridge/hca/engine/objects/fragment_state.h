// State of a connection whose path drops large packets (transport/extensions/fragments.h). It is allocated when that is
// first suspected.
#pragma once
#include <cstdint>
#include <vector>

namespace nd {

// Sender: the maximum size of its packets.
struct FragmentPath {
  uint32_t size = 0;        // bytes of a fragment, a power of two; 0: packets are sent whole
  uint32_t suspected = 0;   // the PSN of the request packet that did not get through
  uint64_t since = 0;       // when `size` was chosen or the last probe was lost
  uint64_t every = 0;       // time from then until a larger size is tried
  bool probing = false;     // `probe` was sent with the next larger size
  uint32_t probe = 0;       // PSN
  uint32_t lostProbes = 0;  // in a row
};

// Receiver: the parts of a packet received so far, in any order. Missing parts may arrive with a retransmission of the
// packet.
struct FragmentAssembly {
  static constexpr uint32_t kUnit = 256;  // fragments start at multiples of this
  uint8_t kind = 0;                       // that of the packet, as given in its fragments
  uint32_t psn = 0, total = 0;            // total 0: unused
  uint32_t missing = 0;                   // units
  uint64_t at = 0;                        // when the newest part arrived
  std::vector<uint8_t> bytes;
  std::vector<bool> units;  // units that have arrived

  void begin(uint8_t packetKind, uint32_t packet, uint32_t length) {
    kind = packetKind;
    psn = packet;
    total = length;
    missing = (length + kUnit - 1) / kUnit;
    bytes.resize(length);
    units.assign(missing, false);
  }
};

// Fragments of several packets may be interleaved.
struct FragmentAssemblies {
  static constexpr uint32_t kMost = 4;
  static constexpr uint64_t kLastNs =
      2'000'000'000;  // parts further apart may belong to different packets with the same PSN
  FragmentAssembly all[kMost];

  FragmentAssembly& of(uint8_t kind, uint32_t psn, uint32_t total, uint64_t now) {
    FragmentAssembly* oldest = &all[0];
    for (FragmentAssembly& a : all) {
      if (a.total == total && a.psn == psn && a.kind == kind && now - a.at <= kLastNs) return a;
      if (a.total == 0 || (oldest->total != 0 && a.at < oldest->at)) oldest = &a;
    }
    oldest->begin(kind, psn, total);
    return *oldest;
  }
};

}  // namespace nd
