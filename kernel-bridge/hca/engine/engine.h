// The HCA: object tables, the command interface the driver uses, and the transport engine.
//
// One lock guards everything (`lock()`); commands take it themselves, and none blocks on anything else.
// Whoever posts or polls moves the engine on its own thread (`doorbell`, `progress`); the engine's thread
// (engine_thread.h) does the same when nobody polls.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>
#include "abi.h"
#include "engine_lock.h"
#include "link.h"
#include "types.h"

namespace nd {

struct SharedRange;  // shared_memory.h
class Attendance;    // attendance.h

struct EngineOptions {
  uint64_t keepAliveNs = 10'000'000'000ull;  // idle connections send a zero-length RDMA WRITE; 0: never
  uint32_t window = 128;                     // PSNs in flight per QP, at most; more of some requests: Core::kLocalWindows
  uint64_t rnrPatienceNs = 1'000'000'000;    // how long patient QPs wait for a receive of the peer (rnrpatience), at least
  bool ecn = false;                          // mark what connections send as ECN-capable, ECT(0)
  uint32_t maxQp = 65000, maxCq = 65536, maxPd = 65536, maxMr = 1u << 20, maxMw = 1u << 20;
  uint32_t maxSrq = 65536, maxAh = 65536;
  uint32_t maxGroups = 4096;                 // multicast groups, counted for each interface
  uint32_t maxGroupQps = 1024, maxAttached = 65536;  // QPs of one group; attachments of all
  uint32_t maxPkeyTables = 4096, maxPkeys = 4096;  // entries of one table
  uint32_t maxQpWr = 16384, maxSge = 32, maxCqEntries = 1u << 20, maxInline = 1024;
  uint32_t maxReadDepth = 128;               // responder resources and initiator depth per QP
  uint64_t maxMrSize = 1ull << 40;
};

struct QpCreate {
  KernelId kernel = 0;
  Handle pd = 0, sendCq = 0, receiveCq = 0, srq = 0;
  Handle pkeyTable = 0;              // 0: the default table, which holds 0xFFFF
  uint32_t type = abi::kQptRc;
  bool signalAll = false;            // WV_QP_SIGNAL_SENDS
  uint64_t ringAddress = 0;          // must lie in a ring allocation (RingMemory)
  uint64_t ringBytes = 0;
  uint32_t sendEntries = 0, sendStride = 0, sendSge = 0, maxInline = 0;      // entries: powers of two
  uint32_t receiveEntries = 0, receiveStride = 0, receiveSge = 0;
  uint32_t token = 0;                // comes back in every CQE
};

struct SrqCreate {
  KernelId kernel = 0;
  Handle pd = 0;
  uint64_t ringAddress = 0, ringBytes = 0;  // as QpCreate
  uint32_t entries = 0, stride = 0, sge = 0;  // entries: a power of two
};

// Bits of SrqAttributes that a modify carries.
namespace srqmask {
constexpr uint32_t kEntries = 1, kLimit = 2;
}

struct SrqAttributes {
  uint32_t entries = 0;
  uint64_t ringAddress = 0, ringBytes = 0;  // with kEntries: the ring to move to; the poster holds still meanwhile
  uint32_t limit = 0;                       // 0: no event
  uint32_t sge = 0;                         // query only
};

// Bits of QpAttributes that a modify carries (IBA 1 §11.2.5.2, roce-wire §3.4).
namespace qpmask {
constexpr uint32_t kState = 1, kAccess = 2, kPkeyIndex = 4, kPort = 8, kQkey = 0x10, kPath = 0x20, kPathMtu = 0x40,
                   kDestinationQpn = 0x80, kReceivePsn = 0x100, kResponderResources = 0x200, kMinRnrTimer = 0x400,
                   kAckTimeout = 0x800, kRetryCount = 0x1000, kRnrRetry = 0x2000, kSendPsn = 0x4000,
                   kInitiatorDepth = 0x8000, kCurrentState = 0x10000, kDrainNotify = 0x20000, kPatience = 0x40000;
}

// Bits of QpAttributes::patience. Without them the RNR retry count and the RNR NAK timer are all there is.
namespace rnrpatience {
// The peer may repeat wire::kMostRnrRetries times or for ever: RNR NAKs ask for longer and longer times, which together reach
// EngineOptions::rnrPatienceNs, and are taken back on the wire when there is a receive.
constexpr uint32_t kResponder = 1;
// Retries go on beyond a count of wire::kMostRnrRetries until that time has passed.
constexpr uint32_t kRequester = 2;
}

struct QpAttributes {
  uint32_t state = 0, currentState = 0;
  uint32_t type = 0, qpn = 0;
  uint32_t access = 0;               // WV_ACCESS_* of remote operations
  uint32_t pkeyIndex = 0, port = 0, qkey = 0;
  Path path;
  uint32_t pathMtu = 0;              // bytes: 256..4096
  uint32_t destinationQpn = 0, receivePsn = 0, sendPsn = 0;
  uint32_t responderResources = 0, initiatorDepth = 0;
  uint32_t minRnrTimer = 0;          // AETH code 0..31 (roce-wire §1.8)
  uint32_t ackTimeout = 0;           // code: 4.096 µs × 2^n, 0 = none
  uint32_t retryCount = 0, rnrRetry = 0;
  uint32_t patience = 0;             // rnrpatience
};

// Packets dropped at the QPs and addresses of a P_Key table.
struct PkeyViolations {
  uint64_t badPkeys = 0, badQkeys = 0;
};

class Engine final : public PacketSink {
 public:
  Engine(Link& link, const Clock& clock, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineLock& lock();
  const EngineOptions& options() const;

  // The process's slot: the high 8 bits of every QPN. Set once, before the first QP.
  void setSlot(uint32_t slot);

  // ── Soft kernels. Detaching destroys everything the kernel owns: QPs go to ERROR, their wills are sent.
  Status attachKernel(KernelPort* port, KernelId* out);
  void detachKernel(KernelId kernel);
  KernelPort* kernelPort(KernelId kernel);      // lock held
  KernelId anyKernel();                         // lock held; 0: none

  // ── Memory the process offers to the HCA. Registration and rings accept no address outside of these.
  // Ranges may overlap; each is dropped by its id. Dropping a range kills the regions registered in it.
  Status pinRange(uint64_t address, uint64_t length, uint64_t* id);
  void unpinRange(uint64_t id);
  // The memory of allocate() that holds this part of a pinned range, or null.
  std::shared_ptr<const SharedRange> sharedAt(uint64_t address, uint64_t length);
  // Rings: zeroed, 64-byte aligned, kept alive by the ids and by the objects that use them.
  Status allocateRing(uint64_t bytes, uint64_t* address);
  void releaseRing(uint64_t address);
  // Keeps the memory of the ring at this address alive beyond releaseRing(); null: there is none.
  std::shared_ptr<void> ringMemory(uint64_t address);

  // ── Command interface. Every destroy answers kDeviceBusy while others use the object.
  Status allocatePd(KernelId kernel, Handle* pd);
  Status deallocatePd(Handle pd);
  Status registerMr(Handle pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey, uint32_t* rkey);
  Status deregisterMr(Handle pd, uint32_t lkey);      // kDeviceBusy: windows are bound
  Status allocateMw(Handle pd, Handle* mw, uint32_t* rkey);
  Status deallocateMw(Handle mw);                     // unbinds
  Status createCq(KernelId kernel, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* cq);
  Status resizeCq(Handle cq, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries);  // kBufferOverflow: does not fit
  Status destroyCq(Handle cq);
  Status createQp(const QpCreate& request, Handle* qp, uint32_t* qpn);
  Status modifyQp(Handle qp, uint32_t mask, const QpAttributes& attributes);
  // From RESET or INIT by INIT and RTR to RTS; each step takes what its mask names. Ends at the first that fails, with its status.
  Status connectQp(Handle qp, const std::array<uint32_t, 3>& masks, QpAttributes attributes);
  Status queryQp(Handle qp, QpAttributes* attributes);
  Status destroyQp(Handle qp);
  // ── Shared receive queues. Messages take WQEs in the order in which they begin, whichever QP they are for.
  Status createSrq(const SrqCreate& request, Handle* srq);
  // The limit raises SrqEvent::kLimit once, at once if fewer WQEs are there already. kBufferOverflow: the WQEs do
  // not fit into the new ring.
  Status modifySrq(Handle srq, uint32_t mask, const SrqAttributes& attributes);
  Status querySrq(Handle srq, SrqAttributes* attributes);
  Status destroySrq(Handle srq);
  // ── Address handles: where a UD send goes, named by its WQE. `pathMtu`: bytes a datagram may have, 256..4096.
  Status createAh(Handle pd, const Path& path, uint32_t pathMtu, Handle* ah);
  Status destroyAh(Handle ah);
  // ── Multicast for UD QPs. The interface (its index) is in the group while a QP of this process is attached there.
  // kInvalidDeviceState: attached already; kInvalidDeviceRequest: not a UD QP; as Link::joinGroup.
  Status attachMulticast(Handle qp, const Gid& group, uint32_t interface);
  Status detachMulticast(Handle qp, const Gid& group, uint32_t interface);  // kInvalidParameter: was not attached
  // ── P_Key tables, one for a port; a new one holds 0xFFFF. `gids`: the port's addresses, for MADs.
  Status createPkeyTable(KernelId kernel, Handle* table);
  Status setPkeyTable(Handle table, std::vector<uint16_t> pkeys, std::vector<Gid> gids);
  Status queryPkeyTable(KernelId kernel, Handle table, PkeyViolations* violations);  // table 0: the default one
  Status destroyPkeyTable(Handle table);
  // Lock held: whether a MAD for this address may be given to the kernel. Counts the one that may not.
  bool acceptsGsiPkey(KernelId kernel, const Gid& destination, uint16_t pkey);
  // The MAD that tells the peer of this QP's end (a DREQ), sent when the kernel dies without a goodbye. Set when the
  // connection is established: from then on it is probed when idle.
  Status setWill(Handle qp, const Path& path, const uint8_t mad[256]);

  // ── Completion events (winverbs §1.3 Notify, networkdirect §6.6).
  // arm() asks for one event on the next matching completion, counting those not yet taken by the consumer
  // and not yet announced. An event with nobody waiting is kept for the next waiter of a matching type.
  // Waiter and arm of one notification may come in either order.
  Status armCq(Handle cq, bool solicitedOnly);
  // One event when `count` entries, 1 to the CQ's size, have come, those counted that arm() would count. It comes
  // earlier together with one that arm() asked for.
  Status armCqBatch(Handle cq, uint32_t count);
  Status addCqWaiter(Handle cq, uint32_t type, std::shared_ptr<NotifySink> sink);
  // Tells the sink of every event as long as the CQ lives; its overrun comes by KernelPort::onCqError.
  Status listenCq(Handle cq, std::shared_ptr<NotifySink> sink);
  Status removeCqWaiter(Handle cq, const NotifySink* sink);   // kInvalidHandle: was not waiting (or has fired)

  // ── Speed path.
  void doorbell(Handle qp);             // new send WQEs, or receives where abi::kQpReceiveBell asks for it
  // One step if the lock is free; true if something moved. Marks the thread as polling; one that waits long in vain
  // lets other threads run.
  bool progress();
  // A step with the lock held. `returns`: the thread comes back soon, or posts, and acknowledgements may wait for that. `slept`:
  // it was woken, and those may wait that the peer does not wait for.
  bool progressLocked(bool returns = false, bool slept = false);
  uint64_t nextDeadline();              // lock held: when a timer is due (ns), or UINT64_MAX
  uint64_t pollerMark() const;          // when a thread last polled (ns)
  Attendance& attendance();
  void attend();                        // marks the thread as one that comes back soon, as progress() does
  void stay();                          // the same of a thread that has slept, without a system call,
  void putOffAlarm();                   // which it makes before it sleeps again
  void wakeThread();                    // the engine's thread looks again
  std::unique_lock<EngineLock> hold();  // the lock, for longer than a poll
  // Lock held: packets that this thread has for the engine, outside of a step. What they set off is finished, or left to the
  // engine's thread.
  void take(void (*deliver)(void* self, PacketSink& sink), void* self);
  bool commandsWait() const;            // somebody waits for the lock who does not come back by himself
  // Called (lock held or not) when the engine's thread must look again: earlier timer, a waiter came.
  void setWake(void (*wake)(void*), void* argument);
  // Posters of receives need no fences from now on (abi::kQpUnfenced): `barrier` orders what every thread of the
  // process stored before against what it loads after. Once.
  void setBarrier(void (*barrier)());

  // ── PacketSink (lock held).
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  void onPeerProcessGone(uint32_t slot, bool orderly) override;
  void onCaptureFailed(int error) override;
  void onLocalPair(LocalPair& pair) override;
  // QP1 traffic goes here instead of to a QP; set by the GSI (gsi.h).
  using GsiHandler = void (*)(void*, const PacketMeta&, const uint8_t* bth, uint32_t length);
  void setGsi(GsiHandler handler, void* argument);

  // ── Counters: parallel arrays, stable order, names as `rdma statistic` where it has them.
  static const std::vector<const char*>& counterNames();
  std::vector<uint64_t> counters();
  // Live objects, for leak tests: pd, mr, mw, cq, qp, ring, range.
  std::array<uint32_t, 7> objectCounts();
  uint32_t srqCount();
  uint32_t ahCount();
  uint32_t pkeyTableCount();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
