// A name is of this user, because it has the user's SID.
#include "platform/local_names.h"

#include "platform/windows/object.h"

#include <sddl.h>

#include <cerrno>

#include "platform/windows/text.h"

namespace nd {
namespace {

std::string ownSid() {
  HANDLE token = nullptr;
  if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return "unknown";
  const UniqueFd opened(descriptorOf(token));
  alignas(TOKEN_USER) char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  DWORD bytes = 0;
  wchar_t* text = nullptr;
  if (GetTokenInformation(token, TokenUser, room, sizeof room, &bytes) == 0 ||
      ConvertSidToStringSidW(reinterpret_cast<TOKEN_USER*>(room)->User.Sid, &text) == 0)
    return "unknown";
  std::string sid = narrowOf(text);
  LocalFree(text);
  return sid;
}

}  // namespace

std::string ownName(const std::string& what) {
  static const auto* const prefix = new std::string("networkdirect/" + ownSid() + "/");
  return *prefix + what;
}

int LocalNames::claim(const std::string& what, const std::string& prefix, UniqueFd* listener, std::vector<std::string>* others) {
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

int LocalNames::connect(const std::string& what, UniqueFd* connection, ProcessId* process, Look) {
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
