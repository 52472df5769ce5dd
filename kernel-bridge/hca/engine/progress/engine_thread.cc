#include "progress/engine_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "platform/event.h"
#include "platform/os.h"
#include "platform/readiness.h"

namespace nd {

bool EngineThread::start() {
  wakeFd_ = makeEvent();
  if (!wakeFd_.valid() || !owner_.open()) return false;
  sleeper_.wake = [](void* self) { static_cast<EngineThread*>(self)->signalWake(); };
  sleeper_.self = this;
  if (!thread_.start("rdma-engine", &EngineThread::main, this)) return false;
  engine_.setWake(&EngineThread::wake, this);
  return true;
}

void EngineThread::requestStop() {
  stopping_ = true;
  signalWake();
}

bool EngineThread::stop(uint32_t timeoutMs) {
  if (!thread_.running()) return true;
  requestStop();
  if (timeoutMs != 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::milliseconds(timeoutMs), [this] { return hasEnded_; })) return false;
  }
  thread_.join();
  engine_.setWake(nullptr, nullptr);  // takes the lock, which the thread may have held
  std::lock_guard<EngineLock> guard(engine_.lock());
  engine_.forget(sleeper_);
  return true;
}

void EngineThread::signalWake() { raiseEvent(wakeFd_.get()); }

void EngineThread::wake(void* self) {
  auto* thread = static_cast<EngineThread*>(self);
  thread->wakeMark_ = thread->owner_.marked();
  if (!thread->attention_.exchange(true)) thread->signalWake();
}

void EngineThread::main(void* self) {
  auto* thread = static_cast<EngineThread*>(self);
  thread->run();
  std::lock_guard<std::mutex> guard(thread->mutex_);
  thread->hasEnded_ = true;
  thread->ended_.notify_all();
}

void EngineThread::yieldUntil(uint64_t time, uint64_t deadline) {
  owner_.sleepUntil(time);
  sleep(owner_.alarm(), deadline);
  owner_.wokeUp();
}

bool EngineThread::isPreempted(uint64_t mark, uint32_t claim, uint64_t now) {
  Absence& absence = absence_;
  const ThreadId thread = owner_.thread();
  const bool first = absence.mark != mark || absence.claim != claim;
  if (first) absence = {mark, claim, false, now, processorTimeNs(thread)};
  if (absence.away) return false;
  const bool hasRun = !first && processorTimeNs(thread) > absence.processorTime + progress::kMarkNs / 4;
  absence.away = hasRun || now > absence.since + progress::kPreemptedNs || !lacksProcessor(thread);
  if (!absence.away) owner_.trustLonger();
  else if (claim == 0) owner_.trustLess();
  return !absence.away;
}

bool EngineThread::sleep(Descriptor other, uint64_t deadline) {
  uint64_t left = UINT64_MAX;
  if (deadline != UINT64_MAX) {
    const uint64_t now = clock_.now();
    left = deadline > now ? deadline - now : 0;
  }
  const Descriptor waited[] = {wakeFd_.get(), other};
  int error = 0;
  const uint32_t readable = waitReadable(waited, 2, left, &error);
  if (error != 0) fail(error);
  if ((readable & 1) != 0) clearEvent(wakeFd_.get());
  return (readable & 2) != 0;
}

// Without its descriptors the thread could neither wake up nor sleep.
void EngineThread::fail(int error) {
  if (stopping_.exchange(true)) return;
  std::lock_guard<EngineLock> guard(engine_.lock());
  engine_.fail(error);
}

Turn EngineThread::nextTurn(uint64_t mark, uint32_t claim, uint64_t now) {
  const bool newMark = mark != ignoredMark_;
  OwnerState state = OwnerState::kAway;
  if (newMark && now < mark + owner_.markNs()) state = OwnerState::kPolling;
  else if (claim != 0 && claim != passedClaim_) state = OwnerState::kWaiting;
  else if (claim != 0 || newMark) state = OwnerState::kLate;
  const WakeCause cause = now >= deadline_ ? WakeCause::kDue : readable_ ? WakeCause::kReadable : WakeCause::kElapsed;
  return turnOf(state, cause);
}

// Takes at most kStepsPerTurn steps with the lock, and then sleeps on the host's descriptors if nothing is left to do.
void EngineThread::serve(uint64_t mark) {
  bool more = true;
  {
    std::lock_guard<EngineLock> guard(engine_.lock());
    engine_.pollNext(PollScope::kBusiest);
    for (uint32_t step = 0; step < progress::kStepsPerTurn && more; step++) {
      more = engine_.step(Stepper::kEngine);
      if (engine_.contended() || owner_.marked() != mark) break;
    }
    deadline_ = engine_.nextDeadline();
    more = more || !engine_.fallAsleep(sleeper_);
  }
  if (!more) {
    readable_ = sleep(engine_.descriptor(), deadline_);
    sleeper_.asleep = false;
    return;
  }
  // Other threads that wait for the lock are about to wake up, and would otherwise find it taken again.
  yieldThread();
  for (uint32_t i = 0; i < progress::kYieldsPerTurn && engine_.contended(); i++) yieldThread();
}

void EngineThread::run() {
  while (!stopping_) {
    // wakeMark_ is read after attention_, and so belongs to this wake-up or a later one. A thread that wakes this one
    // later finds attention_ clear, and signals. No wake-up is therefore lost between this point and the next sleep.
    if (attention_.exchange(false)) {
      ignoredMark_ = wakeMark_;
      readable_ = false;
      deadline_ = 0;  // perhaps an earlier one
    }
    const uint64_t mark = owner_.marked(), now = clock_.now();
    const uint32_t claim = owner_.claim();
    const Turn turn = nextTurn(mark, claim, now);
    readable_ = false;
    if (turn == Turn::kYieldToMark) {
      yieldUntil(mark + owner_.markNs(), UINT64_MAX);
    } else if (turn == Turn::kYieldToClaim) {
      passedClaim_ = claim;
      yieldUntil(now + owner_.markNs(), deadline_);
    } else if (turn == Turn::kYieldIfPreempted && isPreempted(mark, claim, now)) {
      yieldUntil(now + owner_.markNs(), deadline_);
    } else {
      serve(mark);
    }
  }
}

}  // namespace nd
