#include "clock.h"
#include <algorithm>
#include <deque>
#include <map>
#include "wire.h"

namespace nd2 {

namespace {

/// Actions of the thread. Their lock is only held briefly.
class Agenda {
 public:
  Agenda() : wake_(CreateEventW(nullptr, FALSE, FALSE, nullptr)) {
    InitializeCriticalSection(&section_);
    const HANDLE thread = CreateThread(nullptr, 0, run, this, 0, nullptr);
    if (thread != nullptr) CloseHandle(thread);
  }

  void add(INT64 due, std::function<void()> action) {
    EnterCriticalSection(&section_);
    later_.emplace(due, std::move(action));
    LeaveCriticalSection(&section_);
    SetEvent(wake_);
  }

 private:
  static DWORD WINAPI run(void* agenda) {
    for (;;) static_cast<Agenda*>(agenda)->once();
  }

  void once() {
    std::deque<std::function<void()>> now;
    DWORD patience = INFINITE;
    EnterCriticalSection(&section_);
    const INT64 time = static_cast<INT64>(GetTickCount64());
    while (!later_.empty() && later_.begin()->first <= time) {
      now.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (!later_.empty()) patience = static_cast<DWORD>(later_.begin()->first - time);
    LeaveCriticalSection(&section_);
    if (now.empty()) {
      WaitForSingleObject(wake_, patience);
      return;
    }
    for (auto& action : now) {
      const Lock lock;
      action();
      deliverLocally();
    }
  }

  const HANDLE wake_;
  CRITICAL_SECTION section_;
  std::multimap<INT64, std::function<void()>> later_;
};

/// Starts on first use and ends with the process.
Agenda& agenda() {
  static auto& one = *new Agenda;
  return one;
}

}  // namespace

void after(INT64 ms, std::function<void()> action) {
  agenda().add(static_cast<INT64>(GetTickCount64()) + ms, std::move(action));
}

// Actions that are due run in the order in which they were added.
void soon(std::function<void()> action) { agenda().add(0, std::move(action)); }

}  // namespace nd2
