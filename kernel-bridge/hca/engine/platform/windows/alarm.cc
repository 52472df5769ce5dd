#include "platform/alarm.h"

#include "platform/os.h"
#include "platform/windows/system.h"

namespace nd {
namespace {

constexpr DWORD kManualReset = 1;     // stays signalled until it is set again
constexpr DWORD kHighResolution = 2;  // Windows 10, 1803; older headers lack the name

}  // namespace

bool Alarm::open() {
  if (!fd_.valid())
    fd_.reset(descriptorOf(CreateWaitableTimerExW(nullptr, nullptr, kManualReset | kHighResolution, TIMER_ALL_ACCESS)));
  if (!fd_.valid()) fd_.reset(descriptorOf(CreateWaitableTimerExW(nullptr, nullptr, kManualReset, TIMER_ALL_ACCESS)));
  return fd_.valid();
}

void Alarm::set(uint64_t time) {
  const uint64_t now = monotonicNs();
  LARGE_INTEGER due;
  due.QuadPart = -static_cast<int64_t>(time > now ? (time - now + 99) / 100 : 1);  // relative, in units of 100 ns
  SetWaitableTimer(handleOf(fd_.get()), &due, 0, nullptr, nullptr, FALSE);
}

}  // namespace nd
