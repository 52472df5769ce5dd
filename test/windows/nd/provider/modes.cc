#include "modes.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include "object.h"
#include "memory.h"
#include "overlapped.h"
#include "queue-pair.h"

namespace nd2 {

Modes modes;

namespace {

const std::map<std::string, INT64 Modes::*>& settings() {
  static const auto& all = *new std::map<std::string, INT64 Modes::*>{
      {"completion", &Modes::completion},
      {"delay", &Modes::delay},
      {"resize", &Modes::resize},
      {"reads", &Modes::reads},
      {"windows", &Modes::windows},
      {"srq", &Modes::srq},
      {"inline", &Modes::inlined},
      {"sge", &Modes::sge},
      {"transfer", &Modes::transfer},
      {"flush", &Modes::flush},
      {"affinity", &Modes::affinity},
      {"rnr", &Modes::rnr},
      {"ipv6", &Modes::ipv6},
      {"listed", &Modes::listed},
      {"factory", &Modes::factory},
      {"hollow", &Modes::hollow},
      {"padding", &Modes::padding},
      {"leaves", &Modes::leaves},
      {"removed", &Modes::removed},
      {"single", &Modes::single},
      {"purge", &Modes::purge},
      {"unreachable", &Modes::unreachable},
  };
  return all;
}

/// State of a method. It is never destroyed, because threads may call methods while the process ends.
struct MethodRecord {
  UINT32 calls = 0;
  std::optional<HRESULT> failure, end;
  UINT32 skip = 0;
};
std::map<std::string, MethodRecord>& methods() {
  static auto& all = *new std::map<std::string, MethodRecord>;
  return all;
}
const char* current = "DllGetClassObject";
UINT32 violations = 0;
std::string& firstViolation() {
  static auto& first = *new std::string;
  return first;
}

/// Resembles a provider for USB4: no Reads, windows, SRQ, INLINE or resizing, one entry and 1 MiB per request, Flush
/// has no effect.
void likeUsb4() {
  modes.reads = modes.windows = modes.srq = modes.inlined = modes.flush = modes.resize = 0;
  modes.sge = 1;
  modes.transfer = 1 << 20;
}

bool set(const std::string& name, INT64 value) {
  if (name == "usb4" || name == "default") {
    modes = Modes{};
    if (name == "usb4" && value != 0) likeUsb4();
    return true;
  }
  const auto found = settings().find(name);
  if (found == settings().end()) return false;
  modes.*found->second = value;
  if (name == "removed" && value != 0) removeDevice();
  return true;
}

/// Applies the settings of STANDIN_ND when the DLL is loaded.
void readEnvironment() {
  char text[1024];
  const DWORD length = GetEnvironmentVariableA("STANDIN_ND", text, sizeof text);
  if (length == 0 || length >= sizeof text) return;
  for (char* part = strtok(text, ","); part != nullptr; part = strtok(nullptr, ",")) {
    char* const equals = strchr(part, '=');
    if (equals == nullptr) continue;
    *equals = '\0';
    set(part, strtoll(equals + 1, nullptr, 0));
  }
}

/// Appends what a process has not released at its end to the file that STANDIN_ND_LOG names.
void writeLog() {
  char path[MAX_PATH];
  const DWORD length = GetEnvironmentVariableA("STANDIN_ND_LOG", path, sizeof path);
  if (length == 0 || length >= sizeof path) return;
  const std::string text = "live=" + std::to_string(liveObjects("")) + " pending=" + std::to_string(pendingRequests()) +
                           " bytes=" + std::to_string(registeredBytes()) + " violation=" + firstViolation() + "\n";
  const HANDLE file =
      CreateFileA(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_ALWAYS, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return;
  DWORD written = 0;
  WriteFile(file, text.data(), static_cast<DWORD>(text.size()), &written, nullptr);
  CloseHandle(file);
}

}  // namespace

void violation(const char* format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  violations++;
  if (firstViolation().empty()) firstViolation() = std::string(current) + ": " + text;
}

void entered(const char* method) {
  current = method;
  methods()[method].calls++;
}

std::optional<HRESULT> injectedFailure(const char* method) {
  auto& record = methods()[method];
  if (!record.failure) return std::nullopt;
  if (record.skip > 0) {
    record.skip--;
    return std::nullopt;
  }
  return std::exchange(record.failure, std::nullopt);
}

std::optional<HRESULT> injectedEnd(const char* method) {
  auto& record = methods()[method];
  if (!record.end) return std::nullopt;
  if (record.skip > 0) {
    record.skip--;
    return std::nullopt;
  }
  return std::exchange(record.end, std::nullopt);
}

}  // namespace nd2

#define EXPORTED extern "C" __declspec(dllexport)

/// Changes a setting. "usb4" changes several, "default" all. Returns 0 if there is no setting of this name.
EXPORTED int standin_set(const char* name, INT64 value) {
  const nd2::Lock lock;
  return nd2::set(name, value);
}

/// Makes the next call of a method ("IND2Adapter::Query"), or the one after `skip` others, fail with this status.
EXPORTED void standin_fail(const char* method, UINT32 status, UINT32 skip) {
  const nd2::Lock lock;
  auto& record = nd2::methods()[method];
  record.failure = static_cast<HRESULT>(status);
  record.skip = skip;
}

/// Makes an overlapped request of this method PENDING and complete with this status, without any other effect.
EXPORTED void standin_end(const char* method, UINT32 status, UINT32 skip) {
  const nd2::Lock lock;
  auto& record = nd2::methods()[method];
  record.end = static_cast<HRESULT>(status);
  record.skip = skip;
}

/// Returns the number of calls of a method.
EXPORTED UINT32 standin_calls(const char* method) {
  const nd2::Lock lock;
  return nd2::methods()[method].calls;
}

/// Returns the first violation since the last call; empty if there was none.
EXPORTED const char* standin_violation() {
  const nd2::Lock lock;
  static auto& returned = *new std::string;
  returned = std::exchange(nd2::firstViolation(), {});
  return returned.c_str();
}

EXPORTED UINT32 standin_violations() {
  const nd2::Lock lock;
  return nd2::violations;
}

/// Returns the number of live objects of a kind ("IND2QueuePair"), or of all kinds if it is empty.
EXPORTED UINT32 standin_live(const char* kind) {
  const nd2::Lock lock;
  return nd2::liveObjects(kind);
}

/// Returns the number of registered bytes.
EXPORTED double standin_registered() {
  const nd2::Lock lock;
  return static_cast<double>(nd2::registeredBytes());
}

/// Returns the number of pending overlapped requests.
EXPORTED UINT32 standin_pending() {
  const nd2::Lock lock;
  return nd2::pendingRequests();
}

BOOL WINAPI DllMain(HINSTANCE, DWORD reason, void*) {
  if (reason == DLL_PROCESS_ATTACH) nd2::readEnvironment();
  // Without the lock: no other thread runs any more, and one of them may have held it.
  if (reason == DLL_PROCESS_DETACH) nd2::writeLog();
  return TRUE;
}
