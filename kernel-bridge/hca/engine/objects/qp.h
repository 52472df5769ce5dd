// A queue pair with its attributes, its marks, and the state of its requester and responder.
#pragma once
#include <memory>
#include <vector>
#include "base/packet_headers.h"
#include "base/wqe.h"
#include "local/local_pair.h"
#include "objects/cq.h"
#include "objects/fragment_state.h"
#include "objects/path_model.h"
#include "objects/pkeys.h"
#include "objects/qp_states.h"
#include "objects/selective_ack_state.h"

namespace nd {

// ── The marks of a queue pair ───────────────────────────────────────────────────────────────────
// The reasons why a queue pair cannot use the fast path for small messages, one bit each. The bits are the state
// itself, not a copy of it. The fast path (fast_path.h) tests this word with the masks below instead of a list of
// conditions.
enum Mark : uint32_t {
  // Of both sides
  kClosed = 1u << 0,       // not RC, or in a state that does not receive
  kFailing = 1u << 1,      // one of its CQs has overrun; it goes to ERROR when the current packet or command is done
  kPairPending = 1u << 2,  // nothing is sent until the local link to its peer is up or refused
  kUnheard = 1u << 3,      // no packet of the peer has been received yet
  // Of the responder: the kind of the partly received message, as the flag bits of its packets
  kInSend = wire::kSend,
  kInWrite = wire::kWrite,
  kNakSent = 1u << 6,     // a NAK or RNR NAK was sent for the expected PSN: later packets are dropped silently
  kNakPending = 1u << 7,  // a NAK has to be sent,
  kNakFatal = 1u << 8,    // and then the queue pair fails
  kPullFailed = 1u << 9,  // local link: the peer must be notified that a payload by reference could not be copied
  kCnpPending = 1u << 10,
  kAckDeferred = 1u << 22,    // queued for the next step, with an ACK
  kKeeps = 1u << 26,          // keeps packets behind a gap
  kAwaitsReceive = 1u << 23,  // a message found no receive; posting one is announced (rnr.h)
  // Of the requester
  kNotRts = 1u << 11,      // not RC, or not in RTS
  kScheduled = 1u << 12,   // in the run queue
  kStalled = 1u << 13,     // waits for room in the pair's ring
  kUnfinished = 1u << 14,  // a request was begun or partly sent, or packets are being retransmitted (settleRequester)
  kKeepAlive = 1u << 15,   // a keep-alive is in flight, with `keepAlivePsn`
  kRequestingAck = 1u << 16,  // the oldest packet was retransmitted only to request an ACK
  kProbing = 1u << 17,        // only the oldest packet is retransmitted until a response arrives
  kAwaited = 1u << 18,        // something waits until everything sent has been acknowledged
  kRnrWait = 1u << 19,        // the peer requested a pause until `rnrUntil`
  kRingOnly = 1u << 20,       // local link: payload is copied through the ring, never sent by reference
  kNarrowed = 1u << 21,       // acknowledgements may enlarge the congestion window
  kNotDirect = 1u << 24,      // the peer's memory cannot be accessed directly (direct_access.h)
  kRecovering = 1u << 27,     // the scoreboard has entries for packets in flight
  kResponseGap = 1u << 28,    // responses are missing, or have been re-requested
  // Of both
  kPublished = 1u << 25,  // peers may access memory directly through this queue pair
};
static_assert(kInSend == 1u << 4 && kInWrite == 1u << 5, "marks overlap");
constexpr uint32_t kBlocksReceive = kClosed | kFailing | kPairPending | kUnheard | kInSend | kInWrite | kNakSent |
                                    kNakPending | kNakFatal | kPullFailed | kKeeps;
constexpr uint32_t kBlocksSend = kNotRts | kFailing | kPairPending | kStalled | kUnfinished | kKeepAlive |
                                 kRequestingAck | kProbing | kAwaited | kRnrWait;
constexpr uint32_t kBlocksDirect = kBlocksSend | kNotDirect;
// With any of these, a doorbell takes the slow path, since the fast one would leave other work undone.
constexpr uint32_t kBlocksDoorbell = kBlocksSend | kScheduled | kNakPending | kPullFailed | kCnpPending;
constexpr uint32_t kBlocksAcknowledge = kNotRts | kFailing | kPairPending | kUnheard | kUnfinished | kKeepAlive |
                                        kRequestingAck | kRnrWait | kRingOnly | kNarrowed | kRecovering | kResponseGap;

// ── Requester ───────────────────────────────────────────────────────────────────────────────────
// A send WQE in execution, and its packets.
struct SendEntry : SendWqe {
  uint32_t packets, firstPsn;
  uint32_t chunk;   // PSNs per READ request
  uint32_t status;  // not 0: the WQE cannot be executed; it fails when all earlier ones are done
  bool done;        // local, and executed
  // Returns the number of PSNs of a READ from a packet to the end of its READ request.
  uint32_t leftOfRequest(uint32_t packet) const { return std::min(chunk - (packet & (chunk - 1)), packets - packet); }
};

// A position in a scatter/gather list. Message offset `offset` is byte `within` of SGE `index`.
struct SgeCursor {
  uint32_t offset = 0, index = 0, within = 0;
};

// How far a ring has been consumed. Counters are free-running.
struct RingPlace {
  uint32_t head = 0;      // oldest WQE without completion; for a shared receive queue, the next to take
  uint32_t producer = 0;  // as last seen
  bool ringFault = false;
};

struct SendState : RingPlace {
  std::vector<SendEntry> entries;
  // head ≤ next ≤ begun ≤ parsed ≤ producer
  uint32_t next = 0;                            // WQE to send from; behind `begun` while retransmitting
  uint32_t begun = 0;                           // WQEs that have PSNs (or were executed locally)
  uint32_t parsed = 0;                          // WQEs read from the ring
  uint32_t packet = 0;                          // the packet of `next` to be sent next
  uint32_t una = 0, psn = 0, maxPsn = 0;        // oldest unacknowledged, next to send, one past the newest ever sent
  uint32_t reads = 0;                           // READ and ATOMIC requests awaiting their response
  uint32_t sinceAck = 0, messagesSinceAck = 0;  // packets, and message ends, since the last one with AckReq
  uint32_t ackRequestEnd = 0;                   // one past the newest packet with AckReq
  uint32_t ackRequestLimit = 0;                 // limit of the outstanding ACK requests: everything before this
  SgeCursor gather, scatter;
  uint32_t keepAlivePsn = 0;
  uint64_t ackStart = 0;       // when the ACK timer started
  bool ackStartStale = false;  // it actually started later: the timer, already set, is restarted when it next expires
  uint64_t rnrUntil = 0;       // with kRnrWait
  uint64_t rnrSince = 0;       // with rnrRetries: when the first RNR NAK of these arrived,
  uint32_t refused = 0;        // and the PSN that they refuse
  uint32_t retries = 0, rnrRetries = 0;
  bool fastRetried = false;  // already went back for this `una`
  // Congestion: the number of PSNs that may be in flight, the number acknowledged towards the next increase, and the
  // share of marked intervals. A new connection assumes the worst share, as with DCTCP and DCQCN.
  static constexpr uint32_t kAlphaOne = 1024;
  uint32_t window = 0, credit = 0, alpha = kAlphaOne;
  uint64_t congestedAt = 0;
  // Round-trip time, measured for one request at a time (RFC 6298).
  bool timing = false;
  uint32_t timedPsn = 0;
  uint64_t timedAt = 0, roundTrip = 0, variation = 0, leastRoundTrip = 0, lastRoundTrip = 0;
  std::unique_ptr<PathModel> model;               // for a path whose peer accepts a longer window than the default
  uint32_t probes = 0;                            // for this `una`
  std::unique_ptr<Scoreboard> board;              // with kRecovering: of the packets in flight
  std::unique_ptr<ResponseScoreboard> responses;  // with kResponseGap
  // kRingOnly applies until this PSN is acknowledged, or always.
  bool ringOnlyAlways = false;
  uint32_t ringOnlyEnd = 0;
  bool referred = false;    // packets have referenced this side's memory
  uint64_t leaveUntil = 0;  // time until which an invalidation at the head waits for peers inside; 0: it does not
  uint32_t directWqe = 0, directDone = 0;  // a request of which this many bytes have been copied directly
  uint32_t lastPosition = 0;               // the position in the ring after the newest packet
  bool outstanding() const { return una != maxPsn; }
  // Returns whether nothing in flight has AckReq.
  bool withoutAckRequest() const { return psn != una && wire::psnDiff(ackRequestEnd, una) <= 0; }
};

// ── Responder ───────────────────────────────────────────────────────────────────────────────────
// A READ or ATOMIC that was executed, kept for retransmissions of the request.
struct Resource {
  bool atomic = false;
  uint32_t psn = 0, packets = 0;
  uint64_t address = 0;
  uint32_t rkey = 0, length = 0;
  uint64_t result = 0;
  uint32_t repeated = 0, repeats = 0;  // a PSN that the peer has re-requested, and how often
  uint32_t triedSize = 0;              // fragment size when it was last retransmitted
};
// Responses still to be sent.
struct ResponseJob {
  bool atomic = false, started = false;
  uint32_t psn = 0;
  uint64_t address = 0;
  uint32_t rkey = 0, length = 0, msn = 0;
  uint64_t result = 0;
  bool replay = false;   // it responds to a duplicate request
  bool inRing = false;   // local link: the payload may not be sent by reference
  bool again = false;    // it responds to a re-request (transport/extensions/lost_responses.h)
  bool partial = false;  // it ends before its request does
};

// A queue of fixed capacity, set with the QP's depth. It is allocated with the first item, because most connections
// never need it.
template <typename T>
class Fifo {
 public:
  void reset(uint32_t capacity) {
    items_.reset();
    capacity_ = capacity;
    first_ = count_ = 0;
  }
  uint32_t capacity() const { return capacity_; }
  uint32_t size() const { return count_; }
  bool full() const { return count_ == capacity_; }
  bool hasMemory() const { return items_ != nullptr; }
  T& operator[](uint32_t i) { return items_[wrap(first_ + i)]; }
  void push(const T& item) {
    if (!items_) items_ = std::make_unique<T[]>(capacity_);
    items_[wrap(first_ + count_++)] = item;
  }
  void pop() {
    first_ = wrap(first_ + 1);
    count_--;
  }
  void popBack() { count_--; }

