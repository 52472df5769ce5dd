// Carries a queue pair's packets: chooses the link, waits for room on it, and sends.
//
// The link is either the wire or the local pair with the peer's process (local_pair.h), and is chosen as soon as the
// peer is known. While the pair is being set up, the queue pair sends nothing.
#pragma once
#include "base/copy.h"
#include "transport/scheduler.h"

namespace nd {

// Lower addresses are written first and the last byte last, because programs that poll memory wait for it
// (ND_ADAPTER_FLAG_IN_ORDER_DMA).
inline void copyInOrder(uint8_t* to, const uint8_t* from, uint32_t length) {
  if (length == 0) return;
  copyBytes(to, from, length - 1);
  __atomic_store_n(to + length - 1, from[length - 1], __ATOMIC_RELEASE);
}

class Links : public Role {
 public:
  using Role::Role;

  // ── Choice
  void choose(Qp& qp);
  void settle(Qp& qp);  // the pair is up, or refused
  void setMtu(Qp& qp);
  // Called when the queue pair's packets are discarded. The memory to which they refer no longer belongs to them.
  void leave(Qp& qp);

  // ── Room on the local link. Without room, the queue pair waits in line.
  bool hasRoom(Qp& qp, uint32_t payload, bool reference);
  bool hasRoomToRespond(Qp& qp);
  void onSpace(LocalPair& pair);
  // Returns whether the rest of a message is sent by reference. `mapped` reports whether the peer has the memory
  // mapped.
  template <typename Mapped>
  static bool usesReference(const Qp& qp, uint32_t length, bool inRing, Mapped mapped);

  // ── Sending. The packet to be sent is built in `out`.
  // Begins it with a BTH and no payload. Extension headers follow at the returned address.
  uint8_t* begin(const wire::Bth& bth);
  // Does the same for a response or request of a connection.
  uint8_t* begin(const Qp& qp, uint8_t opcode, uint32_t psn, bool ackRequest = false, bool solicited = false);
  void transmit(Qp& qp, const Path& path);  // with the queue pair's P_Key
  OutPacket out;

  // ── Receiving
  // Copies the payload to its destinations, in order. Returns kWcSuccess, or Context::kUnpulled if the peer must resend
  // it through the ring. `pullLasting`: another attempt would fail as well.
  uint32_t copyPayload(const Packet& p, const Piece* places, uint32_t count);
  bool pullLasting = false;

 private:
  void waitForRoom(Qp& qp);
};

// A pair may be closed a moment before its connections end.
template <typename Mapped>
bool Links::usesReference(const Qp& qp, uint32_t length, bool inRing, Mapped mapped) {
  return length >= LocalPair::kReferenceFrom && !inRing && qp.reliable() && qp.local && qp.local->up() &&
         (qp.local->self || mapped());
}

}  // namespace nd
