// Memory regions and windows, their tokens, and copies between scatter/gather lists.
#pragma once
#include <vector>
#include "overlapped.h"

namespace nd2 {

class Adapter;
class QueuePair;
class MemoryWindow;

class MemoryRegion final : public Com<IND2MemoryRegion, Kind::MemoryRegion>, public Waiter {
 public:
  MemoryRegion(Adapter* adapter, std::shared_ptr<File> file);
  HRESULT STDMETHODCALLTYPE CancelOverlappedRequests() override;
  HRESULT STDMETHODCALLTYPE GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT STDMETHODCALLTYPE Register(const void* buffer, SIZE_T bytes, ULONG flags, OVERLAPPED* overlapped) override;
  HRESULT STDMETHODCALLTYPE Deregister(OVERLAPPED* overlapped) override;
  UINT32 STDMETHODCALLTYPE GetLocalToken() override;
  UINT32 STDMETHODCALLTYPE GetRemoteToken() override;

  const Adapter* adapter() const { return adapter_.get(); }
  bool registered() const { return localToken_ != 0; }
  ULONG flags() const { return flags_; }
  bool holds(UINT64 address, UINT64 bytes) const;

 private:
  void released() override;
  void gone() override;
  void deregister();
  bool boundTo() const;
  Ref<Adapter> adapter_;
  UINT64 at_ = 0;
  UINT64 bytes_ = 0;
  ULONG flags_ = 0;
  UINT32 localToken_ = 0, remoteToken_ = 0;
};

class MemoryWindow final : public Com<IND2MemoryWindow, Kind::MemoryWindow> {
 public:
  explicit MemoryWindow(Adapter* adapter);
  UINT32 STDMETHODCALLTYPE GetRemoteToken() override;

  const Adapter* adapter() const { return adapter_.get(); }
  bool bound() const { return region_.get() != nullptr; }
  void bind(QueuePair* queuePair, MemoryRegion* region, UINT64 at, UINT64 bytes, ULONG flags);
  void unbind();
  const QueuePair* queuePair() const { return queuePair_; }
  const MemoryRegion* region() const { return region_.get(); }
  ULONG flags() const { return flags_; }
  bool holds(UINT64 address, UINT64 bytes) const;

 private:
  void released() override { unbind(); }
  void gone() override;
  Ref<Adapter> adapter_;
  Ref<MemoryRegion> region_;
  QueuePair* queuePair_ = nullptr;
  UINT64 at_ = 0, bytes_ = 0;
  ULONG flags_ = 0;
  UINT32 token_ = 0;
};

/// Unbinds all windows of a queue pair.
void unbindAll(const QueuePair& queuePair);
/// Number of bytes that are registered in this process.
UINT64 registeredBytes();

using Sgl = std::vector<ND2_SGE>;

/// Returns whether the client's list can be read and each entry lies within the region of its token. Otherwise records
/// a violation.
enum class Access { Read, Write };
bool allowed(const Sgl& sgl, const Adapter* adapter, Access access);
UINT64 lengthOf(const Sgl& sgl);
/// Returns the total length of a list, in bytes.
std::vector<char> gather(const Sgl& sgl);
/// Copies bytes into the memory of a list, which must be large enough.
void scatter(const std::vector<char>& bytes, const Sgl& sgl);

/// Returns the memory that a peer may access with a token on this queue pair; null if it may not.
void* remoteMemory(const QueuePair& queuePair, UINT32 token, UINT64 address, UINT64 bytes, Access access);

/// Returns whether this process can read, or write, all of these bytes.
bool mapped(const void* at, UINT64 bytes, Access access);

}  // namespace nd2
