// Parts of tests that run in separate processes: PART(name) { … } is started by Process("name", word).
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "platform/windows/system.h"
#include "platform/windows/error_text.h"

namespace processes {

struct Part {
  const char* name;
  int (*run)(const std::string& word);
};
inline std::vector<Part>& parts() {
  static std::vector<Part> all;
  return all;
}
struct Registration {
  Registration(const char* name, int (*run)(const std::string& word)) { parts().push_back({name, run}); }
};

inline int runPart(const char* name, const char* word) {
  for (const Part& part : parts())
    if (std::strcmp(part.name, name) == 0) return part.run(word != nullptr ? word : "");
  return 99;
}

class Process {
 public:
  Process(const std::string& part, const std::string& word) {
    wchar_t program[MAX_PATH];
    GetModuleFileNameW(nullptr, program, MAX_PATH);
    std::wstring line = L"\"" + std::wstring(program) + L"\" part " + nd::wideOf(part) + L" " + nd::wideOf(word);
    STARTUPINFOW start{};
    start.cb = sizeof start;
    PROCESS_INFORMATION made{};
    if (CreateProcessW(program, line.data(), nullptr, nullptr, FALSE, 0, nullptr, nullptr, &start, &made) == 0) return;
    CloseHandle(made.hThread);
    handle_.reset(nd::descriptorOf(made.hProcess));
    id_ = made.dwProcessId;
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  DWORD id() const { return id_; }
  // Returns the exit code of the process; 98: it has not ended in time.
  DWORD end() {
    DWORD code = 98;
    if (handle_.valid() && WaitForSingleObject(nd::handleOf(handle_.get()), kTimeoutMs) == WAIT_OBJECT_0)
      GetExitCodeProcess(nd::handleOf(handle_.get()), &code);
    return code;
  }
  void kill() {
    if (!handle_.valid()) return;
    TerminateProcess(nd::handleOf(handle_.get()), 97);
    WaitForSingleObject(nd::handleOf(handle_.get()), kTimeoutMs);
  }

  static constexpr DWORD kTimeoutMs = 60'000;

 private:
  nd::UniqueFd handle_;
  DWORD id_ = 0;
};

}  // namespace processes

#define PART(name)                                                             \
  static int part_##name(const std::string& word);                             \
  static processes::Registration part_registration_##name(#name, part_##name); \
  static int part_##name(const std::string& word)
