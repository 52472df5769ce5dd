#include "base/crc32.h"

#include <cstring>

#include "base/carryless.h"
#include "base/crc_math.h"

namespace nd {
namespace {

// Table n holds the contribution of a byte that is followed by n more bytes.
struct SlicingTables {
  uint32_t slice[8][256];
};

constexpr SlicingTables makeTables() {
  SlicingTables t{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = (c & 1) ? (c >> 1) ^ crc::kPolynomial : c >> 1;
    t.slice[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int n = 1; n < 8; n++) t.slice[n][i] = (t.slice[n - 1][i] >> 8) ^ t.slice[0][t.slice[n - 1][i] & 0xff];
  return t;
}

constexpr SlicingTables kTables = makeTables();

inline uint32_t load32(const uint8_t* p) { return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24; }

uint32_t copyPortable(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  if (length != 0) std::memcpy(to, from, length);
  return crc32RegisterPortable(state, to, length);
}

uint32_t behindPortable(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length) {
  uint8_t first[16];
  for (int i = 0; i < 8; i++) {
    first[i] = static_cast<uint8_t>(low >> 8 * i);
    first[8 + i] = static_cast<uint8_t>(high >> 8 * i);
  }
  const uint32_t state = crc32RegisterPortable(0, first, sizeof first);
  return to != nullptr ? copyPortable(state, to, from, length) : crc32RegisterPortable(state, from, length);
}

uint32_t fewPortable(uint32_t state, uint8_t* data, size_t length) {
  return crc32RegisterPortable(state, data, length);
}

#if ND_HAS_CARRYLESS
using carryless::Block;

// Folding moves a register of message bits forward over the message. Each half is multiplied by the power of x for the
// distance and added to the bits there. A carry-less product of reflected operands is off by one bit, which the shift
// corrects.
constexpr uint64_t foldConstant(uint64_t bits) { return static_cast<uint64_t>(crc::powerOfX(bits)) << 1; }

struct Distance {
  uint64_t low, high;
};
constexpr Distance over(uint64_t bits) { return {foldConstant(bits + 32), foldConstant(bits - 32)}; }
constexpr Distance kOver128 = over(128), kOver512 = over(512);

ND_CARRYLESS inline Block constants(const Distance& d) { return carryless::of(d.low, d.high); }

ND_CARRYLESS inline Block fold(Block value, Block by, Block next) {
  return carryless::add(carryless::add(carryless::lows(value, by), carryless::highs(value, by)), next);
}

template <bool kCopies>
ND_CARRYLESS inline Block take(uint8_t* to, const uint8_t* from) {
  const Block value = carryless::load(from);
  if (kCopies) carryless::store(to, value);
  return value;
}

// The block to be added to the first 16 bytes of a message: a register, or the 16 bytes that precede the message.
ND_CARRYLESS inline Block after(uint32_t state) { return carryless::of(state, 0); }
ND_CARRYLESS inline Block after(uint64_t low, uint64_t high) {
  return fold(carryless::of(low, high), constants(kOver128), carryless::of(0, 0));
}

// x^64 divided by the polynomial (x^32 is bit 0), for quotients without a division.
constexpr uint64_t reciprocal() {
  uint64_t quotient = 1;
  uint32_t rest = crc::kPolynomial;
  for (uint32_t bit = 1; bit <= 32; bit++) {
    if (rest & 1) quotient |= uint64_t{1} << bit;
    rest = (rest & 1) ? (rest >> 1) ^ crc::kPolynomial : rest >> 1;
  }
  return quotient;
}

// Returns the register after 16 bytes. It uses no tables, since a stream of packets would have evicted their cache
// lines. 128 bits are folded to 96 and then to 64. The remainder is these minus the polynomial times their quotient
// (Barrett).
ND_CARRYLESS inline uint32_t remainderOf(Block sum) {
  using namespace carryless;
  const Block folds = of(foldConstant(96), foldConstant(64));
  const Block divides = of(reciprocal(), uint64_t{crc::kPolynomial} << 1 | 1);
  const Block in96 = add(lows(sum, folds), down<8>(sum));
  const Block in64 = add(lowByHigh(onlyFirstWord(in96), folds), down<4>(in96));
  const Block quotient = lows(onlyFirstWord(in64), divides);
  const Block product = lowByHigh(onlyFirstWord(quotient), divides);
  return firstWord(down<4>(add(in64, product)));
}

// Processes the rest of a message whose first part is congruent to `sum`.
template <bool kCopies>
ND_CARRYLESS inline uint32_t finish(Block sum, uint8_t* to, const uint8_t* from, size_t length) {
  const Block by128 = constants(kOver128);
  for (; length >= 16; from += 16, to += 16, length -= 16) sum = fold(sum, by128, take<kCopies>(to, from));
  const uint32_t state = remainderOf(sum);
  return kCopies ? copyPortable(state, to, from, length) : crc32RegisterPortable(state, from, length);
}

// Requires at least 64 bytes.
template <bool kCopies>
ND_CARRYLESS uint32_t clmul(Block before, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kStep = 64;
  const Block by512 = constants(kOver512), by128 = constants(kOver128);
  Block a = carryless::add(take<kCopies>(to, from), before);
  Block b = take<kCopies>(to + 16, from + 16), c = take<kCopies>(to + 32, from + 32),
        d = take<kCopies>(to + 48, from + 48);
  for (from += kStep, to += kStep, length -= kStep; length >= kStep; from += kStep, to += kStep, length -= kStep) {
    a = fold(a, by512, take<kCopies>(to, from));
    b = fold(b, by512, take<kCopies>(to + 16, from + 16));
    c = fold(c, by512, take<kCopies>(to + 32, from + 32));
    d = fold(d, by512, take<kCopies>(to + 48, from + 48));
  }
  a = fold(fold(fold(a, by128, b), by128, c), by128, d);
  return finish<kCopies>(a, to, from, length);
}

// Leading zeros change nothing while the register is 0, so the message is extended to whole blocks at its beginning.
ND_CARRYLESS uint32_t fewClmul(uint32_t state, uint8_t* data, size_t length) {
  static_assert(kCrc32Room == 16);
  const Block by128 = constants(kOver128);
  uint32_t first;
  std::memcpy(&first, data, sizeof first);
  first ^= state;
  std::memcpy(data, &first, sizeof first);
  carryless::store(data - kCrc32Room, carryless::of(0, 0));
  const uint8_t* at = data - (-length & 15);
  const uint8_t* const end = data + length;
  Block sum = take<false>(nullptr, at);
  while ((at += 16) != end) sum = fold(sum, by128, take<false>(nullptr, at));
  return remainderOf(sum);
}

// A target to which nothing is ever written.
uint8_t* unwritten(const uint8_t* data) { return const_cast<uint8_t*>(data); }

ND_CARRYLESS uint32_t runClmul(uint32_t state, const uint8_t* data, size_t length) {
  return length < 64 ? crc32RegisterPortable(state, data, length)
                     : clmul<false>(after(state), unwritten(data), data, length);
}
ND_CARRYLESS uint32_t copyClmul(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  return length < 64 ? copyPortable(state, to, from, length) : clmul<true>(after(state), to, from, length);
}
ND_CARRYLESS uint32_t behindClmul(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length) {
  if (length < 64) return behindPortable(low, high, to, from, length);
  return to != nullptr ? clmul<true>(after(low, high), to, from, length)
                       : clmul<false>(after(low, high), unwritten(from), from, length);
}
#endif

#if defined(__x86_64__)
constexpr Distance kOver256 = over(256), kOver1024 = over(1024), kOver2048 = over(2048);

#define ND_AVX __attribute__((target("vpclmulqdq,avx2,pclmul")))
#define ND_AVX512 __attribute__((target("vpclmulqdq,avx512f,avx2,pclmul")))

ND_AVX inline __m256i constants256(const Distance& d) { return _mm256_broadcastsi128_si256(constants(d)); }

ND_AVX inline __m256i fold256(__m256i value, __m256i by, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(value, by, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(value, by, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

template <bool kCopies>
ND_AVX inline __m256i take256(uint8_t* to, const uint8_t* from) {
  const __m256i value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  if (kCopies) _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
  return value;
}

// Requires at least 128 bytes.
template <bool kCopies>
ND_AVX uint32_t vpclmul(Block before, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kStep = 128;
  const __m256i by1024 = constants256(kOver1024), by256 = constants256(kOver256);
  __m256i a = _mm256_xor_si256(take256<kCopies>(to, from), _mm256_zextsi128_si256(before));
  __m256i b = take256<kCopies>(to + 32, from + 32), c = take256<kCopies>(to + 64, from + 64),
          d = take256<kCopies>(to + 96, from + 96);
  for (from += kStep, to += kStep, length -= kStep; length >= kStep; from += kStep, to += kStep, length -= kStep) {
    a = fold256(a, by1024, take256<kCopies>(to, from));
    b = fold256(b, by1024, take256<kCopies>(to + 32, from + 32));
    c = fold256(c, by1024, take256<kCopies>(to + 64, from + 64));
    d = fold256(d, by1024, take256<kCopies>(to + 96, from + 96));
  }
  a = fold256(fold256(fold256(a, by256, b), by256, c), by256, d);
  const Block sum = fold(_mm256_castsi256_si128(a), constants(kOver128), _mm256_extracti128_si256(a, 1));
  _mm256_zeroupper();
  return finish<kCopies>(sum, to, from, length);
}

// Masked forms, because older compilers warn of undefined parts in the plain ones.
ND_AVX512 inline __m512i constants512(const Distance& d) { return _mm512_maskz_broadcast_i32x4(0xffff, constants(d)); }
template <int kIndex>
ND_AVX512 inline Block quarter(__m512i value) {
  return _mm512_maskz_extracti32x4_epi32(0xf, value, kIndex);
}

ND_AVX512 inline __m512i fold512(__m512i value, __m512i by, __m512i next) {
  const __m512i low = _mm512_clmulepi64_epi128(value, by, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, by, 0x11);
  constexpr int kXor = 0x96;
  return _mm512_ternarylogic_epi64(low, high, next, kXor);
}

template <bool kCopies>
ND_AVX512 inline __m512i take512(uint8_t* to, const uint8_t* from) {
  const __m512i value = _mm512_loadu_si512(from);
  if (kCopies) _mm512_storeu_si512(to, value);
  return value;
}

// Requires at least 256 bytes.
template <bool kCopies>
ND_AVX512 uint32_t vpclmul512(Block before, uint8_t* to, const uint8_t* from, size_t length) {
  constexpr size_t kStep = 256;
  const __m512i by2048 = constants512(kOver2048), by512 = constants512(kOver512);
  __m512i a = _mm512_xor_si512(take512<kCopies>(to, from), _mm512_zextsi128_si512(before));
  __m512i b = take512<kCopies>(to + 64, from + 64), c = take512<kCopies>(to + 128, from + 128),
          d = take512<kCopies>(to + 192, from + 192);
  for (from += kStep, to += kStep, length -= kStep; length >= kStep; from += kStep, to += kStep, length -= kStep) {
    a = fold512(a, by2048, take512<kCopies>(to, from));
    b = fold512(b, by2048, take512<kCopies>(to + 64, from + 64));
    c = fold512(c, by2048, take512<kCopies>(to + 128, from + 128));
    d = fold512(d, by2048, take512<kCopies>(to + 192, from + 192));
  }
  a = fold512(fold512(fold512(a, by512, b), by512, c), by512, d);
  const Block by128 = constants(kOver128);
  const Block half = fold(quarter<0>(a), by128, quarter<1>(a));
  const Block sum = fold(fold(half, by128, quarter<2>(a)), by128, quarter<3>(a));
  _mm256_zeroupper();
  return finish<kCopies>(sum, to, from, length);
}

ND_AVX uint32_t runVpclmul(uint32_t state, const uint8_t* data, size_t length) {
  return length < 128 ? runClmul(state, data, length) : vpclmul<false>(after(state), unwritten(data), data, length);
}
ND_AVX uint32_t copyVpclmul(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  return length < 128 ? copyClmul(state, to, from, length) : vpclmul<true>(after(state), to, from, length);
}
ND_AVX uint32_t behindVpclmul(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length) {
  if (length < 128) return behindClmul(low, high, to, from, length);
  return to != nullptr ? vpclmul<true>(after(low, high), to, from, length)
                       : vpclmul<false>(after(low, high), unwritten(from), from, length);
}
ND_AVX512 uint32_t runVpclmul512(uint32_t state, const uint8_t* data, size_t length) {
  return length < 256 ? runVpclmul(state, data, length)
                      : vpclmul512<false>(after(state), unwritten(data), data, length);
}
ND_AVX512 uint32_t copyVpclmul512(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  return length < 256 ? copyVpclmul(state, to, from, length) : vpclmul512<true>(after(state), to, from, length);
}
ND_AVX512 uint32_t behindVpclmul512(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length) {
  if (length < 256) return behindVpclmul(low, high, to, from, length);
  return to != nullptr ? vpclmul512<true>(after(low, high), to, from, length)
                       : vpclmul512<false>(after(low, high), unwritten(from), from, length);
}
#endif

const Crc32Way kBest = crc32Ways().front();

}  // namespace

const std::vector<Crc32Way>& crc32Ways() {
  static const auto* ways = [] {
    auto* list = new std::vector<Crc32Way>;
#if defined(__x86_64__)
    const bool clmul256 =
        carryless::known() && __builtin_cpu_supports("vpclmulqdq") != 0 && __builtin_cpu_supports("avx2") != 0;
    if (clmul256 && __builtin_cpu_supports("avx512f") != 0)
      list->push_back({"vpclmulqdq, 512 bits", runVpclmul512, copyVpclmul512, behindVpclmul512, fewClmul});
    if (clmul256) list->push_back({"vpclmulqdq", runVpclmul, copyVpclmul, behindVpclmul, fewClmul});
#endif
#if ND_HAS_CARRYLESS
    if (carryless::known()) list->push_back({carryless::kName, runClmul, copyClmul, behindClmul, fewClmul});
#endif
    list->push_back({"tables", crc32RegisterPortable, copyPortable, behindPortable, fewPortable});
    return list;
  }();
  return *ways;
}

uint32_t crc32RegisterPortable(uint32_t state, const uint8_t* data, size_t length) {
  const auto& t = kTables.slice;
  for (; length >= 8; data += 8, length -= 8) {
    const uint32_t low = state ^ load32(data), high = load32(data + 4);
    state = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^ t[3][high & 0xff] ^
            t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
  }
  for (; length > 0; data++, length--) state = (state >> 8) ^ t[0][(state ^ *data) & 0xff];
  return state;
}

uint32_t crc32Register(uint32_t state, const uint8_t* data, size_t length) { return kBest.run(state, data, length); }

uint32_t crc32Short(uint32_t state, uint8_t* data, size_t length) { return kBest.few(state, data, length); }

uint32_t crc32Copy(uint32_t state, uint8_t* to, const uint8_t* from, size_t length) {
  return kBest.copy(state, to, from, length);
}

uint32_t crc32Behind(uint64_t low, uint64_t high, uint8_t* to, const uint8_t* from, size_t length) {
  return kBest.behind(low, high, to, from, length);
}

}  // namespace nd
