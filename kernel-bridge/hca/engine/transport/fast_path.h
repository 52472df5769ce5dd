// The fast path: SENDs and RDMA WRITEs of one packet, and their acknowledgements, on both links.
//
// It is a short cut through requester, responder and completer for connections in the plain state: their `marks` (qp.h)
// say whether it may be taken. Each function checks everything first and changes nothing until it is sure; where it
// returns false, the long way takes the same request or packet from the beginning.
#pragma once
#include "transport/core.h"

namespace nd {

// A request of a send queue that fits into one packet.
struct SmallRequest {
  uint32_t opcode, flags, count, length;
  const uint8_t* data;  // where it stands; null: none
  uint64_t remote;      // of a WRITE
  uint32_t rkey;
};

// A received one.
struct SmallMessage {
  // Member by member: a list of initial values becomes a string instruction.
  SmallMessage(const wire::Bth& b, uint32_t bytes) : bth(b), length(bytes) {}
  const wire::Bth& bth;
  uint32_t length;  // of the payload
  uint32_t rkey = 0;
  uint64_t address = 0;
  bool writes() const { return bth.opcode == wire::kOpWriteOnly; }
};

}  // namespace nd
