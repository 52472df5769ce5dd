// Program memory that devices may access: rings and pinned ranges. The tables are kept for the whole process, because
// commands that name an entry run on a different thread from the one that created it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/types.h"

namespace nd::verbs {

// Zeroed, 64-byte aligned.
struct RingMemory {
  explicit RingMemory(uint64_t size);
  ~RingMemory();
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
};

class Rings {
 public:
  static Rings& all();
  std::shared_ptr<RingMemory> allocate(uint64_t bytes);  // null: out of memory
  void release(uint64_t address);
  // Returns the ring that contains this range, or null if there is none or the address is not word-aligned.
  std::shared_ptr<RingMemory> find(uint64_t address, uint64_t bytes);

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<RingMemory>> rings_;
};

// Ranges of memory, held by the threads that pinned them. A thread that releases a range first ends the registrations
// in it.
class Ranges {
 public:
  static Ranges& all();
  uint64_t add(uint64_t address, uint64_t length);
  void remove(uint64_t id);
  // Returns a range that contains all of this and increments its number of registrations, or returns 0 if there is
  // none.
  uint64_t use(uint64_t address, uint64_t length);
  void unuse(uint64_t id);
  bool used(uint64_t id);

 private:
  struct Range {
    uint64_t address, length;
    uint64_t registrations = 0;
  };
  std::mutex mutex_;
  std::map<uint64_t, Range> ranges_;             // by id
  std::multimap<uint64_t, uint64_t> byAddress_;  // ids
  uint64_t longest_ = 0;
  uint64_t nextId_ = 1;
};

}  // namespace nd::verbs
