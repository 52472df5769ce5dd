// Pages that are mapped into this process: its own, or those of a descriptor that processes exchange.
#pragma once
#include <cstdint>
#include <utility>

#include "platform/unique_fd.h"

namespace nd {

// Bytes of a file that this or another process has allocated (pages.h).
struct FilePart {
  UniqueFd fd;
  uint64_t fileBytes = 0;
  uint64_t offset = 0, length = 0;
};

class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { unmap(); }
  Mapping(Mapping&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this == &other) return *this;
    unmap();
    memory_ = std::exchange(other.memory_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Zeroed pages that another process can map by the descriptor; their number cannot change. False: the system has
  // none.
  bool create(uint64_t bytes, UniqueFd* fd);
  // Zeroed pages of this process alone.
  bool createPrivate(uint64_t bytes);
  // Maps pages that another process has created, for reading and writing. False: the size differs, or could change.
  bool open(Descriptor fd, uint64_t bytes);
  // Pages that this process writes and others can only read: their first ones cost nothing before they are used. False:
  // the system cannot promise that.
  bool createPublished(uint64_t bytes, UniqueFd* fd);
  // Maps such pages of another process. False: as open().
  bool openPublished(Descriptor fd, uint64_t bytes);
  // Maps pages that another process has allocated (pages.h), for reading. False: as above, or pages are or may become
  // missing.
  bool openForReading(Descriptor fd, uint64_t bytes);
  // The same of pages that may be written, too, by whoever has their descriptor. `writable`: this mapping is for
  // writing.
  bool openShared(Descriptor fd, uint64_t bytes, bool writable);
  // The same of a part, with the rest of its pages, for this process alone: it shows the file, and a page that is
  // written to becomes this process's own. Costs no memory before.
  bool openView(const FilePart& part);
  void unmap() {
    if (memory_ != nullptr) unmapPages(memory_, bytes_);
    memory_ = nullptr;
    bytes_ = 0;
  }
  void* get() const { return memory_; }
  uint64_t bytes() const { return bytes_; }

 private:
  static void unmapPages(void* memory, uint64_t bytes);
  bool openWhole(Descriptor fd, uint64_t bytes, bool writable);
  // Null: failed.
  bool take(void* memory, uint64_t bytes) {
    if (memory == nullptr) return false;
    unmap();
    memory_ = memory;
    bytes_ = bytes;
    return true;
  }
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace nd
