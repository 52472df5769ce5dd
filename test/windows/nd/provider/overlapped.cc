#include "overlapped.h"
#include <atomic>
#include <cstdio>
#include <map>
#include <vector>
#include "clock.h"

namespace nd2 {

namespace {

struct Request {
  UINT64 owner = 0;
  std::shared_ptr<File> file;
  std::optional<HRESULT> outcome;  ///< known, but possibly not delivered
  enum { Waiting, Delayed, FirstPhase, Ended } phase = Waiting;
  UINT64 number = 0;
};
std::map<OVERLAPPED*, Request>& requests() {
  static auto& all = *new std::map<OVERLAPPED*, Request>;
  return all;
}
UINT64 lastRequest = 0;

bool succeeded(HRESULT status) { return status == S_OK; }

/// Queues a packet now.
void deliver(OVERLAPPED* overlapped, Request& request) {
  const bool twice = modes.completion == 2 && request.phase != Request::FirstPhase;
  request.phase = twice ? Request::FirstPhase : Request::Ended;
  request.file->deliver(overlapped, twice || succeeded(*request.outcome));
}

}  // namespace

std::shared_ptr<File> File::make(HANDLE* client) {
  static std::atomic<UINT32> number{0};
  char name[120];
  // Another copy of the DLL in this process has its own files.
  snprintf(name, sizeof name, "\\\\.\\pipe\\nd2-standin-file-%lu-%p-%u", GetCurrentProcessId(),
           static_cast<void*>(&number), ++number);
  const HANDLE writing = CreateNamedPipeA(name, PIPE_ACCESS_OUTBOUND, PIPE_TYPE_BYTE, 1, 4096, 4096, 0, nullptr);
  if (writing == INVALID_HANDLE_VALUE) return nullptr;
  const HANDLE reading = CreateFileA(name, GENERIC_READ, 0, nullptr, OPEN_EXISTING, FILE_FLAG_OVERLAPPED, nullptr);
  HANDLE own = nullptr;
  if (reading == INVALID_HANDLE_VALUE ||
      !SetFileCompletionNotificationModes(reading,
                                          FILE_SKIP_COMPLETION_PORT_ON_SUCCESS | FILE_SKIP_SET_EVENT_ON_HANDLE) ||
      !DuplicateHandle(GetCurrentProcess(), reading, GetCurrentProcess(), &own, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
    if (reading != INVALID_HANDLE_VALUE) CloseHandle(reading);
    CloseHandle(writing);
    return nullptr;
  }
  *client = reading;
  return std::shared_ptr<File>(new File(reading, own, writing));
}

File::~File() {
  CloseHandle(reading_);
  CloseHandle(writing_);
}

bool File::open() const {
  using Compare = BOOL(WINAPI*)(HANDLE, HANDLE);
  static const auto same = reinterpret_cast<Compare>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("kernelbase.dll"), "CompareObjectHandles")));
  // The number of a closed handle may be that of another object.
  return same(client_, reading_) != 0;
}

void File::deliver(OVERLAPPED* overlapped, bool success) const {
  // The byte is written after the read was issued. Otherwise the read would complete immediately, without a packet.
  static char sink;
  if (ReadFile(reading_, &sink, 1, nullptr, overlapped) || GetLastError() != ERROR_IO_PENDING) {
    violation("the overlapped file is not as it was made (error %lu)", GetLastError());
    return;
  }
  if (success) {
    DWORD written = 0;
    if (!WriteFile(writing_, "x", 1, &written, nullptr)) violation("no packet (error %lu)", GetLastError());
  } else {
    CancelIoEx(reading_, overlapped);
  }
  // In Wine the request completes in the thread that issued it, when that thread waits.
  static const HANDLE never = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  WaitForSingleObject(never, 0);
}

bool Waiter::usable(const OVERLAPPED* overlapped) {
  if (overlapped == nullptr) {
    violation("no OVERLAPPED");
    return false;
  }
  const auto found = requests().find(const_cast<OVERLAPPED*>(overlapped));
  if (found != requests().end() && found->second.phase != Request::Ended) {
    violation("an OVERLAPPED is reused before its request has completed");
    return false;
  }
  return true;
}

