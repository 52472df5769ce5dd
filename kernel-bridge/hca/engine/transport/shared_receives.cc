#include "transport/shared_receives.h"

#include "transport/transport.h"

namespace nd {

using namespace abi;

bool SharedReceives::refresh(Srq& srq) {
  const bool knownBad = srq.ringFault;
  if (c_.refreshShared(srq)) return true;
  if (KernelPort* port = c_.kernels[srq.kernel]; port && !knownBad)
    port->onEvent(HcaEvent::srq(srq.handle, SrqEvent::kFatal));
  return false;
}

// The WQE is copied so that its slot is free immediately, because messages of different QPs end in any order.
bool SharedReceives::take(Qp& qp) {
  if (qp.shared.held) return true;
  Srq& srq = *qp.srq;
  if (srq.producer == srq.head) return false;
  const uint32_t* wqe = srq.wqe(srq.head);
  SharedReceive& taken = qp.shared;
  taken.held = true;
  taken.wqe = srq.head++;
  const SgeList sges = parseReceive(wqe);
  taken.sgeCount = sges.count;
  const uint32_t words = std::min(sges.count, srq.sge) * (kSgeBytes / 4);
  for (uint32_t i = 0; i < words; i++) taken.sges[i] = peekWord(sges.words + i);
  storeWord(srq.header + kSrqConsumer, srq.head);
  checkLimit(srq);
  return true;
}

void SharedReceives::checkLimit(Srq& srq) {
  if (srq.limit == 0 || !refresh(srq) || srq.producer - srq.head >= srq.limit) return;
  srq.limit = 0;
  if (KernelPort* port = c_.kernels[srq.kernel]) port->onEvent(HcaEvent::srq(srq.handle, SrqEvent::kLimit));
}

Status SharedReceives::resize(Srq& srq, std::shared_ptr<Ring> ring, uint64_t address, uint32_t entries) {
  if (!refresh(srq)) return Status::kInvalidDeviceState;
  if (srq.producer - srq.head > entries) return Status::kBufferOverflow;
  Srq moved = srq;
  moved.ring = std::move(ring);
  moved.header = reinterpret_cast<uint32_t*>(address);
  moved.entries = entries;
  for (uint32_t i = srq.head; i != srq.producer; i++)
    std::memcpy(const_cast<uint32_t*>(moved.wqe(i)), srq.wqe(i), srq.stride);
  storeWord(moved.header + kSrqConsumer, srq.head);
  storeWord(moved.header + kSrqProducer, srq.producer);
  storeWord(moved.header + kSrqReceiveBell, loadWord(srq.header + kSrqReceiveBell));
  srq = std::move(moved);
  return Status::kSuccess;
}

}  // namespace nd
