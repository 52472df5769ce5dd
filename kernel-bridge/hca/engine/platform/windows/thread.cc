#include "platform/thread.h"

#include <process.h>

#include <memory>

#include "platform/windows/system.h"
#include "platform/windows/error_text.h"

namespace nd {
namespace {

struct Start {
  std::wstring name;
  void (*main)(void*);
  void* argument;
};

// Windows 10, 1607.
void nameThread(const std::wstring& name) {
  using SetDescription = HRESULT(WINAPI*)(HANDLE, PCWSTR);
  static const auto set = reinterpret_cast<SetDescription>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription")));
  if (set != nullptr) set(GetCurrentThread(), name.c_str());
}

unsigned __stdcall run(void* self) {
  const std::unique_ptr<Start> start(static_cast<Start*>(self));
  nameThread(start->name);
  start->main(start->argument);
  return 0;
}

}  // namespace

ThreadId currentThread() { return static_cast<ThreadId>(GetCurrentThreadId()); }

// Windows does not report which threads are runnable but not running.
bool lacksProcessor(ThreadId) { return false; }

uint64_t processorTimeNs(ThreadId thread) {
  const HANDLE handle =
      thread == 0 ? nullptr : OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(thread));
  if (handle == nullptr) return 0;
  FILETIME begun, ended, kernel{}, user{};
  const BOOL known = GetThreadTimes(handle, &begun, &ended, &kernel, &user);
  CloseHandle(handle);
  const auto ticks = [](const FILETIME& time) {
    return static_cast<uint64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
  };
  return known != 0 ? (ticks(kernel) + ticks(user)) * 100 : 0;
}

bool Thread::start(const char* name, void (*main)(void*), void* argument) {
  auto start = std::make_unique<Start>(Start{wideOf(name), main, argument});
  handle_ = _beginthreadex(nullptr, 0, &run, start.get(), 0, nullptr);
  running_ = handle_ != 0;
  if (running_) static_cast<void>(start.release());  // run() owns it now
  return running_;
}

void Thread::join() {
  WaitForSingleObject(reinterpret_cast<HANDLE>(handle_), INFINITE);
  detach();
}

void Thread::detach() {
  CloseHandle(reinterpret_cast<HANDLE>(handle_));
  running_ = false;
}

}  // namespace nd
