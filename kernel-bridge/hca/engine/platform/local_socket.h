// Connections between processes of this host: whole messages, with descriptors, by names that the operating system
// releases with the process that bound them. Nothing here waits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/piece.h"
#include "platform/os.h"
#include "platform/unique_fd.h"

namespace nd {

// Binds and listens. 0 or an errno; EADDRINUSE: another socket has the name.
int listenLocal(const std::string& name, UniqueFd* listener);
// Connects to the listener of that name. Returns 0 or an errno: ECONNREFUSED if there is none, EAGAIN if it has too
// many unaccepted connections, EACCES if its owner is neither this user nor root. `process`: the listener's.
int connectLocal(const std::string& name, UniqueFd* connection, ProcessId* process);
// Accepts one connection; same rule for the peer's user. 0, EAGAIN if there is none, or another errno.
int acceptLocal(Descriptor listener, UniqueFd* connection);
// New connections are refused from now on; those that wait can still be accepted, then it answers EINVAL. The name
// stays taken.
void refuseLocal(Descriptor listener);
// Whether packets of this peer may be accepted: its user is ours or root.
bool peerTrusted(Descriptor connection, ProcessId* process);
// The process at the other end, at the time when that end connected or began to listen.
struct PeerIdentity {
  ProcessId process = 0;  // 0: one that this one cannot see
  uint64_t user = 0;
  bool ownUser = false;  // it is this process's
};
bool identifyPeer(Descriptor connection, PeerIdentity* identity);

// Descriptors that go along with a message.
constexpr uint32_t kMostPassed = 3;
// Sends one message of these pieces. 0 or an errno; EAGAIN, ENOBUFS: there is no room now.
int sendLocal(Descriptor connection, const Piece* pieces, uint32_t count, const Descriptor* passed = nullptr,
              uint32_t passedCount = 0);
// Takes one message. Its length, of at most `room`; 0: the connection has ended; an errno, negative; EAGAIN: there is
// none. `passed`: what came along, at most kMostPassed, or null to have none.
int64_t receiveLocal(Descriptor connection, void* bytes, uint64_t room, UniqueFd* passed = nullptr,
                     uint32_t* passedCount = nullptr);
// Whether the connection has ended. What came before can still be taken.
bool hasEndedLocal(Descriptor connection);
// So many bytes may be on their way, as far as the system lets them.
void widenLocal(Descriptor connection, uint32_t bytes);

// A listener, or a bound socket that may listen soon.
struct LocalListener {
  enum class Owner { kTrusted, kStranger, kUnknown };  // as peerTrusted(); unknown if the system does not report it
  std::string name;                                    // behind the requested prefix
  Owner owner = Owner::kUnknown;
};

// All listeners of this host (network namespace) whose name begins with `prefix`. The time grows with the host's
// sockets. An empty list if the host does not report them; empty optional: no descriptor or memory for the query.
std::optional<std::vector<LocalListener>> listLocalListeners(const std::string& prefix);

}  // namespace nd
