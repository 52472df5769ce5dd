// Shared receive queues (IBA 1 §10.2.9; networkdirect §6.12): how a QP takes a WQE, and how the ring moves.
#include "transport/core.h"

namespace nd {

using namespace abi;

bool Core::refreshShared(Srq& srq) {
  if (srq.ringFault) return false;
  const uint32_t producer = loadWord(srq.header + kSrqProducer);
  const uint32_t filled = producer - srq.head;
  if (filled > srq.entries || filled < srq.producer - srq.head) {
    srq.ringFault = true;
    counters.ringFaults++;
    if (KernelPort* port = kernels[srq.kernel]) port->onSrqEvent(srq.handle, SrqEvent::kFatal);
    return false;
  }
  srq.producer = producer;
  return true;
}

// The WQE is copied, so that its place is free at once: messages of different QPs end in any order.
bool Core::takeShared(Qp& qp) {
  if (qp.shared.held) return true;
  Srq& srq = *qp.srq;
  if (srq.producer == srq.head) return false;
  const uint32_t* wqe = srq.wqe(srq.head);
  SharedReceive& taken = qp.shared;
  taken.held = true;
  taken.wqe = srq.head++;
  taken.sgeCount = peekWord(wqe + kRwSgeCount);
  const uint32_t words = std::min(taken.sgeCount, srq.sge) * (kSgeBytes / 4);
  for (uint32_t i = 0; i < words; i++) taken.sges[i] = peekWord(wqe + kReceiveWqeHeaderBytes / 4 + i);
  storeWord(srq.header + kSrqConsumer, srq.head);
  checkLimit(srq);
  return true;
}

void Core::checkLimit(Srq& srq) {
  if (srq.limit == 0 || !refreshShared(srq) || srq.producer - srq.head >= srq.limit) return;
  srq.limit = 0;
  if (KernelPort* port = kernels[srq.kernel]) port->onSrqEvent(srq.handle, SrqEvent::kLimit);
}

Status Core::resizeSrq(Srq& srq, std::shared_ptr<Ring> ring, uint64_t address, uint32_t entries) {
  if (!refreshShared(srq)) return Status::kInvalidDeviceState;
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
