// Packet headers of the transport: BTH and extension headers, and the table of opcodes that drives requester, responder
// and completer (IBA 1 §9.2–9.3, §9.7; roce-wire §1.5–1.8). All fields are big-endian.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>

#include "schema/numbers.h"

namespace nd::wire {

constexpr uint32_t kBthBytes = 12;
constexpr uint32_t kRethBytes = 16, kAethBytes = 4, kImmediateBytes = 4, kInvalidateBytes = 4, kAtomicEthBytes = 28,
                   kAtomicAckBytes = 8, kDethBytes = 8;
constexpr uint8_t kTransportBits = 0xE0;  // the bits of the opcode for the transport; RC is 0
constexpr uint32_t kPsnMask = 0xFFFFFF;
constexpr uint32_t kQpnMask = 0xFFFFFF;
constexpr uint32_t kSolicited = 1u << 23;   // in the first word
constexpr uint32_t kAckRequest = 1u << 31;  // in the word of the PSN
constexpr uint32_t kLargestMtu = 4096;
constexpr uint32_t kMaxMessage = 1u << 31;
constexpr uint32_t kBthPkeyAt = 2, kBthCongestionByte = 4, kBthQpnAt = 5, kCnpReservedBytes = 16;
constexpr uint8_t kBecn = 0x40;
// Traffic class: DSCP and ECN (RFC 3168).
constexpr uint8_t kDscpMask = 0xFC, kEcnMask = 3, kEct0 = 2, kCongestionExperienced = 3;
constexpr uint32_t kGsiQpn = 1, kGsiQkey = 0x80010000;
constexpr uint32_t kMadBytes = 256;

// ── Numbers ─────────────────────────────────────────────────────────────────────────────────────
inline uint32_t load16(const uint8_t* p) { return uint32_t(p[0]) << 8 | p[1]; }
inline uint32_t load24(const uint8_t* p) { return uint32_t(p[0]) << 16 | uint32_t(p[1]) << 8 | p[2]; }
inline uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline uint64_t load64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
inline void store16(uint8_t* p, uint32_t v) {
  p[0] = uint8_t(v >> 8);
  p[1] = uint8_t(v);
}
inline void store24(uint8_t* p, uint32_t v) {
  p[0] = uint8_t(v >> 16);
  p[1] = uint8_t(v >> 8);
  p[2] = uint8_t(v);
}
inline void store32(uint8_t* p, uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, 4);
}
inline void store64(uint8_t* p, uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, 8);
}

// Returns the signed distance a − b on the circle of 2^24 PSNs, which is positive if a is newer.
inline int32_t psnDiff(uint32_t a, uint32_t b) { return int32_t((a - b) << 8) >> 8; }
inline uint32_t psnAdd(uint32_t a, uint32_t n) { return (a + n) & kPsnMask; }

// ── Opcodes ─────────────────────────────────────────────────────────────────────────────────────
inline bool isReliable(uint8_t opcode) { return (opcode & kTransportBits) == 0; }

// A packet's position in its message: First, Middle (neither bit), Last, or Only (both bits).
enum OpFlag : uint32_t {
  kRequest = 0x1,
  kResponse = 0x2,
  kFirst = 0x4,
  kLast = 0x8,
  kSend = 0x10,
  kWrite = 0x20,
  kRead = 0x40,
  kAtomic = 0x80,
  kImmediate = 0x100,
  kInvalidate = 0x200,
  kReth = 0x400,
  kAeth = 0x800,
  kConsumes = 0x1000,  // completes a receive WQE at the responder
  kCarriesData = 0x2000,
  kUnreliable = 0x4000,
  kDatagram = 0x8000,
};

enum Opcode : uint8_t {
  kOpSendOnly = 0x04,
  kOpWriteOnly = 0x0A,
  kOpReadRequest = 0x0C,
  kOpReadFirst = 0x0D,
  kOpReadMiddle = 0x0E,
  kOpReadLast = 0x0F,
  kOpReadOnly = 0x10,
  kOpAcknowledge = 0x11,
  kOpAtomicAcknowledge = 0x12,
  kOpCompareSwap = 0x13,
  kOpFetchAdd = 0x14,
  kUcOpcodes = 0x20,  // a UC opcode is the RC opcode with this bit
  kOpUdSendOnly = 0x64,
  kOpUdSendOnlyImmediate = 0x65,
  kOpCnp = 0x81,
  kOpFragment = 0xE1,  // an opcode that the standard leaves to manufacturers; used only between peers that
                       // have agreed on it
};

