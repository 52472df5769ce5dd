// Events of the HCA for the soft kernel that opened it: a queue from the engine's threads to the kernel's event loop.
#pragma once
#include "base/mad_queue.h"
#include "base/types.h"
#include "door.h"
#include "env.h"

namespace nd::js {

// An event that the kernel has not taken yet.
struct HcaEvent {
  enum class Kind : uint32_t { kNone, kMad, kQp, kCq, kSrq, kNotified, kCapture, kFatal, kObserved, kWireLost } kind = Kind::kNone;
  PacketMeta meta;
  uint16_t pkey = 0;
  bool known = false;  // kMad: of a connection
  std::array<uint8_t, 256> mad{};
  Handle handle = 0;
  uint32_t token = 0, event = 0, reason = 0;  // kCapture, kFatal: the reason is an errno
  // kNotified: identifies the waiter. The channel is only compared, never used.
  const door::Channel* channel = nullptr;
  uint32_t slot = 0, serial = 0;
  bool won = false;
};

// Calls `visit` with the name and the value of each word of an event, in the order in which hca-words-event.ts reads them.
template <typename Visit>
void eachWordOfEvent(const HcaEvent& e, Visit visit) {
  switch (e.kind) {
    case HcaEvent::Kind::kNone:
    case HcaEvent::Kind::kWireLost:
      return;
    case HcaEvent::Kind::kMad:
      visit("scopeId", e.meta.scopeId);
      visit("pkey", e.pkey);
      visit("sender", e.meta.sender);
      return visit("stranger", !e.known);
    case HcaEvent::Kind::kQp:
      visit("qp", e.handle);
      visit("token", e.token);
      visit("event", e.event);
      return visit("reason", e.reason);
    case HcaEvent::Kind::kCq:
    case HcaEvent::Kind::kSrq:
      visit(e.kind == HcaEvent::Kind::kCq ? "cq" : "srq", e.handle);
      return visit("event", e.event);
    case HcaEvent::Kind::kNotified:
      visit("slot", e.slot);
      return visit("serial", e.serial);
    case HcaEvent::Kind::kCapture:
    case HcaEvent::Kind::kFatal:
      return visit("errno", e.reason);
    case HcaEvent::Kind::kObserved:
      return visit("number", e.token);
  }
}

// The engine calls it with its lock held, from any thread.
class HcaPort final : public KernelPort {
 public:
  // MADs that were dropped before the kernel took them, as by a full QP1 receive queue.
  struct Drops {
    uint64_t full = 0, sourceFull = 0;
  };

  explicit HcaPort(std::shared_ptr<LoopSignal> signal) : signal_(std::move(signal)) {}
  void onMad(const PacketMeta& meta, bool addressed, uint16_t pkey, const uint8_t mad[256]) override;
  void onQpEvent(Handle qp, uint32_t token, QpEvent event, uint32_t reason) override;
  void onCqError(Handle cq) override { onCqEvent(cq, CqEvent::kOverrun); }
  void onCqEvent(Handle cq, CqEvent event);
  void onSrqEvent(Handle srq, SrqEvent event) override;
  void onCaptureFailed(int error) override;
  void onWireLost() override { report(HcaEvent::Kind::kWireLost, 0); }
  void onEngineFailed(int error) override;
  void onObserved(uint32_t number) override;
  void onNotified(const door::Channel* channel, uint32_t slot, uint32_t serial, bool won);
  // `alsoOthers`: include MADs that belong to no known connection.
  bool take(HcaEvent* out, bool alsoOthers);
  Drops drops();
  // The kernel has sent this MAD: its answer belongs to a known connection.
  void onSent(const uint8_t mad[256], const Gid& destination);

 private:
  void push(HcaEvent&& event);
  void report(HcaEvent::Kind kind, int error);
  void wake();

  std::shared_ptr<LoopSignal> signal_;
  std::mutex mutex_;
  KernelQueue<HcaEvent> queue_;
  KnownPeers peers_;
  Drops drops_;
  bool armed_ = true;
};

}  // namespace nd::js
