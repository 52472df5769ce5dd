#include "progress/waiting_thread.h"

namespace nd {

WaitingThread::WaitingThread(ProgressEngine& engine, void (*wake)(void* self), void* self) : engine_(engine) {
  sleeper_.wake = wake;
  sleeper_.self = self;
}

WaitingThread::~WaitingThread() {
  leave();
  const auto hold = engine_.hold();
  engine_.forget(sleeper_);
}

// Returns false if another thread has the claim.
bool WaitingThread::begin() {
  const bool may = hasClaim(state_) || (state_ == WaitState::kAway && engine_.owner().takeClaim());
  on(may ? WaitEvent::kEnter : WaitEvent::kTaken);
  return may;
}

void WaitingThread::on(WaitEvent event) {
  ProgressOwner& owner = engine_.owner();
  const WaitCell cell = waitCell(state_, event);
  if (hasClaim(state_) && !hasClaim(cell.next)) sleeper_.asleep = false;
  state_ = cell.next;
  if ((cell.actions & kRenew) != 0) {
    owner.renewClaim();
    owner.mark();
  }
  if ((cell.actions & kRelease) != 0) {
    owner.releaseClaim();
    // While this thread is away, no other would serve the waiting threads.
    if (owner.anyServed()) engine_.wakeThread();
    else if ((cell.actions & kMarkQuietly) != 0) owner.mark();
    else owner.poll();
  }
  if ((cell.actions & kJoinServed) != 0) {
    owner.addServed(1);
    engine_.wakeThread();
  }
  if ((cell.actions & kLeaveServed) != 0) owner.addServed(-1);
}

// A polling program most likely replies, so ACKs are deferred and sent with the reply. After a sleep only the ACKs that
// block the peer are sent.
uint64_t WaitingThread::poll() {
  const bool woken = state_ == WaitState::kWoken;
  const auto hold = engine_.hold();
  sleeper_.asleep = false;
  const uint64_t now = engine_.now();
  const bool ringsAlone = woken || now < allDue_;
  engine_.pollNext(ringsAlone ? PollScope::kLater : PollScope::kAll);
  if (woken || !ringsAlone) allDue_ = now + progress::kRingsAloneNs;
  engine_.step(woken ? Stepper::kWoken : Stepper::kPoller);
  return now;
}

bool WaitingThread::lastStep() {
  engine_.owner().postpone();  // before it sleeps, when there is time, and not when a message has arrived
  const auto hold = engine_.hold();
  engine_.pollNext(PollScope::kAll);
  allDue_ = engine_.now() + progress::kRingsAloneNs;
  return !engine_.step(Stepper::kEngine) && engine_.fallAsleep(sleeper_);
}

}  // namespace nd
