// The shared memory of a pair of processes: made by one, sealed, sent as a descriptor, and checked by the other.
#pragma once
#include "local/local_ring.h"
#include "platform/mapping.h"

namespace nd {

class LocalMapping {
 public:
  // A new segment for two processes; `fd` is what the other one needs. False: the system has none.
  bool create(UniqueFd* fd);
  // Private memory of the same form, for the queue pairs of one process.
  bool createPrivate() { return mapping_.createPrivate(sizeof(LocalSegment)); }
  // The segment that another process made. False: it is not one that can be trusted to stay mapped, or no segment.
  bool open(Descriptor fd);
  void unmap() { mapping_.unmap(); }
  LocalSegment* get() const { return static_cast<LocalSegment*>(mapping_.get()); }

 private:
  Mapping mapping_;
};

}  // namespace nd
