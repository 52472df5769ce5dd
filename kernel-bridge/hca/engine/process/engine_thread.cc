#include "process/engine_thread.h"

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

void EngineThread::askToStop() {
  stopping_ = true;
  signalWake();
}

bool EngineThread::stop(uint32_t timeoutMs) {
  if (!thread_.running()) return true;
  askToStop();
  if (timeoutMs != 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::milliseconds(timeoutMs), [this] { return hasEnded_; })) return false;
  }
  thread_.join();
  engine_.setWake(nullptr, nullptr);  // takes the lock, which the thread may have had
  std::lock_guard<EngineLock> guard(engine_.lock());
  host_.forget(sleeper_);
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

void EngineThread::giveWay(uint64_t time, uint64_t deadline) {
  owner_.sleepUntil(time);
  sleep(owner_.alarm(), deadline);
  owner_.wokeUp();
}

bool EngineThread::comesLater(uint64_t mark, uint32_t watch, uint64_t now) {
  Absence& absence = absence_;
  const ThreadId thread = owner_.thread();
  const bool first = absence.mark != mark || absence.watch != watch;
  if (first) absence = {mark, watch, false, now, processorTimeNs(thread)};
  if (absence.away) return false;
  const bool hasRun = !first && processorTimeNs(thread) > absence.processorTime + progress::kMarkNs / 4;
  absence.away = hasRun || now > absence.since + progress::kPreemptedNs || !lacksProcessor(thread);
  if (!absence.away)
    owner_.trustLonger();
  else if (watch == 0)
    owner_.trustLess();
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

// Without its descriptors the thread would neither wake up nor sleep.
void EngineThread::fail(int error) {
  if (stopping_.exchange(true)) return;
  std::lock_guard<EngineLock> guard(engine_.lock());
  engine_.onThreadFailed(error);
}

void EngineThread::run() {
  // The poller's mark at the last wake-up. It is ignored however recent it is, because the poller now waits; a newer mark means
  // that polling continues, and that the poller handles the cause of the wake-up.
  uint64_t ignoredMark = 0;
  uint32_t ignoredWatch = 0;  // a watching thread that has had its time
  bool rung = false;          // one of the host's descriptors was readable
  uint64_t deadline = UINT64_MAX;  // of the engine's timers
  while (!stopping_) {
    if (attention_.exchange(false)) {
      ignoredMark = wakeMark_;
      rung = false;
      deadline = 0;  // perhaps an earlier one
    }
    const uint64_t mark = owner_.marked(), now = clock_.now();
    if (mark != ignoredMark && now < mark + owner_.markNs()) {
      giveWay(mark + owner_.markNs(), UINT64_MAX);
      rung = false;
      continue;
    }
    // The watching thread was woken as well. If it does not come, because the program does something else, this thread gives way
    // to it only once.
    const uint32_t watching = owner_.claim();
    if (std::exchange(rung, false) && watching != 0 && watching != ignoredWatch) {
      ignoredWatch = watching;
      giveWay(now + owner_.markNs(), deadline);
      continue;
    }
    if ((mark != ignoredMark || watching != 0) && now < deadline && comesLater(mark, watching, now)) {
      giveWay(now + owner_.markNs(), deadline);
      continue;
    }
    bool more = true;
    {
      std::lock_guard<EngineLock> guard(engine_.lock());
      host_.look(Look::kBusiest);
      for (uint32_t step = 0; step < progress::kStepsPerTurn && more; step++) {
        more = engine_.poll(Stepper::kEngine);
        if (engine_.contended() || owner_.marked() != mark) break;
      }
      deadline = std::min(engine_.nextDeadline(), host_.nextDeadline());
      more = more || !host_.fallAsleep(sleeper_);
    }
    if (!more) {
      rung = sleep(host_.pollFd(), deadline);
      sleeper_.asleep = false;
      continue;
    }
    // Others may want the lock. They are about to wake up, and would otherwise find it taken again.
    yieldThread();
    for (uint32_t i = 0; i < progress::kYieldsPerTurn && engine_.contended(); i++) yieldThread();
  }
}

}  // namespace nd
