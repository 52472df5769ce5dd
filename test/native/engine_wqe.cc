// Tests of the WQE parser (base/wqe.h): what it refuses, and how it treats memory that changes while it reads.
#include "base/wqe.h"
#include "trap.h"

using namespace nd;
using namespace nd::abi;

namespace {

constexpr WqeLimits kLimits = {kQptRc, 3, 40, 1000, 1};

struct Words {
  alignas(64) uint32_t words[kSendWqeHeaderBytes / 4 + 8 * kSgeBytes / 4] = {};
  Words(uint32_t opcode, uint32_t flags, uint32_t count) {
    words[kSwOpcode] = opcode;
    words[kSwFlags] = flags;
    words[kSwSgeCount] = count;
  }
  void length(uint32_t sge, uint32_t bytes) {
    storeWord(words + kSendWqeHeaderBytes / 4 + sge * kSgeBytes / 4 + kSgeLength, bytes);
  }
  uint32_t parse(const WqeLimits& limits = kLimits) const {
    SendWqe wqe;
    return wqe.parse(words, limits);
  }
};

uint32_t parsed(uint32_t opcode, uint32_t flags, uint32_t count, uint32_t bytes, const WqeLimits& limits = kLimits) {
  Words w(opcode, flags, count);
  w.length(0, bytes);
  return w.parse(limits);
}

}  // namespace

TEST(wqe_flags_and_types_of_every_opcode) {
  constexpr uint32_t kFlags[] = {
      kSendFlagFence, kSendFlagSignaled, kSendFlagSolicited, kSendFlagImmediate, kSendFlagInline, kSendFlagInvalidate,
      0x20,           1u << 31};
  // For each opcode, the number of these flags that it may have, and the number of the types below.
  constexpr struct {
    size_t flags, types;
  } kMay[] = {{6, 3}, {5, 2}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {3, 1}, {0, 0}};
  constexpr uint32_t kTypes[] = {kQptRc, kQptUc, kQptUd};
  for (uint32_t opcode = 0; opcode < std::size(kMay); opcode++) {
    for (size_t type = 0; type < std::size(kTypes); type++) {
      WqeLimits limits = kLimits;
      limits.type = kTypes[type];
      const bool executes = type < kMay[opcode].types;
      CHECK_EQ(parsed(opcode, 0, 1, 8, limits), executes ? 0u : kWcLocalOp);
      for (size_t flag = 0; flag < std::size(kFlags); flag++) {
        const bool may = executes && flag < kMay[opcode].flags && (kFlags[flag] != kSendFlagInvalidate || type == 0);
        CHECK_EQ(parsed(opcode, kFlags[flag], 1, 8, limits), may ? 0u : kWcLocalOp);
      }
    }
  }
  CHECK_EQ(parsed(kOpSend, kSendFlagImmediate | kSendFlagInvalidate, 1, 8), kWcLocalOp);
  CHECK_EQ(parsed(UINT32_MAX, 0, 1, 8), kWcLocalOp);
}

TEST(wqe_lengths) {
  for (const uint32_t opcode : {kOpSend, kOpWrite, kOpRead}) {
    CHECK_EQ(parsed(opcode, 0, 1, 1000), 0u);
    CHECK_EQ(parsed(opcode, 0, 1, 1001), kWcLocalLength);
    CHECK_EQ(parsed(opcode, 0, 3, 1000), 0u);
    CHECK_EQ(parsed(opcode, 0, 4, 8), kWcLocalOp);
    CHECK_EQ(parsed(opcode, 0, UINT32_MAX, 8), kWcLocalOp);
    // In 32 bits, the sum of the lengths would wrap to 0.
    Words wraps(opcode, 0, 2);
    wraps.length(0, 1u << 31);
    wraps.length(1, 1u << 31);
    CHECK_EQ(wraps.parse(), kWcLocalLength);
  }
  for (const uint32_t opcode : {kOpSend, kOpWrite}) {
    CHECK_EQ(parsed(opcode, kSendFlagInline, 40, 0), 0u);
    CHECK_EQ(parsed(opcode, kSendFlagInline, 41, 0), kWcLocalLength);
    CHECK_EQ(parsed(opcode, kSendFlagInline, UINT32_MAX, 0), kWcLocalLength);
    CHECK_EQ(parsed(opcode, kSendFlagInline, 11, 0, {kQptRc, 3, 40, 10, 1}), kWcLocalLength);
  }
  for (const uint32_t opcode : {kOpCompareExchange, kOpFetchAdd}) {
    CHECK_EQ(parsed(opcode, 0, 1, 8), 0u);
    for (const uint32_t bytes : {0u, 7u, 9u}) CHECK_EQ(parsed(opcode, 0, 1, bytes), kWcLocalLength);
    CHECK_EQ(parsed(opcode, 0, 0, 8), kWcLocalLength);
  }
  for (const uint32_t opcode : {kOpRead, kOpCompareExchange, kOpFetchAdd})
    CHECK_EQ(parsed(opcode, 0, 1, 8, {kQptRc, 3, 40, 1000, 0}), kWcLocalOp);
}

