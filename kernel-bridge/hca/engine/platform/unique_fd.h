// A descriptor that closes itself: a file descriptor, or on Windows a kernel handle.
#pragma once
#include <cstdint>
#include <utility>

namespace nd {

#if defined(_WIN32)
using Descriptor = intptr_t;
#else
using Descriptor = int;
#endif
constexpr Descriptor kNoDescriptor = -1;

void closeDescriptor(Descriptor descriptor);

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(Descriptor fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, kNoDescriptor)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, kNoDescriptor));
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  Descriptor get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset(Descriptor fd = kNoDescriptor) {
    if (fd_ >= 0) closeDescriptor(fd_);
    fd_ = fd;
  }

 private:
  Descriptor fd_ = kNoDescriptor;
};

// Returns a duplicate, which is not valid if descriptors are exhausted.
UniqueFd duplicateDescriptor(Descriptor descriptor);

}  // namespace nd
