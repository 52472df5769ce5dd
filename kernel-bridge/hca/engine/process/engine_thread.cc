#include "process/engine_thread.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "platform/event.h"

namespace nd {

bool EngineThread::start() {
  wakeFd_ = makeEvent();
  if (!wakeFd_.valid() || !attendance_.open()) return false;
  sleeper_.wake = [](void* self) { static_cast<EngineThread*>(self)->signalWake(); };
  sleeper_.self = this;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  running_ = pthread_create(&thread_, nullptr, &EngineThread::main, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (running_) engine_.setWake(&EngineThread::wake, this);
  return running_;
}

bool EngineThread::stop(uint32_t timeoutMs) {
  if (!running_) return true;
  engine_.setWake(nullptr, nullptr);
  stopping_ = true;
  signalWake();
  if (timeoutMs != 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::milliseconds(timeoutMs), [this] { return hasEnded_; })) return false;
  }
  pthread_join(thread_, nullptr);
  running_ = false;
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

void* EngineThread::main(void* self) {
  auto* thread = static_cast<EngineThread*>(self);
  pthread_setname_np(pthread_self(), "rdma-engine");
  thread->run();
  std::lock_guard<std::mutex> guard(thread->mutex_);
  thread->hasEnded_ = true;
  thread->ended_.notify_all();
  return nullptr;
}

void EngineThread::giveWay(uint64_t time) {
  attendance_.sleepUntil(time);
  sleep(attendance_.alarm(), UINT64_MAX);
  attendance_.wokeUp();
}

bool EngineThread::sleep(int other, uint64_t deadline) {
  pollfd fds[2] = {{wakeFd_.get(), POLLIN, 0}, {other, POLLIN, 0}};
  timespec wait{};
  timespec* timeout = nullptr;
  if (deadline != UINT64_MAX) {
    const uint64_t now = clock_.now();
    const uint64_t ns = deadline > now ? deadline - now : 0;
    wait.tv_sec = static_cast<time_t>(ns / 1'000'000'000u);
    wait.tv_nsec = static_cast<long>(ns % 1'000'000'000u);
    timeout = &wait;
  }
  if (ppoll(fds, 2, timeout, nullptr) <= 0) return false;
  if (fds[0].revents != 0) clearEvent(wakeFd_.get());
  return fds[1].revents != 0;
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
    sched_yield();
    for (uint32_t i = 0; i < kGiveWayYields && engine_.contended(); i++) sched_yield();
  }
}

}  // namespace nd
