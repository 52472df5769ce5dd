// Direct access: the initiator itself executes RDMA WRITEs, READs and ATOMICs in the peer's allocate() memory, which is
// mapped in its process. The peer must be on this host and have published its keys (local/direct_owner.h). No packet is
// sent, and the peer's CPU is not involved.
//
// A request takes this path only if no earlier one is in flight, so it is executed in order (IBA 1 §10.8.3.3) and
// completes immediately. It needs no PSN, because PSNs are known only to the two peers of a connection, which both use
// this package. A request that the checks refuse, or cannot decide, is sent in packets. The peer then decides, and both
// sides are notified.
//
// access(), which creates no request, also reaches the memory of another queue pair of this process.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class DirectAccess : public Role {
 public:
  using Role::Role;

  // Executes requests from the head of the send queue while they are eligible. Returns whether more are left for
  // another step.
  bool run(Qp& qp);
  // Publishes what peers may do through this queue pair, after a possible change. A peer that uses a right that it no
  // longer has is evicted.
  void publish(Qp& qp);
  void withdraw(Qp& qp);
  // From now on no peer enters through this queue pair or its windows, which are about to end or to be published again.
  void retire(Qp& qp, bool windows);
  void retireKernel(KernelId kernel);
  // Called when LOCAL_INVALIDATE is next. Returns whether peers that are inside through the key have had time to leave.
  bool mayInvalidate(Qp& qp, uint32_t key);
  // Determines whether the queue pair's peer can be accessed directly, after its pair has changed.
  static void settle(Qp& qp);
  // Executes an operation with at most DirectAccessRecord::kMostBytes bytes of this process. It is executed
  // immediately, before requests in flight. It is not a work request, so nothing completes. Rights and bounds are
  // checked for `whole` bytes, of which these are the first.
  DirectResult access(Qp& qp, DirectOperation operation, uint8_t* bytes, uint32_t length, uint64_t whole,
                      uint64_t remote, uint32_t rkey);
  // Returns the file that contains such memory, to be mapped without the lock. This process can then read it for as
  // long as it likes, so the key must allow views. kDone without a descriptor means that this process has no free
  // descriptor.
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
