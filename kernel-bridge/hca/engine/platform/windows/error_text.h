// Windows error texts, and Windows errors as an errno.
#pragma once
#include <string>

namespace nd {

std::wstring wideOf(const std::string& utf8);
std::string narrowOf(const wchar_t* wide);

// For GetLastError() or WSAGetLastError(); EIO without an equivalent.
int errnoOf(unsigned long error);

}  // namespace nd
