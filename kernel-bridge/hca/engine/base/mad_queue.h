// Events and MADs that a kernel has not taken yet. Any host can send any number of MADs. Those of known connections are
// therefore kept apart, and all others are limited per source.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mad.h"
#include "base/types.h"

namespace nd {

// The peers to which a kernel has sent MADs, by its own communication id. A message from such a peer that names the id
// belongs to a connection. The table keeps the newest peers; one that has been displaced counts as unknown.
class KnownPeers {
 public:
  void onSent(const uint8_t mad[wire::kMadBytes], const Gid& destination) {
    const uint32_t id = wire::load32(mad + mad::kMessage);
    if (id == 0) return;
    if (peers_.empty()) peers_.resize(kPlaces);
    peers_[id % kPlaces] = {id, hashOf(destination)};
  }
  bool knows(const uint8_t mad[wire::kMadBytes], const Gid& source) const {
    const uint32_t attribute = mad::attribute(mad);
    if (attribute == mad::kReq || attribute == mad::kSidrReq || peers_.empty()) return false;
    const uint32_t at = attribute == mad::kSidrRep ? mad::kRequestId : mad::kRemoteCommId;
    const uint32_t id = wire::load32(mad + mad::kMessage + at);
    const Peer& peer = peers_[id % kPlaces];
    return id != 0 && peer.id == id && peer.address == hashOf(source);
  }

 private:
  static constexpr uint32_t kPlaces = 16384;
  struct Peer {
    uint32_t id = 0, address = 0;
  };
  static uint32_t hashOf(const Gid& gid) {
    uint32_t hash = 0x811c9dc5;
    for (const uint8_t byte : gid.raw) hash = (hash ^ byte) * 0x01000193;
    return hash;
  }
  std::vector<Peer> peers_;
};

// The fate of a MAD.
enum class MadVerdict { kTaken, kFull, kSourceFull };

// All other MADs. Those of this host's processes, whose slots are known, come before those from the network. Sources
// are served round-robin, and the messages of one source stay in order. `addressed` messages name an existing service
// or id. The other messages of a source count as a source of their own, with a small share.
template <typename Mad>
class MadQueue {
 public:
  static constexpr size_t kMost = 4096, kMostOfSource = 1024, kMostUnaddressed = 64;

  MadVerdict add(const PacketMeta& meta, bool addressed, const Mad& mad) {
    const bool local = meta.sender != kByWire;
    Waiting& waiting = waiting_[local ? 0 : 1];
    if (waiting.count >= kMost) return MadVerdict::kFull;
    const Source source{meta.sender, local ? std::array<uint8_t, 16>{} : meta.source.raw, addressed};
    std::deque<Mad>& mads = waiting.mads[source];
    if (mads.size() >= (addressed ? kMostOfSource : kMostUnaddressed)) return MadVerdict::kSourceFull;
    if (mads.empty()) waiting.turns.push_back(source);
    mads.push_back(mad);
    waiting.count++;
    return MadVerdict::kTaken;
  }
  // Returns the MAD to be taken next, or nullptr if there is none.
  const Mad* next() const {
    for (const Waiting& waiting : waiting_)
      if (waiting.count != 0) return &waiting.mads.find(waiting.turns.front())->second.front();
    return nullptr;
  }
  bool take(Mad* out) {
    for (Waiting& waiting : waiting_) {
      if (waiting.count == 0) continue;
      const auto next = waiting.mads.find(waiting.turns.front());
      waiting.turns.pop_front();
      *out = next->second.front();
      next->second.pop_front();
      waiting.count--;
      if (next->second.empty()) waiting.mads.erase(next);
      else waiting.turns.push_back(next->first);
      return true;
    }
    return false;
  }
  bool empty() const { return waiting_[0].count == 0 && waiting_[1].count == 0; }

 private:
  using Source = std::tuple<uint32_t, std::array<uint8_t, 16>, bool>;  // a slot, or an address; addressed
  struct Waiting {
    std::map<Source, std::deque<Mad>> mads;
    std::deque<Source> turns;  // sources with messages, in round-robin order
    size_t count = 0;
  };
  Waiting waiting_[2];
};

// All events and MADs that wait for a kernel. Events of its own objects and MADs of known connections stay in order and
// go first. After kMostInRow of them one of the other MADs follows. It never overtakes anything that was queued
// earlier, because a peer's REQ must not overtake its DREQ.
template <typename Event>
class KernelQueue {
 public:
  static constexpr uint32_t kMostInRow = 8;
  static constexpr size_t kMostKnown = 4096;

  void push(const Event& event) { add(event, false); }
  MadVerdict pushKnown(const Event& mad) {
    if (known_ >= kMostKnown) return MadVerdict::kFull;
    known_++;
    add(mad, true);
    return MadVerdict::kTaken;
  }
  MadVerdict pushOther(const PacketMeta& meta, bool addressed, const Event& mad) {
    return others_.add(meta, addressed, Other{mad, added_});
  }
  // `alsoOthers`: include MADs of no known connection.
  bool take(Event* out, bool alsoOthers) {
    const Other* other = alsoOthers ? others_.next() : nullptr;
    if (events_.empty() || (other != nullptr && inRow_ >= kMostInRow && other->after <= added_ - events_.size())) {
      inRow_ = 0;
      if (other == nullptr) return false;
      Other taken;
      others_.take(&taken);
      *out = taken.mad;
      return true;
    }
    inRow_++;
    if (events_.front().known) known_--;
    *out = events_.front().event;
    events_.pop_front();
    return true;
  }
  bool empty() const { return events_.empty() && others_.empty(); }

 private:
  struct Own {
    Event event;
    bool known;  // a MAD of a known connection
  };
  struct Other {
    Event mad{};
    uint64_t after = 0;  // number of first-kind entries queued before it
  };
  void add(const Event& event, bool known) {
    added_++;
    events_.push_back({event, known});
  }
  std::deque<Own> events_;
  MadQueue<Other> others_;
  uint64_t added_ = 0;  // total ever added to events_
  size_t known_ = 0;    // MADs in events_
  uint32_t inRow_ = 0;  // taken from events_ in a row
};

}  // namespace nd
