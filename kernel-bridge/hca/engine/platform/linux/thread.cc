#include "platform/thread.h"

#include <pthread.h>
#include <signal.h>

#include <memory>

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

}  // namespace

bool Thread::start(const char* name, void (*main)(void*), void* argument) {
  auto start = std::make_unique<Start>(Start{name, main, argument});
  pthread_t thread{};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  running_ = pthread_create(&thread, nullptr, &run, start.get()) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!running_) return false;
  start.release();
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
