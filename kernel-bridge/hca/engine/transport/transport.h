// The transport consists of a context (context.h), the scheduler of its queue pairs (scheduler.h), and the roles, which
// are described in their own headers. Packets and time enter here.
//
//   doorbell ─▶ FastPath::ring ─▶ (Requester) ─▶ Links::transmit ─▶ link
//   link ─▶ FastPath ─▶ (onPacket ─▶ take ─▶ Responder or Completer) ─▶ completion queue
//   step ─▶ link.poll, timers, run queue: Responses, Requester
//
// The parts in parentheses form the slow path, for everything that the fast path does not handle. The lock is held
// throughout.
#pragma once
#include <atomic>
#include "platform/engine_lock.h"
#include "progress/busy_poll.h"
#include "progress/owner.h"
#include "transport/completer.h"
#include "transport/congestion.h"
#include "transport/direct_access.h"
#include "transport/fast_path.h"
#include "transport/kernel_end.h"
#include "transport/qp_lifecycle.h"
#include "transport/links.h"
#include "transport/rnr.h"
#include "transport/requester.h"
#include "transport/responder.h"
#include "transport/shared_receives.h"
#include "transport/ud.h"
// To build the standard alone, it is enough to set this flag and to leave out the sources in extensions/
// (docs/internals/wire.md).
#ifdef ND_WITHOUT_EXTENSIONS
#include "transport/extensions/none.h"
#else
#include "transport/extensions/all.h"
#endif

namespace nd {

struct Transport final : public PacketSink {
  static constexpr uint32_t kShare = 60;     // packets a queue pair may send per round
  static constexpr uint32_t kSelfSteps = 4;  // steps of a doorbell whose packets are for this process

  Transport(Link& link, const Clock& clock, const EngineOptions& options);
  ~Transport() override;

  // ── Steps. They return whether there was progress.
  bool step(uint64_t time, Stepper stepper);
  // Takes a step that checks only the local link, for a thread that polls. `waits`: continues to poll for a moment if
  // nothing has arrived.
  bool stepLocal(bool waits);
  // Returns whether a step would do nothing else.
  bool quiet(uint64_t time) const {
    return scheduler.idle() && scheduler.deferred.empty() && context.timers.earliest() > time &&
           context.link.quiet(time);
  }
  // Returns whether work is left that no packet or timer will trigger.
  bool hasWork() const { return !scheduler.idle() || context.link.selfPending(); }
  // Runs one round of a queue pair. Returns whether there is more to do.
  bool run(Qp& qp, uint32_t share);

  // ── PacketSink
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  bool onSinglePacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override {
    return fastPath.onSinglePacket(meta, bth, length);
  }
  void onPeerProcessGone(uint32_t slot, bool orderly) override;
  void onCaptureFailed(int error) override { report(HcaEvent::capture(error)); }
  void onWireLost() override { report(HcaEvent::wireLost()); }
  void report(const HcaEvent& event);  // to all kernels
  void onLocalPacket(LocalPair& pair, const LocalPacket& local) override;
  bool onLocalSmall(LocalPair& pair, const LocalSmall& small) override { return fastPath.onLocalSmall(pair, small); }
  void onUnpulled(LocalPair& pair, uint32_t sourceQpn, uint32_t qpn, uint32_t psn, bool lasting) override {
    completer.onUnpulled(pair, sourceQpn, qpn, psn, lasting);
  }
  void onLocalPair(LocalPair& pair) override;
  void onLocalSpace(LocalPair& pair) override { links.onSpace(pair); }

  EngineLock lock;
  std::atomic<uint32_t> commandsWaiting{0};  // threads that need the lock for more than a poll

  Context context;
  ProgressOwner owner{context.clock};
  BusyPoll busyPoll;
  Scheduler scheduler{context};
  Links links{*this};
  Congestion congestion{*this};
  LongWindow longWindow{*this};
  Requester requester{*this};
  Completer completer{*this};
  Responder responder{*this};
  Responses responses{*this};
  Rnr rnr{*this};
  SharedReceives sharedReceives{*this};
  SelectiveAck selectiveAck{*this};
  LostResponses lostResponses{*this};
  Fragments fragments{*this};
  Datagrams datagrams{*this};
  Lifecycle lifecycle{*this};
  KernelEnd kernelEnd{*this};
  DirectAccess direct{*this};
  FastPath fastPath{*this};

  // The receiver of QP1's packets.
  void (*gsi)(void*, const PacketMeta&, const uint8_t*, uint32_t) = nullptr;
  void* gsiArgument = nullptr;

 private:
  static constexpr uint32_t kReceiveBudget = 64;  // packets received from the link per step
  static constexpr uint32_t kStepShare = 120;     // packets per step, all queue pairs
  static constexpr uint32_t kTimersPerStep = 64;
  static constexpr uint32_t kMostWithoutTimers = 8;  // steps

  bool runScheduled();
  void onTimer(Qp& qp);
  void onWhole(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  void onNotification(const PacketMeta& meta, const Packet& p, uint32_t length);
  bool accepts(Qp& qp, const Packet& p);
  void take(Qp& qp, const Packet& p);

  uint32_t stepsWithoutTimers_ = 0;
};

}  // namespace nd
