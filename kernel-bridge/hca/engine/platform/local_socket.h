// Connections between processes on this host. They carry whole messages with descriptors, and have names that the OS
// releases with the process that bound them. No call blocks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/piece.h"
#include "platform/os.h"
#include "platform/unique_fd.h"

namespace nd {

// Binds and listens. Returns 0 or an errno (EADDRINUSE: another socket has the name).
int listenLocal(const std::string& name, UniqueFd* listener);
// Connects to the listener of that name. Returns 0 or an errno: ECONNREFUSED without a listener, EAGAIN if it has too
// many unaccepted connections, EACCES if its owner is neither this user nor root. `process`: the listener's process.
int connectLocal(const std::string& name, UniqueFd* connection, ProcessId* process);
// Accepts one connection; the same rule applies to the peer's user. Returns 0, EAGAIN without a connection, or another
// errno.
int acceptLocal(Descriptor listener, UniqueFd* connection);
// Refuses new connections. Those already waiting can still be accepted; after them acceptLocal() returns EINVAL. The
// name stays taken.
void refuseLocal(Descriptor listener);
// Returns whether packets of this peer may be accepted, because its user is this user or root.
bool peerTrusted(Descriptor connection, ProcessId* process);
// The process at the other end, at the time when it connected or started to listen.
struct PeerIdentity {
  ProcessId process = 0;  // 0: not visible to this process
  uint64_t user = 0;
  bool ownUser = false;  // whether its user is this process's user
};
bool identifyPeer(Descriptor connection, PeerIdentity* identity);

// The descriptors that accompany a message.
constexpr uint32_t kMostPassed = 3;
// Sends one message that consists of these pieces. Returns 0 or an errno (EAGAIN, ENOBUFS: no room now).
int sendLocal(Descriptor connection, const Piece* pieces, uint32_t count, const Descriptor* passed = nullptr,
              uint32_t passedCount = 0);
// Receives one message. Returns its length (at most `room`), 0 if the connection has ended, or a negative errno
// (-EAGAIN if none is available). `passed`: the accompanying descriptors, at most kMostPassed, or null to discard them.
int64_t receiveLocal(Descriptor connection, void* bytes, uint64_t room, UniqueFd* passed = nullptr,
                     uint32_t* passedCount = nullptr);
// Returns whether the connection has ended. Earlier messages can still be received.
bool hasEndedLocal(Descriptor connection);
// Requests buffers for this many bytes in flight, or as many as the OS allows.
void widenLocal(Descriptor connection, uint32_t bytes);

// A listener, or a bound socket that may soon listen.
struct LocalListener {
  enum class Owner { kTrusted, kStranger, kUnknown };  // as for peerTrusted(); unknown if the OS does not report it
  std::string name;                                    // without the requested prefix
  Owner owner = Owner::kUnknown;
};

// Returns all listeners of this host (network namespace) whose name starts with `prefix`. The call takes longer the
// more sockets the host has. The list is empty if the host does not report them. The optional is empty if descriptors
// or memory are exhausted.
std::optional<std::vector<LocalListener>> listLocalListeners(const std::string& prefix);

}  // namespace nd
