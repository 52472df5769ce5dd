// Overlapped requests: the files for their packets, their completion, and GetOverlappedResult.
#pragma once
#include <memory>
#include "object.h"

namespace nd2 {

/// The file of CreateOverlappedFile: the reading end of a pipe. Each completed read of it queues a packet to its
/// completion port.
class File {
 public:
  /// Returns null if the pipe cannot be created. `client` receives the handle that the client closes.
  static std::shared_ptr<File> make(HANDLE* client);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  /// Queues a packet or sets the event of a request, as the I/O manager does for a successful or cancelled request.
  void deliver(OVERLAPPED* overlapped, bool success) const;
  /// Whether the client has not closed its handle.
  bool open() const;

 private:
  File(HANDLE client, HANDLE reading, HANDLE writing) : client_(client), reading_(reading), writing_(writing) {}
  const HANDLE client_, reading_, writing_;
};

/// An object with overlapped requests.
class Waiter {
 public:
  virtual ~Waiter() = default;

 protected:
  /// Returns whether an OVERLAPPED can be used for a new request; otherwise records a violation.
  static bool usable(const OVERLAPPED* overlapped);
  /// Makes the request pending and returns PENDING. `finish` completes it later.
  HRESULT wait(const Object& owner, OVERLAPPED* overlapped);
  /// Completes a request whose outcome is known within the call.
  HRESULT settle(const Object& owner, OVERLAPPED* overlapped, Status outcome);
  /// Returns the result that a test has injected for this call, which then has no other effect.
  std::optional<HRESULT> injected(const Object& owner, const char* method, OVERLAPPED* overlapped);
  HRESULT overlappedResult(OVERLAPPED* overlapped, BOOL wait);
  /// Completes the owner's requests that are only delayed.
  static void completeDelayed(const Object& owner);

  std::shared_ptr<File> file_;
};

/// Completes a pending request of the owner. Has no effect if it has completed, or its OVERLAPPED was reused.
void finish(const Object& owner, OVERLAPPED* overlapped, HRESULT outcome);
inline void finish(const Object& owner, OVERLAPPED* overlapped, Status outcome) {
  finish(owner, overlapped, result(outcome));
}
/// Completes every pending request of this process.
void finishAll(Status outcome);
UINT32 pendingRequests();

}  // namespace nd2
