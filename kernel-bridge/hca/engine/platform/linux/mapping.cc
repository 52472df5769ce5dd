#include "platform/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/linux/seals.h"

namespace nd {
namespace {

void* pagesOf(void* mapped) { return mapped == MAP_FAILED ? nullptr : mapped; }

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
  // If its maker could shrink the file, an access could raise a signal.
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
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0) return false;
  if (static_cast<uint64_t>(info.st_size) != bytes || static_cast<uint64_t>(info.st_blocks) * 512 < bytes) return false;
  return take(pagesOf(mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0)), bytes);
}

bool Mapping::openForReading(Descriptor fd, uint64_t bytes) {
  // As above. A file that has or may get holes would make us pay for its pages.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & (F_SEAL_WRITE | kSealFutureWrite)) == 0) return false;
  return openWhole(fd, bytes, false);
}

bool Mapping::openShared(Descriptor fd, uint64_t bytes, bool writable) {
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && openWhole(fd, bytes, writable);
}

void Mapping::unmapPages(void* memory, uint64_t bytes) { munmap(memory, bytes); }

}  // namespace nd
