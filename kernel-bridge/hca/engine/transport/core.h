// The HCA behind Engine's lock: object tables, scheduling, and the transport's three roles. One role per file:
// requester.cc, responder.cc, completer.cc; core.cc and core_life.cc have what they share.
//
// Work is done in rounds. A QP with something to send stands in a queue; a step gives each a share of packets and
// puts it back if it has more, so that no QP, and no peer's huge READ, keeps the lock or starves others.
#pragma once
#include <atomic>
#include "base/counters.h"
#include "platform/engine_lock.h"
#include "platform/attendance.h"
#include "transport/cq.h"
#include "transport/memory.h"
#include "transport/pkeys.h"
#include "transport/qp.h"
#include "transport/timers.h"

namespace nd {

// Lower addresses land first and the last byte last: pollers of memory wait for it (ND_ADAPTER_FLAG_IN_ORDER_DMA).
inline void copyInOrder(uint8_t* to, const uint8_t* from, uint32_t length) {
  if (length == 0) return;
  if (length <= 65) copySmall(to, from, length - 1);
  else std::memcpy(to, from, length - 1);
  __atomic_store_n(to + length - 1, from[length - 1], __ATOMIC_RELEASE);
}

struct SmallMessage;
struct SmallRequest;

struct Core final : public PacketSink {
  static constexpr uint32_t kReceiveBudget = 64;  // packets taken from the link per step
  // A process that ends in order sends its DREQs before its goodbye, but another process may hand them over.
  static constexpr uint64_t kGoodbyeNs = 100'000'000;
  static constexpr uint32_t kShare = 60;          // packets a QP may send per round
  static constexpr uint32_t kStepShare = 120;     // packets per step, all QPs
  // Windows of small messages, and of READs, that may be under way on the local link, where nothing is lost: while the peer
  // takes a step's share and its program looks at the one before, there is room for the next; and a peer that sleeps is
  // woken for twice as many large READs. More than one only in a ring that is half empty.
  static constexpr uint32_t kLocalWindows = 2;
  static constexpr uint32_t kTimersPerStep = 64;
  static constexpr uint32_t kSelfSteps = 4;       // of a doorbell whose packets are for this process
  // A thread that polls in vain for so long gives its processor to others, among whom may be the one that it waits
  // for. Polls further apart than the gap are not waiting: there is other work between them.
  static constexpr uint64_t kPatienceNs = 50'000, kPatienceGapNs = 20'000;
  static constexpr uint64_t kWaitingGapNs = 2'000;
  static constexpr uint64_t kOwedNs = 1'000'000;  // when a poller that put off an acknowledgement has not come back
  // At most one CNP for a QP in this time, and one reaction to those that come.
  static constexpr uint64_t kCongestionNs = 50'000;
  static constexpr uint32_t kSmallestWindow = 4, kAlphaOne = 1024;
  // Acknowledgements may wait for a program that polls, or for the engine's thread: that is no loss.
  static constexpr uint64_t kShortestProbeNs = 3'000'000;
  static constexpr uint32_t kMostProbes = 4;      // in 15 intervals
  static constexpr uint64_t kLateAskNs = 1'000'000;  // a packet waits for no answer longer than this without one being asked for
  static constexpr uint32_t kFirstQpIndex = 2;    // QPNs 0 and 1 are special
  static constexpr uint32_t kQpIndexes = 0x10000 - kFirstQpIndex;
  static constexpr uint32_t kKernels = 64;

  Core(Link& link, const Clock& clock, const EngineOptions& options);
  ~Core() override;

  // How a QP fails: statuses of the oldest WQE of each queue (0: flushed like the rest), and the event.
  struct Failure {
    uint32_t sendStatus = 0, receiveStatus = 0, vendor = 0;
    bool report = true;
    QpEvent event = QpEvent::kFatal;
    uint32_t reason = 0;
  };

