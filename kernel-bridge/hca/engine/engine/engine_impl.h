// Shared by the files of class Engine.
#pragma once
#include <chrono>
#include <thread>

#include "engine/engine.h"
#include "local/direct_owner.h"
#include "platform/os.h"
#include "transport/transport.h"

namespace nd {

struct Engine::Impl {
  Impl(Link& link, const Clock& clock, const EngineOptions& options) : transport(link, clock, options) {}
  Transport transport;
};

inline bool powerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// The lock, for longer than a poll has it.
inline std::unique_lock<EngineLock> lockOf(Transport& t) {
  std::unique_lock<EngineLock> lock(t.lock, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  t.commandsWaiting.fetch_add(1, std::memory_order_relaxed);
  lock.lock();
  t.commandsWaiting.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

// The lock for a command. QPs that fail by the command are in ERROR before others can look.
class Command {
 public:
  explicit Command(Transport& t) : t_(t), lock_(lockOf(t)) {}
  ~Command() {
    t_.lifecycle.settle();
    if (t_.hasWork()) t_.scheduler.wakeThread(0);
  }

  // Before what was withdrawn from direct access ends: peers that are inside by it have some time to leave, in which
  // others have the lock, so that everything is to be looked up again. After that they are evicted.
  void letPeersLeave() {
    DirectOwner* const board = t_.context.link.directOwner();
    if (!board) return;
    const std::vector<DirectWithdrawn> withdrawn = board->takeWithdrawn();
    if (withdrawn.empty()) return;
    if (t_.context.link.directOccupied(withdrawn)) {
      board->countWait();
      const uint64_t deadline = monotonicNs() + board->patience();
      uint32_t looks = 0;
      do {
        lock_.unlock();
        // A visit takes some microseconds; one that takes longer has lost its processor. No event reports its end: a
        // visitor that had to look for somebody to wake would take longer than most visits.
        if (looks++ < kYields) yieldThread();
        else std::this_thread::sleep_for(std::chrono::microseconds(100));
        lock_ = lockOf(t_);
      } while (t_.context.link.directOccupied(withdrawn) && monotonicNs() < deadline);
    }
    board->giveBack(withdrawn);
    t_.context.link.settleDirect();
  }

 private:
  static constexpr uint32_t kYields = 50;
  Transport& t_;
  std::unique_lock<EngineLock> lock_;
};

inline Status checkRing(Transport& t, uint64_t address, uint64_t bytes, uint64_t needed, std::shared_ptr<Ring>* ring) {
  if (bytes < needed || (address & 63) != 0) return Status::kInvalidParameter;
  *ring = t.context.memory.ringAt(address, bytes);
  return *ring ? Status::kSuccess : Status::kAccessViolation;
}

// WQE sizes and counts; 0 entries is a queue that is never used.
inline bool queueFits(const EngineOptions& o, uint32_t entries, uint32_t stride, uint32_t sge, uint32_t header,
                      uint32_t inlineBytes, uint32_t alignment) {
  if (entries == 0) return true;
  if (!powerOfTwo(entries) || entries > o.maxQpWr || sge > o.maxSge || inlineBytes > o.maxInline) return false;
  const uint32_t body = std::max(sge * abi::kSgeBytes, inlineBytes);
  return stride % alignment == 0 && stride >= header + body && stride <= 65536;
}

}  // namespace nd
