// Sharing of allocate() memory between two processes on a host. This process offers ranges to a peer, and maps the
// peer's ranges for reading, so that it can copy the peer's payload like any other memory.
//
// An offer consists of a number, an address range and the file. A number is not reused while the pair exists, so a
// packet that names it never refers to other memory. All functions require the engine's lock.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "platform/mapping.h"
#include "platform/shared_memory.h"

namespace nd {

// A memory range, the body of the kMemory* frames. A reply sets only slot, number and `mapped`. An end sets the number
// and the file, and a request for a file (kMemoryRequest) the file and `mapped`.
struct LocalMemory {
  uint32_t slot = 0, number = 0;
  uint64_t base = 0, length = 0;
  uint32_t mapped =
      0;  // in a reply: 1 if the peer has mapped it, 0 if it never will; in an offer or request: for writing
  uint32_t file = 0;  // SharedRange::id, under which keys are published (direct_table.h); older processes ignore it
};

// This process's memory, as one peer knows it.
class LocalOffers {
 public:
  static constexpr uint32_t kMost = 128;
  // Returns the number under which the peer has mapped the memory, or 0 if it has not. The first call queues an offer.
  uint32_t numberOf(const SharedRange& range);
  // Queues an offer that the peer has requested. Returns false if there are too many offers.
  bool offer(const SharedRange& range, bool writable);
  void onReply(uint32_t number, bool mapped);
  // Returns whether there are offers or ends to send.
  bool news() const { return news_; }
  // Finds memory that was freed or reclaimed, of which the peer must be notified.
  void sweep();
  // Sends all offers and ends: send(memory, fd), with kNoDescriptor for an end. If it returns false, no more can be
  // sent now. `direct`: the peer may write to some of it.
  template <typename Send>
  void sendAll(bool direct, Send send);
  void clear() { *this = {}; }

 private:
  enum class State : uint8_t { kNew, kOffered, kMapped, kRefused, kGone };
  struct Offer {
    std::weak_ptr<const SharedRange> range;
    uint64_t id = 0;
    uint32_t number = 0;
    State state = State::kNew;
    bool writable = false;
  };
  Offer* find(const SharedRange& range);
  std::vector<Offer> offers_;
  uint32_t last_ = 0;  // index of the last used one
  uint32_t numbers_ = 0;
  bool news_ = false;
};

// The peer's memory as mapped in this process.
class LocalMaps {
 public:
  static constexpr uint32_t kMost = LocalOffers::kMost;
  static constexpr uint64_t kMostBytes = 64ull << 30;
  LocalMaps() = default;
  LocalMaps(const LocalMaps&) = delete;
  LocalMaps& operator=(const LocalMaps&) = delete;
  ~LocalMaps() { clear(); }

  // Returns false if there is too much memory, or if the file could change because it can shrink or lacks some of its
  // pages. `direct`: the file may also be one to which others write, and an offer may replace an earlier one of the
  // same memory.
  bool add(const LocalMemory& memory, Descriptor fd, bool direct);
  bool has(uint32_t number) const;
  bool remove(uint32_t number);
  void clear();
  // Keeps the descriptor of the file that was added under this number, for one view of it.
  void keep(uint32_t number, UniqueFd fd);
  // Returns the given memory of the peer as a part of its published file. Returns no descriptor if none has been kept
  // since the last call, or if not all of the memory is mapped.
  FilePart takeFile(uint32_t file, uint64_t address, uint64_t length);
  // Returns the address of the given memory of the peer in this process, or null if it is not entirely mapped.
  const uint8_t* find(uint32_t number, uint64_t address, uint64_t length);
  // Does the same for a published file. `write`: it must be mapped for writing.
  uint8_t* findFile(uint32_t file, uint64_t address, uint64_t length, bool write) {
    if (lastFile_ >= maps_.size() || maps_[lastFile_].file != file) return searchFile(file, address, length, write);
    const Map& map = maps_[lastFile_];
    return write && !map.writable ? nullptr : within(map, address, length);
  }

 private:
  struct Map {
    uint32_t number;
    uint32_t file;
    bool writable;
    uint64_t base;  // the peer's address
    Mapping pages;
    UniqueFd kept;
  };
  static uint8_t* within(const Map& map, uint64_t address, uint64_t length) {
    const uint64_t offset = address - map.base;  // huge if the address is below the range
    const uint64_t size = map.pages.bytes();
    return offset <= size && length <= size - offset ? static_cast<uint8_t*>(map.pages.get()) + offset : nullptr;
  }
  uint8_t* searchFile(uint32_t file, uint64_t address, uint64_t length, bool write);
  std::vector<Map> maps_;
  uint32_t last_ = 0, lastFile_ = 0;
  uint64_t bytes_ = 0;
};

template <typename Send>
void LocalOffers::sendAll(bool direct, Send send) {
  news_ = false;
  for (size_t i = 0; i < offers_.size();) {
    Offer& offer = offers_[i];
    if (offer.state == State::kNew || offer.state == State::kGone) {
      const std::shared_ptr<const SharedRange> range = offer.range.lock();
      if (offer.state == State::kNew && range) {
        range->seal(direct);
        const LocalMemory memory{
            0, offer.number, range->base, range->length, offer.writable, static_cast<uint32_t>(offer.id)};
        if (!send(memory, range->fd.get())) break;
        range->offered.store(true, std::memory_order_relaxed);
        offer.state = State::kOffered;
      } else if (send(LocalMemory{0, offer.number, 0, 0, 0, static_cast<uint32_t>(offer.id)}, kNoDescriptor)) {
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