  // A received packet after the checks that need no QP.
  struct Packet {
    wire::Bth bth;
    uint32_t flags = 0;
    const uint8_t* extension = nullptr;
    const uint8_t* payload = nullptr;
    uint32_t length = 0;  // of the payload
    uint32_t span = 1;    // PSNs that it takes: of a payload that is named, as many as its pieces would
    LocalPair* pair = nullptr;           // by which it came; null: the wire
    const LocalPacket* local = nullptr;  // without payload: to be pulled
    bool inRing() const { return local && (local->flags & LocalEntry::kInRing); }
  };
  static constexpr uint32_t kUnpulled = 0xFFFFFFFF;  // beside WV_WC_STATUS: the payload could not be copied

  // ── core.cc: scheduling ───────────────────────────────────────────────────────────────────────
  // `returns`: the caller polls, and will come back very soon. Acknowledgements are then put off until it does: the
  // program may be about to answer, and both leave in one piece. `slept`: a message has woken it, so that nobody polls
  // on the other side either: what the peer waits for leaves at once, and only that.
  bool step(uint64_t time, bool returns = false, bool slept = false);
  // A step of which nothing is wanted but what has come by the local link, for a thread that polls. `waits`: if nothing
  // has, it looks out for a moment.
  bool stepLocal(bool waits);
  // Whether a step would do nothing else.
  bool quiet(uint64_t time) const {
    return !firstScheduled && !firstOwing && timers.earliest() > time && link.quiet(time);
  }
  // Whether the thread that polls at `now` did so a moment ago, in vain: then it does nothing else.
  bool waits() const { return waitingSince < now && now < lastPoll.load(std::memory_order_relaxed) + kWaitingGapNs; }
  // Whether it has done nothing else for a while. Not so who asks once more before he sleeps.
  bool stillWaits() const {
    const uint64_t last = lastPoll.load(std::memory_order_relaxed);
    return waitingSince + kWaitingGapNs < last && now < last + kWaitingGapNs;
  }
  // After a poll from `began` to `now`: whether the thread should let others run, having found nothing for a while.
  bool losesPatience(bool moved, uint64_t began);
  bool runScheduled();
  void schedule(Qp& qp);
  void scheduleFirst(Qp& qp);
  void unschedule(Qp& qp);
  bool run(Qp& qp, uint32_t share);  // true: there is more
  void setTimer(Qp& qp, uint64_t due);
  void onTimer(Qp& qp);
  // Whether an idle connection asks if its peer is there. On the local link the system tells of a peer's end, and nothing
  // is lost: except by the fault layer, on a plain pair.
  static bool isProbed(const Qp& qp);
  uint64_t deadline() const { return firstScheduled || firstOwing ? 0 : timers.earliest(); }
  void rouse(uint64_t due);
  // Ends what a failing CQ began: its QPs go to ERROR. Called at the end of every command and packet.
  void settle() {
    if (firstDoomed && !settling) settleDoomed();
  }
  void settleDoomed();

  // ── core_life.cc ──────────────────────────────────────────────────────────────────────────────
  Status modify(Qp& qp, uint32_t mask, const QpAttributes& attributes);
  void toReset(Qp& qp);
  void fail(Qp& qp, const Failure& failure);
  // Every WQE there is, the oldest with this status if it is not 0, the rest flushed.
  void flushSends(Qp& qp, uint32_t status, uint32_t vendor);
  void flushReceives(Qp& qp, uint32_t status, uint32_t vendor);
  void toSendQueueError(Qp& qp, uint32_t status);
  void peerGone(Qp& qp);
  void sendWill(Qp& qp);
  void report(Qp& qp, QpEvent event, uint32_t reason);
  void write(Cq& cq, const Completion& completion) {
    if (!cq.dead && !cq.write(completion)) overrun(cq);
  }
  void overrun(Cq& cq);
  void checkDrained(Qp& qp);
  void destroy(Qp& qp);
  void detach(KernelId kernel);
  // Reads a producer counter. False: the ring is garbage.
  bool refreshSend(Qp& qp);
  bool refreshReceive(Qp& qp);

