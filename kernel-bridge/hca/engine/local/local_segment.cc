#include "local/local_segment.h"

namespace nd {

bool LocalMapping::create(UniqueFd* fd) {
  if (!mapping_.create(sizeof(LocalSegment), fd)) return false;
  get()->magic = LocalSegment::kMagic;
  return true;
}

bool LocalMapping::open(Descriptor fd) {
  if (!mapping_.open(fd, sizeof(LocalSegment))) return false;
  if (__atomic_load_n(&get()->magic, __ATOMIC_ACQUIRE) == LocalSegment::kMagic) return true;
  unmap();
  return false;
}

}  // namespace nd