 private:
  uint32_t wrap(uint32_t i) const { return i >= capacity_ ? i - capacity_ : i; }
  std::unique_ptr<T[]> items_;
  uint32_t capacity_ = 0, first_ = 0, count_ = 0;
};

struct ReceiveState : RingPlace {
  uint32_t expected = 0, msn = 0;
  uint64_t received = 0;  // bytes of the open message
  // Open SEND
  SgeList sges{};     // of the receive WQE
  uint64_t room = 0;  // the bytes for which it has room
  SgeCursor scatter;
  // Open WRITE
  uint64_t writeAddress = 0;
  uint32_t writeRkey = 0, writeLength = 0;
  // Responses
  Fifo<Resource> resources;
  Fifo<ResponseJob> jobs;
  std::unique_ptr<std::deque<ResponseJob>> repeats;  // parts of responses, sent before the others
  bool responding() const { return jobs.size() != 0 || repeats; }
  bool ackPending = false;
  bool ackDue = false;           // must not be delayed, or was already due for a step
  bool unacknowledged = false;   // packets were executed that no response has acknowledged
  bool ackable = false;          // a SEND or WRITE was executed: ackPsn is valid
  uint32_t ackPsn = 0;           // the PSN of the newest SEND or WRITE packet executed
  uint32_t rnrNaks = 0;          // number of RNR NAKs sent for this expected PSN
  bool referenced = false;       // local link: responses have referenced memory,
  uint32_t referencedEnd = 0;    // the newest before this position in the ring
  uint64_t nakLatest = 0;        // not 0: until when a fatal NAK waits for the peer to have copied it
  bool unpulledLasting = false;  // with kPullFailed: another attempt would fail as well
  uint8_t nakSyndrome = 0;
  uint32_t nakPsn = 0;
  uint32_t failStatus = 0;  // with kNakFatal: status of the receive WQE, 0 if none is affected
  uint32_t failReason = 0;
  std::unique_ptr<KeptPackets> kept;
};

// ── Shared receive queue ────────────────────────────────────────────────────────────────────────
struct Srq;
// A copy of the WQE that a QP has taken from its SRQ, made when the message began.
struct SharedReceive {
  bool held = false;
  uint32_t wqe = 0, sgeCount = 0;
  std::vector<uint32_t> sges;
};

// ── Datagrams ───────────────────────────────────────────────────────────────────────────────────
struct AddressHandle {
  Handle handle = 0;
  Pd* pd = nullptr;
  Path path;
  uint32_t pathMtu = 0;
};

// A multicast group on one interface.
struct Group {
  Gid gid;
  uint32_t interface = 0;
  bool operator<(const Group& o) const { return gid != o.gid ? gid.raw < o.gid.raw : interface < o.interface; }
};

struct DreqOnExit {
  Path path;
  uint8_t mad[wire::kMadBytes];
};

struct Qp {
  KernelId kernel = 0;
  Handle handle = 0;
  uint32_t qpn = 0, token = 0;
  Pd* pd = nullptr;
  Cq *sendCq = nullptr, *receiveCq = nullptr;
  Srq* srq = nullptr;
  PkeyTable* pkeyTable = nullptr;
  SharedReceive shared;
  bool signalAll = false;
  QpAttributes attributes;
  uint32_t state() const { return attributes.state; }

