#include "platform/os.h"

#include <sched.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "platform/unique_fd.h"

namespace nd {

uint64_t monotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void fillRandom(void* buffer, size_t bytes) {
  auto* p = static_cast<uint8_t*>(buffer);
  while (bytes > 0) {
    const ssize_t n = getrandom(p, bytes, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      std::abort();
    }
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

void yieldThread() { sched_yield(); }

void closeDescriptor(Descriptor descriptor) { close(descriptor); }

void* allocateAligned(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

void freeAligned(void* memory) { std::free(memory); }

}  // namespace nd
