// Remembers recently received datagrams to groups, so that none is delivered twice. Each process on a host gets its own
// copy from the OS. It may get a second copy from another process that is not a member but received the datagram
// nevertheless (WireReceiver::onUnaccepted), or that had left the group before it read its copy. Either copy may come
// first.
//
// Two datagrams count as copies if source, destination, length, BTH, DETH and the start of the payload are equal. The
// compared fields include source QPN and PSN, a pair that a sender uses once in 2^24 datagrams. A restarted program may
// begin with the same datagrams, which count as new after kRecentNs. If more than kRecent datagrams arrive within that
// time, some may be delivered twice. Requires the engine's lock.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/crc32.h"
#include "base/types.h"

namespace nd {

class GroupCopies {
 public:
  // `bth`: BTH to pad. Returns false if the datagram has already been received on the other path and must be dropped.
  bool takesOwn(const PacketMeta& meta, const uint8_t* bth, uint32_t length, uint64_t now) {
    const Copy copy = copyOf(meta, bth, length, now);
    Copy& known = recent_[copy.identity % kRecent];
    const bool came = known.handed && known.isAlso(copy);
    known = copy;
    return !came;
  }
  bool takesHanded(const PacketMeta& meta, const uint8_t* bth, uint32_t length, uint64_t now) {
    const Copy copy = copyOf(meta, bth, length, now);
    Copy& known = recent_[copy.identity % kRecent];
    if (known.isAlso(copy)) return false;
    known = copy;
    known.handed = true;
    return true;
  }

 private:
  static constexpr uint32_t kRecent = 1024, kCompared = 128;  // bytes of a packet
  static constexpr uint64_t kRecentNs = 1'000'000'000;
  struct Copy {
    uint64_t at = 0;
    uint32_t source = 0, destination = 0, length = 0, identity = 0;
    bool handed = false;  // forwarded by another process
    bool isAlso(const Copy& later) const {
      return identity == later.identity && length == later.length && source == later.source &&
             destination == later.destination && later.at - at < kRecentNs;
    }
  };
  static Copy copyOf(const PacketMeta& meta, const uint8_t* bth, uint32_t length, uint64_t now) {
    return {now, crcOf(meta.source.raw.data(), meta.source.raw.size()),
            crcOf(meta.destination.raw.data(), meta.destination.raw.size()), length,
            crcOf(bth, std::min(length, kCompared))};
  }
  static uint32_t crcOf(const uint8_t* bytes, size_t length) { return crc32Register(UINT32_MAX, bytes, length); }
  std::array<Copy, kRecent> recent_;
};

}  // namespace nd
