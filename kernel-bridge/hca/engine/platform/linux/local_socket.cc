#include "platform/local_socket.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "platform/linux/pieces.h"
#include "platform/linux/socket_options.h"

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

int connectLocal(const std::string& name, UniqueFd* connection, ProcessId* process) {
  sockaddr_un address;
  socklen_t bytes;
  if (!makeAddress(name, &address, &bytes)) return ENAMETOOLONG;
  UniqueFd fd = makeSocket();
  if (!fd.valid()) return errno;
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return errno;
  if (!peerTrusted(fd.get(), process)) return EACCES;
  *connection = std::move(fd);
  return 0;
}

int acceptLocal(Descriptor listener, UniqueFd* connection) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.valid()) return errno;
  if (!peerTrusted(fd.get(), nullptr)) return EACCES;
  *connection = std::move(fd);
  return 0;
}

void refuseLocal(Descriptor listener) { shutdown(listener, SHUT_RDWR); }

bool identifyPeer(Descriptor connection, PeerIdentity* identity) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return false;
  *identity = {credentials.pid, credentials.uid, credentials.uid == geteuid()};
  return true;
}

bool peerTrusted(Descriptor connection, ProcessId* process) {
  PeerIdentity peer;
  if (!identifyPeer(connection, &peer)) return false;
  if (process != nullptr) *process = peer.process;
  return peer.ownUser || peer.user == 0;
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────

namespace {

// Room for as many descriptors as may be passed, plus one for alignment. The kernel drops any others.
union PassedControl {
  char bytes[CMSG_SPACE(kMostPassed * sizeof(int))];
  cmsghdr align;
};

}  // namespace

int sendLocal(Descriptor connection, const Piece* pieces, uint32_t count, const Descriptor* passed,
              uint32_t passedCount) {
  PassedControl control{};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(vectors(pieces));
  message.msg_iovlen = count;
  if (passedCount != 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(passedCount * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(passedCount * sizeof(int));
    std::memcpy(CMSG_DATA(c), passed, passedCount * sizeof(int));
  }
  for (;;) {
    if (sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

int64_t receiveLocal(Descriptor connection, void* bytes, uint64_t room, UniqueFd* passed, uint32_t* passedCount) {
  PassedControl control;
  iovec piece = {bytes, room};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (passed != nullptr) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
  }
  ssize_t n;
  do {
    n = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return -errno;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      UniqueFd taken(fd);  // all now belong to this process
      if (*passedCount < kMostPassed) passed[(*passedCount)++] = std::move(taken);
    }
  }
  return n;
}

bool hasEndedLocal(Descriptor connection) {
  pollfd waited{connection, POLLRDHUP, 0};
  int n;
  do {
    n = poll(&waited, 1, 0);
  } while (n < 0 && errno == EINTR);
  return n > 0 && (waited.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
}

void widenLocal(Descriptor connection, uint32_t bytes) { setSendBuffer(connection, bytes); }

// ── Who listens ─────────────────────────────────────────────────────────────────────────────────────────────

namespace {

constexpr uint32_t kStateListening = 10, kStateUnconnected = 7;  // TCP_LISTEN, TCP_CLOSE: also used for UNIX sockets
constexpr uint16_t kDiagUser = 7;                                // UNIX_DIAG_UID, newer than some headers
constexpr uint32_t kShowUser = 0x40;
constexpr size_t kDiagBytes = 32768;  // the maximum that the kernel fills at once

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
      listener.owner =
          user == geteuid() || user == 0 ? LocalListener::Owner::kTrusted : LocalListener::Owner::kStranger;
    }
  }
  if (named) found->push_back(std::move(listener));
}

// Lists the listeners by sock_diag(7), which reports the owner of each socket. Returns 0, ENOTSUP if that is not
// supported here, EMFILE, or another error.
int listByDiag(const std::string& prefix, Listeners* found) {
  const UniqueFd diag(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!diag.valid()) return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ? errno : ENOTSUP;
  struct {
    nlmsghdr header;
    unix_diag_req request;
  } query{};
  query.header.nlmsg_len = sizeof query;
  query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  query.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  query.request.sdiag_family = AF_UNIX;
  query.request.udiag_states = 1u << kStateListening | 1u << kStateUnconnected;
  query.request.udiag_show = UDIAG_SHOW_NAME | kShowUser;
  if (::send(diag.get(), &query, sizeof query, 0) < 0) return ENOTSUP;
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
    if (name.compare(0, prefix.size(), prefix) == 0)
      names.push_back({name.substr(prefix.size()), LocalListener::Owner::kUnknown});
  }
  std::fclose(file);
  return names;
}

}  // namespace

}  // namespace nd
