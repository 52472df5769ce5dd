// The HCA (an engine with its host), as the owner of progress drives it. The owner repeats this round:
//
//   hold(); pollNext(); step() until it returns false; nextDeadline(); fallAsleep(); sleep until descriptor() is
//   readable.
//
// No thread sleeps or waits while it holds the lock of hold(). A thread that has slept begins a new round.
#pragma once
#include <mutex>

#include "base/types.h"
#include "platform/engine_lock.h"
#include "platform/unique_fd.h"
#include "progress/owner.h"
#include "progress/poll_schedule.h"
#include "progress/sleepers.h"

namespace nd {

class ProgressEngine {
 public:
  virtual ~ProgressEngine() = default;
  virtual ProgressOwner& owner() = 0;
  // Readable when there is something to do.
  virtual Descriptor descriptor() const = 0;
  virtual uint64_t now() const = 0;  // at most a microsecond off
  virtual void wakeThread() = 0;     // see EngineThread::wake(); takes the lock
  // `wake` is called when the engine's thread must run earlier than at the time that nextDeadline() returned, or when a
  // waiter has arrived. Takes the lock.
  virtual void setWake(void (*wake)(void*), void* argument) = 0;

  virtual EngineLock& lock() = 0;
  // Takes the lock for longer than a poll. Polling threads yield to the caller.
  virtual std::unique_lock<EngineLock> hold() = 0;
  virtual bool contended() const = 0;  // a thread waits in hold(): release the lock soon

  // ── With the lock
  virtual void pollNext(PollScope next) = 0;  // what the next step polls
  virtual bool step(Stepper stepper) = 0;     // true: there may be more to do
  virtual uint64_t nextDeadline() = 0;        // when the next step is due (ns), or UINT64_MAX
  // From now on peers on the local link make descriptor() readable. Returns false if there is work already.
  virtual bool fallAsleep(Sleeper& sleeper) = 0;
  virtual void forget(Sleeper& sleeper) = 0;  // before it is destroyed
  virtual void fail(int error) = 0;           // the engine's thread has failed
};

}  // namespace nd
