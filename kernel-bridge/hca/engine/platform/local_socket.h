// Abstract UNIX SEQPACKET sockets: the operating system releases their names with the process that bound them.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "platform/unique_fd.h"

namespace nd {

// Binds and listens, non-blocking. 0 or an errno; EADDRINUSE: another socket has the name.
int listenLocal(const std::string& name, UniqueFd* listener);
// Connects to the listener of that name, non-blocking. Returns 0 or an errno: ECONNREFUSED if there is none, EAGAIN if it has too
// many unaccepted connections, EACCES if its owner is neither this user nor root. `pid`: the listener's.
int connectLocal(const std::string& name, UniqueFd* connection, pid_t* pid);
// Accepts one connection; same rule for the peer's user. 0, EAGAIN if there is none, or another errno.
int acceptLocal(int listener, UniqueFd* connection);
// Whether packets of this peer may be accepted: its user is ours or root.
bool peerTrusted(int connection, pid_t* pid);
// The process at the other end, at the time when that end connected or began to listen.
struct PeerIdentity {
  pid_t pid = 0;  // 0: a process that this one cannot see
  uid_t uid = 0;
};
bool identifyPeer(int connection, PeerIdentity* identity);

// A listener, or a bound socket that may listen soon.
struct LocalListener {
  enum class Owner { kTrusted, kStranger, kUnknown };  // as peerTrusted(); unknown if the system does not report it
  std::string name;                                   // behind the requested prefix
  Owner owner = Owner::kUnknown;
};

// All listeners of this host (network namespace) whose name begins with `prefix`. The time grows with the host's sockets. An
// empty list if the host does not report them; empty optional: no descriptor or memory for the query.
std::optional<std::vector<LocalListener>> listLocalListeners(const std::string& prefix);

}  // namespace nd
