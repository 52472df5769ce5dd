// Identifies the request of a completion by the object to which it was posted and its index in the ring. It fits in the
// 64 bits that devices return with a completion.
#pragma once
#include "base/types.h"

namespace nd::verbs {

struct RequestId {
  enum class Queue : uint32_t { kSend = 0, kMarker = 1, kReceive = 2, kShared = 3 };
  Queue queue;
  Handle handle;
  uint32_t index;

  static uint64_t send(Handle qp, uint32_t index) { return make(Queue::kSend, qp, index); }
  static uint64_t marker(Handle qp) { return make(Queue::kMarker, qp, 0); }
  static uint64_t receive(Handle qp, uint32_t index) { return make(Queue::kReceive, qp, index); }
  static uint64_t shared(Handle srq, uint32_t index) { return make(Queue::kShared, srq, index); }
  static RequestId of(uint64_t id) {
    return {static_cast<Queue>(id >> 62), static_cast<Handle>(id >> 32) & 0x3FFFFFFF, static_cast<uint32_t>(id)};
  }

 private:
  // Handles have 30 bits (slot_table.h).
  static uint64_t make(Queue queue, Handle handle, uint32_t index) {
    return uint64_t{static_cast<uint32_t>(queue)} << 62 | uint64_t{handle} << 32 | index;
  }
};

}  // namespace nd::verbs
