#include "platform/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "platform/linux/task_stat.h"

namespace nd {
namespace {

static_assert(sizeof(pthread_t) <= sizeof(uintptr_t));

struct Start {
  const char* name;
  void (*main)(void*);
  void* argument;
};

void* run(void* self) {
  const std::unique_ptr<Start> start(static_cast<Start*>(self));
  pthread_setname_np(pthread_self(), start->name);
  start->main(start->argument);
  return nullptr;
}

// Returns the clock of a thread's CPU time, as clock_getcpuclockid() derives it from a process id; see clock_getres(2)
// and the kernel's posix-timers.h.
clockid_t processorClock(ThreadId thread) { return static_cast<clockid_t>(~static_cast<uint32_t>(thread) << 3 | 6); }

}  // namespace

ThreadId currentThread() {
  static thread_local const auto own = static_cast<ThreadId>(syscall(SYS_gettid));
  return own;
}

uint64_t processorTimeNs(ThreadId thread) {
  timespec used{};
  if (thread == 0 || clock_gettime(processorClock(thread), &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(used.tv_nsec);
}

// The CPU time of a running thread is current, so it grows between two readings.
bool lacksProcessor(ThreadId thread) {
  const uint64_t before = processorTimeNs(thread);
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(thread));
  TaskStat stat;
  return before != 0 && readTaskStat(path, &stat) && stat.state == 'R' && processorTimeNs(thread) == before;
}

bool Thread::start(const char* name, void (*main)(void*), void* argument) {
  auto start = std::make_unique<Start>(Start{name, main, argument});
  pthread_t thread{};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  running_ = pthread_create(&thread, nullptr, &run, start.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!running_) return false;
  static_cast<void>(start.release());  // run() owns it now
  handle_ = static_cast<uintptr_t>(thread);
  return true;
}

void Thread::join() {
  pthread_join(static_cast<pthread_t>(handle_), nullptr);
  running_ = false;
}

void Thread::detach() {
  pthread_detach(static_cast<pthread_t>(handle_));
  running_ = false;
}

}  // namespace nd
