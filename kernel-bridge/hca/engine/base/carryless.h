// Carry-less multiplication of the halves of 128-bit blocks, by PCLMULQDQ on x86-64 and PMULL on AArch64. Not every CPU
// of these architectures supports it. Functions that use it are marked ND_CARRYLESS and are called only if known() is
// true.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#define ND_HAS_CARRYLESS 1
#define ND_CARRYLESS __attribute__((target("pclmul,sse2")))

namespace nd::carryless {

using Block = __m128i;
constexpr const char* kName = "pclmulqdq";

inline bool known() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("pclmul") != 0;
}

ND_CARRYLESS inline Block of(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
ND_CARRYLESS inline Block load(const uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
ND_CARRYLESS inline void store(uint8_t* to, Block value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value); }
ND_CARRYLESS inline Block add(Block a, Block b) { return _mm_xor_si128(a, b); }
ND_CARRYLESS inline Block lows(Block a, Block b) { return _mm_clmulepi64_si128(a, b, 0x00); }
ND_CARRYLESS inline Block highs(Block a, Block b) { return _mm_clmulepi64_si128(a, b, 0x11); }
ND_CARRYLESS inline Block lowByHigh(Block a, Block b) { return _mm_clmulepi64_si128(a, b, 0x10); }
template <int kBytes>
ND_CARRYLESS inline Block down(Block value) {
  return _mm_srli_si128(value, kBytes);
}
ND_CARRYLESS inline uint32_t firstWord(Block value) { return static_cast<uint32_t>(_mm_cvtsi128_si32(value)); }
ND_CARRYLESS inline Block onlyFirstWord(Block value) { return _mm_and_si128(value, _mm_cvtsi32_si128(-1)); }

}  // namespace nd::carryless

#elif defined(__aarch64__) && defined(__ARM_NEON) && defined(__linux__)
#include <arm_neon.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

#define ND_HAS_CARRYLESS 1
#define ND_CARRYLESS __attribute__((target("+crypto")))

namespace nd::carryless {

using Block = uint64x2_t;
constexpr const char* kName = "pmull";

inline bool known() { return (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0; }

ND_CARRYLESS inline Block of(uint64_t low, uint64_t high) { return vcombine_u64(vcreate_u64(low), vcreate_u64(high)); }
ND_CARRYLESS inline Block load(const uint8_t* from) { return vreinterpretq_u64_u8(vld1q_u8(from)); }
ND_CARRYLESS inline void store(uint8_t* to, Block value) { vst1q_u8(to, vreinterpretq_u8_u64(value)); }
ND_CARRYLESS inline Block add(Block a, Block b) { return veorq_u64(a, b); }
ND_CARRYLESS inline Block lows(Block a, Block b) {
  return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(a, 0), vgetq_lane_u64(b, 0)));
}
ND_CARRYLESS inline Block highs(Block a, Block b) {
  return vreinterpretq_u64_p128(vmull_high_p64(vreinterpretq_p64_u64(a), vreinterpretq_p64_u64(b)));
}
ND_CARRYLESS inline Block lowByHigh(Block a, Block b) {
  return vreinterpretq_u64_p128(vmull_p64(vgetq_lane_u64(a, 0), vgetq_lane_u64(b, 1)));
}
template <int kBytes>
ND_CARRYLESS inline Block down(Block value) {
  return vreinterpretq_u64_u8(vextq_u8(vreinterpretq_u8_u64(value), vdupq_n_u8(0), kBytes));
}
ND_CARRYLESS inline uint32_t firstWord(Block value) { return static_cast<uint32_t>(vgetq_lane_u64(value, 0)); }
ND_CARRYLESS inline Block onlyFirstWord(Block value) { return of(firstWord(value), 0); }

}  // namespace nd::carryless

#else
#define ND_HAS_CARRYLESS 0
#endif
