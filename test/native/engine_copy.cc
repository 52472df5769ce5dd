// Tests of copying user data (base/copy.h): every byte is copied and none around them changes, and which copies are
// done in pieces.
#include <algorithm>

#include "base/copy.h"
#include "check.h"

using namespace nd;

namespace {

constexpr size_t kPage = 4096, kMost = 70'000, kGuard = 64;

uint8_t valueAt(size_t i) { return static_cast<uint8_t>(i * 37 + (i >> 8) * 11 + 1); }

struct Pages {
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kMost + 4 * kPage);
  uint8_t* at(size_t offset) {
    const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (kPage - begin % kPage) % kPage + kPage + offset;
  }
};

// Lengths where copyBytes, copySmall or the C library changes its method, and their neighbors.
std::vector<size_t> lengths() {
  std::vector<size_t> all;
  for (size_t i = 0; i <= 130; i++) all.push_back(i);
  for (const size_t at : {kCopyPiece, size_t(2112), 2 * kCopyPiece, 3 * kCopyPiece, size_t(8192), size_t(65'536)})
    for (size_t i = at - 2; i <= at + 2; i++) all.push_back(i);
  all.push_back(kMost);
  return all;
}

}  // namespace

TEST(copy_every_byte_and_none_beside_them) {
  Pages from, to;
  for (size_t i = 0; i < from.bytes.size(); i++) from.bytes[i] = valueAt(i);
  check::note = "length";
  for (const size_t length : lengths()) {
    check::noteNumber = length;
    const size_t step = length <= 130 ? 7 : 1;  // small copies do not depend on the distance
    for (size_t above = 0; above < 36; above += step) {
      for (const size_t source : {size_t(0), size_t(1), size_t(31), kPage - 5}) {
        uint8_t* const begin = to.at(source + above);
        std::fill(begin - kGuard, begin + length + kGuard, uint8_t(0xEE));
        copyBytes(begin, from.at(source), length);
        CHECK(std::memcmp(begin, from.at(source), length) == 0);
        CHECK(std::all_of(begin - kGuard, begin, [](uint8_t byte) { return byte == 0xEE; }));
        CHECK(std::all_of(begin + length, begin + length + kGuard, [](uint8_t byte) { return byte == 0xEE; }));
      }
    }
  }
  check::note = "";
}

TEST(copy_within_one_range_as_memmove) {
  Pages ours, theirs;
  check::note = "length";
  for (const size_t length : lengths()) {
    check::noteNumber = length;
    for (const size_t distance : {size_t(0), size_t(1), size_t(2), size_t(16), size_t(31), size_t(32), kPage - 16,
                                  kPage, kPage + 1, kPage + 31, kPage + 32}) {
      for (const bool up : {false, true}) {
        for (Pages* pages : {&ours, &theirs})
          for (size_t i = 0; i < length + distance; i++) *pages->at(i) = valueAt(i);
        const size_t from = up ? 0 : distance, to = up ? distance : 0;
        copyBytes(ours.at(to), ours.at(from), length);
        std::memmove(theirs.at(to), theirs.at(from), length);
        CHECK(std::memcmp(ours.at(0), theirs.at(0), length + distance) == 0);
      }
    }
  }
  check::note = "";
}

TEST(copy_of_nothing_has_no_addresses) { copyBytes(nullptr, nullptr, 0); }

TEST(copy_needs_pieces_from_1_to_31_bytes_above_a_page) {
  constexpr uintptr_t kFrom = 16 * kPage + 40;
  check::note = "bytes above";
  for (uintptr_t above = 0; above < 2 * kPage; above++) {
    check::noteNumber = above;
    const bool slow = above % kPage >= 1 && above % kPage <= 31;
    CHECK_EQ(needsPieces(kFrom + 64 * kPage + above, kFrom, 64 * kPage), slow);
    CHECK_EQ(needsPieces(kFrom, kFrom + 64 * kPage - above, 64 * kPage), slow);
    CHECK_EQ(needsPieces(kFrom + above, kFrom, above + 1), false);
    CHECK_EQ(needsPieces(kFrom + above, kFrom, above), slow);
  }
  check::note = "";
}
