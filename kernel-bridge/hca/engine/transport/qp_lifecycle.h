// The life of a queue pair: its states, how it fails and is flushed, and how it ends.
#pragma once
#include "transport/scheduler.h"

namespace nd {

// How a queue pair fails: the status of the oldest WQE of each queue (0 if it is flushed like the rest), and the event.
struct Failure {
  uint32_t sendStatus = 0, receiveStatus = 0, vendor = 0;
  bool report = true;
  QpEvent event = QpEvent::kFatal;
  uint32_t reason = 0;
};

class Lifecycle : public Role {
 public:
  using Role::Role;

  Status modify(Qp& qp, uint32_t mask, const QpAttributes& attributes);
  void destroy(Qp& qp);
  void fail(Qp& qp, const Failure& failure);
  // Completes every WQE. The oldest gets this status if it is not 0; the rest complete as flushed.
  void flushSends(Qp& qp, uint32_t status, uint32_t vendor);
  void flushReceives(Qp& qp, uint32_t status, uint32_t vendor);
  // For UC and UD: sending stops at the WQE that cannot be sent, while receiving continues (IBA 1 §10.3.1.6).
  void toSendQueueError(Qp& qp, uint32_t status);
  void peerGone(Qp& qp);
  void checkDrained(Qp& qp);
  // Completes the failure of a CQ by moving its queue pairs to ERROR. Called at the end of every command and packet.
  void settle() {
    if (!c_.failing.empty() && !settling_) settleFailing();
  }

 private:
  Status mayModify(Qp& qp, uint32_t mask, const QpAttributes& attributes, uint32_t from, uint32_t to);
  void enter(Qp& qp, uint32_t mask, const QpAttributes& attributes, uint32_t from, uint32_t to);
  void meetPeer(Qp& qp);  // the path is known; the peer may be a process on this host
  void toReset(Qp& qp);
  void settleFailing();
  bool settling_ = false;
};

}  // namespace nd
