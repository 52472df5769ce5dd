// The names of this user's processes are named kernel objects that contain the user's SID.
#include "platform/local_names.h"

#include "platform/windows/user_sid.h"

#include <winternl.h>

#include <cerrno>

#include "schema/numbers.h"
#include "platform/windows/error_text.h"

// These functions are missing in older import libraries.
extern "C" {
__declspec(dllimport) NTSTATUS NTAPI
    NtOpenDirectoryObject(HANDLE* handle, ACCESS_MASK access, OBJECT_ATTRIBUTES* attributes);
__declspec(dllimport) NTSTATUS NTAPI NtQueryDirectoryObject(HANDLE handle, void* buffer, ULONG bytes, BOOLEAN single,
                                                            BOOLEAN restart, ULONG* context, ULONG* returned);
}

namespace nd {
namespace {

constexpr ACCESS_MASK kQuery = 1;  // DIRECTORY_QUERY
constexpr wchar_t kFolder[] = L"\\BaseNamedObjects";
constexpr ULONG kRoomBytes = 4096;

struct Entry {
  UNICODE_STRING name, type;
};

std::string textOf(const UNICODE_STRING& text) {
  return narrowOf(std::wstring(text.Buffer, text.Length / sizeof(wchar_t)).c_str());
}

}  // namespace

std::optional<std::vector<LocalListener>> listLocalListeners(const std::string& prefix) {
  std::vector<LocalListener> found;
  std::wstring folder(kFolder);
  UNICODE_STRING name{};
  name.Buffer = folder.data();
  name.Length = static_cast<USHORT>(folder.size() * sizeof(wchar_t));
  name.MaximumLength = name.Length;
  OBJECT_ATTRIBUTES attributes{};
  attributes.Length = sizeof attributes;
  attributes.ObjectName = &name;
  HANDLE handle = nullptr;
  if (NtOpenDirectoryObject(&handle, kQuery, &attributes) < 0) return std::nullopt;
  const UniqueFd directory(descriptorOf(handle));
  std::vector<uint64_t> room(kRoomBytes / sizeof(uint64_t));
  // Entries are read one at a time, because Wine 8 supports nothing else.
  ULONG context = 0, bytes = 0;
  for (BOOLEAN first = TRUE;
       NtQueryDirectoryObject(handle, room.data(), kRoomBytes, TRUE, first, &context, &bytes) == 0; first = FALSE) {
    const std::string one = textOf(reinterpret_cast<const Entry*>(room.data())->name);
    if (one.compare(0, prefix.size(), prefix) != 0) continue;
    found.push_back({one.substr(prefix.size()), LocalListener::Owner::kTrusted});
  }
  return found;
}

std::string userName(const std::string& what) {
  static const auto* const prefix = new std::string("networkdirect/" + ownSid() + "/");
  return *prefix + what;
}

std::string ownName(const std::string& what) { return userName(std::to_string(kDialect) + "/" + what); }

int LocalNames::claim(const std::string& what, const std::string& prefix, UniqueFd* listener,
                      std::vector<std::string>* others) {
  UniqueFd fd;
  if (const int error = listenLocal(ownName(what), &fd)) return error;
  const auto listed = read(ownName(prefix));
  if (!listed) return EMFILE;
  for (const LocalListener& l : *listed)
    if (prefix + l.name != what) others->push_back(l.name);
  *listener = std::move(fd);
  return 0;
}

int LocalNames::listenAt(const std::string& what, UniqueFd* listener) { return listenLocal(ownName(what), listener); }

int LocalNames::connect(const std::string& what, UniqueFd* connection, ProcessId* process, Lookup) {
  return connectLocal(ownName(what), connection, process);
}

std::optional<std::vector<std::string>> LocalNames::list(const std::string& prefix) {
  const auto listed = read(ownName(prefix));
  if (!listed) return std::nullopt;
  std::vector<std::string> names;
  for (const LocalListener& l : *listed) names.push_back(l.name);
  return names;
}

void LocalNames::forget() {}

}  // namespace nd
