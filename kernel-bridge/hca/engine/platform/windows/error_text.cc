#include "platform/windows/error_text.h"

#include <cerrno>

#include "platform/windows/winsock.h"

namespace nd {

std::wstring wideOf(const std::string& utf8) {
  const int bytes = static_cast<int>(utf8.size());
  std::wstring wide(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, utf8.data(), bytes, wide.data(), static_cast<int>(wide.size()));
  return wide;
}

std::string narrowOf(const wchar_t* wide) {
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, wide, -1, nullptr, 0, nullptr, nullptr);  // including the
                                                                                              // terminating zero
  if (bytes <= 1) return "";
  std::string utf8(static_cast<size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, wide, -1, utf8.data(), bytes, nullptr, nullptr);
  utf8.pop_back();
  return utf8;
}

int errnoOf(unsigned long error) {
  switch (error) {
    case WSAEWOULDBLOCK:
    case ERROR_IO_PENDING: return EAGAIN;
    case WSAENOBUFS:
    case ERROR_NO_SYSTEM_RESOURCES: return ENOBUFS;
    case WSAEMFILE:
    case ERROR_TOO_MANY_OPEN_FILES: return EMFILE;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: return ENOMEM;
    case WSAEADDRINUSE:
    case ERROR_ALREADY_EXISTS: return EADDRINUSE;
    case ERROR_FILE_EXISTS: return EEXIST;
    case WSAEACCES:
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION: return EACCES;
    case WSAEADDRNOTAVAIL: return EADDRNOTAVAIL;
    case WSAEAFNOSUPPORT:
    case WSAEPROTONOSUPPORT: return EAFNOSUPPORT;
    case WSAENETUNREACH:
    case WSAENETDOWN: return ENETUNREACH;
    case WSAEHOSTUNREACH:
    case WSAEHOSTDOWN: return EHOSTUNREACH;
    case WSAECONNREFUSED:
    case WSAECONNRESET: return ECONNREFUSED;
    case WSAEMSGSIZE: return EMSGSIZE;
    case WSAEINVAL:
    case ERROR_INVALID_PARAMETER: return EINVAL;
    case WSAENOPROTOOPT:
    case WSAEOPNOTSUPP:
    case ERROR_NOT_SUPPORTED: return ENOTSUP;
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_DISK_FULL: return ENOSPC;
    default: return EIO;
  }
}

}  // namespace nd
