// The fast path for SENDs and RDMA WRITEs of one packet and for their acknowledgements, on both links.
//
// It bypasses requester, responder and completer for connections in the plain state, as their `marks` (qp.h) show. Each
// function checks everything first and changes nothing until it is certain; if it returns false, the slow path handles
// the same request or packet from the beginning.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class FastPath : public Role {
 public:
  using Role::Role;

  // Handles a doorbell. Returns true if everything posted has been sent. Otherwise the slow path has to continue; some
  // messages may have been sent.
  bool ring(Qp& qp);
  // Sends the next requests in the queue over the local link, up to the first that is not small. Returns their number.
  uint32_t send(Qp& qp);

  // ── Received packets. If a function returns false, it has done nothing.
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
