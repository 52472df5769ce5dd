// Direct access: RDMA WRITEs, READs and ATOMICs that this side executes itself in the peer's allocate() memory, which
// is mapped here, if the peer is on this host and has published its keys (local/direct_owner.h). No packet is sent, and
// the peer's CPU is not involved.
//
// A request takes this path only when no earlier one is in flight, so it is executed in order (IBA 1 §10.8.3.3), and it
// completes at once. It has no PSN: only the two peers of a connection know PSNs, and both are instances of this
// package. A request that the checks refuse or cannot decide is sent as packets: the peer then decides, and both sides
// are notified.
//
// access(), which makes no request, also reaches the memory of another queue pair of this process.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class DirectAccess : public Role {
 public:
  using Role::Role;

  // Executes requests from the head of the send queue while they are eligible. True: there are more, for another step.
  bool run(Qp& qp);
  // Publishes what peers may do through this queue pair, after a possible change. A peer that uses a right it no longer
  // has is evicted.
  void publish(Qp& qp);
  void withdraw(Qp& qp);
  // No peer enters through this queue pair, or through its windows, any more: both may end next, or be published again.
  void retire(Qp& qp, bool windows);
  void retireKernel(KernelId kernel);
  // LOCAL_INVALIDATE is next: whether peers that are inside through the key have had time to leave.
  bool mayInvalidate(Qp& qp, uint32_t key);
  // Determines whether the queue pair's peer can be accessed directly, after its pair has changed.
  static void settle(Qp& qp);
  // Executes an operation with bytes of this process, at most DirectAccessRecord::kMostBytes, immediately: before
  // requests in flight. It is not a work request, so nothing completes. Rights and bounds are checked for `whole`
  // bytes, which begin with these.
  DirectResult access(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length, uint64_t whole,
                      uint64_t remote, uint32_t rkey);
  // The file that contains such memory, to be mapped without the lock. This process can then read it for as long as it
  // likes, so the key must allow views. kDone with no descriptor: this process has none left.
  DirectResult view(Qp& qp, uint64_t remote, uint32_t rkey, uint64_t length, FilePart* part);

 private:
  enum class Outcome : uint8_t { kDone, kMore, kRefused };
  // The target of one access.
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
