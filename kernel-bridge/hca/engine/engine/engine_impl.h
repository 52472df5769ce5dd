// Shared by the files of class Engine.
#pragma once
#include "engine/engine.h"
#include "transport/transport.h"

namespace nd {

struct Engine::Impl {
  Impl(Link& link, const Clock& clock, const EngineOptions& options) : transport(link, clock, options) {}
  Transport transport;
};

inline bool powerOfTwo(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

// The lock, for callers that hold it longer than a poll does.
inline std::unique_lock<EngineLock> lockOf(Transport& t) {
  std::unique_lock<EngineLock> lock(t.lock, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  t.commandsWaiting.fetch_add(1, std::memory_order_relaxed);
  lock.lock();
  t.commandsWaiting.fetch_sub(1, std::memory_order_relaxed);
  return lock;
}

// The lock for a command. QPs that fail during the command reach ERROR before other threads can see them.
class Command {
 public:
  explicit Command(Transport& t) : t_(t), lock_(lockOf(t)) {}
  ~Command() {
    t_.lifecycle.settle();
    if (t_.hasWork()) t_.scheduler.wakeThread(0);
  }

  // Waits for peers that are inside through withdrawn records, before that access ends (wait_for_peers.cc). Other
  // threads may take the lock meanwhile, so everything must be looked up again.
  void letPeersLeave();

 private:
  Transport& t_;
  std::unique_lock<EngineLock> lock_;
};

inline Status checkRing(Transport& t, uint64_t address, uint64_t bytes, uint64_t needed, std::shared_ptr<Ring>* ring) {
  if (bytes < needed || (address & 63) != 0) return Status::kInvalidParameter;
  *ring = t.context.memory.ringAt(address, bytes);
  return *ring ? Status::kSuccess : Status::kAccessViolation;
}

// Returns whether WQE sizes and counts are valid. A queue with 0 entries is never used.
inline bool queueFits(const EngineOptions& o, uint32_t entries, uint32_t stride, uint32_t sge, uint32_t header,
                      uint32_t inlineBytes, uint32_t alignment) {
  if (entries == 0) return true;
  if (!powerOfTwo(entries) || entries > o.maxQpWr || sge > o.maxSge || inlineBytes > o.maxInline) return false;
  const uint32_t body = std::max(sge * abi::kSgeBytes, inlineBytes);
  return stride % alignment == 0 && stride >= header + body && stride <= 65536;
}

}  // namespace nd
