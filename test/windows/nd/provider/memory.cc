#include "memory.h"
#include <algorithm>
#include <cstring>
#include <map>
#include "adapter.h"
#include "queue-pair.h"

namespace nd2 {

namespace {

template <typename T>
std::map<UINT32, T*>& tokens() {
  static auto& all = *new std::map<UINT32, T*>;
  return all;
}
std::map<UINT32, MemoryRegion*>& remoteRegions() {
  static auto& all = *new std::map<UINT32, MemoryRegion*>;
  return all;
}

/// Tokens have their highest bit set and differ in the low ones, so that a wrong width or sign is detected.
UINT32 newToken() {
  static UINT32 last = 0;
  return 0x80000000u | (++last * 0x9e3779b1u >> 1);
}

UINT64 numberOf(const void* pointer) { return reinterpret_cast<UINT64>(pointer); }

bool within(UINT64 address, UINT64 bytes, UINT64 at, UINT64 room) {
  return address >= at && bytes <= room && address - at <= room - bytes;
}

UINT64 total = 0;

}  // namespace

bool mapped(const void* at, UINT64 bytes, Access access) {
  constexpr DWORD writable = PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
  constexpr DWORD readable = writable | PAGE_READONLY | PAGE_EXECUTE_READ;
  const UINT64 end = numberOf(at) + bytes;
  for (UINT64 page = numberOf(at); page < end;) {
    MEMORY_BASIC_INFORMATION info;
    if (VirtualQuery(reinterpret_cast<void*>(page), &info, sizeof info) == 0) return false;
    if (info.State != MEM_COMMIT || (info.Protect & (access == Access::Write ? writable : readable)) == 0) return false;
    page = numberOf(info.BaseAddress) + info.RegionSize;
  }
  return true;
}

MemoryRegion::MemoryRegion(Adapter* adapter, std::shared_ptr<File> file) : adapter_(adapter) {
  file_ = std::move(file);
}

HRESULT MemoryRegion::CancelOverlappedRequests() {
  const Call call(*this, "IND2MemoryRegion::CancelOverlappedRequests");
  if (call.failed()) return call.status();
  completeDelayed(*this);
  return result(SUCCESS);
}

HRESULT MemoryRegion::GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) {
  const Call call(*this, "IND2MemoryRegion::GetOverlappedResult");
  if (call.failed()) return call.status();
  return overlappedResult(overlapped, wait);
}

HRESULT MemoryRegion::Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* overlapped) {
  const Call call(*this, "IND2MemoryRegion::Register");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2MemoryRegion::Register", overlapped)) return *outcome;
  if (registered()) return result(INVALID_DEVICE_STATE);
  constexpr ULONG known =
      ND2_MR_LOCAL_WRITE | ND2_MR_REMOTE_READ | ND2_MR_REMOTE_WRITE_BIT | ND2_MR_READ_SINK | ND2_MR_DO_NOT_SECURE;
  if ((flags & ~known) != 0) violation("flags %#lx", flags);
  if ((flags & ND2_MR_REMOTE_WRITE_BIT) != 0 && (flags & ND2_MR_LOCAL_WRITE) == 0)
    violation("ALLOW_REMOTE_WRITE without its ALLOW_LOCAL_WRITE");
  if ((flags & ND2_MR_DO_NOT_SECURE) == 0) violation("DO_NOT_SECURE_VM is missing");
  if (bytes == 0) {
    violation("no bytes");
    return result(INVALID_BUFFER_SIZE);
  }
  if (buffer == nullptr || bytes > MAX_REGISTRATION) {
    violation("a buffer at %p of %llu bytes", buffer, static_cast<UINT64>(bytes));
    return result(INVALID_PARAMETER);
  }
  if (!mapped(buffer, bytes, (flags & ND2_MR_LOCAL_WRITE) != 0 ? Access::Write : Access::Read)) {
    violation("unmapped memory at %p of %llu bytes", buffer, static_cast<UINT64>(bytes));
    return result(ACCESS_VIOLATION);
  }
  at_ = numberOf(buffer);
  bytes_ = bytes;
  flags_ = flags;
  localToken_ = newToken();
  remoteToken_ = newToken();
  tokens<MemoryRegion>()[localToken_] = this;
  remoteRegions()[remoteToken_] = this;
  total += bytes;
  return settle(*this, overlapped, SUCCESS);
}

HRESULT MemoryRegion::Deregister(OVERLAPPED* overlapped) {
  const Call call(*this, "IND2MemoryRegion::Deregister");
  if (call.failed()) return call.status();
  if (const auto outcome = injected(*this, "IND2MemoryRegion::Deregister", overlapped)) return *outcome;
  if (!registered()) return result(INVALID_DEVICE_STATE);
  if (boundTo()) return settle(*this, overlapped, DEVICE_BUSY);
  deregister();
  return settle(*this, overlapped, SUCCESS);
}

UINT32 MemoryRegion::GetLocalToken() {
  const Call call(*this, "IND2MemoryRegion::GetLocalToken");
  if (!registered()) violation("nothing is registered");
  return localToken_;
}

UINT32 MemoryRegion::GetRemoteToken() {
  const Call call(*this, "IND2MemoryRegion::GetRemoteToken");
  if (!registered()) violation("nothing is registered");
  return remoteToken_;
}

bool MemoryRegion::holds(UINT64 address, UINT64 bytes) const { return within(address, bytes, at_, bytes_); }

