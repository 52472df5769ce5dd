#include "local/local_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace nd {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

LocalSegment* mapping(void* p) { return p == MAP_FAILED ? nullptr : static_cast<LocalSegment*>(p); }

}  // namespace

bool LocalMapping::create(UniqueFd* fd) {
  UniqueFd file(memfd_create("networkdirect-pair", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), sizeof(LocalSegment)) != 0) return false;
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return false;
  segment_ = mapping(mmap(nullptr, sizeof(LocalSegment), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  if (segment_ == nullptr) return false;
  segment_->magic = LocalSegment::kMagic;
  *fd = std::move(file);
  return true;
}

bool LocalMapping::createPrivate() {
  segment_ = mapping(
      mmap(nullptr, sizeof(LocalSegment), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return segment_ != nullptr;
}

bool LocalMapping::open(int fd) {
  // A file that its maker could shrink would turn an access into a signal.
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) return false;
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(sizeof(LocalSegment))) return false;
  segment_ = mapping(mmap(nullptr, sizeof(LocalSegment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (segment_ == nullptr) return false;
  if (__atomic_load_n(&segment_->magic, __ATOMIC_ACQUIRE) == LocalSegment::kMagic) return true;
  unmap();
  return false;
}

void LocalMapping::unmap() {
  if (segment_ != nullptr) munmap(segment_, sizeof(LocalSegment));
  segment_ = nullptr;
}

}  // namespace nd
