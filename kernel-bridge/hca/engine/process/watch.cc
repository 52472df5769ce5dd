#include "process/watch.h"

#include <utility>

namespace nd {

Watch::Watch(Engine& engine, Host& host, void (*wake)(void* self), void* self) : engine_(engine), host_(host) {
  sleeper_.wake = wake;
  sleeper_.self = self;
}

Watch::~Watch() {
  leave();
  const auto hold = engine_.hold();
  host_.forget(sleeper_);
}

bool Watch::begin() {
  if (apart_) return false;  // until it leaves
  ProgressOwner& owner = engine_.owner();
  if (entered_) {
    slept_ = std::exchange(sleeps_, false);
    owner.renewClaim();
    owner.mark();
    return true;
  }
  entered_ = owner.takeClaim();
  if (!entered_) giveUp();
  return entered_;
}

bool Watch::slept() { return std::exchange(slept_, false); }

// A polling program most likely answers, so acknowledgements are deferred to ride on the answer. After a sleep only the ACKs are
// sent that the peer is blocked on.
uint64_t Watch::look() {
  const auto hold = engine_.hold();
  sleeper_.asleep = false;
  const uint64_t now = host_.now();
  if (slept_ || now < allDue_) {
    host_.look(Look::kLater);
  } else {
    host_.look(Look::kAll);
  }
  if (slept_ || now >= allDue_) allDue_ = now + progress::kRingsAloneNs;
  engine_.poll(slept_ ? Stepper::kWoken : Stepper::kPoller);
  return now;
}

bool Watch::step() {
  engine_.owner().postpone();  // before it sleeps, which has time, and not when a message has come
  const auto hold = engine_.hold();
  host_.look(Look::kAll);
  allDue_ = host_.now() + progress::kRingsAloneNs;
  return !engine_.poll(Stepper::kEngine) && host_.fallAsleep(sleeper_);
}

// The engine's thread attends from now on.
void Watch::giveUp() {
  leave();
  apart_ = true;
  engine_.owner().addServed(1);
  engine_.wakeThread();
}

void Watch::leave() {
  ProgressOwner& owner = engine_.owner();
  if (entered_) {
    const bool woken = slept_;
    entered_ = sleeps_ = slept_ = false;
    sleeper_.asleep = false;
    owner.releaseClaim();
    // While this thread is away, nobody else would serve the other waiting threads.
    if (owner.anyServed())
      engine_.wakeThread();
    else if (woken)
      owner.mark();
    else
      owner.poll();
  }
  if (apart_) {
    apart_ = false;
    owner.addServed(-1);
  }
}

}  // namespace nd
