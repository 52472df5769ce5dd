// A name is of this user, because it has the user's SID.
#include "platform/local_names.h"

#include "platform/windows/object.h"

#include <sddl.h>

#include <cerrno>

#include "platform/windows/text.h"
#include "platform/windows/user.h"

namespace nd {
namespace {

struct User {
  alignas(TOKEN_USER) char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  PSID sid() const { return reinterpret_cast<const TOKEN_USER*>(room)->User.Sid; }
};

bool userOf(HANDLE process, User* user) {
  HANDLE token = nullptr;
  if (OpenProcessToken(process, TOKEN_QUERY, &token) == 0) return false;
  const UniqueFd opened(descriptorOf(token));
  DWORD bytes = 0;
  return GetTokenInformation(token, TokenUser, user->room, sizeof user->room, &bytes) != 0;
}

}  // namespace

std::string ownSid() {
  User user;
  wchar_t* text = nullptr;
  if (!userOf(GetCurrentProcess(), &user) || ConvertSidToStringSidW(user.sid(), &text) == 0) return "unknown";
  std::string sid = narrowOf(text);
  LocalFree(text);
  return sid;
}

bool isOwnUser(ProcessId process) {
  User own, other;
  const UniqueFd opened(descriptorOf(OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(process))));
  return opened.valid() && userOf(GetCurrentProcess(), &own) && userOf(handleOf(opened.get()), &other) &&
         EqualSid(own.sid(), other.sid()) != 0;
}

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
