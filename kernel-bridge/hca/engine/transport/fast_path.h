// The fast path: SENDs and RDMA WRITEs of one packet, and their acknowledgements, on both links.
//
// It is a short cut through requester, responder and completer for connections in the plain state: their `marks` (qp.h)
// say whether it may be taken. Each function checks everything first and changes nothing until it is sure; where it
// returns false, the long way takes the same request or packet from the beginning.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class FastPath : public Role {
 public:
  using Role::Role;

  // A doorbell. True: all that was posted has left. False: the long way has to look, perhaps after some messages have
  // left.
  bool ring(Qp& qp);
  // Sends by the local link what stands next in the queue, as far as it is small. The number of messages.
  uint32_t send(Qp& qp);

  // ── Received packets. False: nothing was done.
  bool onSinglePacket(const PacketMeta& meta, const uint8_t* bth, uint32_t length);
  bool onLocalSmall(LocalPair& pair, const LocalSmall& m);

 private:
  bool ringLocal(Qp& qp);
  bool ringWire(Qp& qp);
  SendEntry* readSmall(Qp& qp, uint32_t most, uint32_t mostWritten, const uint8_t** data);
  static wire::Bth requestBth(const Qp& qp, const SendEntry& e, uint16_t pkey, bool ackRequest);
  static void leftSmall(SendState& rq);
  bool onAcknowledge(Qp& qp, uint32_t psn);
  bool findPlace(Qp& qp, const wire::Bth& bth, const SmallMessage& m, uint8_t** to);
  void tookSmall(Qp& qp, const wire::Bth& bth, const SmallMessage& m);

  alignas(64) uint8_t packet_[Link::kSingleRoom + Link::kSingleMostBytes + 4];
};

}  // namespace nd