bool MemoryRegion::boundTo() const {
  for (const auto& [token, window] : tokens<MemoryWindow>())
    if (window->region() == this) return true;
  return false;
}

void MemoryRegion::deregister() {
  tokens<MemoryRegion>().erase(localToken_);
  remoteRegions().erase(remoteToken_);
  total -= bytes_;
  at_ = bytes_ = 0;
  localToken_ = remoteToken_ = 0;
}

void MemoryRegion::released() {
  completeDelayed(*this);
  if (!registered()) return;
  // A provider may leave such memory locked forever. A client that cannot deregister it must release its queue pairs
  // first, so that none of them writes to the memory.
  if (modes.leaves == 0 && modes.removed == 0) violation("a region is released whose memory is registered");
  for (const auto& [com, object] : objects()) {
    if (object->kind() != Kind::QueuePair || !object->held()) continue;
    if (static_cast<const QueuePair*>(object)->adapter() != adapter()) continue;
    violation("a region whose memory is registered is released before a queue pair");
    break;
  }
}

void MemoryRegion::gone() {
  if (registered()) deregister();
  adapter_ = {};
  file_.reset();
}

MemoryWindow::MemoryWindow(Adapter* adapter) : adapter_(adapter) {}

UINT32 MemoryWindow::GetRemoteToken() {
  const Call call(*this, "IND2MemoryWindow::GetRemoteToken");
  if (token_ == 0) violation("the window has never been bound");
  return token_;
}

void MemoryWindow::bind(QueuePair* queuePair, MemoryRegion* region, UINT64 at, UINT64 bytes, ULONG flags) {
  queuePair_ = queuePair;
  region_ = Ref<MemoryRegion>(region);
  at_ = at;
  bytes_ = bytes;
  flags_ = flags;
  token_ = newToken();
  tokens<MemoryWindow>()[token_] = this;
}

void MemoryWindow::unbind() {
  tokens<MemoryWindow>().erase(token_);
  queuePair_ = nullptr;
  region_ = {};
}

bool MemoryWindow::holds(UINT64 address, UINT64 bytes) const { return within(address, bytes, at_, bytes_); }

void MemoryWindow::gone() { adapter_ = {}; }

void unbindAll(const QueuePair& queuePair) {
  std::vector<MemoryWindow*> bound;
  for (const auto& [token, window] : tokens<MemoryWindow>())
    if (window->queuePair() == &queuePair) bound.push_back(window);
  for (auto* const window : bound) window->unbind();
}

UINT64 registeredBytes() { return total; }

bool allowed(const Sgl& sgl, const Adapter* adapter, Access access) {
  for (const ND2_SGE& entry : sgl) {
    if (entry.BufferLength == 0) continue;
    const auto found = tokens<MemoryRegion>().find(entry.MemoryRegionToken);
    if (found == tokens<MemoryRegion>().end() || found->second->adapter() != adapter) return false;
    const MemoryRegion& region = *found->second;
    if (!region.holds(numberOf(entry.Buffer), entry.BufferLength)) return false;
    if (access == Access::Write && (region.flags() & ND2_MR_LOCAL_WRITE) == 0) return false;
    if (!mapped(entry.Buffer, entry.BufferLength, access)) {
      violation("registered memory at %p is not mapped any more", entry.Buffer);
      return false;
    }
  }
  return true;
}

UINT64 lengthOf(const Sgl& sgl) {
  UINT64 length = 0;
  for (const ND2_SGE& entry : sgl) length += entry.BufferLength;
  return length;
}

std::vector<char> gather(const Sgl& sgl) {
  std::vector<char> bytes;
  bytes.reserve(lengthOf(sgl));
  for (const ND2_SGE& entry : sgl) {
    const auto* const from = static_cast<const char*>(entry.Buffer);
    if (entry.BufferLength > 0) bytes.insert(bytes.end(), from, from + entry.BufferLength);
  }
  return bytes;
}

void scatter(const std::vector<char>& bytes, const Sgl& sgl) {
  size_t done = 0;
  for (const ND2_SGE& entry : sgl) {
    const size_t part = std::min<size_t>(entry.BufferLength, bytes.size() - done);
    if (part > 0) memcpy(entry.Buffer, bytes.data() + done, part);
    done += part;
  }
}

void* remoteMemory(const QueuePair& queuePair, UINT32 token, UINT64 address, UINT64 bytes, Access access) {
  void* const memory = reinterpret_cast<void*>(address);
  const auto region = remoteRegions().find(token);
  if (region != remoteRegions().end()) {
    const MemoryRegion& found = *region->second;
    const ULONG right = access == Access::Read ? ND2_MR_REMOTE_READ : ND2_MR_REMOTE_WRITE_BIT;
    const bool open = found.adapter() == queuePair.adapter() && (found.flags() & right) != 0;
    return open && found.holds(address, bytes) ? memory : nullptr;
  }
  const auto window = tokens<MemoryWindow>().find(token);
  if (window == tokens<MemoryWindow>().end()) return nullptr;
  const MemoryWindow& found = *window->second;
  const ULONG right = access == Access::Read ? ND2_OP_ALLOW_READ : ND2_OP_ALLOW_WRITE;
  const bool open = found.queuePair() == &queuePair && (found.flags() & right) != 0;
  return open && found.holds(address, bytes) ? memory : nullptr;
}

}  // namespace nd2
