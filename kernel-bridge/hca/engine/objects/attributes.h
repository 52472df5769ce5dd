// Parameters and results of the HCA's commands: options, sizes, attributes of objects and the masks that name them.
#pragma once
#include "schema/ring.h"
#include "base/types.h"
#include "base/wire.h"

namespace nd {

struct EngineOptions {
  uint64_t keepAliveNs = 10'000'000'000ull;  // idle connections send a zero-length RDMA WRITE; 0: never
  uint32_t window = 128;                     // PSNs in flight per QP, at most; more of some requests: Congestion::kLocalWindows
  uint64_t longWindowBytes = 32ull << 20;    // the same towards peers with extensions::kLongWindow, far away; not less than `window`
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
  uint64_t ringAddress = 0, ringBytes = 0;  // with kEntries: the ring to move to; nothing may be posted during the call
  uint32_t limit = 0;                       // 0: no event
  uint32_t sge = 0;                         // query only
};

// Bits of QpAttributes that a modify carries (IBA 1 §11.2.5.2, roce-wire §3.4).
namespace qpmask {
constexpr uint32_t kState = 1, kAccess = 2, kPkeyIndex = 4, kPort = 8, kQkey = 0x10, kPath = 0x20, kPathMtu = 0x40,
                   kDestinationQpn = 0x80, kReceivePsn = 0x100, kResponderResources = 0x200, kMinRnrTimer = 0x400,
                   kAckTimeout = 0x800, kRetryCount = 0x1000, kRnrRetry = 0x2000, kSendPsn = 0x4000,
                   kInitiatorDepth = 0x8000, kCurrentState = 0x10000, kDrainNotify = 0x20000, kPatience = 0x40000,
                   kExtensions = 0x80000;
}

namespace extensions {
constexpr uint32_t kAll = kLongWindow | kRecovery | kFragments | kAnswers | kLongPackets;
// Bytes of payload of a full packet; 0: the path MTU, as the standard has it.
constexpr uint32_t packetBytes(uint32_t word) { return word & kLongPackets ? word >> kPacketBytesShift : 0; }
constexpr bool isValid(uint32_t word) {
  const uint32_t bytes = word >> kPacketBytesShift, bits = word & ((1u << kPacketBytesShift) - 1);
  const bool fits = bytes >= 256 && bytes <= extensions::kPacketBytesLongest && bytes % extensions::kPacketBytesStep == 0;
  return (bits & ~kAll) == 0 && (bytes == 0 || (fits && (bits & kLongPackets)));
}
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
  uint32_t extensions = 0;
};

// Packets dropped at the QPs and addresses of a P_Key table.
struct PkeyViolations {
  uint64_t badPkeys = 0, badQkeys = 0;
};

}  // namespace nd
