#include "icrc.h"

#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nd {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320;  // x^32 is implied; bit 31 is x^0
constexpr uint32_t kOne = 0x80000000;

// Table n holds what a byte contributes when n further bytes follow it.
struct SlicingTables {
  uint32_t slice[8][256];
};

constexpr SlicingTables makeTables() {
  SlicingTables t{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = (c & 1) ? (c >> 1) ^ kPolynomial : c >> 1;
    t.slice[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int n = 1; n < 8; n++)
      t.slice[n][i] = (t.slice[n - 1][i] >> 8) ^ t.slice[0][t.slice[n - 1][i] & 0xff];
  return t;
}

constexpr SlicingTables kTables = makeTables();

// Product of two residues modulo the CRC polynomial.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^n modulo the CRC polynomial.
constexpr uint32_t powerOfX(uint64_t n) {
  uint32_t result = kOne, square = kOne >> 1;
  for (; n != 0; n >>= 1) {
    if (n & 1) result = multiply(result, square);
    square = multiply(square, square);
  }
  return result;
}

inline uint32_t load32(const uint8_t* p) {
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24;
}

#if defined(__x86_64__)
// Moves a 128-bit remainder over `bits` further message bits: the two halves are multiplied by the powers of x
// that stand for their distance. The shift makes up for the one bit by which a carry-less product of reflected
// operands is off.
constexpr uint64_t foldConstant(uint64_t bits) { return static_cast<uint64_t>(powerOfX(bits)) << 1; }

__attribute__((target("pclmul,sse2"))) inline __m128i fold(__m128i value, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(value, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse2"))) uint32_t crc32Clmul(uint32_t state, const uint8_t* data, size_t length) {
  static constexpr uint64_t kBy512[2] = {foldConstant(512 + 32), foldConstant(512 - 32)};
  static constexpr uint64_t kBy128[2] = {foldConstant(128 + 32), foldConstant(128 - 32)};
  const auto* block = reinterpret_cast<const __m128i*>(data);
  __m128i a = _mm_xor_si128(_mm_loadu_si128(block), _mm_cvtsi32_si128(static_cast<int>(state)));
  __m128i b = _mm_loadu_si128(block + 1), c = _mm_loadu_si128(block + 2), d = _mm_loadu_si128(block + 3);
  const __m128i by512 = _mm_set_epi64x(static_cast<long long>(kBy512[1]), static_cast<long long>(kBy512[0]));
  const __m128i by128 = _mm_set_epi64x(static_cast<long long>(kBy128[1]), static_cast<long long>(kBy128[0]));
  data += 64, length -= 64;
  for (; length >= 64; data += 64, length -= 64) {
    block = reinterpret_cast<const __m128i*>(data);
    a = fold(a, by512, _mm_loadu_si128(block));
    b = fold(b, by512, _mm_loadu_si128(block + 1));
    c = fold(c, by512, _mm_loadu_si128(block + 2));
    d = fold(d, by512, _mm_loadu_si128(block + 3));
  }
  a = fold(a, by128, b);
  a = fold(a, by128, c);
  a = fold(a, by128, d);
  for (; length >= 16; data += 16, length -= 16)
    a = fold(a, by128, _mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
  // What is left is congruent to the message so far; the tables finish it.
  alignas(16) uint8_t rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), a);
  return crc32RegisterPortable(crc32RegisterPortable(0, rest, 16), data, length);
}
#endif

// x^(−8n) for the distances from the IPv4 ID word to the end of a packet, by the packet's number of words.
constexpr uint32_t kMaxSolveWords = 2048;

const std::vector<uint32_t>& retreatTable() {
  static const std::vector<uint32_t>* table = [] {
    auto* t = new std::vector<uint32_t>(kMaxSolveWords);
    constexpr uint64_t kOrder = 0xFFFFFFFF;  // of x: the polynomial is primitive
    constexpr uint32_t kBackOneWord = powerOfX(kOrder - 32);
    // 4 bytes of the word itself, 12 of the IP header after it, 8 of UDP
    (*t)[0] = powerOfX(kOrder - 8 * (4 + 12 + kUdpBytes));
    for (uint32_t i = 1; i < kMaxSolveWords; i++) (*t)[i] = multiply((*t)[i - 1], kBackOneWord);
    return t;
  }();
  return *table;
}

inline void store16be(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}

uint32_t ipv4Checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kIp4Bytes; i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

}  // namespace

uint32_t crc32RegisterPortable(uint32_t state, const uint8_t* data, size_t length) {
  const auto& t = kTables.slice;
  for (; length >= 8; data += 8, length -= 8) {
    const uint32_t low = state ^ load32(data), high = load32(data + 4);
    state = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
            t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
  }
  for (; length > 0; data++, length--) state = (state >> 8) ^ t[0][(state ^ *data) & 0xff];
  return state;
}

