// Tests the ICRC with packets of real and synthetic traffic, and the recovery of IPv4 IDs. The arguments, if any, are
// pcap files (Ethernet), whose RoCEv2 packets are all checked.
#include "base/crc32.h"
#include "base/icrc.h"

#include <random>

#include "host_test.h"

using namespace nd;

namespace {

struct Vector {
  const char* name;
  const char* packet;  // from the IP header on
};

// Packets of Linux rdma_rxe (ACK, READ request, NAK, IPv6 SEND, ATOMIC ACK) and three hand-written ones with IPv4 ID 0.
const Vector kVectors[] = {
    {"ACK", "450000309ea240004011877c0a4d00020a4d0003e65712b7001c00001100ffff0000001700e2f8381f000001a4109b0c"},
    {"READ request",
     "4500003c9ea340004011876f0a4d00020a4d0003e65712b7002800000c00ffff0000001780bcda61000055d8f1c9237000001abe"
     "00000040c466df05"},
    {"NAK sequence error",
     "45000030c1df40004011643f0a4d00020a4d0003c6ae12b7001c00001100ffff0000002d00191ce960000003d557eb60"},
    {"ATOMIC ACK",
     "45000038b7f8400040116e1e0a4d00020a4d0003c5be12b7002400001200ffff0000002a0012341d1f0000130000000000000005"
     "faefe556"},
    {"IPv6 SEND Only",
     "6000000000381140fd770000000000000000000000000003fd770000000000000000000000000002c60c12b7003800000400ffff"
     "0000002480123400737a81888f969da4abb2b9c0c7ced5dce3eaf1f8ff060d141b222930373e454cf091ae24"},
    {"CNP, TOS C0",
     "45c0003c00004000401125530a4d00020a4d0003e65712b7002800008100ffff400000170000000000000000000000000000000000"
     "000000b3ff51a3"},
    {"WRITE Only with a pad byte",
     "45000040000040004011260f0a4d00020a4d0003e65712b7002c00000a10ffff0000001780ffffff000000000000100012345678"
     "00000003616263000e55782b"},
    {"zero-length SEND", "4500002c00004000401126230a4d00020a4d0003e65712b7001800000400ffff0000001780000000a1277657"},
};

IcrcHeaders headersOf(const std::vector<uint8_t>& p, size_t* udpAt) {
  IcrcHeaders h;
  const bool v4 = p[0] >> 4 == 4;
  *udpAt = v4 ? 20 : 40;
  if (v4) {
    for (Gid* g : {&h.source, &h.destination}) g->raw[10] = g->raw[11] = 0xff;
    std::memcpy(h.source.raw.data() + 12, p.data() + 12, 4);
    std::memcpy(h.destination.raw.data() + 12, p.data() + 16, 4);
  } else {
    std::memcpy(h.source.raw.data(), p.data() + 8, 16);
    std::memcpy(h.destination.raw.data(), p.data() + 24, 16);
  }
  h.sourcePort = static_cast<uint16_t>(p[*udpAt] << 8 | p[*udpAt + 1]);
  return h;
}

// Checks the packet as a receiver does: the headers without the ID, then exactly, with the ID that was found.
bool receiverAccepts(const std::vector<uint8_t>& p, IcrcHeaders* found) {
  size_t udp = 0;
  *found = headersOf(p, &udp);
  const uint8_t* bth = p.data() + udp + 8;
  const auto length = static_cast<uint32_t>(p.size() - udp - 8 - 4);
  const uint32_t received = loadIcrc(bth + length), computed = icrcOf(*found, bth, length);
  if (computed == received) return true;
  if (!found->source.isV4() || !solveIpv4Id(computed, received, length, found)) return false;
  return icrcOf(*found, bth, length) == received;
}

void vectors() {
  for (const Vector& v : kVectors) {
    const std::vector<uint8_t> p = hosttest::fromHex(v.packet);
    HOST_CHECK(icrcOfPacket(p.data(), p.size()) == loadIcrc(p.data() + p.size() - 4));
    IcrcHeaders h;
    HOST_CHECK(receiverAccepts(p, &h));
    if (p[0] == 0x45) HOST_CHECK(h.ipv4Id == (p[4] << 8 | p[5]));
    // The headers that this package would write equal those of the packet.
    uint8_t out[48];
    const size_t n = buildHeaders(out, h, static_cast<uint32_t>(p.size() - (p[0] == 0x45 ? 28 : 48)), false,
                                  {p[0] == 0x45 ? p[1] : uint8_t{0}, 64});
    HOST_CHECK(std::memcmp(out, p.data(), n) == 0);
    // One flipped bit that the ICRC covers is detected.
    for (size_t byte : {size_t{0}, size_t{9}, n, n + 6, n + 8, n + 11, p.size() - 5, p.size() - 1}) {
      std::vector<uint8_t> bad = p;
      bad[byte] ^= 0x10;
      HOST_CHECK(icrcOfPacket(bad.data(), bad.size()) != loadIcrc(bad.data() + bad.size() - 4));
    }
  }
  HOST_CHECK(icrcOfPacket(nullptr, 0) == 0);
  const std::vector<uint8_t> p = hosttest::fromHex(kVectors[0].packet);
  for (size_t n = 1; n < 44; n++) HOST_CHECK(icrcOfPacket(p.data(), n) == 0);
}

// Compares every implementation that this CPU supports with the tables, and copies with the original. The bytes around
// a copy must not change.
void implementationsAgree() {
  std::mt19937 random(7);
  std::vector<uint8_t> bytes(6000), copy(6000);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  const uint8_t check[] = "123456789";
  for (const Crc32Way& way : crc32Ways()) {
    bool same = true, copied = true;
    for (size_t n = 0; n < 4500; n += n < 600 ? 1 : 37)
      for (size_t at : {0u, 1u, 5u, 64u}) {
        const uint32_t expected = crc32RegisterPortable(0x12345678, &bytes[at], n);
        same = same && way.run(0x12345678, &bytes[at], n) == expected;
        std::fill(copy.begin(), copy.end(), 0xA5);
        same = same && way.copy(0x12345678, &copy[at + 3], &bytes[at], n) == expected;
        copied = copied && std::memcmp(&copy[at + 3], &bytes[at], n) == 0 && copy[at + 2] == 0xA5 &&
                 copy[at + 3 + n] == 0xA5;
      }
    HOST_CHECK(same);
    HOST_CHECK(copied);
    bool fewSame = true;
    for (size_t n = 4; n < 200; n++)
      for (uint32_t state : {0u, 0x12345678u, 0xffffffffu}) {
        const uint32_t expected = crc32RegisterPortable(state, &bytes[n], n);
        std::fill(copy.begin(), copy.end(), 0xA5);
        uint8_t* const data = &copy[n + kCrc32Room];
        std::memcpy(data, &bytes[n], n);
        fewSame = fewSame && way.few(state, data, n) == expected && copy[n - 1] == 0xA5 && data[n] == 0xA5 &&
                  std::memcmp(data + 4, &bytes[n + 4], n - 4) == 0;
      }
    HOST_CHECK(fewSame);
    bool behindSame = true;
    for (size_t n = 0; n < 4500; n += n < 600 ? 1 : 37) {
      const uint32_t expected = crc32RegisterPortable(0, &bytes[5], 16 + n);
      uint64_t low, high;
      std::memcpy(&low, &bytes[5], sizeof low);
      std::memcpy(&high, &bytes[13], sizeof high);
      std::fill(copy.begin(), copy.end(), 0xA5);
      behindSame = behindSame && way.behind(low, high, nullptr, &bytes[21], n) == expected &&
                   way.behind(low, high, &copy[3], &bytes[21], n) == expected &&
                   std::memcmp(&copy[3], &bytes[21], n) == 0 && copy[2] == 0xA5 && copy[3 + n] == 0xA5;
    }
    HOST_CHECK(behindSame);
    HOST_CHECK(~way.run(0xffffffff, check, 9) == 0xCBF43926);  // the CRC-32 check value
  }
  HOST_CHECK(crc32Ways().back().run == crc32RegisterPortable);
}

// Gathering in one pass yields the same bytes and ICRC as in two.
void gatheringAgrees() {
  std::mt19937 random(5);
  std::vector<uint8_t> payload(4096);
  for (uint8_t& b : payload) b = static_cast<uint8_t>(random());
  bool same = true;
  IcrcStart start, other;
  for (uint32_t length :
       {0u, 1u, 2u, 3u, 4u, 63u, 64u, 88u, 99u, 100u, 112u, 116u, 127u, 128u, 129u, 1000u, 4095u, 4096u})
    for (uint32_t pieces : {0u, 1u, 2u, 5u})
      for (bool v4 : {true, false}) {
        if (pieces == 0 && length != 0) continue;
        IcrcHeaders h;
        for (Gid* g : {&h.source, &h.destination}) {
          for (uint8_t& b : g->raw) b = static_cast<uint8_t>(random());
          if (v4) std::memcpy(g->raw.data(), "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
        }
        OutPacket p;
        p.headerLength = kBthBytes + 4 * (random() % 5);
        for (uint32_t i = 0; i < p.headerLength; i++) p.header[i] = static_cast<uint8_t>(random());
        p.pieceCount = pieces;
        p.payloadLength = length;
        p.padLength = -length & 3;
        for (uint32_t i = 0, at = 0; i < pieces; i++) {
          const uint32_t take = i + 1 == pieces ? length - at : (length - at) / 2;
          p.pieces[i] = {take ? payload.data() + at : nullptr, take};
          at += take;
        }
        std::vector<uint8_t> out(5000, 0x5A);
        const uint32_t total = gatherWithIcrc(start, out.data(), h, p), body = total - kIcrcBytes;
        same = same && body == p.headerLength + length + p.padLength && out[total] == 0x5A &&
               std::memcmp(out.data() + p.headerLength, payload.data(), length) == 0 &&
               loadIcrc(out.data() + body) == icrcOf(h, out.data(), body) &&
               loadIcrc(out.data() + body) == icrcOf(other, h, out.data(), body);
        // The ICRC also equals that of the whole packet, whose headers are read as they arrived.
        std::vector<uint8_t> whole(48);
        whole.resize(buildHeaders(whole.data(), h, total, false));
        whole.insert(whole.end(), out.begin(), out.begin() + total);
        same = same && loadIcrc(out.data() + body) == icrcOfPacket(whole.data(), whole.size());
        for (uint32_t i = 0; i < p.padLength; i++) same = same && out[p.headerLength + length + i] == 0;
      }
  HOST_CHECK(same);
}

// Cached headers of one packet are not used for another, whichever field differs.
void headersCount() {
  std::mt19937 random(9);
  std::vector<uint8_t> bth(kBthBytes + 4096);
  for (uint8_t& b : bth) b = static_cast<uint8_t>(random());
  IcrcHeaders h, last;
  std::memcpy(h.source.raw.data() + 10, "\xff\xff\x7f\0\0\1", 6);
  h.destination = h.source;
  IcrcStart start;
  bool same = true, differs = true;
  for (int field = 0; field < 7; field++) {
    last = h;
    const auto length = static_cast<uint32_t>(bth.size());
    if (field == 1) h.source.raw[15]++;
    if (field == 2) h.destination.raw[15]++;
    if (field == 3) h.sourcePort++;
    if (field == 4) h.destinationPort++;
    if (field == 5) h.ipv4Id++;
    if (field == 6) h.dontFragment = false;
    for (uint32_t shorter : {0u, 16u, 0u})
      same = same && icrcOf(start, h, bth.data(), length - shorter) == icrcOf(h, bth.data(), length - shorter);
    differs = differs && (field == 0 || icrcOf(h, bth.data(), length) != icrcOf(last, bth.data(), length));
  }
  HOST_CHECK(same);
  HOST_CHECK(differs);
}

void idsAreSolved() {
  std::mt19937 random(11);
  std::vector<uint8_t> bth(kMaxDatagram);
  for (uint8_t& b : bth) b = static_cast<uint8_t>(random());
  IcrcHeaders h;
  for (Gid* g : {&h.source, &h.destination}) g->raw[10] = g->raw[11] = 0xff, g->raw[12] = 10;
  int wrong = 0, accepted = 0;
  for (int i = 0; i < 3000; i++) {
    const uint32_t length = 12 + 4 * (random() % (i % 2 ? 1040 : kMaxDatagram / 4 - 4));
    IcrcHeaders sent = h;
    sent.ipv4Id = static_cast<uint16_t>(random());
    sent.dontFragment = i % 3 != 0;
    const uint32_t received = icrcOf(sent, bth.data(), length), computed = icrcOf(h, bth.data(), length);
    IcrcHeaders solved = h;
    if (!solveIpv4Id(computed, received, length, &solved) || solved.ipv4Id != sent.ipv4Id ||
        solved.dontFragment != sent.dontFragment)
      wrong++;
    IcrcHeaders ignored = h;
    if (solveIpv4Id(computed, received ^ (1u << (i % 32)), length, &ignored)) accepted++;
  }
  HOST_CHECK(wrong == 0);
  HOST_CHECK(accepted <= 2);  // 3000 corrupt packets, each passing with probability 2^-15
  HOST_CHECK(!solveIpv4Id(1, 2, 13, &h));
  HOST_CHECK(!solveIpv4Id(1, 2, 1u << 20, &h));
}

void pcapFile(const char* path) {
  FILE* f = std::fopen(path, "rb");
  HOST_CHECK(f != nullptr);
  if (f == nullptr) return;
  uint8_t header[24], record[16];
  HOST_CHECK(std::fread(header, 1, 24, f) == 24);
  int packets = 0, bad = 0;
  while (std::fread(record, 1, 16, f) == 16) {
    uint32_t length;
    std::memcpy(&length, record + 8, 4);
    std::vector<uint8_t> frame(length);
    if (std::fread(frame.data(), 1, length, f) != length) break;
    const bool v4 = frame[12] == 8 && frame[13] == 0, v6 = frame[12] == 0x86 && frame[13] == 0xdd;
    if (!v4 && !v6) continue;
    std::vector<uint8_t> ip(frame.begin() + 14, frame.end());
    const size_t udp = v4 ? 20 : 40;
    ip.resize(v4 ? static_cast<size_t>(ip[2] << 8 | ip[3]) : static_cast<size_t>(40 + (ip[4] << 8 | ip[5])));
    if (ip[v4 ? 9 : 6] != 17 || ip[udp + 2] != 0x12 || ip[udp + 3] != 0xb7) continue;
    packets++;
    IcrcHeaders h;
    if (icrcOfPacket(ip.data(), ip.size()) != loadIcrc(ip.data() + ip.size() - 4) || !receiverAccepts(ip, &h)) bad++;
  }
  std::fclose(f);
  std::printf("%s: %d RoCEv2 packets, %d bad\n", path, packets, bad);
  HOST_CHECK(bad == 0);
}

}  // namespace

int main(int argc, char** argv) {
  vectors();
  implementationsAgree();
  gatheringAgrees();
  headersCount();
  idsAreSolved();
  for (int i = 1; i < argc; i++) pcapFile(argv[i]);
  return hosttest::finish("host_icrc");
}
