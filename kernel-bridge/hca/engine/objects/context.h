// State shared by all queue pairs of one transport: its objects, keys, timers, counters and time. None of it is
// process-wide: a process may have several contexts, each with its own link.
#pragma once
#include <array>
#include <map>
#include <vector>
#include "base/transport_counters.h"
#include "base/packet_link.h"
#include "base/handle_table.h"
#include "objects/cq.h"
#include "objects/memory.h"
#include "objects/packet.h"
#include "objects/pkeys.h"
#include "objects/qp.h"
#include "objects/qp_line.h"
#include "objects/srq.h"
#include "objects/timers.h"

namespace nd {

struct Context {
  static constexpr uint32_t kFirstQpIndex = 2;  // QPNs 0 and 1 are special
  static constexpr uint32_t kQpIndexes = 0x10000 - kFirstQpIndex;
  static constexpr uint32_t kKernels = 64;
  // A process that ends in order sends its DREQs before its goodbye, but other processes may forward them later than
  // that.
  static constexpr uint64_t kGoodbyeNs = 100'000'000;
  // A deferred ACK is sent after this time at the latest, if the poller that deferred it has not come back.
  static constexpr uint64_t kDeferredAckNs = 1'000'000;
  // A status in addition to the values of WV_WC_STATUS: the payload could not be copied from the peer.
  static constexpr uint32_t kUnpulled = 0xFFFFFFFF;

  Context(Link& link, const Clock& clock, const EngineOptions& options);

  // Must be called once for every received packet, on any path. `bytes`: from the BTH to the last pad byte.
  void countReceived(uint32_t bytes) {
    received++;
    counters.receivedPackets++;
    counters.receivedBytes += bytes;
  }
  // Returns null if it is not a queue pair of this context.
  Qp* byQpn(uint32_t qpn) const;
  // Returns whether a packet's addresses are those of the connection.
  static bool comesFromPeer(const Qp& qp, const PacketMeta& meta) {
    return meta.source == qp.attributes.path.destination && meta.destination == qp.attributes.path.source;
  }
  // Returns whether a packet's P_Key matches (IBA 1 §9.6.1.1.1, §10.9), and counts mismatches.
  bool pkeyFits(Qp& qp, const Packet& p);
  // Table 0 is the kernel's default one.
  PkeyTable* pkeyTable(KernelId kernel, Handle handle);

  // Reads a ring's producer counter. Returns false if the ring is corrupt.
  bool refreshSend(Qp& qp) { return refresh(qp.rq, qp.header + abi::kQpSendProducer, qp.sendEntries); }
  bool refreshReceive(Qp& qp) { return refresh(qp.rs, qp.header + abi::kQpReceiveProducer, qp.receiveEntries); }
  bool refreshShared(Srq& srq) { return refresh(srq, srq.header + abi::kSrqProducer, srq.entries); }
  // Collects `length` bytes at a message offset of an SGL. Returns 0, kWcLocalProtection, or kWcLocalOp if the list is
  // too short.
  uint32_t pieces(const Pd* pd, KeyCache& cache, SgeList sges, SgeCursor& cursor, uint32_t offset, uint32_t length,
                  bool write, Piece* out, uint32_t* outCount, const SharedRange** shared = nullptr);

  void report(Qp& qp, QpEvent event, uint32_t reason);
  void write(Cq& cq, const Completion& completion) {
    if (!cq.dead && !cq.write(completion)) overrun(cq);
  }

  Link& link;
  const Clock& clock;
  const EngineOptions options;
  uint32_t slot = 0, qpBase = 0;
  std::array<KernelPort*, kKernels> kernels{};
  HandleTable<Pd> pds;
  HandleTable<Cq> cqs;
  HandleTable<Srq> srqs;
  HandleTable<AddressHandle> ahs;
  HandleTable<Qp> qps;
  HandleTable<PkeyTable> pkeyTables;
  std::array<PkeyTable, kKernels> defaultPkeys;
  Memory memory;
  TimerHeap timers;
  Counters counters;
  uint64_t now = 0;                            // at the start of the current step
  uint32_t received = 0;                       // number of packets received in the current step
  uint64_t keptBytes = 0;                      // kept by all connections behind gaps (selective_ack.h)
  QpLine<&Qp::nextFailing, kFailing> failing;  // ended by Lifecycle::settle
  // Orders earlier stores by every thread of the process before the caller's later loads. If it is null, the OS has no
  // such barrier and posters of receives use fences themselves.
  void (*barrier)() = nullptr;

 private:
  bool refresh(RingPlace& place, const uint32_t* word, uint32_t entries);
  void overrun(Cq& cq);
};

}  // namespace nd
