// Direct access: RDMA WRITEs, READs and ATOMICs that this side executes itself in the peer's memory, where the peer is on this host and
// has published its keys (local/direct_board.h). WRITEs and ATOMICs need memory of allocate(), which is mapped here; other memory is read
// by the system. No packet is sent and the peer's processor has no part in it.
//
// A request is taken only when nothing before it is under way, so it is executed in its turn (IBA 1 §10.8.3.3), and it completes at
// once. It has no PSN, which only the two ends of a connection know, and both are ours. Whatever the checks refuse, or do not know, goes by
// packets: there the peer decides, and both sides learn of it.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Direct : public Role {
 public:
  using Role::Role;

  // Executes requests from the head of the send queue as long as they can be. True: there is more, for another step.
  bool run(Qp& qp);
  // What peers may do by this queue pair has changed, or may have: publishes it. Waits for a peer that does what it may do no more.
  void publish(Qp& qp);
  void withdraw(Qp& qp);
  // Whether the queue pair's peer can be accessed directly, after its pair has changed.
  static void settle(Qp& qp);

 private:
  static constexpr uint32_t kVisitBytes = 64u << 10;  // copied at once: the peer may have to wait for it
  struct Request;
  enum class Outcome : uint8_t { kDone, kMore, kRefused };

  bool read(Qp& qp, Request* r);
  Outcome execute(Qp& qp, const Request& r, uint32_t* budget);
  DirectPeer::Place enter(Qp& qp, const Request& r, uint32_t offset, uint32_t length);
  bool leave(Qp& qp);
  bool readBySystem(Qp& qp, const Request& r, uint32_t offset, const uint8_t* from, uint32_t length);
  bool copy(Qp& qp, const Request& r, uint32_t offset, uint32_t length, SgeCursor* cursor);
  Outcome change(Qp& qp, const Request& r);
  bool places(Qp& qp, const Request& r, uint32_t offset, uint32_t length, SgeCursor* cursor);
  void complete(Qp& qp, const Request& r);

  Piece pieces_[OutPacket::kMaxPieces];
  uint32_t pieceCount_ = 0;
};

}  // namespace nd
