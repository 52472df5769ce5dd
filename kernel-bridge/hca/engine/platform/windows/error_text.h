// The system's texts, and its errors as an errno.
#pragma once
#include <string>

namespace nd {

std::wstring wideOf(const std::string& utf8);
std::string narrowOf(const wchar_t* wide);

// Of GetLastError() or WSAGetLastError(); EIO if there is none.
int errnoOf(unsigned long error);

}  // namespace nd
