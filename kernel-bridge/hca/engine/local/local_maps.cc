#include "local/local_maps.h"

#include <algorithm>

namespace nd {
namespace {

constexpr uint64_t kAtomicAlignment = 8;  // alignment of an atomic's address at the peer, and so in this process

}  // namespace

// ── Ours ──────────────────────────────────────────────────────────────────────────────────────────

// Returns null if there are too many offers. Reclaimed memory is not offered again.
inline LocalOffers::Offer* LocalOffers::find(const SharedRange& range) {
  const auto known = [&](const Offer& offer) { return offer.id == range.id && offer.state != State::kGone; };
  if (last_ >= offers_.size() || !known(offers_[last_])) {
    const auto found = std::find_if(offers_.begin(), offers_.end(), known);
    last_ = static_cast<uint32_t>(found - offers_.begin());
    if (found == offers_.end()) {
      if (offers_.size() >= kMost || range.reclaimed.load(std::memory_order_acquire)) return nullptr;
      if (++numbers_ == 0) numbers_ = 1;
      offers_.push_back({range.weak_from_this(), range.id, numbers_, State::kNew});
      news_ = true;
    }
  }
  return &offers_[last_];
}

uint32_t LocalOffers::numberOf(const SharedRange& range) {
  const Offer* const offer = find(range);
  const bool mapped =
      offer != nullptr && offer->state == State::kMapped && !range.reclaimed.load(std::memory_order_acquire);
  return mapped ? offer->number : 0;
}

bool LocalOffers::offer(const SharedRange& range, bool writable) {
  Offer* const offer = find(range);
  if (offer == nullptr) return false;
  offer->writable |= writable;
  offer->state = State::kNew;
  news_ = true;
  return true;
}

void LocalOffers::onReply(uint32_t number, bool mapped) {
  for (Offer& offer : offers_) {
    if (offer.number != number || offer.state != State::kOffered) continue;
    offer.state = mapped ? State::kMapped : State::kRefused;
    return;
  }
}

void LocalOffers::sweep() {
  for (Offer& offer : offers_) {
    const std::shared_ptr<const SharedRange> range = offer.range.lock();
    if (range && !range->reclaimed.load(std::memory_order_acquire)) continue;
    // This includes memory that the peer does not seem to have: it may have requested the memory, or have it from an
    // earlier offer.
    offer.state = State::kGone;
    news_ = true;
  }
}

// ── The peer's ────────────────────────────────────────────────────────────────────────────────────

bool LocalMaps::add(const LocalMemory& memory, Descriptor fd, bool direct) {
  const auto before =
      std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) { return map.number == memory.number; });
  const bool again = direct && before != maps_.end() && before->file == memory.file && before->base == memory.base &&
                     before->pages.bytes() == memory.length;
  if (memory.number == 0 || (!again && (before != maps_.end() || maps_.size() >= kMost))) return false;
  if (memory.length == 0 || (!again && memory.length > kMostBytes - bytes_)) return false;
  if (direct && memory.base % kAtomicAlignment != 0) return false;
  const bool writable = direct && memory.mapped == 1;
  if (again && before->writable == writable) return true;  // it was re-requested because of its descriptor
  Mapping pages;
  if (!(direct ? pages.openShared(fd, memory.length, writable) : pages.openForReading(fd, memory.length))) return false;
  if (again) {
    before->pages = std::move(pages);
    before->writable = writable;
    return true;
  }
  maps_.push_back({memory.number, direct ? memory.file : 0, writable, memory.base, std::move(pages), {}});
  bytes_ += memory.length;
  return true;
}

bool LocalMaps::has(uint32_t number) const {
  return std::any_of(maps_.begin(), maps_.end(), [&](const Map& map) { return map.number == number; });
}

bool LocalMaps::remove(uint32_t number) {
  const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) { return map.number == number; });
  if (found == maps_.end()) return false;
  bytes_ -= found->pages.bytes();
  maps_.erase(found);
  return true;
}

void LocalMaps::keep(uint32_t number, UniqueFd fd) {
  const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) { return map.number == number; });
  if (found != maps_.end()) found->kept = std::move(fd);
}

FilePart LocalMaps::takeFile(uint32_t file, uint64_t address, uint64_t length) {
  const uint8_t* const at = findFile(file, address, length, false);
  if (at == nullptr) return {};
  Map& map = maps_[lastFile_];
  const auto offset = static_cast<uint64_t>(at - static_cast<const uint8_t*>(map.pages.get()));
  return {std::move(map.kept), map.pages.bytes(), offset, length};
}

void LocalMaps::clear() {
  maps_.clear();
  bytes_ = 0;
}

const uint8_t* LocalMaps::find(uint32_t number, uint64_t address, uint64_t length) {
  if (last_ >= maps_.size() || maps_[last_].number != number) {
    const auto found = std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) { return map.number == number; });
    if (found == maps_.end()) return nullptr;
    last_ = static_cast<uint32_t>(found - maps_.begin());
  }
  return within(maps_[last_], address, length);
}

uint8_t* LocalMaps::searchFile(uint32_t file, uint64_t address, uint64_t length, bool write) {
  const auto found =
      std::find_if(maps_.begin(), maps_.end(), [&](const Map& map) { return file != 0 && map.file == file; });
  if (found == maps_.end()) return nullptr;
  lastFile_ = static_cast<uint32_t>(found - maps_.begin());
  return findFile(file, address, length, write);
}

}  // namespace nd