HRESULT Waiter::wait(const Object& owner, OVERLAPPED* overlapped) {
  const HANDLE event = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(overlapped->hEvent) & ~ULONG_PTR{1});
  if (event != nullptr && !ResetEvent(event)) violation("hEvent is not an event");
  overlapped->Internal = PENDING;
  overlapped->InternalHigh = 0;
  Request request;
  request.owner = owner.id();
  request.file = file_;
  request.number = ++lastRequest;
  requests()[overlapped] = request;
  return result(PENDING);
}

HRESULT Waiter::settle(const Object& owner, OVERLAPPED* overlapped, Status outcome) {
  if (modes.completion == 1) {
    requests().erase(overlapped);
    return result(outcome);
  }
  const HRESULT pending = wait(owner, overlapped);
  finish(owner, overlapped, outcome);
  return pending;
}

std::optional<HRESULT> Waiter::injected(const Object& owner, const char* method, OVERLAPPED* overlapped) {
  if (!usable(overlapped)) return result(INVALID_PARAMETER);
  const auto outcome = injectedEnd(method);
  if (!outcome) return std::nullopt;
  const HRESULT pending = wait(owner, overlapped);
  finish(owner, overlapped, *outcome);
  return pending;
}

void finish(const Object& owner, OVERLAPPED* overlapped, HRESULT outcome) {
  const auto found = requests().find(overlapped);
  if (found == requests().end() || found->second.owner != owner.id()) return;
  if (found->second.phase != Request::Waiting) return;
  Request& request = found->second;
  request.outcome = outcome;
  if (modes.delay == 0) {
    deliver(overlapped, request);
    return;
  }
  request.phase = Request::Delayed;
  after(modes.delay, [overlapped, number = request.number] {
    const auto later = requests().find(overlapped);
    if (later == requests().end() || later->second.number != number) return;
    if (later->second.phase == Request::Delayed) deliver(overlapped, later->second);
  });
}

void Waiter::completeDelayed(const Object& owner) {
  std::map<UINT64, OVERLAPPED*> inOrder;
  for (auto& [overlapped, request] : requests()) {
    if (request.owner == owner.id() && request.phase == Request::Delayed) inOrder[request.number] = overlapped;
  }
  for (const auto& [number, overlapped] : inOrder) deliver(overlapped, requests()[overlapped]);
}

HRESULT Waiter::overlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  if (!file_->open()) violation("the overlapped file is closed before its objects are released");
  for (;;) {
    const auto found = requests().find(overlapped);
    if (found == requests().end()) {
      violation("GetOverlappedResult of an OVERLAPPED whose request was never PENDING");
      return result(INVALID_PARAMETER);
    }
    Request& request = found->second;
    if (request.phase == Request::FirstPhase) {
      // The second phase begins and queues another packet.
      overlapped->Internal = PENDING;
      if (modes.delay == 0) {
        deliver(overlapped, request);
      } else {
        after(modes.delay, [overlapped, number = request.number] {
          const auto later = requests().find(overlapped);
          if (later != requests().end() && later->second.number == number) deliver(overlapped, later->second);
        });
      }
      if (!wait) return result(PENDING);
      continue;
    }
    if (request.phase == Request::Ended) return *request.outcome;
    if (!wait) return result(PENDING);
    const Unlocked unlocked;
    Sleep(1);
  }
}

void finishAll(Status outcome) {
  for (auto& [overlapped, request] : requests()) {
    if (request.phase == Request::Ended) continue;
    request.outcome = result(outcome);
    request.phase = Request::FirstPhase;  // the only packet
    deliver(overlapped, request);
  }
}

UINT32 pendingRequests() {
  UINT32 count = 0;
  for (const auto& [overlapped, request] : requests()) count += request.phase != Request::Ended;
  return count;
}

}  // namespace nd2
