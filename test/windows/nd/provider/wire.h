// Frames, which objects send to each other. Those to this process are handled before the call that caused them returns;
// those to others go through a pipe to the provider there.
#pragma once
#include <vector>
#include "object.h"

namespace nd2 {

enum class FrameKind : UINT32 {
  // To a listener or a connector.
  Request,
  Abandon,
  Reply,
  Ready,
  Reject,
  Disconnect,
  Disconnected,
  // To a queue pair.
  Send,
  Write,
  Read,
  Acknowledge,
  Stop,
};

/// An object of any process.
struct Place {
  DWORD process = 0;
  UINT64 id = 0;
  bool operator==(const Place& other) const { return process == other.process && id == other.id; }
};

/// The header of a frame, as sent through the pipe. The used fields depend on the kind.
struct FrameHead {
  FrameKind kind = FrameKind::Stop;
  UINT32 bytes = 0;  ///< that follow
  Place to, from;
  UINT64 queuePair = 0;  ///< of the sender of a Request or Reply
  SOCKADDR_INET local{}, remote{};
  UINT32 inbound = 0, outbound = 0;
  UINT64 number = 0;  ///< of a request
  UINT64 address = 0;
  UINT64 length = 0;
  UINT32 token = 0;
  UINT32 status = 0;
  UINT32 solicited = 0;
};

struct Frame {
  FrameHead head;
  std::vector<char> bytes;
};

Place placeOf(const Object& object);
void post(Frame frame);
/// Handles all frames to this process, including those that they cause. The caller holds the lock.
void deliverLocally();

/// A claim of a port by a listener, among all processes on this host.
class Claim {
 public:
  /// Returns null if the port is in use.
  static Claim* take(int family, USHORT port);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  /// Publishes the listener, so that it receives requests.
  void announce(const Object& listener);
  void withdraw();

 private:
  Claim(HANDLE section, Place* place) : section_(section), place_(place) {}
  const HANDLE section_;
  Place* const place_;
};

/// Returns the listener of a port; process 0 if there is none.
Place listenerAt(int family, USHORT port);

}  // namespace nd2