struct OpInfo {
  uint32_t flags = 0;       // 0: no such opcode
  uint8_t headerBytes = 0;  // BTH and extension headers
};

constexpr std::array<OpInfo, 256> makeOpcodes() {
  std::array<OpInfo, 256> t{};
  constexpr uint32_t send = kRequest | kSend | kCarriesData, write = kRequest | kWrite | kCarriesData;
  constexpr uint32_t only = kFirst | kLast, end = kLast | kConsumes;
  // UC is RC + 0x20 for SEND and WRITE, without invalidate.
  for (uint32_t base = 0; base <= 0x20; base += 0x20) {
    const uint32_t u = base ? uint32_t(kUnreliable) : 0u;
    t[base + 0x00] = {send | kFirst | u, 12};
    t[base + 0x01] = {send | u, 12};
    t[base + 0x02] = {send | end | u, 12};
    t[base + 0x03] = {send | end | kImmediate | u, 16};
    t[base + 0x04] = {send | only | kConsumes | u, 12};
    t[base + 0x05] = {send | only | kConsumes | kImmediate | u, 16};
    t[base + 0x06] = {write | kFirst | kReth | u, 28};
    t[base + 0x07] = {write | u, 12};
    t[base + 0x08] = {write | kLast | u, 12};
    t[base + 0x09] = {write | end | kImmediate | u, 16};
    t[base + 0x0A] = {write | only | kReth | u, 28};
    t[base + 0x0B] = {write | only | kConsumes | kReth | kImmediate | u, 32};
  }
  t[kOpReadRequest] = {kRequest | kRead | only | kReth, 28};
  t[kOpReadFirst] = {kResponse | kRead | kFirst | kAeth | kCarriesData, 16};
  t[kOpReadMiddle] = {kResponse | kRead | kCarriesData, 12};
  t[kOpReadLast] = {kResponse | kRead | kLast | kAeth | kCarriesData, 16};
  t[kOpReadOnly] = {kResponse | kRead | only | kAeth | kCarriesData, 16};
  t[kOpAcknowledge] = {kResponse | kAeth, 16};
  t[kOpAtomicAcknowledge] = {kResponse | kAtomic | kAeth, 24};
  t[kOpCompareSwap] = {kRequest | kAtomic | only, 40};
  t[kOpFetchAdd] = {kRequest | kAtomic | only, 40};
  t[0x16] = {send | end | kInvalidate, 16};
  t[0x17] = {send | only | kConsumes | kInvalidate, 16};
  t[kOpUdSendOnly] = {send | only | kConsumes | kDatagram, 20};
  t[kOpUdSendOnlyImmediate] = {send | only | kConsumes | kDatagram | kImmediate, 24};
  return t;
}
constexpr std::array<OpInfo, 256> kOpcodes = makeOpcodes();

// Returns the RC SEND/WRITE opcode for the given flags; the inverse of the table above.
constexpr uint32_t selector(uint32_t flags) {
  return (flags & (kFirst | kLast)) >> 2 | (flags & kWrite) >> 3 | (flags & (kImmediate | kInvalidate)) >> 5;
}
constexpr std::array<uint8_t, 32> makeSelectors() {
  std::array<uint8_t, 32> t{};
  for (uint32_t op = 0; op < 0x20; op++) {
    if ((kOpcodes[op].flags & kRequest) && (kOpcodes[op].flags & (kSend | kWrite)))
      t[selector(kOpcodes[op].flags)] = uint8_t(op);
  }
  return t;
}
constexpr std::array<uint8_t, 32> kSelectors = makeSelectors();
static_assert(kSelectors[selector(kFirst | kLast | kWrite | kImmediate)] == 0x0B, "opcode table and selector disagree");
static_assert(kSelectors[selector(kLast | kSend | kInvalidate)] == 0x16, "opcode table and selector disagree");

// Does the same for READ responses as well; the flags select Middle, First or Last.
constexpr uint8_t opcodeOf(uint32_t flags) {
  if ((flags & kRead) == 0) return kSelectors[selector(flags)];
  return flags & kFirst ? (flags & kLast ? kOpReadOnly : kOpReadFirst) : flags & kLast ? kOpReadLast : kOpReadMiddle;
}
static_assert(opcodeOf(kOpcodes[0x09].flags) == 0x09 && opcodeOf(kOpcodes[kOpReadLast].flags) == kOpReadLast);

