// The HCA, with its object tables, the command interface for the driver, and the transport engine.
//
// One lock (`lock()`) protects everything. Commands acquire it themselves and do not block otherwise. A thread that
// posts or polls advances the engine itself (`doorbell`, `progress`); when no thread polls, the engine's thread does so
// (progress/engine_thread.h).
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>
#include "platform/engine_lock.h"
#include "base/packet_link.h"
#include "base/types.h"
#include "progress/owner.h"
#include "objects/hca_commands.h"
#include "schema/statistics.h"

namespace nd {

// Statistics of queue pairs and registrations, without addresses, keys or memory contents.
struct QpStatistics : QpNumbers {
  Gid source, destination;
};

struct Statistics {
  std::vector<QpStatistics> queuePairs;
  std::vector<MemoryStatistics> memory;
  uint32_t sharedReceived = 0;  // receives of shared receive queues that have received a message; as
                                // QpStatistics::received
};

struct SharedRange;  // shared_memory.h
struct FilePart;     // mapping.h

class Engine final : public PacketSink, public HcaCommands {
 public:
  Engine(Link& link, const Clock& clock, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineLock& lock();
  const EngineOptions& options() const;
  // The bits of QpAttributes::extensions that this build supports: all, or none.
  static uint32_t extensions();

  // Sets the HCA's slot, the high 8 bits of every QPN; once, before the first QP.
  void setSlot(uint32_t slot);

  // ── Soft kernels. Detaching destroys everything that the kernel owns: QPs go to ERROR, and their stored DREQs are
  // sent.
  Status attachKernel(KernelPort* port, KernelId* out);
  void detachKernel(KernelId kernel);
  KernelPort* kernelPort(KernelId kernel);  // lock held
  KernelId anyKernel();                     // lock held; 0: none

  // ── Memory that the process offers to the HCA. Registrations and rings must lie within these ranges.
  // Ranges may overlap, and each is dropped by its id. Dropping a range invalidates the regions registered in it.
  Status pinRange(uint64_t address, uint64_t length, uint64_t* id);
  void unpinRange(uint64_t id);
  // Returns the allocate() memory that contains this part of a pinned range, or null.
  std::shared_ptr<const SharedRange> sharedAt(uint64_t address, uint64_t length);
  // Rings are zeroed and 64-byte aligned. They are kept alive by their ids and by the objects that use them.
  Status allocateRing(uint64_t bytes, uint64_t* address);
  void releaseRing(uint64_t address);
  // Returns a reference that keeps the ring at this address alive beyond releaseRing(), or null if there is no such
  // ring.
  std::shared_ptr<void> ringMemory(uint64_t address);

  // ── Commands that every HCA has.
  Status allocatePd(Owner kernel, Handle* pd) override;
  Status deallocatePd(Handle pd) override;
  Status registerMr(Handle pd, uint64_t address, uint64_t length, uint32_t access, uint32_t* lkey,
                    uint32_t* rkey) override;
  Status deregisterMr(Handle pd, uint32_t lkey) override;
  Status allocateMw(Handle pd, Handle* mw, uint32_t* rkey) override;
  Status deallocateMw(Handle mw) override;
  Status createCq(Owner kernel, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries, Handle* cq) override;
  Status resizeCq(Handle cq, uint64_t ringAddress, uint64_t ringBytes, uint32_t entries) override;
  Status destroyCq(Handle cq) override;
  Status armCq(Handle cq, bool solicitedOnly) override;
  Status listenCq(Handle cq) override;
  Status createQp(const QpCreate& request, Handle* qp, uint32_t* qpn) override;
  Status modifyQp(Handle qp, uint32_t mask, const QpAttributes& attributes) override;
  Status connectQp(Handle qp, const ConnectMasks& masks, const QpAttributes& attributes,
                   Handle connection = 0) override;
  Status queryQp(Handle qp, QpAttributes* attributes) override;
  Status destroyQp(Handle qp) override;
  Status createSrq(const SrqCreate& request, Handle* srq) override;
  Status modifySrq(Handle srq, uint32_t mask, const SrqAttributes& attributes) override;
  Status querySrq(Handle srq, SrqAttributes* attributes) override;
  Status destroySrq(Handle srq) override;
  Status createAh(Handle pd, const Path& path, uint32_t pathMtu, Handle* ah) override;
  Status destroyAh(Handle ah) override;
  // The interface stays in the group while a QP of this process is attached there. Fails with kInvalidDeviceState if
  // the QP is already attached; for other statuses see Link::joinGroup.
  Status attachMulticast(Handle qp, const Gid& group, uint32_t interface) override;
  Status detachMulticast(Handle qp, const Gid& group,
                         uint32_t interface) override;  // kInvalidParameter: not attached

  // ── Commands that only the software HCA has.
  // Allocates a region for FAST_REGISTER requests of at most `mostBytes`.
  Status allocateMr(Handle pd, uint64_t mostBytes, uint32_t* lkey);
  // P_Key tables, one for each port. A new table holds 0xFFFF. `gids`: the port's addresses, for MADs.
  Status createPkeyTable(Owner kernel, Handle* table);
  Status setPkeyTable(Handle table, std::vector<uint16_t> pkeys, std::vector<Gid> gids);
  Status queryPkeyTable(Owner kernel, Handle table, PkeyViolations* violations);  // table 0: the default one
  Status destroyPkeyTable(Handle table);
  // With the lock held: returns whether a MAD for this address may be passed to the kernel, and counts those that may
  // not.
  bool acceptsGsiPkey(KernelId kernel, const Gid& destination, uint16_t pkey);
  // Stores the DREQ to be sent if the kernel dies without disconnecting. Called when the connection is established,
  // which is then probed while it is idle.
  Status setDreqOnExit(Handle qp, const Path& path, const uint8_t mad[256]);

  // Requests one event once `count` entries (1 to the CQ's size) have been written, including those that armCq() would
  // count. If an event that armCq() requested is due earlier, it serves this request as well.
  Status armCqBatch(Handle cq, uint32_t count);
  // An event without a waiter is kept for the next waiter of a matching type. The waiter and the arm of a notification
  // may come in either order.
  Status addCqWaiter(Handle cq, uint32_t type, std::shared_ptr<NotifySink> sink);
  Status removeCqWaiter(Handle cq, const NotifySink* sink);  // kInvalidHandle: not waiting (or has fired)

  // ── Speed path.
  void doorbell(Handle qp);  // new send WQEs, or receives where abi::kQpReceiveBell requests it
  // Executes an operation in memory that the peer has published, immediately and without a request
  // (DirectAccess::access).
  DirectResult direct(Handle qp, DirectOperation operation, uint8_t* data, size_t length, uint64_t remote,
                      uint32_t rkey);
  // Returns the file of memory that the peer allows others to map (DirectAccess::view), for Mapping::openView().
  DirectResult view(Handle qp, uint64_t length, uint64_t remote, uint32_t rkey, FilePart* part);
  // Polls for a program's thread: takes one step if the lock is free, and returns whether there was progress. Marks the
  // thread as polling. After polling for long without result, the thread yields to others.
  bool progress();
  // To be called before such a poll of a program that waits for completions of this queue; see PollHint.
  bool shouldPoll(Handle cq);

  // ── Steps for owners of progress: the engine's thread, and a thread of the program that waits
  // (progress/progress_engine.h).
  std::unique_lock<EngineLock> hold();  // the lock, for longer than a poll of progress()
  bool contended() const;               // a thread waits in hold(), so release the lock soon
  bool poll(Stepper stepper);           // lock held: takes one step; true if more may be left to do
  uint64_t nextDeadline();              // lock held: when the next step is due (ns), or UINT64_MAX
  ProgressOwner& owner();               // of progress
  // `wake` is called (lock held or not) when the engine's thread must run earlier than at the time that nextDeadline()
  // returned, or when a waiter has arrived.
  void setWake(void (*wake)(void*), void* argument);
  void wakeThread();
  // With the lock held: passes packets of this thread to the engine, outside of a step. The resulting work is finished,
  // or left to the engine's thread.
  void deliver(void (*packets)(void* self, PacketSink& sink), void* self);

  // From now on posters of receives need no fences (abi::kQpUnfenced). `barrier` orders earlier stores by every thread
  // of the process before the caller's later loads. Must be called only once.
  void setBarrier(void (*barrier)());

  // ── PacketSink (lock held).
  void onPacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length) override;
  void onPeerProcessGone(uint32_t slot, bool orderly) override;
  void onCaptureFailed(int error) override;
  void onWireLost() override;
  // Called with the lock held when the thread that advances the engine has failed.
  void onThreadFailed(int error);
  void onLocalPair(LocalPair& pair) override;
  // Receives QP1 traffic in place of a QP; set by the GSI (gsi.h).
  using GsiHandler = void (*)(void*, const PacketMeta&, const uint8_t* bth, uint32_t length);
  void setGsi(GsiHandler handler, void* argument);

  // ── Counters: parallel arrays in a stable order, named as in `rdma statistic` where that has them.
  static const std::vector<const char*>& counterNames();
  std::vector<uint64_t> counters();
  // Statistics of at most this many objects of each kind.
  Statistics statistics(uint32_t most);
  // Returns the number of live objects of a kind, for leak tests: pd, mr, mw, cq, qp, ring, range.
  std::array<uint32_t, 7> objectCounts();
  uint32_t srqCount();
  uint32_t ahCount();
  uint32_t pkeyTableCount();

 private:
  struct Impl;
  Status openWireTo(const Gid& destination);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nd
