// Pages mapped into this process: its own, or those of a descriptor exchanged between processes.
#pragma once
#include <cstdint>
#include <utility>

#include "platform/unique_fd.h"

namespace nd {

// A range of a file that this or another process has allocated (pages.h).
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

  // Creates zeroed pages that another process can map by the descriptor. Their number cannot change. Returns false if
  // resources are exhausted.
  bool create(uint64_t bytes, UniqueFd* fd);
  // Creates zeroed pages private to this process.
  bool createPrivate(uint64_t bytes);
  // Maps pages that another process has created, for reading and writing. Returns false if the size differs or could
  // change.
  bool open(Descriptor fd, uint64_t bytes);
  // Creates pages that this process writes and others can only read. Pages cost no memory until they are used. Returns
  // false if the OS cannot guarantee this.
  bool createPublished(uint64_t bytes, UniqueFd* fd);
  // Maps such pages of another process. Returns false in the same cases as open().
  bool openPublished(Descriptor fd, uint64_t bytes);
  // Maps pages that another process has allocated (pages.h), for reading. Also returns false if pages are missing or
  // may become so.
  bool openForReading(Descriptor fd, uint64_t bytes);
  // Does the same for pages that any holder of the descriptor may also write. `writable`: maps them for writing.
  bool openShared(Descriptor fd, uint64_t bytes, bool writable);
  // Does the same for a part, rounded out to whole pages, as a private mapping. It shows the file, and a page becomes
  // private when this process writes it. Until then it costs no memory.
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
  // Returns null on failure.
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
