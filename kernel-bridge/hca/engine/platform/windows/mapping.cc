#include "platform/mapping.h"

#include "platform/windows/user_sid.h"

namespace nd {
namespace {

void* viewOf(HANDLE section, DWORD access, uint64_t bytes) {
  void* memory = MapViewOfFile(section, access, 0, 0, 0);
  if (memory == nullptr) return nullptr;
  // The view consists of whole pages; the size of a section cannot change.
  MEMORY_BASIC_INFORMATION info{};
  const bool whole =
      VirtualQuery(memory, &info, sizeof info) != 0 && info.RegionSize == (bytes + kPage - 1) / kPage * kPage;
  if (whole) return memory;
  UnmapViewOfFile(memory);
  return nullptr;
}

}  // namespace

bool Mapping::create(uint64_t bytes, UniqueFd* fd) {
  SECURITY_ATTRIBUTES* const access = ownAccess();
  if (access == nullptr) return false;
  UniqueFd section(
      descriptorOf(CreateFileMappingW(INVALID_HANDLE_VALUE, access, PAGE_READWRITE, static_cast<DWORD>(bytes >> 32),
                                      static_cast<DWORD>(bytes), nullptr)));
  if (!section.valid() || !take(viewOf(handleOf(section.get()), FILE_MAP_WRITE, bytes), bytes)) return false;
  *fd = std::move(section);
  return true;
}

bool Mapping::createPrivate(uint64_t bytes) {
  UniqueFd section;
  return create(bytes, &section);
}

bool Mapping::open(Descriptor fd, uint64_t bytes) { return take(viewOf(handleOf(fd), FILE_MAP_WRITE, bytes), bytes); }

// Any holder of a section's handle can write to it.
bool Mapping::createPublished(uint64_t, UniqueFd*) { return false; }
bool Mapping::openPublished(Descriptor, uint64_t) { return false; }

bool Mapping::openWhole(Descriptor fd, uint64_t bytes, bool writable) {
  return take(viewOf(handleOf(fd), writable ? FILE_MAP_WRITE : FILE_MAP_READ, bytes), bytes);
}

bool Mapping::openForReading(Descriptor fd, uint64_t bytes) { return openWhole(fd, bytes, false); }
bool Mapping::openShared(Descriptor fd, uint64_t bytes, bool writable) { return openWhole(fd, bytes, writable); }

// This is part of direct access, which is not supported here (createPublished).
bool Mapping::openView(const FilePart&) { return false; }

void Mapping::unmapPages(void* memory, uint64_t) { UnmapViewOfFile(memory); }

}  // namespace nd
