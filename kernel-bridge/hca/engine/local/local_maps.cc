#include "local/local_maps.h"

#include <algorithm>

namespace nd {

// ── Ours ──────────────────────────────────────────────────────────────────────────────────────────

uint32_t LocalOffers::numberOf(const SharedRange& range) {
  const auto known = [&](const Offer& offer) { return offer.id == range.id && offer.state != State::kGone; };
  if (last_ >= offers_.size() || !known(offers_[last_])) {
    const auto found = std::find_if(offers_.begin(), offers_.end(), known);
    if (found == offers_.end()) {
      if (offers_.size() >= kMost) return 0;
      if (++numbers_ == 0) numbers_ = 1;
      offers_.push_back({range.weak_from_this(), range.id, numbers_, State::kNew});
      news_ = true;
      return 0;
    }
    last_ = static_cast<uint32_t>(found - offers_.begin());
  }
  return offers_[last_].state == State::kMapped ? offers_[last_].number : 0;
}

void LocalOffers::onAnswer(uint32_t number, bool mapped) {
  for (Offer& offer : offers_) {
    if (offer.number != number || offer.state != State::kTold) continue;
    offer.state = mapped ? State::kMapped : State::kRefused;
    return;
  }
}

void LocalOffers::sweep() {
  for (size_t i = 0; i < offers_.size();) {
    Offer& offer = offers_[i];
    if (offer.range.expired()) {
      if (offer.state == State::kNew || offer.state == State::kRefused) {
        offers_.erase(offers_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      offer.state = State::kGone;
      news_ = true;
    }
    i++;
  }
}

// ── The peer's ────────────────────────────────────────────────────────────────────────────────────

bool LocalMaps::add(const LocalMemory& memory, Descriptor fd) {
  if (memory.number == 0 || has(memory.number) || maps_.size() >= kMost) return false;
  if (memory.length == 0 || memory.length > kMostBytes - bytes_) return false;
  Mapping pages;
  if (!pages.openForReading(fd, memory.length)) return false;
  maps_.push_back({memory.number, memory.base, std::move(pages)});
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
  const Map& map = maps_[last_];
  const uint64_t offset = address - map.base;  // too large for an address below the range
  const uint64_t size = map.pages.bytes();
  return offset <= size && length <= size - offset ? static_cast<const uint8_t*>(map.pages.get()) + offset : nullptr;
}

}  // namespace nd
