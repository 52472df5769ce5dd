// The responder's packets (IBA 1 §9.7.5; roce-wire §3): READ and ATOMIC responses, ACKs, NAKs, congestion notifications.
//
// Responses leave in request order. READ and ATOMIC responses stand in a queue; ACKs and NAKs wait until it is empty. ACKs are
// coalesced: one for all packets of a poll.
#pragma once
#include "transport/role.h"

namespace nd {

class Responses : public Role {
 public:
  using Role::Role;

  // Sends what is to be answered, at most `budget` packets. True: there is more.
  bool respond(Qp& qp, uint32_t& budget);
  // An ACK is due. `awaited`: the peer waits for it.
  void scheduleAck(Qp& qp, bool awaited);
  void acknowledge(Qp& qp);
  // Before a queue pair ends: the peer is not to repeat, nor to count as lost, what has been taken.
  void acknowledgeLast(Qp& qp);
  // The ACK that goes along with another packet on the local link, as LocalEntry has it; 0: none.
  uint32_t carriedAck(Qp& qp);
  void sendCongestionNotification(Qp& qp);
  void resizeResources(Qp& qp);

 private:
  bool refersToTarget(Qp& qp, const ResponseJob& job);
  bool mayBeCopying(Qp& qp);
  bool sendReadResponse(Qp& qp, ResponseJob& job, uint32_t span);
  void sendAtomicResponse(Qp& qp, const ResponseJob& job);
  void sendAcknowledge(Qp& qp, uint8_t syndrome, uint32_t psn);
};

}  // namespace nd
