#include "platform/os.h"

#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "platform/windows/descriptor_object.h"
#include "platform/windows/error_text.h"

// bcrypt.h needs more of windows.h than is included here.
extern "C" __declspec(dllimport) long __stdcall BCryptGenRandom(void* algorithm, unsigned char* buffer,
                                                                unsigned long bytes, unsigned long flags);

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
  constexpr uint64_t kUntil1970 = 116'444'736'000'000'000;  // in units of 100 ns since 1601
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

ProcessId ownProcessId() { return GetCurrentProcessId(); }

// Posters use fences. FlushProcessWriteBuffers() is documented as such a barrier, but this has not been verified.
Barrier barrierOfAllThreads() { return nullptr; }

void keepLibraryLoaded() {
  HMODULE library = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                     reinterpret_cast<LPCWSTR>(&keepLibraryLoaded), &library);
}

// A library is notified only after the other threads have been terminated, wherever they were, possibly holding locks.
bool atEndOfProcess(void (*)()) { return false; }

void* findSymbol(const char* name) { return reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(nullptr), name)); }

int createFile(const std::string& path, UniqueFd* file) {
  // The file is accessible to this user alone, unless the folder's permissions differ.
  file->reset(descriptorOf(CreateFileW(wideOf(path).c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                       nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr)));
  return file->valid() ? 0 : errnoOf(GetLastError());
}

int writeFile(Descriptor file, const void* bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    DWORD written = 0;
    const auto more = static_cast<DWORD>(std::min(length - done, kMostAtOnce));
    if (WriteFile(handleOf(file), static_cast<const uint8_t*>(bytes) + done, more, &written, nullptr) == 0)
      return errnoOf(GetLastError());
    if (written == 0) return EIO;
    done += written;
  }
  return 0;
}

void closeDescriptor(Descriptor descriptor) {
  if (!isObject(descriptor)) {
    CloseHandle(handleOf(descriptor));
    return;
  }
  const std::unique_ptr<Object> object(objectOf(descriptor));
  object->leaveSet();
}
UniqueFd duplicateDescriptor(Descriptor descriptor) {
  if (isObject(descriptor)) {
    auto copied = objectOf(descriptor)->duplicate();
    return copied != nullptr ? descriptorOf(std::move(copied)) : UniqueFd();
  }
  HANDLE copy = nullptr;
  const HANDLE own = GetCurrentProcess();
  if (DuplicateHandle(own, handleOf(descriptor), own, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS) == 0) return UniqueFd();
  return UniqueFd(descriptorOf(copy));
}

}  // namespace nd
