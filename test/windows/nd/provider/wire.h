// What objects send each other: frames. Those to this process are handled before the call that has caused them returns,
// those to others go by a pipe to the provider there.
#pragma once
#include <vector>
#include "object.h"

namespace nd2 {

enum class FrameKind : UINT32 {
  // Connections; to a listener or a connector.
  Request,
  Abandon,
  Reply,
  Ready,
  Reject,
  Disconnect,
  Disconnected,
  // Requests; to a queue pair.
  Send,
  Write,
  Read,
  Acknowledge,
  Stop,
};

/// An object of some process.
struct Place {
  DWORD process = 0;
  UINT64 id = 0;
  bool operator==(const Place& other) const { return process == other.process && id == other.id; }
};

/// The fixed part of a frame, as it is in the pipe. Which fields mean something depends on the kind.
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
/// Handles what is to this process, and what that causes. Needs the lock.
void deliverLocally();

/// A port that a listener of any process of this host has: it is taken as long as this exists.
class Claim {
 public:
  /// Null if the port is taken.
  static Claim* take(int family, USHORT port);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  /// From now on requests go to this listener.
  void announce(const Object& listener);
  void withdraw();

 private:
  Claim(HANDLE section, Place* place) : section_(section), place_(place) {}
  const HANDLE section_;
  Place* const place_;
};

/// Who listens there; process 0 if nobody does.
Place listenerAt(int family, USHORT port);

}  // namespace nd2
