// A peer of this user that owns a slot but is not an HCA. Its frames are written by hand, to test what such a peer may
// do.
#pragma once
#include <map>
#include <vector>

#include "host_peer.h"
#include "local/local_pairs.h"

namespace hosttest {

// Sends the bytes of a frame over `connection`. False: the other side has closed it.
inline bool sendBytes(int connection, iovec* pieces, size_t count, const std::vector<int>& fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPassed * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) >= 0;
}

// Owns a slot, and connects to another slot as its owner.
struct Impostor {
  const uint32_t slot;
  UniqueFd listener, out, in;
  std::map<FrameKind, UniqueFd[kMostPassed]> kept;
  explicit Impostor(uint32_t own) : slot(own) {
    HOST_CHECK(listenLocal(nd::ownName("slot/") + std::to_string(own), &listener) == 0);
  }
  void send(uint32_t to, FrameKind kind, const void* body, uint32_t length, const std::vector<int>& fds = {}) {
    ProcessId pid;
    if (!out.valid()) HOST_CHECK(connectLocal(nd::ownName("slot/") + std::to_string(to), &out, &pid) == 0);
    Frame frame;
    frame.kind = kind;
    uint8_t header[Frame::kHeaderBytes];
    frame.encodeHeader(header);
    iovec pieces[] = {{header, sizeof header}, {const_cast<void*>(body), length}};
    HOST_CHECK(sendBytes(out.get(), pieces, 2, fds));
  }
  void say(uint32_t to, FrameKind kind, uint32_t reason = LocalHello::kYes, const std::vector<int>& fds = {}) {
    LocalHello hello;
    hello.slot = slot;
    hello.reason = reason;
    send(to, kind, &hello, sizeof hello, fds);
  }
  // Receives the next frame of that kind, and keeps its descriptors. False: none arrives.
  bool hears(FrameKind kind, LocalHello* hello) {
    for (;;) {
      const int from = in.valid() ? in.get() : listener.get();
      pollfd waits{from, POLLIN, 0};
      if (::poll(&waits, 1, kTimeoutMs) != 1) return false;
      if (!in.valid()) {
        in.reset(accept4(from, nullptr, nullptr, SOCK_CLOEXEC));
        continue;
      }
      uint8_t bytes[Frame::kMaxBytes];
      alignas(cmsghdr) char control[CMSG_SPACE(kMostPassed * sizeof(int))];
      iovec piece = {bytes, sizeof bytes};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t n = recvmsg(in.get(), &message, MSG_CMSG_CLOEXEC);
      Frame frame;
      if (n <= 0 || !frame.decode(bytes, static_cast<uint32_t>(n))) return false;
      const cmsghdr* const c = CMSG_FIRSTHDR(&message);
      for (size_t i = 0; c != nullptr && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        kept[frame.kind][i].reset(fd);
      }
      if (frame.kind != kind) continue;
      std::memcpy(hello, frame.body, std::min<size_t>(frame.bodyLength, sizeof *hello));
      return true;
    }
  }
};

}  // namespace hosttest
