// The parser of work queue entries (schema/ring.h), used by everything that executes them: the fast path, direct
// access, the requester, and RDMA devices (verbs/post.cc).
//
// A WQE is in memory that the program may change at any time. Each word of a send WQE is read once, into a SendWqe, so
// that the values checked are the values executed. SGEs stay in the ring: each value read from one is checked when it
// is used.
#pragma once
#include "schema/ring.h"
#include "base/ring_words.h"
#include "base/packet_headers.h"

namespace nd {

// A scatter/gather list in a ring.
struct SgeList {
  const uint32_t* words;
  uint32_t count;

  uint64_t address(uint32_t i) const { return peekWide(at(i) + abi::kSgeAddressLo); }
  uint32_t length(uint32_t i) const { return peekWord(at(i) + abi::kSgeLength); }
  uint32_t lkey(uint32_t i) const { return peekWord(at(i) + abi::kSgeLkey); }
  uint64_t bytes() const {
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) total += length(i);
    return total;
  }

 private:
  const uint32_t* at(uint32_t i) const { return words + i * (abi::kSgeBytes / 4); }
};

// A receive WQE. Its number of SGEs has yet to be checked against the queue's limit.
inline SgeList parseReceive(const uint32_t* wqe) {
  return {wqe + abi::kReceiveWqeHeaderBytes / 4, peekWord(wqe + abi::kRwSgeCount)};
}

// Limits of the send WQEs of a queue pair.
struct WqeLimits {
  uint32_t type;  // WV_QP_TYPE
  uint32_t sges, inlineBytes, messageBytes;
  uint32_t initiatorDepth;  // RDMA reads and atomics in flight; 0: none allowed
};

// A send WQE.
struct SendWqe {
  uint32_t opcode, flags;
  uint32_t count;   // SGEs, or inline bytes
  uint32_t length;  // message bytes
  uint64_t remote, compare, swap;
  uint32_t rkey, access;
  uint32_t immediate;
  uint32_t ah, remoteQpn, remoteQkey;  // UD

  bool isInline() const { return (flags & abi::kSendFlagInline) != 0; }
  bool isReadOrAtomic() const { return opcode >= abi::kOpRead && opcode <= abi::kOpFetchAdd; }
  bool isAtomic() const { return opcode == abi::kOpCompareExchange || opcode == abi::kOpFetchAdd; }
  // Returns whether it is a bind, invalidation or fast registration. These send no packet, so they have no PSN.
  bool isLocal() const { return opcode >= abi::kOpBindWindow; }
  // BIND, FAST_REGISTER
  uint32_t presentKey() const { return uint32_t(swap); }
  uint32_t nextKey() const { return uint32_t(swap >> 32); }
  // With the flag INLINE
  static const uint8_t* inlineBytes(const uint32_t* wqe) { return reinterpret_cast<const uint8_t*>(bodyOf(wqe)); }
  // Without
  SgeList sges(const uint32_t* wqe) const { return {bodyOf(wqe), count}; }

  // Parses the whole WQE. Returns 0, or the WV_WC_STATUS with which it fails.
  inline uint32_t parse(const uint32_t* wqe, const WqeLimits& limits);

  // ── The parts of parse(), in order. Fast paths read only the parts that they need.
  void readKind(const uint32_t* wqe) {
    opcode = peekWord(wqe + abi::kSwOpcode);
    flags = peekWord(wqe + abi::kSwFlags);
    count = peekWord(wqe + abi::kSwSgeCount);
  }
  // Returns 0, or the WV_WC_STATUS.
  uint32_t readLength(const uint32_t* wqe, uint32_t mostSges, uint32_t mostInline, uint32_t mostBytes) {
    length = count;
    if (isInline()) return count > mostInline || count > mostBytes ? abi::kWcLocalLength : 0;
    if (count > mostSges) return abi::kWcLocalOp;
    const uint64_t bytes = sges(wqe).bytes();
    length = uint32_t(bytes);
    return bytes > mostBytes ? abi::kWcLocalLength : 0;
  }
  void readTarget(const uint32_t* wqe) {
    remote = peekWide(wqe + abi::kSwRemoteLo);
    rkey = peekWord(wqe + abi::kSwRkey);
  }
  void readOperands(const uint32_t* wqe) {
    compare = peekWide(wqe + abi::kSwCompareLo);
    swap = peekWide(wqe + abi::kSwSwapLo);
  }

