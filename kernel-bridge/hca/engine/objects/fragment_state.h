// What a connection remembers where large packets vanish on its path (transport/extensions/fragments.h). Its memory
// comes with the first suspicion.
#pragma once
#include <cstdint>
#include <vector>

namespace nd {

// The sender's: how large its packets may be.
struct FragmentPath {
  uint32_t size = 0;        // bytes of a fragment, a power of two; 0: packets leave whole
  uint32_t suspected = 0;   // the PSN that did not get through, of a request
  uint64_t since = 0;       // when `size` was chosen or the last probe was lost
  uint64_t every = 0;       // from then on until a larger size is tried
  bool probing = false;     // `probe` left with the next larger size
  uint32_t probe = 0;       // PSN
  uint32_t lostProbes = 0;  // in a row
};

// The receiver's: what has come of a packet, in any order. Pieces that are missing may come when the packet is sent
// again.
struct FragmentAssembly {
  static constexpr uint32_t kUnit = 256;  // fragments begin at its multiples
  uint8_t kind = 0;                       // of the packet, as its fragments have it
  uint32_t psn = 0, total = 0;            // total 0: of no packet
  uint32_t missing = 0;                   // units
  uint64_t at = 0;                        // when the newest piece came
  std::vector<uint8_t> bytes;
  std::vector<bool> units;  // that have come

  void begin(uint8_t packetKind, uint32_t packet, uint32_t length) {
    kind = packetKind;
    psn = packet;
    total = length;
    missing = (length + kUnit - 1) / kUnit;
    bytes.resize(length);
    units.assign(missing, false);
  }
};

// Fragments of one packet may come among those of others.
struct FragmentAssemblies {
  static constexpr uint32_t kMost = 4;
  static constexpr uint64_t kLastNs =
      2'000'000'000;  // pieces that are further apart may be of packets with the same PSN
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