  // Ring
  std::shared_ptr<Ring> ring;
  uint32_t* header = nullptr;
  uint8_t *sendRing = nullptr, *receiveRing = nullptr;
  uint32_t sendEntries = 0, sendStride = 0, sendSge = 0, maxInline = 0;
  uint32_t receiveEntries = 0, receiveStride = 0, receiveSge = 0;

  // Connection
  uint32_t mtu = 0;  // payload of a full packet in bytes; a multiple of 4
  Path route;        // attributes.path, as used by packets
  uint64_t cnpSentAt = 0;
  bool peerLocal = false;
  bool drainNotify = false, drained = false;
  uint64_t lastActivity = 0;
  std::shared_ptr<LocalPair> local;  // null: the wire
  Qp* nextStalled = nullptr;
  std::unique_ptr<FragmentPath> fragments;         // once large packets are suspected to vanish
  std::unique_ptr<FragmentAssemblies> assemblies;  // the fragments of the peer's packets
  uint64_t goneAt = 0;  // not 0: the peer's process has ended in order; its DREQ may still arrive until this time
  std::unique_ptr<DreqOnExit> dreqOnExit;

  uint32_t marks = kUnheard | kClosed | kNotRts | kNotDirect;
  bool has(uint32_t any) const { return (marks & any) != 0; }
  void set(uint32_t which) { marks |= which; }
  void clear(uint32_t which) { marks &= ~which; }
  void put(uint32_t which, bool on) { marks = on ? marks | which : marks & ~which; }

