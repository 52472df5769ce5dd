#include "platform/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "platform/linux/seals.h"

namespace nd {
namespace {

constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kLargest = 1ull << 46;

// Constants that older headers lack.
constexpr unsigned kMfdNoexecSeal = 8;  // Linux 6.3
constexpr int kPopulateWrite = 23;      // Linux 5.14

int openMemfd() {
  const char* name = "networkdirect";
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdNoexecSeal);
  return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

Status statusOfPages(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case EFBIG: return statusOfLack(error);
    case ENOSYS:
    case EPERM:
    case EACCES:
    case EINVAL: return Status::kNotSupported;
    default: return Status::kNoMemory;
  }
}

// Maps the file at an address aligned for huge pages. Returns 0 if there is no address space left.
uint64_t mapAligned(int fd, uint64_t length) {
  const uint64_t alignment = length >= kHugePage ? kHugePage : 1;
  const uint64_t reserved = length + alignment - 1;
  void* place = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return 0;
  const uint64_t start = reinterpret_cast<uintptr_t>(place);
  const uint64_t base = (start + alignment - 1) / alignment * alignment;
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t end = (start + reserved + page - 1) / page * page;
  const auto unmap = [](uint64_t from, uint64_t to) {
    if (to > from) munmap(reinterpret_cast<void*>(from), to - from);
  };
  if (mmap(reinterpret_cast<void*>(base), length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
      MAP_FAILED) {
    const int cause = errno;
    unmap(start, end);
    errno = cause;
    return 0;
  }
  unmap(start, base);
  unmap(base + length, end);
  return base;
}

// Allocates the pages now, because a later lack of memory would raise a signal instead of returning a status.
bool populate(int fd, uint64_t base, uint64_t length) {
  void* memory = reinterpret_cast<void*>(base);
  madvise(memory, length, MADV_HUGEPAGE);  // a hint: small pages work as well
  if (madvise(memory, length, kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;
  errno = posix_fallocate(fd, 0, off_t(length));
  return errno == 0;
}

}  // namespace

Status allocatePages(uint64_t bytes, Pages* out, int* error) {
  const auto failed = [&] {
    const int cause = errno;
    *error = cause;
    return statusOfPages(cause);
  };
  *error = 0;
  if (bytes == 0 || bytes > kLargest) return Status::kInvalidParameter;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t length = (bytes + page - 1) / page * page;
  UniqueFd file(openMemfd());
  if (!file.valid()) return failed();
  const int fd = file.get();
  if (ftruncate(fd, static_cast<off_t>(length)) != 0) return failed();
  const uint64_t base = mapAligned(fd, length);
  if (base == 0) return failed();
  const auto unmapped = [&] {
    const Status status = failed();
    freePages(base, length);
    return status;
  };
  if (!populate(fd, base, length)) return unmapped();
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return unmapped();
  out->fd = std::move(file);
  out->base = base;
  out->length = length;
  return Status::kSuccess;
}

void freePages(uint64_t base, uint64_t length) { munmap(reinterpret_cast<void*>(base), length); }

void sealPages(Descriptor fd, bool writable) {
  if (!writable) fcntl(fd, F_ADD_SEALS, kSealFutureWrite);  // if the kernel supports it
  fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
}

uint64_t pageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

bool detachPages(Descriptor fd, uint64_t base, uint64_t offset, uint64_t length) {
  // The mapping is created elsewhere and then moved. If mapping failed at the target, the kernel might already have
  // removed the mapping that was there.
  void* const fresh = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, static_cast<off_t>(offset));
  if (fresh == MAP_FAILED) return false;
  if (mremap(fresh, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(base + offset)) !=
      MAP_FAILED)
    return true;
  munmap(fresh, length);
  return false;
}

bool copyDetachedPages(uint64_t base, uint64_t offset, uint64_t length) {
  // The kernel copies each page as a whole, so no thread's write is lost.
  const uint64_t from = base + offset;
  if (madvise(reinterpret_cast<void*>(from), length, kPopulateWrite) == 0) return true;
  if (errno != EINVAL) return false;
  for (uint64_t at = from; at < from + length; at += pageBytes())
    __atomic_fetch_or(reinterpret_cast<uint8_t*>(at), uint8_t(0), __ATOMIC_RELAXED);
  return true;
}

}  // namespace nd
