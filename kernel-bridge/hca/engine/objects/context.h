// What all queue pairs of one transport share: its objects, keys, timers, counters and time. It has no process-wide
// state: a process may have several, each with a link of its own.
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
  // A process that ends in order sends its DREQs before its goodbye, but another process may forward them later.
  static constexpr uint64_t kGoodbyeNs = 100'000'000;
  // A deferred ACK leaves at the latest after this time, when the poller that deferred it has not come back.
  static constexpr uint64_t kDeferredAckNs = 1'000'000;
  // Beside the values of WV_WC_STATUS: the payload could not be copied from the peer.
  static constexpr uint32_t kUnpulled = 0xFFFFFFFF;

  Context(Link& link, const Clock& clock, const EngineOptions& options);

  // Of every received packet once, whichever way it takes. `bytes`: from the BTH to the last pad byte.
  void countReceived(uint32_t bytes) {
    received++;
    counters.receivedPackets++;
    counters.receivedBytes += bytes;
  }
  // Null: no queue pair of this context.
  Qp* byQpn(uint32_t qpn) const;
  // Whether a packet's addresses are those of the connection.
  static bool comesFromPeer(const Qp& qp, const PacketMeta& meta) {
    return meta.source == qp.attributes.path.destination && meta.destination == qp.attributes.path.source;
  }
  // Whether a packet's P_Key fits (IBA 1 §9.6.1.1.1, §10.9). Counts one that does not.
  bool pkeyFits(Qp& qp, const Packet& p);
  // Table 0 is the kernel's default one.
  PkeyTable* pkeyTable(KernelId kernel, Handle handle);

  // Reads a ring's producer counter. False: the ring is garbage.
  bool refreshSend(Qp& qp) { return refresh(qp.rq, qp.header + abi::kQpSendProducer, qp.sendEntries); }
  bool refreshReceive(Qp& qp) { return refresh(qp.rs, qp.header + abi::kQpReceiveProducer, qp.receiveEntries); }
  bool refreshShared(Srq& srq) { return refresh(srq, srq.header + abi::kSrqProducer, srq.entries); }
  // Collects `length` bytes at a message offset of an SGL. 0, kWcLocalProtection, or kWcLocalOp (list too short).
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
  uint64_t now = 0;                            // at the start of the present step
  uint32_t received = 0;                       // in the present step
  uint64_t keptBytes = 0;                      // by all connections, behind gaps (selective_ack.h)
  QpLine<&Qp::nextFailing, kFailing> failing;  // Lifecycle::settle ends them
  // Orders what every thread of the process stored before against what it loads after; null: nothing does, and
  // posters of receives fence for themselves.
  void (*barrier)() = nullptr;

 private:
  bool refresh(RingPlace& place, const uint32_t* word, uint32_t entries);
  void overrun(Cq& cq);
};

}  // namespace nd
