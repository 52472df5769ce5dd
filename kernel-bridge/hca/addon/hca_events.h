// Events of the HCA for the soft kernel that opened it. They are queued by the engine's threads for the kernel's event
// loop.
#pragma once
#include "base/mad_queue.h"
#include "base/types.h"
#include "door.h"
#include "env.h"

namespace nd::js {

// An event that the kernel has not taken yet.
struct QueuedEvent {
  HcaEvent event;
  // of kMad
  Gid source, destination;
  std::array<uint8_t, wire::kMadBytes> mad{};
  // of kNotified: identifies the waiter. The channel is only compared, never used.
  const door::Channel* channel = nullptr;
  bool won = false;
};

// Called by the engine with its lock held, from any thread.
class HcaPort final : public KernelPort {
 public:
  // Number of MADs that were dropped before the kernel took them, as when a QP1 receive queue is full.
  struct Drops {
    uint64_t full = 0, sourceFull = 0;
  };

  explicit HcaPort(std::shared_ptr<LoopSignal> signal) : signal_(std::move(signal)) {}
  void onMad(const PacketMeta& meta, bool addressed, uint16_t pkey, const uint8_t mad[256]) override;
  void onEvent(const HcaEvent& event) override;
  void onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won);
  // `alsoOthers`: include MADs that belong to no known connection.
  bool take(QueuedEvent* out, bool alsoOthers);
  Drops drops();
  // The kernel has sent this MAD, so the reply belongs to a known connection.
  void onSent(const uint8_t mad[256], const Gid& destination);

 private:
  void push(const QueuedEvent& event);
  void wake();

  std::shared_ptr<LoopSignal> signal_;
  std::mutex mutex_;
  KernelQueue<QueuedEvent> queue_;
  KnownPeers peers_;
  Drops drops_;
  bool armed_ = true;
};

}  // namespace nd::js
