// Decides which queue pair runs next, and when. It manages the run queue, the queue pairs that wait for room in a
// pair's ring, deferred ACKs, and timers.
//
// Work is done in rounds. The run queue contains the queue pairs that have something to send. A step lets each of them
// send a share of packets, and queues it again if it has more. Thus no queue pair, and no peer's large READ, holds the
// lock for long or starves others.
#pragma once
#include "objects/context.h"

namespace nd {

struct Transport;

class Scheduler {
 public:
  explicit Scheduler(Context& context) : c_(context) {}

  // ── Run queue
  void schedule(Qp& qp) { running.push(qp); }
  bool idle() const { return running.empty(); }

  // ── Deferred ACKs. While `deferring`, ACKs wait for the next step, so that a reply of the program can carry them.
  // `exceptAwaited`: those that the peer waits for are not deferred.
  bool deferring = false, exceptAwaited = false;
  void deferAck(Qp& qp) { deferred.push(qp); }
  void cancelDeferred(Qp& qp) { deferred.remove(qp); }
  // ACKs deferred by the previous step are due in this one.
  void makeDeferredDue() {
    while (Qp* const qp = deferred.pop()) {
      if (!qp->rs.ackPending) continue;
      qp->rs.ackDue = true;
      schedule(*qp);
    }
  }

  // ── Timers and the engine's thread
  void setTimer(Qp& qp, uint64_t due) {
    c_.timers.set(qp, due);
    wakeThread(due);
  }
  // Wakes the thread if it would sleep beyond `due`.
  void wakeThread(uint64_t due) {
    if (due >= announced_) return;
    announced_ = due;
    wakeNow();
  }
  void wakeNow() {
    if (wake) wake(wakeArgument);
  }
  // Returns when the next step is due, or UINT64_MAX if never. The thread knows this time from now on.
  uint64_t announceDeadline() { return announced_ = running.empty() && deferred.empty() ? c_.timers.earliest() : 0; }

  QpLine<&Qp::nextScheduled, kScheduled> running;
  QpLine<&Qp::nextStalled, kStalled> stalled;
  QpLine<&Qp::nextDeferred, kAckDeferred> deferred;
  void (*wake)(void*) = nullptr;
  void* wakeArgument = nullptr;

 private:
  Context& c_;
  uint64_t announced_ = UINT64_MAX;  // the time until which the thread would sleep
};

// Members common to all roles of a transport.
class Role {
 public:
  explicit Role(Transport& transport);

 protected:
  Transport& t_;  // the other roles
  Context& c_;
  Scheduler& s_;
};

}  // namespace nd
