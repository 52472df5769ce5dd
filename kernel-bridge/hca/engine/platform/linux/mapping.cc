#include "platform/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/linux/seals.h"

namespace nd {
namespace {

void* pagesOf(void* mapped) { return mapped == MAP_FAILED ? nullptr : mapped; }

// Returns whether it is a file of this size with all its pages allocated.
bool isWhole(int fd, uint64_t bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0) return false;
  return static_cast<uint64_t>(info.st_size) == bytes && static_cast<uint64_t>(info.st_blocks) * 512 >= bytes;
}

bool canShrink(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals < 0 || (seals & F_SEAL_SHRINK) == 0;
}

}  // namespace

bool Mapping::create(uint64_t bytes, UniqueFd* fd) {
  UniqueFd file(memfd_create("networkdirect-pair", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return false;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
  if (!take(pagesOf(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)), bytes)) return false;
  *fd = std::move(file);
  return true;
}

bool Mapping::createPrivate(uint64_t bytes) {
  return take(pagesOf(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), bytes);
}

bool Mapping::open(Descriptor fd, uint64_t bytes) {
  // If its creator could shrink the file, an access could raise a signal.
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & (F_SEAL_WRITE | kSealFutureWrite)) != 0) return false;
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(bytes)) return false;
  return take(pagesOf(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)), bytes);
}

bool Mapping::createPublished(uint64_t bytes, UniqueFd* fd) {
  UniqueFd file(memfd_create("networkdirect-keys", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return false;
  Mapping pages;
  if (!pages.take(pagesOf(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)), bytes))
    return false;
  if (fcntl(file.get(), F_ADD_SEALS, kSealFutureWrite | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
  *this = std::move(pages);
  *fd = std::move(file);
  return true;
}

bool Mapping::openPublished(Descriptor fd, uint64_t bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return false;
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(bytes)) return false;
  return take(pagesOf(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0)), bytes);
}

bool Mapping::openWhole(Descriptor fd, uint64_t bytes, bool writable) {
  if (!isWhole(fd, bytes)) return false;
  return take(pagesOf(mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0)), bytes);
}

bool Mapping::openForReading(Descriptor fd, uint64_t bytes) {
  // The reason is the same as in open(). For a file that has holes, or may get some, this process would also be charged
  // for the pages.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & (F_SEAL_WRITE | kSealFutureWrite)) == 0) return false;
  return openWhole(fd, bytes, false);
}

bool Mapping::openShared(Descriptor fd, uint64_t bytes, bool writable) {
  return !canShrink(fd) && openWhole(fd, bytes, writable);
}

bool Mapping::openView(const FilePart& part) {
  const int fd = part.fd.get();
  if (canShrink(fd) || !isWhole(fd, part.fileBytes) || part.length == 0) return false;
  if (part.offset > part.fileBytes || part.length > part.fileBytes - part.offset) return false;
  const uint64_t before = part.offset % static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = before + part.length;
  const auto from = static_cast<off_t>(part.offset - before);
  return take(pagesOf(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, from)), bytes);
}

void Mapping::unmapPages(void* memory, uint64_t bytes) { munmap(memory, bytes); }

}  // namespace nd
