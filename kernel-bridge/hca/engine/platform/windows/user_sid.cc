#include "platform/windows/user_sid.h"

#include <sddl.h>

#include "platform/windows/error_text.h"

namespace nd {
namespace {

std::string sidOfHandle(HANDLE process) {
  HANDLE token = nullptr;
  if (OpenProcessToken(process, TOKEN_QUERY, &token) == 0) return "";
  const UniqueFd opened(descriptorOf(token));
  alignas(TOKEN_USER) char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
  DWORD bytes = 0;
  wchar_t* text = nullptr;
  if (GetTokenInformation(token, TokenUser, room, sizeof room, &bytes) == 0 ||
      ConvertSidToStringSidW(reinterpret_cast<const TOKEN_USER*>(room)->User.Sid, &text) == 0)
    return "";
  std::string sid = narrowOf(text);
  LocalFree(text);
  return sid;
}

// Both objects are kept until the process ends.
SECURITY_ATTRIBUTES* makeOwnAccess() {
  const std::string sid = sidOfHandle(GetCurrentProcess());
  // The user owns it and has all rights; nothing is inherited.
  const std::wstring list = wideOf("O:" + sid + "D:P(A;;GA;;;" + sid + ")");
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (sid.empty() ||
      ConvertStringSecurityDescriptorToSecurityDescriptorW(list.c_str(), SDDL_REVISION_1, &descriptor, nullptr) == 0)
    return nullptr;
  return new SECURITY_ATTRIBUTES{sizeof(SECURITY_ATTRIBUTES), descriptor, FALSE};
}

}  // namespace

std::string ownSid() {
  const std::string sid = sidOfHandle(GetCurrentProcess());
  return sid.empty() ? "unknown" : sid;
}

std::string sidOf(ProcessId process) {
  const UniqueFd opened(
      descriptorOf(OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(process))));
  return opened.valid() ? sidOfHandle(handleOf(opened.get())) : "";
}

bool isOwnUser(ProcessId process) {
  const std::string sid = sidOf(process);
  return !sid.empty() && sid == ownSid();
}

SECURITY_ATTRIBUTES* ownAccess() {
  static SECURITY_ATTRIBUTES* const access = makeOwnAccess();
  return access;
}

}  // namespace nd