uint32_t crc32Register(uint32_t state, const uint8_t* data, size_t length) {
#if defined(__x86_64__)
  static const bool clmul = __builtin_cpu_supports("pclmul") != 0;
  if (clmul && length >= 64) return crc32Clmul(state, data, length);
#endif
  return crc32RegisterPortable(state, data, length);
}

size_t buildHeaders(uint8_t out[48], const IcrcHeaders& h, uint32_t udpPayload, bool masked,
                    const IpVariant& variant) {
  const uint32_t udpLength = kUdpBytes + udpPayload;
  uint8_t* udp;
  if (h.destination.isV4()) {
    out[0] = 0x45;
    out[1] = masked ? 0xff : variant.trafficClass;
    store16be(out + 2, kIp4Bytes + udpLength);
    store16be(out + 4, h.ipv4Id);
    store16be(out + 6, h.dontFragment ? 0x4000 : 0);
    out[8] = masked ? 0xff : variant.hopLimit;
    out[9] = 17;
    store16be(out + 10, masked ? 0xffff : 0);
    std::memcpy(out + 12, h.source.raw.data() + 12, 4);
    std::memcpy(out + 16, h.destination.raw.data() + 12, 4);
    if (!masked) store16be(out + 10, ipv4Checksum(out));
    udp = out + kIp4Bytes;
  } else {
    store16be(out, masked ? 0x6fff : 0x6000u | static_cast<uint32_t>(variant.trafficClass) << 4);
    store16be(out + 2, masked ? 0xffff : 0);
    store16be(out + 4, udpLength);
    out[6] = 17;
    out[7] = masked ? 0xff : variant.hopLimit;
    std::memcpy(out + 8, h.source.raw.data(), 16);
    std::memcpy(out + 24, h.destination.raw.data(), 16);
    udp = out + kIp6Bytes;
  }
  store16be(udp, h.sourcePort);
  store16be(udp + 2, h.destinationPort);
  store16be(udp + 4, udpLength);
  store16be(udp + 6, masked ? 0xffff : 0);
  return static_cast<size_t>(udp + kUdpBytes - out);
}

uint32_t icrcOf(const IcrcHeaders& headers, const uint8_t* bth, uint32_t length) {
  uint8_t masked[48 + kBthBytes];
  const size_t n = buildHeaders(masked, headers, length + kIcrcBytes, true);
  std::memcpy(masked + n, bth, kBthBytes);
  masked[n + 4] = 0xff;  // FECN, BECN, reserved
  uint32_t state = crc32RegisterPortable(kIcrcSeed, masked, n + kBthBytes);
  state = crc32Register(state, bth + kBthBytes, length - kBthBytes);
  return ~state;
}

uint32_t icrcOfPacket(const uint8_t* ip, size_t length) {
  if (length == 0) return 0;
  const bool v4 = ip[0] == 0x45, v6 = ip[0] >> 4 == 6;
  const size_t ipBytes = v4 ? kIp4Bytes : kIp6Bytes;
  if (!(v4 || v6) || length < ipBytes + kUdpBytes + kBthBytes + kIcrcBytes) return 0;
  uint8_t head[kIp6Bytes + kUdpBytes + kBthBytes];
  const size_t n = ipBytes + kUdpBytes + kBthBytes;
  std::memcpy(head, ip, n);
  if (v4) {
    head[1] = head[8] = head[10] = head[11] = 0xff;
  } else {
    head[0] |= 0x0f;
    head[1] = head[2] = head[3] = head[7] = 0xff;
  }
  head[ipBytes + 6] = head[ipBytes + 7] = head[ipBytes + kUdpBytes + 4] = 0xff;
  const uint32_t state = crc32RegisterPortable(kIcrcSeed, head, n);
  return ~crc32Register(state, ip + n, length - n - kIcrcBytes);
}

bool solveIpv4Id(uint32_t computed, uint32_t received, uint32_t length, IcrcHeaders* headers) {
  if (length % 4 != 0 || length / 4 >= kMaxSolveWords) return false;
  // The register difference at the end, taken back over all bytes from the ID word on, is the difference of that
  // word itself: ID in the low half (first byte lowest), flags and offset above.
  const uint32_t word = multiply(computed ^ received, retreatTable()[length / 4]);
  const uint32_t flags = word >> 16;
  if (flags != 0 && flags != 0x40) return false;
  headers->ipv4Id = static_cast<uint16_t>((word & 0xff) << 8 | (word >> 8 & 0xff));
  headers->dontFragment = flags == 0;
  return true;
}

}  // namespace nd
