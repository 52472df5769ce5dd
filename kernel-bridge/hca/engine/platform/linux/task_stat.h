// What Linux reports on a thread: proc_pid_stat(5).
#pragma once
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "platform/unique_fd.h"

namespace nd {

struct TaskStat {
  static constexpr uint32_t kExiting = 4;  // PF_EXITING of the kernel's sched.h: it no longer runs code of its program
  char state = 0;
  uint32_t flags = 0;
};

// `path`: the file in /proc. Returns false if it is not available, with the reason in errno (ENOENT or ESRCH: the
// thread has ended).
inline bool readTaskStat(const char* path, TaskStat* stat) {
  char text[512];
  errno = 0;
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t length = file.valid() ? read(file.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return false;
  text[length] = 0;
  const char* const name = strrchr(text, ')');  // the name may contain anything
  return name != nullptr && sscanf(name, ") %c %*d %*d %*d %*d %*d %u", &stat->state, &stat->flags) == 2;
}

}  // namespace nd
