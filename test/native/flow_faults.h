// Sockets that fail when a test requires it: the OS calls for sending are replaced. Include it in one source file of a
// program.
#pragma once
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// A socket, and the number of messages after which its buffer is full.
int fullFd = -1;
int roomFor = 0;

bool isFull(int fd) {
  if (fd != fullFd || roomFor-- > 0) return false;
  roomFor = 0;
  errno = EAGAIN;
  return true;
}

// The socket that reports once that an earlier message was refused.
int toldFd = -1;

bool isTold(int fd) {
  if (fd != toldFd) return false;
  toldFd = -1;
  errno = ECONNREFUSED;
  return true;
}

}  // namespace

extern "C" ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  return isFull(fd) || isTold(fd) ? -1 : syscall(SYS_sendto, fd, bytes, length, flags, nullptr, 0);
}
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return isFull(fd) || isTold(fd) ? -1 : syscall(SYS_sendmsg, fd, message, flags);
}
#ifdef __GLIBC__
using MessageFlags = int;
#else
using MessageFlags = unsigned;
#endif
extern "C" int sendmmsg(int fd, mmsghdr* messages, unsigned count, MessageFlags flags) {
  unsigned sent = 0;
  while (sent < count && !isFull(fd) && !isTold(fd) && syscall(SYS_sendmmsg, fd, messages + sent, 1, flags) == 1)
    sent++;
  return sent != 0 ? static_cast<int>(sent) : -1;
}