TEST(wqe_every_word) {
  Words w(kOpFetchAdd, kSendFlagSignaled, 1);
  for (uint32_t i = kSwImmediate; i <= kSwRemoteQkey; i++) w.words[i] = 0x01010101u * i;
  w.length(0, 8);
  SendWqe wqe;
  CHECK_EQ(wqe.parse(w.words, kLimits), 0u);
  const auto word = [](uint64_t i) { return 0x01010101u * i; };
  const auto wide = [&](uint32_t low, uint32_t high) { return word(high) << 32 | word(low); };
  CHECK_EQ(wqe.immediate, word(kSwImmediate));
  CHECK_EQ(wqe.remote, wide(kSwRemoteLo, kSwRemoteHi));
  CHECK_EQ(wqe.rkey, word(kSwRkey));
  CHECK_EQ(wqe.access, word(kSwAccess));
  CHECK_EQ(wqe.compare, wide(kSwCompareLo, kSwCompareHi));
  CHECK_EQ(wqe.swap, wide(kSwSwapLo, kSwSwapHi));
  CHECK_EQ(wqe.presentKey(), word(kSwSwapLo));
  CHECK_EQ(wqe.nextKey(), word(kSwSwapHi));
  CHECK_EQ(wqe.ah, word(kSwAh));
  CHECK_EQ(wqe.remoteQpn, word(kSwRemoteQpn) & wire::kQpnMask);
  CHECK_EQ(wqe.remoteQkey, word(kSwRemoteQkey));
}

// The WQE that was checked is executed, although the program changes the header while the parser reads the SGEs.
TEST(wqe_that_changes_while_it_is_read) {
  auto* const memory = static_cast<uint8_t*>(
      mmap(nullptr, 2 * world::kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(memory != MAP_FAILED);
  uint32_t* const sges = reinterpret_cast<uint32_t*>(memory + world::kPage);
  uint32_t* const w = sges - kSendWqeHeaderBytes / 4;
  for (const uint32_t opcode : {kOpSend, kOpWrite, kOpRead, kOpFetchAdd}) {
    for (uint32_t i = 0; i < kSendWqeHeaderBytes / 4; i++) w[i] = i;
    w[kSwOpcode] = opcode;
    w[kSwFlags] = kSendFlagSignaled;
    w[kSwSgeCount] = 1;
    sges[kSgeLength] = 8;
    SendWqe wqe;
    {
      world::Trap trap(memory + world::kPage, [&] {
        for (uint32_t i = 0; i < kSendWqeHeaderBytes / 4; i++) w[i] = UINT32_MAX;
      });
      CHECK_EQ(wqe.parse(w, kLimits), 0u);
    }
    CHECK_EQ(wqe.opcode, opcode);
    CHECK_EQ(wqe.flags, kSendFlagSignaled);
    CHECK_EQ(wqe.count, 1u);
    CHECK_EQ(wqe.length, 8u);
    CHECK_EQ(wqe.rkey, kSwRkey);
    CHECK_EQ(wqe.compare, uint64_t(kSwCompareHi) << 32 | kSwCompareLo);
    CHECK_EQ(wqe.remoteQkey, kSwRemoteQkey);
  }
  munmap(memory, 2 * world::kPage);
}
