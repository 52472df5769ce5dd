// Direct access: RDMA WRITEs, READs and ATOMICs that this side executes itself in the peer's memory of allocate(),
// which is mapped here, where the peer is on this host and has published its keys (local/direct_owner.h). No packet is
// sent and the peer's processor has no part in it.
//
// A request is taken only when nothing before it is under way, so it is executed in its turn (IBA 1 §10.8.3.3), and it
// completes at once. It has no PSN, which only the two ends of a connection know, and both are ours. Whatever the
// checks refuse, or do not know, goes by packets: there the peer decides, and both sides learn of it.
//
// What is no request (access()) reaches the memory of another queue pair of this process, too.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class DirectAccess : public Role {
 public:
  using Role::Role;

  // Executes requests from the head of the send queue as long as they can be. True: there is more, for another step.
  bool run(Qp& qp);
  // What peers may do by this queue pair has changed, or may have: publishes it. A peer that is at what it may do no
  // more is evicted.
  void publish(Qp& qp);
  void withdraw(Qp& qp);
  // No peer enters by this queue pair, or by its windows, any more: both may end next, or be published again.
  void retire(Qp& qp, bool windows);
  void retireKernel(KernelId kernel);
  // LOCAL_INVALIDATE is next: whether peers that are inside by the key have had their time to leave.
  bool mayInvalidate(Qp& qp, uint32_t key);
  // Whether the queue pair's peer can be accessed directly, after its pair has changed.
  static void settle(Qp& qp);
  // Executes an operation with bytes of this process, at most DirectVisit::kMostBytes, now: before requests that are
  // under way. No request is made, so nothing completes. Rights and bounds are checked for `whole` bytes, of which
  // these are the first.
  DirectResult access(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length, uint64_t whole,
                      uint64_t remote, uint32_t rkey);
  // The file that such memory lies in, to be mapped without the lock. It is then this process's to read for as long as
  // it likes, so the key must allow views. kDone with no descriptor: this process has none left.
  DirectResult view(Qp& qp, uint64_t remote, uint32_t rkey, uint64_t length, FilePart* part);

 private:
  enum class Outcome : uint8_t { kDone, kMore, kRefused };
  // What a visit is for.
  struct Target {
    uint32_t rkey, right;
    uint64_t remote, length;
    uint32_t touched;
  };

  bool reaches(Qp& qp);
  static bool read(Qp& qp, SendEntry& e);
  Outcome execute(Qp& qp, const SendEntry& e, uint32_t* budget);
  uint8_t* ownMemory(const Qp& qp, const Target& target);
  FilePart ownFile(const Qp& qp, const Target& target);
  static DirectPeer::Request request(const Qp& qp, const Target& target);
  void count(DirectPeer::Refusal why);
  uint8_t* enter(Qp& qp, const Target& target, DirectPeer::Refusal* why);
  bool leave(Qp& qp);
  bool copy(Qp& qp, const SendEntry& e, uint32_t offset, uint32_t length, SgeCursor* cursor);
  Outcome change(Qp& qp, const SendEntry& e);
  DirectResult changeNow(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length, uint64_t remote,
                         uint32_t rkey);
  uint64_t* enterWord(Qp& qp, uint64_t remote, uint32_t rkey, DirectPeer::Refusal* why);
  bool places(Qp& qp, const SendEntry& e, uint32_t offset, uint32_t length, SgeCursor* cursor);

  Piece pieces_[OutPacket::kMaxPieces];
  uint32_t pieceCount_ = 0;
};

}  // namespace nd
