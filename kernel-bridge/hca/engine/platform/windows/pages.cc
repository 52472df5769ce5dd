#include "platform/pages.h"

#include "platform/windows/system.h"
#include "platform/windows/error_text.h"
#include "platform/windows/user_sid.h"

namespace nd {
namespace {

constexpr uint64_t kLargest = 1ull << 46;

Status statusOf(DWORD error) {
  switch (error) {
    case ERROR_TOO_MANY_OPEN_FILES:
    case ERROR_NO_SYSTEM_RESOURCES: return Status::kInsufficientResources;
    case ERROR_ACCESS_DENIED: return Status::kNotSupported;
    default: return Status::kNoMemory;
  }
}

}  // namespace

Status allocatePages(uint64_t bytes, Pages* out, int* error) {
  *error = 0;
  if (bytes == 0 || bytes > kLargest) return Status::kInvalidParameter;
  const uint64_t length = (bytes + kPage - 1) / kPage * kPage;
  const auto failed = [&] {
    const DWORD cause = GetLastError();
    *error = errnoOf(cause);
    return statusOf(cause);
  };
  SECURITY_ATTRIBUTES* const access = ownAccess();
  if (access == nullptr) return failed();
  // The pages are committed, so that all of them exist from now on.
  UniqueFd section(
      descriptorOf(CreateFileMappingW(INVALID_HANDLE_VALUE, access, PAGE_READWRITE | SEC_COMMIT,
                                      static_cast<DWORD>(length >> 32), static_cast<DWORD>(length), nullptr)));
  if (!section.valid()) return failed();
  void* memory = MapViewOfFile(handleOf(section.get()), FILE_MAP_WRITE, 0, 0, 0);
  if (memory == nullptr) return failed();
  out->fd = std::move(section);
  out->base = reinterpret_cast<uint64_t>(memory);
  out->length = length;
  return Status::kSuccess;
}

void sealPages(Descriptor, bool) {}
// Peers never write to these pages (Mapping::createPublished).
bool detachPages(Descriptor, uint64_t, uint64_t, uint64_t) { return false; }
bool copyDetachedPages(uint64_t, uint64_t, uint64_t) { return false; }
uint64_t pageBytes() { return kPage; }

void freePages(uint64_t base, uint64_t) { UnmapViewOfFile(reinterpret_cast<void*>(base)); }

}  // namespace nd
