#include "platform/os.h"

#include <malloc.h>

#include <cstdlib>

#include "platform/thread.h"
#include "platform/windows/system.h"

// bcrypt.h needs more of windows.h than we include.
extern "C" __declspec(dllimport) long __stdcall BCryptGenRandom(void* algorithm, unsigned char* buffer, unsigned long bytes,
                                                               unsigned long flags);

namespace nd {
namespace {

constexpr unsigned long kSystemPreferredGenerator = 2;
constexpr size_t kMostAtOnce = 1u << 20;

}  // namespace

uint64_t monotonicNs() {
  static const uint64_t frequency = [] {
    LARGE_INTEGER value;
    QueryPerformanceFrequency(&value);
    return static_cast<uint64_t>(value.QuadPart);
  }();
  LARGE_INTEGER value;
  QueryPerformanceCounter(&value);
  const auto ticks = static_cast<uint64_t>(value.QuadPart);
  return ticks / frequency * 1'000'000'000u + ticks % frequency * 1'000'000'000u / frequency;
}

uint64_t wallClockNs() {
  constexpr uint64_t kUntil1970 = 116'444'736'000'000'000;  // of 100 ns, from 1601 on
  FILETIME now;
  GetSystemTimePreciseAsFileTime(&now);
  return ((static_cast<uint64_t>(now.dwHighDateTime) << 32 | now.dwLowDateTime) - kUntil1970) * 100;
}

void fillRandom(void* buffer, size_t bytes) {
  auto* p = static_cast<uint8_t*>(buffer);
  while (bytes > 0) {
    const size_t n = bytes < kMostAtOnce ? bytes : kMostAtOnce;
    if (BCryptGenRandom(nullptr, p, static_cast<unsigned long>(n), kSystemPreferredGenerator) != 0) std::abort();
    p += n;
    bytes -= n;
  }
}

bool hasEnded(ProcessId process) {
  const UniqueFd peer(descriptorOf(OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(process))));
  return !peer.valid() || WaitForSingleObject(handleOf(peer.get()), 0) == WAIT_OBJECT_0;
}

void yieldThread() { SwitchToThread(); }

void* allocateAligned(size_t alignment, size_t bytes) { return _aligned_malloc(bytes, alignment); }
void freeAligned(void* memory) { _aligned_free(memory); }

ThreadId currentThread() { return static_cast<ThreadId>(GetCurrentThreadId()); }

ProcessId ownProcessId() { return GetCurrentProcessId(); }

void closeDescriptor(Descriptor descriptor) { CloseHandle(handleOf(descriptor)); }
UniqueFd duplicateDescriptor(Descriptor descriptor) {
  HANDLE copy = nullptr;
  const HANDLE own = GetCurrentProcess();
  if (DuplicateHandle(own, handleOf(descriptor), own, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS) == 0) return UniqueFd();
  return UniqueFd(descriptorOf(copy));
}

}  // namespace nd