  SendState rq;
  ReceiveState rs;
  KeyCache gatherCache, scatterCache, remoteCache;
  MemoryKey* windows = nullptr;
  uint32_t groups = 0;         // number of multicast groups it is attached to
  Qp* nextAwaiting = nullptr;  // the next one in the SRQ's queue

  // Scheduling
  Qp *nextScheduled = nullptr, *nextFailing = nullptr, *nextDeferred = nullptr;
  uint64_t timerDue = 0;
  uint32_t timerPlace = UINT32_MAX;

  SendEntry& entry(uint32_t wqe) { return rq.entries[wqe & (sendEntries - 1)]; }
  const uint32_t* sendWqe(uint32_t wqe) const {
    return reinterpret_cast<uint32_t*>(sendRing + size_t(wqe & (sendEntries - 1)) * sendStride);
  }
  const uint32_t* receiveWqe(uint32_t wqe) const {
    return reinterpret_cast<uint32_t*>(receiveRing + size_t(wqe & (receiveEntries - 1)) * receiveStride);
  }
  // Returns the scatter list of the receive for the next message. Its lkeys belong to the queue's PD.
  SgeList nextReceive() const {
    return srq ? SgeList{shared.sges.data(), shared.sgeCount} : parseReceive(receiveWqe(rs.head));
  }
  inline uint32_t receiveSgeLimit() const;  // srq.h
  inline const Pd* receivePd() const;
  uint16_t pkey() const { return pkeyTable->at(attributes.pkeyIndex); }
  bool datagram() const { return attributes.type == abi::kQptUd; }
  bool reliable() const { return attributes.type == abi::kQptRc; }
  // Returns whether the peer is ready: a packet of it has arrived, or connection management has stored the connection's
  // last message. Until then a passive side waits in RTS, because the peer may not accept packets yet.
  bool connected() const { return !has(kUnheard) || dreqOnExit; }
  WqeLimits sendLimits() const {
    return {attributes.type, sendSge, maxInline, wire::kMaxMessage, attributes.initiatorDepth};
  }
  // Short messages need no division.
  uint32_t packetsFor(uint32_t length) const { return length <= mtu ? 1 : (length - 1) / mtu + 1; }
  // Returns wire::kSend or kWrite while a message is partly received, otherwise 0.
  uint32_t openKind() const { return marks & (kInSend | kInWrite); }
  void openMessage(uint32_t flags) {
    clear(kInSend | kInWrite);
    set(flags & (kInSend | kInWrite));
  }
  // Must be called after its counters have moved other than by whole messages.
  void settleRequester() { put(kUnfinished, rq.next != rq.begun || rq.next != rq.parsed || rq.psn != rq.maxPsn); }
  void setState(uint32_t state) {
    attributes.state = state;
    put(kClosed, !reliable() || !stateRules(state).receivesRequests);
    put(kNotRts, !reliable() || state != abi::kQpsRts);
    storeWord(header + abi::kQpState, state);
    setBell();
  }
  void setBell() {
    const bool rings = state() == abi::kQpsError || (has(kAwaitsReceive) && !srq);
    storeWord(header + abi::kQpReceiveBell, rings ? 1 : 0);
  }
};

}  // namespace nd
