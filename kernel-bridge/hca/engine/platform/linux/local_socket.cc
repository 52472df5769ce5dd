#include "platform/local_socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

static bool isTrusted(uid_t user) { return user == geteuid() || user == 0; }

bool peerTrusted(int connection, pid_t* pid) {
  PeerIdentity peer;
  if (!identifyPeer(connection, &peer)) return false;
  if (pid != nullptr) *pid = peer.pid;
  return isTrusted(peer.uid);
}

namespace {

constexpr uint32_t kStateListening = 10, kStateUnconnected = 7;  // TCP_LISTEN, TCP_CLOSE: of UNIX sockets as well
constexpr uint16_t kDiagUser = 7;                                // UNIX_DIAG_UID, newer than some headers
constexpr uint32_t kShowUser = 0x40;
constexpr size_t kDiagBytes = 32768;  // the most that the system fills at once

using Listeners = std::vector<LocalListener>;

void takeDiag(const nlmsghdr* message, const std::string& prefix, Listeners* found) {
  const auto* socket = static_cast<const unix_diag_msg*>(NLMSG_DATA(message));
  if (socket->udiag_type != SOCK_SEQPACKET) return;
  LocalListener listener;
  bool named = false;
  auto left = static_cast<int>(NLMSG_PAYLOAD(message, sizeof *socket));
  for (const auto* a = reinterpret_cast<const rtattr*>(socket + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
    const auto* bytes = static_cast<const char*>(RTA_DATA(a));
    const size_t length = RTA_PAYLOAD(a);
    if (a->rta_type == UNIX_DIAG_NAME && length > prefix.size() && bytes[0] == 0 &&
        std::memcmp(bytes + 1, prefix.data(), prefix.size()) == 0) {
      named = true;
      listener.name.assign(bytes + 1 + prefix.size(), length - 1 - prefix.size());
    }
    if (a->rta_type == kDiagUser && length == sizeof(uint32_t)) {
      uint32_t user;
      std::memcpy(&user, bytes, sizeof user);
      listener.owner = isTrusted(user) ? LocalListener::Owner::kTrusted : LocalListener::Owner::kStranger;
    }
  }
  if (named) found->push_back(std::move(listener));
}

// By sock_diag(7), which reports the owner of each socket. Returns 0; EMFILE or another error; ENOTSUP: not supported here.
int listByDiag(const std::string& prefix, Listeners* found) {
  const UniqueFd diag(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!diag.valid()) return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ? errno : ENOTSUP;
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.request.sdiag_family = AF_UNIX;
  ask.request.udiag_states = 1u << kStateListening | 1u << kStateUnconnected;
  ask.request.udiag_show = UDIAG_SHOW_NAME | kShowUser;
  if (::send(diag.get(), &ask, sizeof ask, 0) < 0) return ENOTSUP;
  std::vector<uint32_t> room(kDiagBytes / sizeof(uint32_t));
  for (;;) {
    const ssize_t n = recv(diag.get(), room.data(), kDiagBytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ENOTSUP;
    auto left = static_cast<unsigned>(n);
    for (auto* m = reinterpret_cast<nlmsghdr*>(room.data()); NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
      if (m->nlmsg_type == NLMSG_DONE) return 0;
      if (m->nlmsg_type == NLMSG_ERROR) return ENOTSUP;
      takeDiag(m, prefix, found);
    }
  }
}

std::optional<Listeners> listByProc(const std::string& prefix);

}  // namespace

std::optional<Listeners> listLocalListeners(const std::string& prefix) {
  Listeners found;
  const int error = listByDiag(prefix, &found);
  if (error == 0) return found;
  return error == ENOTSUP ? listByProc(prefix) : std::nullopt;
}

namespace {

std::optional<Listeners> listByProc(const std::string& prefix) {
  Listeners names;
  FILE* file = std::fopen("/proc/net/unix", "re");
  if (file == nullptr) {
    if (errno == ENOENT || errno == EACCES) return names;
    return std::nullopt;
  }
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    // Num RefCount Protocol Flags Type St Inode Path. Accepted sockets have their listener's name, and are connected.
    unsigned type = 0, state = 0;
    int nameAt = 0;
    if (std::sscanf(line, "%*s %*x %*x %*x %x %x %*u %n", &type, &state, &nameAt) != 2 || nameAt == 0) continue;
    constexpr unsigned kUnconnected = 1;
    if (state != kUnconnected || type != SOCK_SEQPACKET || line[nameAt] != '@') continue;
    std::string name(line + nameAt + 1);
    while (!name.empty() && (name.back() == '\n' || name.back() == ' ')) name.pop_back();
    if (name.compare(0, prefix.size(), prefix) == 0) names.push_back({name.substr(prefix.size()), LocalListener::Owner::kUnknown});
  }
  std::fclose(file);
  return names;
}

}  // namespace

}  // namespace nd