 private:
  static const uint32_t* bodyOf(const uint32_t* wqe) { return wqe + abi::kSendWqeHeaderBytes / 4; }
};
static_assert(abi::kSwRemoteHi == abi::kSwRemoteLo + 1 && abi::kSwCompareHi == abi::kSwCompareLo + 1 &&
                  abi::kSwSwapHi == abi::kSwSwapLo + 1 && abi::kSgeAddressHi == abi::kSgeAddressLo + 1,
              "peekWide()");

// Flags that each kind of send WQE may have, and the queue pairs that execute it. A window cannot be reached through an
// unreliable connection, so such a queue pair binds none.
struct WqeRule {
  static constexpr uint32_t kAny = abi::kSendFlagFence | abi::kSendFlagSignaled | abi::kSendFlagSolicited;  // flags
  static constexpr uint32_t kRc = 1u << abi::kQptRc, kConnected = kRc | 1u << abi::kQptUc,
                            kEvery = kConnected | 1u << abi::kQptUd;
  uint32_t flags, types;
};
constexpr WqeRule kWqeRules[] = {
    /* SEND             */ {WqeRule::kAny | abi::kSendFlagImmediate | abi::kSendFlagInline | abi::kSendFlagInvalidate,
                            WqeRule::kEvery},
    /* WRITE            */ {WqeRule::kAny | abi::kSendFlagImmediate | abi::kSendFlagInline, WqeRule::kConnected},
    /* READ             */ {WqeRule::kAny, WqeRule::kRc},
    /* COMPARE_EXCHANGE */ {WqeRule::kAny, WqeRule::kRc},
    /* FETCH_ADD        */ {WqeRule::kAny, WqeRule::kRc},
    /* BIND_WINDOW      */ {WqeRule::kAny, WqeRule::kRc},
    /* LOCAL_INVALIDATE */ {WqeRule::kAny, WqeRule::kRc},
    /* FAST_REGISTER    */ {WqeRule::kAny, WqeRule::kRc},
};

inline uint32_t SendWqe::parse(const uint32_t* wqe, const WqeLimits& limits) {
  readKind(wqe);
  readTarget(wqe);
  readOperands(wqe);
  access = peekWord(wqe + abi::kSwAccess);
  immediate = peekWord(wqe + abi::kSwImmediate);
  ah = peekWord(wqe + abi::kSwAh);
  remoteQpn = peekWord(wqe + abi::kSwRemoteQpn) & wire::kQpnMask;
  remoteQkey = peekWord(wqe + abi::kSwRemoteQkey);
  length = 0;

  if (opcode > abi::kOpFastRegister) return abi::kWcLocalOp;
  const WqeRule& rule = kWqeRules[opcode];
  constexpr uint32_t kOneWord = abi::kSendFlagImmediate | abi::kSendFlagInvalidate;  // both use the same word
  if ((flags & ~rule.flags) != 0 || (flags & kOneWord) == kOneWord || (rule.types >> limits.type & 1) == 0 ||
      ((flags & abi::kSendFlagInvalidate) != 0 && limits.type != abi::kQptRc))
    return abi::kWcLocalOp;
  if (isLocal()) return 0;
  if (const uint32_t status = readLength(wqe, limits.sges, limits.inlineBytes, limits.messageBytes)) return status;
  if (!isReadOrAtomic()) return 0;
  if (limits.initiatorDepth == 0) return abi::kWcLocalOp;  // the peer accepts none, so no response could ever come
  return opcode != abi::kOpRead && length != 8 ? abi::kWcLocalLength : 0;
}

}  // namespace nd