// ── BTH ─────────────────────────────────────────────────────────────────────────────────────────
struct Bth {
  uint8_t opcode = 0;
  bool solicited = false, ackRequest = false;
  uint8_t pad = 0, version = 0;
  uint16_t pkey = kDefaultPkey;
  uint32_t destinationQpn = 0, psn = 0;
};

inline uint32_t destinationQpn(const uint8_t* bth) { return load24(bth + kBthQpnAt); }

inline Bth parseBth(const uint8_t* p) {
  const uint32_t first = load32(p), last = load32(p + 8);
  Bth b;
  b.opcode = uint8_t(first >> 24);
  b.solicited = (first & kSolicited) != 0;
  b.pad = first >> 20 & 3;
  b.version = first >> 16 & 0xF;
  b.pkey = uint16_t(first);
  b.destinationQpn = load32(p + 4) & kQpnMask;
  b.ackRequest = (last & kAckRequest) != 0;
  b.psn = last & kPsnMask;
  return b;
}

inline void storePkey(uint8_t* bth, uint16_t pkey) { store16(bth + kBthPkeyAt, pkey); }

inline void emitBth(uint8_t* p, const Bth& b) {
  store32(p, uint32_t(b.opcode) << 24 | (b.solicited ? kSolicited : 0) | uint32_t(b.pad) << 20 |
                 uint32_t(b.version) << 16 | b.pkey);
  store32(p + 4, b.destinationQpn);
  store32(p + 8, (b.ackRequest ? kAckRequest : 0) | b.psn);
}

struct Reth {
  uint64_t address = 0;
  uint32_t rkey = 0, length = 0;
};
inline Reth parseReth(const uint8_t* p) { return {load64(p), load32(p + 8), load32(p + 12)}; }
inline void emitReth(uint8_t* p, const Reth& r) {
  store64(p, r.address);
  store32(p + 8, r.rkey);
  store32(p + 12, r.length);
}

struct Deth {
  uint32_t qkey = 0, sourceQpn = 0;
};
inline Deth parseDeth(const uint8_t* p) { return {load32(p), load24(p + 5)}; }
inline void emitDeth(uint8_t* p, const Deth& d) {
  store32(p, d.qkey);
  store32(p + 4, d.sourceQpn);
}

inline void emitAeth(uint8_t* p, uint8_t syndrome, uint32_t msn) { store32(p, uint32_t(syndrome) << 24 | msn); }

struct AtomicEth {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint64_t swapOrAdd = 0, compare = 0;
};
inline AtomicEth parseAtomicEth(const uint8_t* p) { return {load64(p), load32(p + 8), load64(p + 12), load64(p + 20)}; }
inline void emitAtomicEth(uint8_t* p, const AtomicEth& a) {
  store64(p, a.address);
  store32(p + 8, a.rkey);
  store64(p + 12, a.swapOrAdd);
  store64(p + 20, a.compare);
}

// ── AETH syndromes (IBA 1 §9.7.5.2.1) ───────────────────────────────────────────────────────────
constexpr uint8_t kSyndromeAck = 0x1F;  // no credit information
constexpr uint8_t kSyndromeClass = 0xE0, kClassAck = 0x00, kClassRnr = 0x20, kClassNak = 0x60;
constexpr uint8_t kNakSequence = 0x60, kNakInvalidRequest = 0x61, kNakRemoteAccess = 0x62, kNakRemoteOperation = 0x63;

// RNR timer codes in units of 10 µs (IBA 1 table 45).
constexpr std::array<uint32_t, 32> kRnrUnits = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                                48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                                2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr uint64_t rnrNanoseconds(uint32_t code) { return uint64_t(kRnrUnits[code & 31]) * 10'000; }
constexpr uint8_t kRnrLongest = 0, kRnrShortest = 1;
// Returns the code of the shortest timer of at least `ns`, or of the longest timer if none is that long.
constexpr uint8_t rnrCodeFor(uint64_t ns) {
  for (uint32_t code = kRnrShortest; code < kRnrUnits.size(); code++)
    if (rnrNanoseconds(code) >= ns) return uint8_t(code);
  return kRnrLongest;
}
// RNR retry counts (IBA 1 §9.7.5.2.8): the value for unlimited retries, and the largest finite count. An ACK timeout
// code stands for 4.096 µs × 2^code; 0 means no timeout.
constexpr uint64_t ackNanoseconds(uint32_t code) { return code ? uint64_t(4096) << (code & 31) : 0; }

}  // namespace nd::wire
