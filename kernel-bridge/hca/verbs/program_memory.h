// The memory of programs that devices may be given: rings, and pinned ranges. Of the whole process: the thread that
// makes them is not the one whose commands name them.
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
  std::shared_ptr<RingMemory> allocate(uint64_t bytes);  // null: no memory
  void release(uint64_t address);
  // The ring in which this range lies; null: in none, or not at a word's address.
  std::shared_ptr<RingMemory> find(uint64_t address, uint64_t bytes);

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<RingMemory>> rings_;
};

// Ranges of memory that their threads hold. A thread that lets go of one ends the registrations in it first.
class Ranges {
 public:
  static Ranges& all();
  uint64_t add(uint64_t address, uint64_t length);
  void remove(uint64_t id);
  // A range in which all of this lies, which has one more registration from now on; 0: there is none.
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
