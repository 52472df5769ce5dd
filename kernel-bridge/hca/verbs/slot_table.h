// Objects by handle, for threads that share no lock. A slot is never freed, so a stale handle may find a reused object,
// but never freed memory.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/types.h"

namespace nd::verbs {

// T has `std::atomic<Handle> handle` and `void clear()`. A caller locks the object (or whatever else orders it with
// release()), and then compares the handle. Handles have 18 bits of index and 12 of generation. Callers may use bits 30
// and 31.
template <typename T>
class SlotTable {
 public:
  static constexpr uint32_t kIndexBits = 18, kMost = 1u << kIndexBits, kChunk = 256;

  // Returns null if there is no such slot. The caller compares `handle`.
  T* at(Handle handle) const {
    const uint32_t index = (handle & (kMost - 1)) - 1;
    if (index >= kMost - 1) return nullptr;
    std::array<T, kChunk>* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? &(*chunk)[index % kChunk] : nullptr;
  }
  // Returns the object, for callers during whose call nothing can release it.
  T* find(Handle handle) const {
    T* object = at(handle);
    return object != nullptr && object->handle.load(std::memory_order_acquire) == handle && handle != 0 ? object
                                                                                                        : nullptr;
  }
  // Returns null if the table is full. The caller publishes the handle once the object is complete: `object->handle =
  // handle`.
  T* take(Handle* handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    uint32_t index;
    if (free_.size() > kPlacesAtRest || (next_ >= kMost - 1 && !free_.empty())) {
      index = free_.front();
      free_.erase(free_.begin());
    } else {
      if (next_ >= kMost - 1) return nullptr;
      index = next_++;
      std::atomic<std::array<T, kChunk>*>& chunk = chunks_[index / kChunk];
      if (chunk.load(std::memory_order_relaxed) == nullptr)
        chunk.store(new std::array<T, kChunk>, std::memory_order_release);
      generations_.push_back(1);
    }
    ++count_;
    *handle = generations_[index] << kIndexBits | (index + 1);
    return at(*handle);
  }
  // Clears the object and invalidates its handle.
  void release(T* object, Handle handle) {
    object->handle.store(0, std::memory_order_release);
    object->clear();
    std::lock_guard<std::mutex> lock(mutex_);
    const uint32_t index = (handle & (kMost - 1)) - 1;
    generations_[index] = generations_[index] + 1 == kHandleGenerations ? 1 : generations_[index] + 1;
    free_.push_back(index);
    --count_;
  }
  template <typename F>
  void forEach(F&& f) {
    uint32_t end;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      end = next_;
    }
    for (uint32_t index = 0; index < end; ++index) {
      T& object = (*chunks_[index / kChunk].load(std::memory_order_acquire))[index % kChunk];
      if (object.handle.load(std::memory_order_acquire) != 0) f(object);
    }
  }

 private:
  std::array<std::atomic<std::array<T, kChunk>*>, kMost / kChunk> chunks_{};
  std::mutex mutex_;
  std::vector<uint32_t> generations_;
  std::vector<uint32_t> free_;
  uint32_t next_ = 0, count_ = 0;
};

}  // namespace nd::verbs
