#include "platform/alarm.h"

#include <sys/timerfd.h>

namespace nd {

bool Alarm::open() {
  if (!fd_.valid()) fd_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  return fd_.valid();
}

void Alarm::set(uint64_t time) {
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(time / 1'000'000'000u);
  at.it_value.tv_nsec = static_cast<long>(time % 1'000'000'000u);
  timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &at, nullptr);
}

}  // namespace nd
