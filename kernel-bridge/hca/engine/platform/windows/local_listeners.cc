// The listeners of this host are named objects of the system.
#include "platform/local_socket.h"

#include "platform/windows/system.h"

#include <winternl.h>

#include "platform/windows/text.h"

// Older import libraries lack them.
extern "C" {
__declspec(dllimport) NTSTATUS NTAPI NtOpenDirectoryObject(HANDLE* handle, ACCESS_MASK access, OBJECT_ATTRIBUTES* attributes);
__declspec(dllimport) NTSTATUS NTAPI NtQueryDirectoryObject(HANDLE handle, void* buffer, ULONG bytes, BOOLEAN single, BOOLEAN restart,
                                                           ULONG* context, ULONG* returned);
}

namespace nd {
namespace {

constexpr ACCESS_MASK kQuery = 1;  // DIRECTORY_QUERY
constexpr wchar_t kFolder[] = L"\\BaseNamedObjects";
constexpr ULONG kRoomBytes = 32768;

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
  ULONG context = 0;
  for (;;) {
    ULONG bytes = 0;
    const NTSTATUS status =
        NtQueryDirectoryObject(handle, room.data(), kRoomBytes, FALSE, context == 0 ? TRUE : FALSE, &context, &bytes);
    if (status < 0 || bytes == 0) return found;  // STATUS_NO_MORE_ENTRIES
    for (const auto* e = reinterpret_cast<const Entry*>(room.data()); e->name.Buffer != nullptr; e++) {
      const std::string one = textOf(e->name);
      if (one.compare(0, prefix.size(), prefix) != 0) continue;
      found.push_back({one.substr(prefix.size()), LocalListener::Owner::kTrusted});
    }
    if (status == 0) return found;
  }
}

}  // namespace nd
