// Handles messages for which no receive is posted (RNR, IBA 1 §9.7.5.2.8). It makes their sender wait, detects a
// receive that is posted later, and notifies the sender before its wait is over.
//
// Posting a receive needs no call, except while the ring's header requests a doorbell (kQpReceiveBell,
// kSrqReceiveBell). A waiting message sets that request. A second RNR NAK for the same PSN, with the shortest timer,
// then announces to the sender that a receive has been posted. The requester of this package shortens its wait
// accordingly, and so does Linux. Other senders try again when their wait is over.
#pragma once
#include "transport/scheduler.h"

namespace nd {

class Rnr : public Role {
 public:
  using Role::Role;

  bool hasReceive(Qp& qp);
  bool awaitReceive(Qp& qp);            // true: a receive is available after all
  void endWait(Qp& qp);                 // the message has its receive
  void endAwaiting(Qp& qp);             // no doorbell is needed any more
  void leave(Qp& qp);                   // the queue pair ends
  void offer(Qp& qp);                   // receives have been posted
  uint8_t rnrCode(const Qp& qp) const;  // the timer code for the next RNR NAK

 private:
  void announce(Qp& qp);
};

}  // namespace nd
