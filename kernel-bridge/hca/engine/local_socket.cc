#include "local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace nd {
namespace {

constexpr int kBacklog = 512;

bool makeAddress(const std::string& name, sockaddr_un* address, socklen_t* bytes) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address->sun_path) return false;
  std::memcpy(address->sun_path + 1, name.data(), name.size());  // the leading zero makes it abstract
  *bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

UniqueFd makeSocket() { return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

int listenLocal(const std::string& name, UniqueFd* listener) {
  sockaddr_un address;
  socklen_t bytes;
  if (!makeAddress(name, &address, &bytes)) return ENAMETOOLONG;
  UniqueFd fd = makeSocket();
  if (!fd.valid()) return errno;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return errno;
  if (listen(fd.get(), kBacklog) != 0) return errno;
  *listener = std::move(fd);
  return 0;
}

int connectLocal(const std::string& name, UniqueFd* connection, pid_t* pid) {
  sockaddr_un address;
  socklen_t bytes;
  if (!makeAddress(name, &address, &bytes)) return ENAMETOOLONG;
  UniqueFd fd = makeSocket();
  if (!fd.valid()) return errno;
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return errno;
  if (!peerTrusted(fd.get(), pid)) return EACCES;
  *connection = std::move(fd);
  return 0;
}

int probeLocal(const std::string& name, UniqueFd* socket) {
  sockaddr_un address;
  socklen_t bytes;
  if (!makeAddress(name, &address, &bytes)) return ENAMETOOLONG;
  if (!socket->valid()) *socket = makeSocket();
  if (!socket->valid()) return errno;
  if (connect(socket->get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return errno == EAGAIN ? 0 : errno;
  socket->reset();  // it is connected now
  return 0;
}

int acceptLocal(int listener, UniqueFd* connection) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) return errno;
  if (!peerTrusted(fd.get(), nullptr)) return EACCES;
  *connection = std::move(fd);
  return 0;
}

bool identifyPeer(int connection, PeerIdentity* identity) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return false;
  *identity = {credentials.pid, credentials.uid};
  return true;
}

bool peerTrusted(int connection, pid_t* pid) {
  PeerIdentity peer;
  if (!identifyPeer(connection, &peer)) return false;
  if (pid != nullptr) *pid = peer.pid;
  return peer.uid == geteuid() || peer.uid == 0;
}

std::optional<std::vector<std::string>> listLocalListeners(const std::string& prefix) {
  std::vector<std::string> names;
  FILE* file = std::fopen("/proc/net/unix", "re");
  if (file == nullptr) {
    if (errno == ENOENT || errno == EACCES) return names;
    return std::nullopt;
  }
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    // Num RefCount Protocol Flags Type St Inode Path; accepted sockets repeat their listener's name, only the
    // listener itself has the flag "accepts connections".
    unsigned flags = 0, type = 0;
    int nameAt = 0;
    if (std::sscanf(line, "%*s %*x %*x %x %x %*x %*u %n", &flags, &type, &nameAt) != 2 || nameAt == 0) continue;
    constexpr unsigned kAcceptsConnections = 0x10000;
    if ((flags & kAcceptsConnections) == 0 || type != SOCK_SEQPACKET || line[nameAt] != '@') continue;
    std::string name(line + nameAt + 1);
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    if (name.compare(0, prefix.size(), prefix) == 0) names.push_back(name.substr(prefix.size()));
  }
  std::fclose(file);
  return names;
}

}  // namespace nd
