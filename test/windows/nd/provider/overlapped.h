// Overlapped requests: files that carry their packets, when and how they end, and what GetOverlappedResult answers.
#pragma once
#include <memory>
#include "object.h"

namespace nd2 {

/// The file of CreateOverlappedFile: the reading end of a pipe, whose completion port gets a packet for whatever a read
/// of it ends in.
class File {
 public:
  /// Null if the pipe cannot be made; `client` gets the handle that the client closes.
  static std::shared_ptr<File> make(HANDLE* client);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  /// A packet or event for this request, as the system's I/O manager makes them: for a success, or for a cancelled
  /// request.
  void deliver(OVERLAPPED* overlapped, bool success) const;

 private:
  File(HANDLE reading, HANDLE writing) : reading_(reading), writing_(writing) {}
  const HANDLE reading_, writing_;
};

/// An object whose requests may wait.
class Waiter {
 public:
  virtual ~Waiter() = default;

 protected:
  /// Whether an OVERLAPPED can be used for a new request; notes a violation if not.
  static bool usable(const OVERLAPPED* overlapped);
  /// The request waits: answers PENDING. Something calls `finish` later.
  HRESULT wait(const Object& owner, OVERLAPPED* overlapped);
  /// The outcome is known within the call.
  HRESULT settle(const Object& owner, OVERLAPPED* overlapped, Status outcome);
  /// What the test has injected for this call: the value to return, after which the call does nothing.
  std::optional<HRESULT> injected(const Object& owner, const char* method, OVERLAPPED* overlapped);
  HRESULT overlappedResult(OVERLAPPED* overlapped, BOOL wait);
  /// Ends those requests of the owner that have an outcome and only wait for their time.
  static void hurry(const Object& owner);

  std::shared_ptr<File> file_;
};

/// Ends a request of the owner's that waits. One that has ended, or is another's by now, is left alone.
void finish(const Object& owner, OVERLAPPED* overlapped, HRESULT outcome);
inline void finish(const Object& owner, OVERLAPPED* overlapped, Status outcome) {
  finish(owner, overlapped, result(outcome));
}
/// Ends every request of this process that waits.
void finishAll(Status outcome);
UINT32 pendingRequests();

}  // namespace nd2
