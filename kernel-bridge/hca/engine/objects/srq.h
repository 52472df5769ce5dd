// A shared receive queue (IBA 1 §10.2.9), from which several queue pairs take receives.
#pragma once
#include "objects/qp_line.h"

namespace nd {

struct Srq : RingPlace {
  KernelId kernel = 0;
  Handle handle = 0;
  Pd* pd = nullptr;
  uint32_t users = 0;
  std::shared_ptr<Ring> ring;
  uint32_t* header = nullptr;
  uint32_t entries = 0, stride = 0, sge = 0;
  uint32_t limit = 0;                                  // not 0: the event is armed
  QpLine<&Qp::nextAwaiting, kAwaitsReceive> awaiting;  // queue pairs whose messages wait for a receive, oldest first
  const uint32_t* wqe(uint32_t index) const {
    return header + abi::kSrqHeaderBytes / 4 + size_t(index & (entries - 1)) * (stride / 4);
  }
};

inline uint32_t Qp::receiveSgeLimit() const { return srq ? srq->sge : receiveSge; }
inline const Pd* Qp::receivePd() const { return srq ? srq->pd : pd; }

}  // namespace nd
