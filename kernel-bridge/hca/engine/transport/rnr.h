// Messages that find no receive (RNR, IBA 1 §9.7.5.2.8): how long their sender is asked to wait, how this side learns
// of the receive that is posted then, and how the sender learns of it before its wait is over.
//
// Posting a receive needs no call, except while the ring's header asks for a doorbell (kQpReceiveBell,
// kSrqReceiveBell). A message that waits makes the ring ask. A second RNR NAK for the same PSN, with the shortest timer
// there is, then announces to the sender that a receive has come. Our requester shortens its wait by that, and so does
// Linux; others repeat when their wait is over.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Rnr : public Role {
 public:
  using Role::Role;

  bool hasReceive(Qp& qp);
  bool awaitReceive(Qp& qp);            // true: there is one after all
  void endWait(Qp& qp);                 // the message has its receive
  void endAwaiting(Qp& qp);             // no doorbell is wanted any more
  void leave(Qp& qp);                   // the queue pair ends
  void offer(Qp& qp);                   // receives have been posted
  uint8_t rnrCode(const Qp& qp) const;  // of the next RNR NAK

 private:
  void announce(Qp& qp);
};

}  // namespace nd