  // ── core.cc: memory of requests ───────────────────────────────────────────────────────────────
  // Collects `length` bytes at a message offset of an SGL. 0, kWcLocalProtection, or kWcLocalOp (list too short).
  uint32_t pieces(const Pd* pd, KeyCache& cache, const uint32_t* sges, uint32_t count, SgeCursor& cursor,
                  uint32_t offset, uint32_t length, bool write, Piece* out, uint32_t* outCount,
                  const SharedRange** shared = nullptr);
  void transmit(Qp& qp, const Path& path);  // sends `out` under the QP's P_Key

  // ── core.cc: packets ──────────────────────────────────────────────────────────────────────────
  Qp* byQpn(uint32_t qpn) const;
  static bool comesFromPeer(const Qp& qp, const PacketMeta& meta) {
    return meta.source == qp.attributes.path.destination && meta.destination == qp.attributes.path.source;
  }
  // Of every packet once, whichever way it takes. `bytes`: from the BTH to the last pad byte.
  void countReceived(uint32_t bytes) {
    received++;
    counters.receivedPackets++;
    counters.receivedBytes += bytes;
  }
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  void onPeerProcessGone(uint32_t slot, bool orderly) override;
  void onCaptureFailed(int error) override;

  bool accepts(Qp& qp, const Packet& p);
  void take(Qp& qp, const Packet& p);

