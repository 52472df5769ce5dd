#include "platform/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "platform/linux/task_stat.h"

namespace nd {
namespace {

// Returns whether all threads of the process are exiting. Its files, whose closing its peers see, are closed before the
// process counts as ended.
bool isEnding(ProcessId process) {
  char path[64];
  const int folder = snprintf(path, sizeof path, "/proc/%lld/task/", static_cast<long long>(process));
  DIR* const threads = opendir(path);
  bool ending = threads != nullptr;
  while (const dirent* const thread = ending ? readdir(threads) : nullptr) {
    if (thread->d_name[0] == '.') continue;
    snprintf(path + folder, sizeof path - static_cast<size_t>(folder), "%.16s/stat", thread->d_name);
    TaskStat stat;
    ending = readTaskStat(path, &stat) ? (stat.flags & TaskStat::kExiting) != 0 : errno == ENOENT || errno == ESRCH;
  }
  if (threads != nullptr) closedir(threads);
  return ending;
}

}  // namespace

uint64_t monotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t wallClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

void fillRandom(void* buffer, size_t bytes) {
  auto* p = static_cast<uint8_t*>(buffer);
  while (bytes > 0) {
    const ssize_t n = getrandom(p, bytes, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      std::abort();
    }
    p += n;
    bytes -= static_cast<size_t>(n);
  }
}

ProcessId ownProcessId() { return getpid(); }

bool hasEnded(ProcessId process) {
  const UniqueFd watched(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  if (!watched.valid()) return errno == ESRCH;
  pollfd end{watched.get(), POLLIN, 0};
  return poll(&end, 1, 0) == 1 || isEnding(process);
}

void yieldThread() { sched_yield(); }

Barrier barrierOfAllThreads() {
  const auto call = [](int command) { return syscall(SYS_membarrier, command, 0, 0); };
  if (call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0) return nullptr;
  return [] { syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0); };
}

void keepLibraryLoaded() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&keepLibraryLoaded), &info) != 0 && info.dli_fname != nullptr)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

bool atEndOfProcess(void (*end)()) { return std::atexit(end) == 0; }

void* findSymbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

int createFile(const std::string& path, UniqueFd* file) {
  file->reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return file->valid() ? 0 : errno;
}

int writeFile(Descriptor file, const void* bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = write(file, static_cast<const uint8_t*>(bytes) + done, length - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    done += static_cast<size_t>(n);
  }
  return 0;
}

void closeDescriptor(Descriptor descriptor) { close(descriptor); }
UniqueFd duplicateDescriptor(Descriptor descriptor) { return UniqueFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

void* allocateAligned(size_t alignment, size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

void freeAligned(void* memory) { std::free(memory); }

}  // namespace nd
