// Lets a command that withdraws direct access to memory wait for the peers that are inside.
#include <chrono>
#include <thread>

#include "engine/engine_impl.h"
#include "local/direct_owner.h"
#include "platform/os.h"

namespace nd {

namespace {
constexpr uint32_t kYields = 50;
}

// Peers get some time to leave, during which other threads may take the lock. After that they are evicted.
void Command::letPeersLeave() {
  DirectOwner* const owner = t_.context.link.directOwner();
  if (!owner) return;
  const std::vector<DirectWithdrawn> withdrawn = owner->takeWithdrawn();
  if (withdrawn.empty()) return;
  if (t_.context.link.directOccupied(withdrawn)) {
    owner->countWait();
    const uint64_t deadline = monotonicNs() + owner->evictionTimeoutNs();
    uint32_t checks = 0;
    do {
      lock_.unlock();
      // An access takes a few microseconds; if it takes longer, its thread has lost the CPU. No event reports its end,
      // since checking for a waiter would take longer than most accesses.
      if (checks++ < kYields) yieldThread();
      else std::this_thread::sleep_for(std::chrono::microseconds(100));
      lock_ = lockOf(t_);
    } while (t_.context.link.directOccupied(withdrawn) && monotonicNs() < deadline);
  }
  owner->giveBack(withdrawn);
  t_.context.link.settleDirect();
}

}  // namespace nd
