// The memory that JavaScript and the HCA share: rings of queue pairs and completion queues.
//
// This file and `kernel-bridge/hca/abi.ts` describe the same bytes; the addon exports this table (`abi()`), and a unit test
// compares the two. Words are 32 bits, little-endian (host order); "word n" counts from the start of the named structure.
// Counters run freely modulo 2^32; masked by the entry count, a power of two, they give a slot.
//
// Everything that JavaScript writes here is untrusted input to the HCA: counters, lengths and addresses are checked on use, and a
// producer that is more than one ring ahead puts the QP in ERROR.
#pragma once
#include <cstdint>

namespace nd::abi {

// ── Completion queue ring: header, then `entries` CQEs ──────────────────────────────────────────
constexpr uint32_t kCqHeaderBytes = 128;
constexpr uint32_t kCqProducer = 0;   // word, written by the HCA: CQEs written so far
constexpr uint32_t kCqState = 1;      // word, written by the HCA: 0 good, 1 overrun (the CQ has failed)
constexpr uint32_t kCqConsumer = 16;  // word, written by the consumer: CQEs taken so far

constexpr uint32_t kCqeBytes = 64;
constexpr uint32_t kCqeToken = 0;      // the QP token of QP_CREATE
constexpr uint32_t kCqeWqe = 1;        // free-running index of the work request in its queue
constexpr uint32_t kCqeOpcode = 2;     // WV_OPCODE as a completion type (Receive 128, ReceiveRdmaWrite 129)
constexpr uint32_t kCqeStatus = 3;     // WV_WC_STATUS
constexpr uint32_t kCqeLength = 4;     // bytes received, read or (atomics) 8
constexpr uint32_t kCqeFlags = 5;      // kCqeFlag*
constexpr uint32_t kCqeImmediate = 6;  // immediate data, or the invalidated rkey; wire number
constexpr uint32_t kCqeSourceQpn = 7;
constexpr uint32_t kCqeVendor = 8;     // AETH syndrome or an internal reason, for diagnosis
constexpr uint32_t kCqePkeyIndex = 9;

constexpr uint32_t kCqeFlagImmediate = 0x1;
constexpr uint32_t kCqeFlagInvalidated = 0x2;
constexpr uint32_t kCqeFlagGrh = 0x4;
constexpr uint32_t kCqeFlagSolicited = 0x8;
constexpr uint32_t kCqeFlagReceiveQueue = 0x80;  // the queue that the WQE index counts
constexpr uint32_t kCqeFlagSharedReceive = 0x100;  // with ReceiveQueue: the index counts the QP's shared receive queue

// ── Queue pair ring: header, send queue, receive queue ──────────────────────────────────────────
constexpr uint32_t kQpHeaderBytes = 128;
constexpr uint32_t kQpSendProducer = 0;     // word, written by the poster
constexpr uint32_t kQpReceiveProducer = 1;  // word, written by the poster
constexpr uint32_t kQpState = 16;           // word, written by the HCA: WV_QP_STATE number
// Word, written by the HCA. After its producer counter the poster of a receive reads kQpReceiveBell. 0: it puts a fence in
// between. 1: it need not, because the HCA issues a barrier in all threads of the process, so that one of the two sees the other.
constexpr uint32_t kQpUnfenced = 17;
// Word, written by the HCA: not 0 in ERROR and while a message waits for a receive. The poster of a receive then rings the
// doorbell.
constexpr uint32_t kQpReceiveBell = 18;

// Send WQE: 64-byte header, then SGEs or inline bytes. The stride is a multiple of 64 bytes.
constexpr uint32_t kSendWqeHeaderBytes = 64;
constexpr uint32_t kSwOpcode = 0;     // WV_OPCODE 0..5, kOpLocalInvalidate or kOpFastRegister
constexpr uint32_t kSwFlags = 1;      // kSendFlag*
constexpr uint32_t kSwSgeCount = 2;   // SGEs; with INLINE the number of inline bytes
constexpr uint32_t kSwImmediate = 3;  // immediate data, or the peer's rkey to invalidate; wire number
constexpr uint32_t kSwRemoteLo = 4;   // remote address; BIND, FAST_REGISTER: where the window or region starts in that of kSwRkey
constexpr uint32_t kSwRemoteHi = 5;
constexpr uint32_t kSwRkey = 6;       // remote key; BIND, FAST_REGISTER: lkey of the region with the memory; LOCAL_INVALIDATE: key
constexpr uint32_t kSwAccess = 7;     // BIND, FAST_REGISTER: WV_ACCESS_* bits
constexpr uint32_t kSwCompareLo = 8;  // compare, or the operand of fetch-and-add; BIND, FAST_REGISTER: length
constexpr uint32_t kSwCompareHi = 9;
constexpr uint32_t kSwSwapLo = 10;    // swap operand; BIND: the window's present rkey
constexpr uint32_t kSwSwapHi = 11;    // BIND: the window's next rkey (same index, other low byte); FAST_REGISTER: the region's (any low byte)
constexpr uint32_t kSwAh = 12;        // UD: address handle
constexpr uint32_t kSwRemoteQpn = 13;
constexpr uint32_t kSwRemoteQkey = 14;

constexpr uint32_t kOpSend = 0, kOpWrite = 1, kOpRead = 2, kOpCompareExchange = 3, kOpFetchAdd = 4,
                   kOpBindWindow = 5, kOpLocalInvalidate = 6, kOpFastRegister = 7;
constexpr uint32_t kOpReceive = 128, kOpReceiveRdmaWrite = 129;

constexpr uint32_t kSendFlagImmediate = 0x1;
constexpr uint32_t kSendFlagFence = 0x2;
constexpr uint32_t kSendFlagSignaled = 0x4;
constexpr uint32_t kSendFlagSolicited = 0x8;
constexpr uint32_t kSendFlagInline = 0x10;
constexpr uint32_t kSendFlagInvalidate = 0x100;  // SEND with invalidate

// Receive WQE: 16-byte header, then SGEs.
constexpr uint32_t kReceiveWqeHeaderBytes = 16;
constexpr uint32_t kRwSgeCount = 0;

// ── Shared receive queue ring: header, then receive WQEs ────────────────────────────────────────
// A WQE is copied when a message takes it: its place is free from then on, while its CQE may come later, in any
// order among the queue pairs.
constexpr uint32_t kSrqHeaderBytes = 128;
constexpr uint32_t kSrqProducer = 0;   // word, written by the poster
constexpr uint32_t kSrqConsumer = 16;  // word, written by the HCA: WQEs taken so far
// Word, written by the HCA: the handle of the queue pair that waits for a receive, else 0. The poster of a receive rings the
// doorbell for it, with a fence before it reads this word.
constexpr uint32_t kSrqReceiveBell = 17;

// SGE (WV_SGE): 16 bytes.
constexpr uint32_t kSgeBytes = 16;
constexpr uint32_t kSgeAddressLo = 0;
constexpr uint32_t kSgeAddressHi = 1;
constexpr uint32_t kSgeLength = 2;
constexpr uint32_t kSgeLkey = 3;

// ── Numbers that cross with them ────────────────────────────────────────────────────────────────
// WV_WC_STATUS
constexpr uint32_t kWcSuccess = 0, kWcLocalLength = 1, kWcLocalOp = 2, kWcLocalProtection = 3, kWcFlushed = 4,
                   kWcMwBind = 5, kWcRemoteAccess = 6, kWcRemoteOp = 7, kWcRnrRetry = 8, kWcTimeoutRetry = 9,
                   kWcRemoteInvalidRequest = 10, kWcBadResponse = 11, kWcLocalAccess = 12, kWcError = 13;
// WV_QP_STATE
constexpr uint32_t kQpsReset = 0, kQpsInit = 1, kQpsRtr = 2, kQpsRts = 3, kQpsSqd = 4, kQpsSqError = 5, kQpsError = 6;
// WV_ACCESS_*
constexpr uint32_t kAccessRemoteRead = 0x1, kAccessRemoteWriteBit = 0x2, kAccessRemoteAtomic = 0x4,
                   kAccessLocalWrite = 0x8, kAccessMwBind = 0x10,
                   kAccessZeroBased = 0x20;  // addresses count from 0, the first byte
// The bytes before the payload of a UD receive: IPv6's header, or 20 zero bytes and IPv4's.
constexpr uint32_t kGrhBytes = 40;
// WV_QP_TYPE
constexpr uint32_t kQptRc = 0, kQptUc = 1, kQptUd = 3;
// WV_CQ_NOTIFY_TYPE
constexpr uint32_t kCqNotifyErrors = 0, kCqNotifyAny = 1, kCqNotifySolicited = 2;

}  // namespace nd::abi
