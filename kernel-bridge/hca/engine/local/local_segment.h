// The shared memory of a pair of processes: one makes and seals it and sends its descriptor; the other checks it.
#pragma once
#include "local/local_ring.h"
#include "platform/mapping.h"

namespace nd {

class LocalMapping {
 public:
  // Makes a segment for two processes; `fd` is for the other one. False: the system has none.
  bool create(UniqueFd* fd);
  // Private memory of the same form, for the queue pairs of one process.
  bool createPrivate() { return mapping_.createPrivate(sizeof(LocalSegment)); }
  // Maps the segment of another process. False: it might not stay mapped, or is no segment.
  bool open(Descriptor fd);
  void unmap() { mapping_.unmap(); }
  LocalSegment* get() const { return static_cast<LocalSegment*>(mapping_.get()); }

 private:
  Mapping mapping_;
};

}  // namespace nd
