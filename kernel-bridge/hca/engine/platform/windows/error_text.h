// Windows error texts, and Windows errors as an errno.
#pragma once
#include <string>

namespace nd {

std::wstring wideOf(const std::string& utf8);
std::string narrowOf(const wchar_t* wide);

// Returns the errno for a value of GetLastError() or WSAGetLastError(), or EIO if there is no equivalent.
int errnoOf(unsigned long error);

}  // namespace nd