  // ── core_local.cc ─────────────────────────────────────────────────────────────────────────────
  void chooseLink(Qp& qp);
  void settleLink(Qp& qp);
  void setMtu(Qp& qp);
  void leaveLink(Qp& qp);
  bool namesSource(Qp& qp);
  bool refersToSource(Qp& qp, const SendEntry& e, uint32_t length);
  bool refersToTarget(Qp& qp, const ResponseJob& job);
  bool hasRoom(Qp& qp, uint32_t payload, bool reference);
  bool hasRoomToAnswer(Qp& qp);
  bool mayBeCopying(Qp& qp);
  void stall(Qp& qp);
  void unstall(Qp& qp);
  uint32_t moveTo(const Packet& p, const Piece* places, uint32_t count);
  void refuseUnpulled(Qp& qp);
  void toRing(Qp& qp, bool lasting);
  void onLocalPacket(LocalPair& pair, const LocalPacket& local) override;
  void onPlainPacket(LocalPair& pair, const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  void onUnpulled(LocalPair& pair, uint32_t sourceQpn, uint32_t qpn, uint32_t psn, bool lasting) override;
  void onLocalPair(LocalPair& pair) override;
  void onLocalSpace(LocalPair& pair) override;

  // ── fast_path.cc ──────────────────────────────────────────────────────────────────────────────
  bool ringFast(Qp& qp);
  bool ringLocal(Qp& qp);
  bool ringWire(Qp& qp);
  uint32_t sendFast(Qp& qp);
  bool readSmall(Qp& qp, uint32_t most, uint32_t mostWritten, SmallRequest* r);
  SendEntry& enterSmall(Qp& qp, const SmallRequest& r);
  static void leftSmall(Requester& rq);
  bool onFastAcknowledge(Qp& qp, uint32_t psn);
  bool findPlace(Qp& qp, const SmallMessage& m, uint8_t** to);
  void tookSmall(Qp& qp, const SmallMessage& m);
  bool onLocalSmall(LocalPair& pair, const LocalSmall& send) override;
  bool onAlone(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;

  // ── requester.cc ──────────────────────────────────────────────────────────────────────────────
  bool request(Qp& qp, uint32_t& budget);
  bool begin(Qp& qp, SendEntry& e);
  void doLocally(Qp& qp, SendEntry& e);
  bool roomOnLocalLink(Qp& qp, SendEntry& e, uint32_t* span);
  bool sendPacketOf(Qp& qp, SendEntry& e, uint32_t span);
  bool windowTakes(const Qp& qp, uint32_t packets, bool mayTakeMore);
  static uint64_t answerPatience(const Qp& qp);
  void startAckTimer(Qp& qp);
  void parse(Qp& qp, uint32_t wqe);
  void executeLocal(Qp& qp, SendEntry& e);
  void sendData(Qp& qp, SendEntry& e, uint32_t span);
  void sendRead(Qp& qp, SendEntry& e, uint32_t span);
  void sendAtomic(Qp& qp, SendEntry& e);
  void sendKeepAlive(Qp& qp);
  void sent(Qp& qp, uint32_t span, const Path& path);
  void goBack(Qp& qp);
  void onAckTimeout(Qp& qp);

  // ── completer.cc ──────────────────────────────────────────────────────────────────────────────
  void onResponse(Qp& qp, const Packet& p);
  void onAcknowledged(Qp& qp, uint32_t psn);
  void onReadResponse(Qp& qp, const Packet& p);
  void onAtomicAcknowledge(Qp& qp, const Packet& p);
  void onNak(Qp& qp, uint8_t syndrome);
  bool advance(Qp& qp, uint32_t limit);  // false: an unanswered READ or ATOMIC is in the way
  void completeHead(Qp& qp);
  void retireLocal(Qp& qp);
  void progressed(Qp& qp, uint32_t acknowledged);
  void retryNow(Qp& qp);
  void failSend(Qp& qp, uint32_t status, uint32_t vendor, QpEvent event);
  bool scatterToHead(Qp& qp, uint32_t offset, const Packet& p);

  // ── congestion.cc ─────────────────────────────────────────────────────────────────────────────
  bool asksForAnswer(Qp& qp, const SendEntry& e, bool last, uint32_t span) const;
  void ask(Qp& qp);
  void openWindow(Qp& qp, uint32_t acknowledged) const;
  void reduceWindow(Qp& qp, uint32_t packets) const;
  void onCongestion(Qp& qp);
  void onMarked(Qp& qp);
  void sendCongestionNotification(Qp& qp);
  void sampleRoundTrip(Requester& rq);
  uint64_t probeDue(const Qp& qp) const;
  void probe(Qp& qp);

  // ── responder.cc ──────────────────────────────────────────────────────────────────────────────
  void onRequest(Qp& qp, const Packet& p);
  bool inSequence(Qp& qp, const Packet& p);
  void onDuplicate(Qp& qp, const Packet& p);
  void onSend(Qp& qp, const Packet& p);
  void onWrite(Qp& qp, const Packet& p);
  void onReadRequest(Qp& qp, const Packet& p);
  void onAtomic(Qp& qp, const Packet& p);
  bool takeReceive(Qp& qp, const Packet& p);
  bool beginReceive(Qp& qp);  // false: the WQE's list is longer than its place
  uint32_t scatterToReceive(Qp& qp, uint32_t offset, const Packet& p);
  void completeReceive(Qp& qp, const Packet& p, uint32_t opcode, uint32_t length);
  void accepted(Qp& qp, const Packet& p);
  void remember(Qp& qp, const Resource& resource, bool inRing);
  void refuse(Qp& qp, uint8_t syndrome, uint32_t psn, uint32_t receiveStatus, uint32_t reason);
  bool respond(Qp& qp, uint32_t& budget);
  void acknowledge(Qp& qp);
  void acknowledgeLast(Qp& qp);
  uint32_t owedWord(Qp& qp);  // LocalEntry's: the acknowledgement that goes along with a packet
  void oweAnswer(Qp& qp, bool awaited);  // `awaited`: the peer waits for it
  void owe(Qp& qp);
  void payDebts();
  void forgive(Qp& qp);
  bool sendReadResponse(Qp& qp, ResponseJob& job, uint32_t span);
  void sendAtomicResponse(Qp& qp, const ResponseJob& job);
  void sendAcknowledge(Qp& qp, uint8_t syndrome, uint32_t psn);
  void resizeResources(Qp& qp);

  // ── shared_receive.cc ─────────────────────────────────────────────────────────────────────────
  bool refreshShared(Srq& srq);
  bool takeShared(Qp& qp);  // false: there is none
  void checkLimit(Srq& srq);
  Status resizeSrq(Srq& srq, std::shared_ptr<Ring> ring, uint64_t address, uint32_t entries);

  // ── late_receive.cc ───────────────────────────────────────────────────────────────────────────
  bool hasReceive(Qp& qp);
  bool awaitReceive(Qp& qp);  // true: there is one after all
  void endWait(Qp& qp);
  void endAwaiting(Qp& qp);
  void leaveReceives(Qp& qp);
  void offerReceives(Qp& qp);
  void tellOfReceive(Qp& qp);
  uint8_t rnrCode(const Qp& qp) const;
  bool rnrPatienceEnds(const Qp& qp) const;
  void repeatRefused(Qp& qp);

  // ── datagram.cc ───────────────────────────────────────────────────────────────────────────────
  void sendDatagram(Qp& qp, SendEntry& e);
  void onDatagram(Qp& qp, const PacketMeta& meta, const Packet& p);
  void onMulticast(const PacketMeta& meta, const Packet& p);
  bool detachFrom(Qp& qp, const Group& group);
  void detachFromAll(Qp& qp);

  // ── pkeys.cc ──────────────────────────────────────────────────────────────────────────────────
  PkeyTable* pkeyTable(KernelId kernel, Handle handle);
  bool pkeyFits(Qp& qp, const Packet& p);

  Link& link;
  const Clock& clock;
  const EngineOptions options;
  EngineLock lock;
  Attendance attendance;
  std::atomic<uint32_t> commandsWaiting{0};  // threads that want the lock for more than a poll

  uint32_t slot = 0, qpBase = 0;
  std::array<KernelPort*, kKernels> kernels{};
  HandleTable<Pd> pds;
  HandleTable<Cq> cqs;
  HandleTable<Srq> srqs;
  HandleTable<AddressHandle> ahs;
  HandleTable<Qp> qps;
  std::map<Group, std::vector<Qp*>> groups;  // and the QPs attached
  uint32_t attached = 0;                     // members of all groups
  HandleTable<PkeyTable> pkeyTables;
  std::array<PkeyTable, kKernels> defaultPkeys;
  Memory memory;
  TimerHeap timers;
  Counters counters;

  uint64_t now = 0;  // at the start of the present step
  Qp *firstScheduled = nullptr, *lastScheduled = nullptr;
  Qp* firstDoomed = nullptr;
  Qp* firstOwing = nullptr;                  // an acknowledgement, from the step before
  bool puttingOff = false;                   // during such a step,
  bool unlessAwaited = false;                // but what the peer waits for
  bool settling = false;
  uint64_t waitingSince = 0;                 // the polling thread, in vain
  std::atomic<uint64_t> lastPoll{0};         // when it came back from it
  uint32_t received = 0;
  uint32_t stepsWithoutTimers = 0;
  uint32_t gsiPsn = 0;
  OutPacket out;
  alignas(64) uint8_t alone[Link::kAloneRoom + Link::kAloneMostBytes + 4];
  Qp *firstStalled = nullptr, *lastStalled = nullptr;
  LocalPair* carrier = nullptr;  // of the packet being looked at, if it came whole by a pair
  bool pullLasting = false;      // with kUnpulled: it would fail again

  // Orders what every thread of the process stores before against what it loads after; null: nothing does, and
  // posters of receives fence for themselves.
  void (*barrier)() = nullptr;
  void (*wake)(void*) = nullptr;
  void* wakeArgument = nullptr;
  uint64_t announced = UINT64_MAX;  // what the engine's thread was told last
  void (*gsi)(void*, const PacketMeta&, const uint8_t*, uint32_t) = nullptr;
  void* gsiArgument = nullptr;
};

// Whether so many packets more may be under way. `mayTakeMore`: of requests that may take several windows of the local link.
inline bool Core::windowTakes(const Qp& qp, uint32_t packets, bool mayTakeMore) {
  const Requester& rq = qp.rq;
  const uint32_t inFlight = (rq.psn - rq.una) & wire::kPsnMask;
  if (!inFlight || inFlight + packets <= rq.window) return true;
  return mayTakeMore && qp.local && !qp.local->plain && inFlight + packets <= kLocalWindows * rq.window &&
         !qp.local->crowded();
}

}  // namespace nd
