// Sets up and owns the local links to other processes on this host.
//
// The set-up uses the connections between slots. The process with the lower slot creates the segment and offers it,
// with an event for each side. The other accepts, or refuses with a reason. A process that has refused once always
// refuses, so that both sides use the same link for all connections of the pair: none → asking → up | refused. An
// unanswered offer is withdrawn by a word in the segment that only one of the two can change.
#pragma once
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "local/direct_owner.h"
#include "local/local_pair.h"
#include "slots/frame.h"
#include "slots/slots.h"

namespace nd {

struct LocalHello {
  enum Reason : uint32_t { kYes = 0, kOption = 1, kUser = 2, kSystem = 3 };
  uint32_t slot = 0;
  uint32_t reason = 0;  // of a reply
};

class LocalPairs {
 public:
  LocalPairs(HostCounters& counters, Slots& slots, Readiness& readiness)
      : counters_(counters), slots_(slots), readiness_(readiness) {}

  // Every pair is refused unless `enabled`. `direct`: peers may access allocate() memory themselves. The slot must
  // already be claimed.
  void start(bool enabled, bool direct);
  void stop();
  // From now on no further pair comes up, because packets must be visible to capture or faults.
  void refuseMore(bool refuse) { refuses_ = refuse; }

  // Returns the pair with this slot, setting it up if necessary, or null if it is refused.
  std::shared_ptr<LocalPair> pairWith(uint32_t slot, uint64_t now);
  void onFrame(const Frame& frame, FrameOrigin& origin, uint64_t now, PacketSink& sink);
  // Called when the process has ended. Its memory is no longer accessed.
  void forget(uint32_t slot);

  bool any() const { return !up_.empty(); }
  bool pending() const;
  // Polls the rings progress::kRingPolls times, or until `wanted` ≠ 0. Returns whether there are entries.
  bool spin(const std::atomic<uint32_t>& wanted);
  bool selfPending() const { return self_ && self_->pending(); }
  uint32_t receive(PacketSink& sink, uint32_t budget);
  uint32_t receiveSelf(PacketSink& sink, uint32_t budget);
  void flush();
  void revoke(uint64_t epoch);
  // Returns the key table that this HCA publishes for direct access, or null. Call settle() after withdrawing from it.
  DirectOwner* directOwner() { return owner_.created() ? &owner_ : nullptr; }
  void settle();
  bool occupied(const std::vector<DirectWithdrawn>& withdrawn) {
    return owner_.occupied(up_.data(), up_.size(), withdrawn);
  }
  // Called when a descriptor of this pair, or of this process's own slot, was found readable. It stays readable until a
  // thread next falls asleep. A polling thread may find it first, but must not consume the wake-up of a sleeper,
  // because the peer signals only once.
  void rang(uint32_t slot);
  bool anyRang() const { return !rang_.empty(); }
  // Called before a thread sleeps: requests one signal from each peer. Polling threads do not cancel the request,
  // because they do not end the sleep. Returns false if there are entries already. `others`: another thread is already
  // asleep.
  bool fallAsleep(bool others);
  // Returns whether pairs have come up since the last call.
  bool grown() { return std::exchange(grown_, false); }
  uint64_t deadline() const { return deadline_; }
  void onTime(uint64_t now, PacketSink& sink);

 private:
  static constexpr uint64_t kSetupTimeoutNs = 2'000'000'000;
  struct Entry {
    std::shared_ptr<LocalPair> pair;
    LocalHello::Reason refusal = LocalHello::kYes;  // this side's refusal, repeated when the peer tries again
    bool rang = false;                              // whether its slot is in rang_
  };
  void stopRinging();
  std::shared_ptr<LocalPair> begin(uint32_t slot, uint64_t now);
  bool offer(LocalPair& pair, uint64_t now);
  void onOffer(uint32_t slot, FrameOrigin& origin, ProcessId process, PacketSink& sink);
  void onReply(uint32_t slot, const LocalHello& hello, ProcessId process, PacketSink& sink);
  bool send(uint32_t slot, FrameKind kind, const LocalHello& hello, const Descriptor* fds = nullptr,
            uint32_t fdCount = 0);
  void onMemory(const Frame& frame, FrameOrigin& origin, PacketSink& sink);
  void onMemoryRequest(LocalPair& pair, const LocalMemory& memory);
  bool sendMemory(uint32_t slot, FrameKind kind, LocalMemory memory, Descriptor fd);
  void sendMemories(LocalPair& pair);
  void replyRefusal(uint32_t slot, LocalHello::Reason reason);
  void refuse(LocalPair& pair, LocalHello::Reason reason, PacketSink* sink);
  void goUp(LocalPair& pair, PacketSink& sink);
  void close(LocalPair& pair);
  void remove(LocalPair& pair);
  void await(LocalPair& pair, uint64_t due);

  HostCounters& counters_;
  Slots& slots_;
  Readiness& readiness_;
  bool enabled_ = false, refuses_ = false, grown_ = false;
  uint64_t epoch_ = 0, deadline_ = UINT64_MAX;
  UniqueFd freedFd_;    // readable: memory that was offered to peers has been freed
  uint32_t freed_ = 0;  // number of times, as last seen
  DirectOwner owner_{counters_};
  uint32_t next_ = 0;  // index in up_ of the next pair, round-robin
  std::shared_ptr<LocalPair> self_;
  std::vector<uint32_t> rang_;  // slots whose descriptors are readable
  std::vector<LocalPair*> up_;  // including the pair with this process itself
  std::array<Entry, Slots::kMax> entries_;
};

}  // namespace nd
