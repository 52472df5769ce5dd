// Handles: a 20-bit index and a 12-bit generation, so that a stale handle is an error and never refers to another
// object.
#pragma once
#include <deque>
#include <memory>
#include <vector>
#include "base/types.h"

namespace nd {

template <typename T>
class HandleTable {
 public:
  static constexpr uint32_t kIndexBits = 20, kIndexMask = (1u << kIndexBits) - 1;

  explicit HandleTable(uint32_t limit) : limit_(limit < kIndexMask ? limit : kIndexMask) {}

  T* find(Handle handle) const {
    const uint32_t index = (handle & kIndexMask) - 1;
    if (index >= slots_.size()) return nullptr;
    const Slot& s = slots_[index];
    return s.generation == handle >> kIndexBits ? s.object.get() : nullptr;
  }
  // Returns the object at this index, regardless of the generation.
  T* at(uint32_t index) const { return index < slots_.size() ? slots_[index].object.get() : nullptr; }
  static uint32_t indexOf(Handle handle) { return (handle & kIndexMask) - 1; }

  // Returns 0 if the table is full.
  Handle add(std::unique_ptr<T> object) {
    if (count_ >= limit_) return 0;
    uint32_t index;
    if (free_.size() > kPlacesAtRest || (slots_.size() >= limit_ && !free_.empty())) {
      index = free_.front();
      free_.pop_front();
    } else {
      index = uint32_t(slots_.size());
      slots_.emplace_back();
    }
    Slot& s = slots_[index];
    s.object = std::move(object);
    count_++;
    return s.generation << kIndexBits | (index + 1);
  }

  std::unique_ptr<T> remove(Handle handle) {
    if (!find(handle)) return nullptr;
    const uint32_t index = indexOf(handle);
    Slot& s = slots_[index];
    s.generation = s.generation + 1 == kHandleGenerations ? 1 : s.generation + 1;
    free_.push_back(index);
    count_--;
    return std::move(s.object);
  }

  uint32_t size() const { return count_; }

  // The callback may remove the object that it is given, but no other.
  template <typename F>
  void forEach(F&& f) const {
    for (size_t i = 0; i < slots_.size(); i++)
      if (T* object = slots_[i].object.get()) f(*object);
  }

 private:
  struct Slot {
    std::unique_ptr<T> object;
    uint32_t generation = 1;
  };
  uint32_t limit_, count_ = 0;
  std::vector<Slot> slots_;
  std::deque<uint32_t> free_;
};

}  // namespace nd
