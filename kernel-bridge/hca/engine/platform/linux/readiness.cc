#include "platform/readiness.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

namespace nd {
namespace {

constexpr uint32_t kEnds = EPOLLHUP | EPOLLERR | EPOLLRDHUP;
constexpr uint32_t kMostWaited = 4;

bool control(Descriptor set, int operation, Descriptor descriptor, uint32_t kinds, uint64_t tag) {
  epoll_event event{};
  if ((kinds & Readiness::kReadable) != 0) event.events |= EPOLLIN;
  if ((kinds & Readiness::kWritable) != 0) event.events |= EPOLLOUT;
  if ((kinds & Readiness::kEnded) != 0) event.events |= EPOLLRDHUP;
  event.data.u64 = tag;
  return epoll_ctl(set, operation, descriptor, &event) == 0;
}

}  // namespace

Readiness::Readiness() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}

bool Readiness::add(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
  return control(fd_.get(), EPOLL_CTL_ADD, descriptor, kinds, tag);
}

void Readiness::change(Descriptor descriptor, uint32_t kinds, uint64_t tag) {
  control(fd_.get(), EPOLL_CTL_MOD, descriptor, kinds, tag);
}

void Readiness::remove(Descriptor descriptor) { epoll_ctl(fd_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

uint32_t Readiness::take(Event events[kMostEvents]) {
  epoll_event found[kMostEvents];
  const int count = epoll_wait(fd_.get(), found, kMostEvents, 0);
  for (int i = 0; i < count; i++) {
    const uint32_t what = found[i].events;
    events[i] = {found[i].data.u64, ((what & EPOLLIN) != 0 ? kReadable : 0u) |
                                        ((what & EPOLLOUT) != 0 ? kWritable : 0u) |
                                        ((what & kEnds) != 0 ? kEnded : 0u)};
  }
  return count < 0 ? 0 : static_cast<uint32_t>(count);
}

uint32_t waitReadable(const Descriptor* descriptors, uint32_t count, uint64_t nanoseconds, int* error) {
  pollfd fds[kMostWaited];
  for (uint32_t i = 0; i < count; i++) fds[i] = {descriptors[i], POLLIN, 0};
  timespec time{};
  time.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000u);
  time.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000u);
  const int found = ppoll(fds, count, nanoseconds == UINT64_MAX ? nullptr : &time, nullptr);
  // Signals and temporary lack of memory are not errors.
  if (error != nullptr) *error = found < 0 && errno != EINTR && errno != EAGAIN && errno != ENOMEM ? errno : 0;
  if (found <= 0) return 0;
  uint32_t readable = 0;
  for (uint32_t i = 0; i < count; i++) {
    readable |= fds[i].revents != 0 ? 1u << i : 0;
    if (error != nullptr && (fds[i].revents & POLLNVAL) != 0) *error = EBADF;
  }
  return readable;
}

}  // namespace nd
