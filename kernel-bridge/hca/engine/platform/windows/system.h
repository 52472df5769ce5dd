// windows.h without unneeded parts and the macros that clash with names in this code (`interface`, `min`, `max`).
#pragma once
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#undef interface

#include "platform/unique_fd.h"

namespace nd {

constexpr uint64_t kPage = 4096;

inline HANDLE handleOf(Descriptor descriptor) { return reinterpret_cast<HANDLE>(descriptor); }
inline Descriptor descriptorOf(HANDLE handle) {
  return handle == nullptr || handle == INVALID_HANDLE_VALUE ? kNoDescriptor : reinterpret_cast<Descriptor>(handle);
}

}  // namespace nd
