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
  if (!wakeFd_.valid() || !attendance_.open()) return false;
  sleeper_.wake = [](void* self) { static_cast<EngineThread*>(self)->signalWake(); };
  sleeper_.self = this;
  if (!thread_.start("rdma-engine", &EngineThread::main, this)) return false;
  engine_.setWake(&EngineThread::wake, this);
  return true;
}

bool EngineThread::stop(uint32_t timeoutMs) {
  if (!thread_.running()) return true;
  engine_.setWake(nullptr, nullptr);
  stopping_ = true;
  signalWake();
  if (timeoutMs != 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::milliseconds(timeoutMs), [this] { return hasEnded_; })) return false;
  }
  thread_.join();
  std::lock_guard<EngineLock> guard(engine_.lock());
  host_.forget(sleeper_);
  return true;
}

void EngineThread::signalWake() { raiseEvent(wakeFd_.get()); }

void EngineThread::wake(void* self) {
  auto* thread = static_cast<EngineThread*>(self);
  thread->wakeMark_ = thread->attendance_.marked();
  if (!thread->attention_.exchange(true)) thread->signalWake();
}

void EngineThread::main(void* self) {
  auto* thread = static_cast<EngineThread*>(self);
  thread->run();
  std::lock_guard<std::mutex> guard(thread->mutex_);
  thread->hasEnded_ = true;
  thread->ended_.notify_all();
}

void EngineThread::giveWay(uint64_t time) {
  attendance_.sleepUntil(time);
  sleep(attendance_.alarm(), UINT64_MAX);
  attendance_.wokeUp();
}

bool EngineThread::sleep(Descriptor other, uint64_t deadline) {
  uint64_t left = UINT64_MAX;
  if (deadline != UINT64_MAX) {
    const uint64_t now = clock_.now();
    left = deadline > now ? deadline - now : 0;
  }
  const Descriptor waited[] = {wakeFd_.get(), other};
  const uint32_t readable = waitReadable(waited, 2, left);
  if ((readable & 1) != 0) clearEvent(wakeFd_.get());
  return (readable & 2) != 0;
}

void EngineThread::run() {
  // The poller's mark at the last wake-up. It is ignored however recent it is, because the poller now waits; a newer mark means
  // that polling continues, and that the poller handles the cause of the wake-up.
  uint64_t ignoredMark = 0;
  uint32_t ignoredWatch = 0;  // a watching thread that has had its time
  bool rung = false;          // one of the host's descriptors was readable
  while (!stopping_) {
    if (attention_.exchange(false)) {
      ignoredMark = wakeMark_;
      rung = false;
    }
    const uint64_t mark = attendance_.marked(), now = clock_.now();
    if (mark != ignoredMark && now < mark + Attendance::kMarkNs) {
      giveWay(mark + Attendance::kMarkNs);
      rung = false;
      continue;
    }
    // The watching thread was woken as well. If it does not come, because the program does something else, this thread gives way
    // to it only once.
    const uint32_t watching = attendance_.watching();
    if (std::exchange(rung, false) && watching != 0 && watching != ignoredWatch) {
      ignoredWatch = watching;
      giveWay(now + Attendance::kMarkNs);
      continue;
    }
    bool more = true;
    uint64_t deadline = UINT64_MAX;
    {
      std::lock_guard<EngineLock> guard(engine_.lock());
      host_.lookNext();
      for (uint32_t step = 0; step < kStepsPerTurn && more; step++) {
        more = engine_.poll(Stepper::kEngine);
        if (engine_.contended() || attendance_.marked() != mark) break;
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
    for (uint32_t i = 0; i < kGiveWayYields && engine_.contended(); i++) yieldThread();
  }
}

}  // namespace nd
