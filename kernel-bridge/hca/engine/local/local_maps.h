// Memory of allocate() between two processes of a host: what this one has told a peer of, and what it has mapped of the
// peer's, for reading, so that the peer's payload is copied like any other memory.
//
// An offer is a number, an address range and the file. Numbers are not used again while a pair lasts, so that a packet
// that names one never means other memory. All functions want the engine's lock held.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "platform/mapping.h"
#include "platform/shared_memory.h"

namespace nd {

// What is told of memory; the body of the frames kMemory*. An answer and an end have slot, number and `mapped` only.
struct LocalMemory {
  uint32_t slot = 0, number = 0;
  uint64_t base = 0, length = 0;
  uint32_t mapped = 0;  // in an answer: 1 the peer has it, 0 it has not and will not
  uint32_t reserved = 0;
};

// Ours, as one peer knows it.
class LocalOffers {
 public:
  static constexpr uint32_t kMost = 128;
  // The number by which the peer has it mapped; 0: it has not. The first time, it is put in line to be told.
  uint32_t numberOf(const SharedRange& range);
  void onAnswer(uint32_t number, bool mapped);
  // Whether there is something to tell.
  bool news() const { return news_; }
  // Finds out which memory is gone: the peer is to be told.
  void sweep();
  // Tells it all: tell(memory, fd) of what is new, with fd -1 of what is gone. Where that says false, nothing more can
  // be told now.
  template <typename Tell>
  void tellAll(Tell tell);
  void clear() { *this = {}; }

 private:
  enum class State : uint8_t { kNew, kTold, kMapped, kRefused, kGone };
  struct Offer {
    std::weak_ptr<const SharedRange> range;
    uint64_t id = 0;
    uint32_t number = 0;
    State state = State::kNew;
  };
  std::vector<Offer> offers_;
  uint32_t last_ = 0;  // index of the one used last
  uint32_t numbers_ = 0;
  bool news_ = false;
};

// The peer's, as this process has it mapped.
class LocalMaps {
 public:
  static constexpr uint32_t kMost = LocalOffers::kMost;
  static constexpr uint64_t kMostBytes = 64ull << 30;
  LocalMaps() = default;
  LocalMaps(const LocalMaps&) = delete;
  LocalMaps& operator=(const LocalMaps&) = delete;
  ~LocalMaps() { clear(); }

  // False: too much of it, or a file that could change under us: one that can shrink, or that lacks some of its pages.
  bool add(const LocalMemory& memory, Descriptor fd);
  bool has(uint32_t number) const;
  bool remove(uint32_t number);
  void clear();
  // Where that memory of the peer is here; null: it is not, or not all of it.
  const uint8_t* find(uint32_t number, uint64_t address, uint64_t length);

 private:
  struct Map {
    uint32_t number;
    uint64_t base;  // the peer's
    Mapping pages;
  };
  std::vector<Map> maps_;
  uint32_t last_ = 0;
  uint64_t bytes_ = 0;
};

template <typename Tell>
void LocalOffers::tellAll(Tell tell) {
  news_ = false;
  for (size_t i = 0; i < offers_.size();) {
    Offer& offer = offers_[i];
    if (offer.state == State::kNew || offer.state == State::kGone) {
      const std::shared_ptr<const SharedRange> range = offer.range.lock();
      const bool isNew = offer.state == State::kNew;
      if (isNew && range) {
        if (!tell(LocalMemory{0, offer.number, range->base, range->length, 0, 0}, range->fd.get())) break;
        range->told.store(true, std::memory_order_relaxed);
        offer.state = State::kTold;
      } else if (isNew || tell(LocalMemory{0, offer.number, 0, 0, 0, 0}, -1)) {
        offers_.erase(offers_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      } else {
        break;
      }
    }
    i++;
  }
  for (const Offer& offer : offers_) news_ |= offer.state == State::kNew || offer.state == State::kGone;
}

}  // namespace nd
