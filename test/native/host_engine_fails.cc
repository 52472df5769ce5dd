// The engine's thread fails permanently because a descriptor that wakes it was closed, as by a program that closes
// descriptors that it does not own. The kernels are notified, the thread ends instead of spinning, and the engine can
// be stopped.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "engine/engine.h"
#include "host/host.h"
#include "host_test.h"
#include "platform/os.h"
#include "process/hosted_engine.h"
#include "progress/engine_thread.h"

using namespace nd;

namespace {

struct Clocked final : Clock {
  uint64_t now() const override { return monotonicNs(); }
};

struct Told final : KernelPort {
  std::atomic<int> failures{0}, error{0};
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent& event) override {
    if (event.kind != HcaEvent::Kind::kFatal) return;
    error = static_cast<int>(event.words[0]);
    failures++;
  }
};

// Returns the current descriptors of this kind in the process.
std::set<int> descriptors(const std::string& kind) {
  std::set<int> found;
  DIR* folder = opendir("/proc/self/fd");
  for (dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    char target[64] = {};
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    if (readlink(path.c_str(), target, sizeof target - 1) > 0 && kind == target) found.insert(std::atoi(entry->d_name));
  }
  closedir(folder);
  return found;
}

uint64_t processorNs() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return uint64_t(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1'000'000'000u +
         uint64_t(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1'000u;
}

void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

void failsWithoutItsDescriptor() {
  Clocked clock;
  Host host{clock};
  Engine engine{host, clock, EngineOptions()};
  HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess);
  Told first, second;
  KernelId ids[2];
  HOST_CHECK(engine.attachKernel(&first, &ids[0]) == Status::kSuccess);
  HOST_CHECK(engine.attachKernel(&second, &ids[1]) == Status::kSuccess);
  const char* kind = "anon_inode:[eventfd]";
  const std::set<int> before = descriptors(kind);
  HostedEngine hosted{engine, host};
  EngineThread thread(hosted, clock);
  HOST_CHECK(thread.start());
  int wakeUp = -1;
  for (const int fd : descriptors(kind))
    if (before.count(fd) == 0) wakeUp = fd;
  HOST_CHECK(wakeUp >= 0);
  pause(50);
  HOST_CHECK(first.failures == 0);
  // A duplicate of the descriptor still wakes the thread, which then finds that its own descriptor is invalid.
  const int copy = dup(wakeUp);
  close(wakeUp);
  const uint64_t one = 1;
  HOST_CHECK(write(copy, &one, sizeof one) == ssize_t(sizeof one));
  for (int waited = 0; (first.failures == 0 || second.failures == 0) && waited < kTimeoutMs; waited += 5) pause(5);
  HOST_CHECK(first.failures == 1 && first.error == EBADF);
  HOST_CHECK(second.failures == 1 && second.error == EBADF);
  close(copy);
  // The thread does not spin, and reports once.
  const uint64_t used = processorNs();
  pause(200);
  HOST_CHECK(processorNs() - used < 100'000'000u);
  HOST_CHECK(first.failures == 1);
  HOST_CHECK(thread.stop(kTimeoutMs));
  engine.detachKernel(ids[0]);
  engine.detachKernel(ids[1]);
  host.stop();
}

}  // namespace

int main() {
  hosttest::privateNetwork();
  failsWithoutItsDescriptor();
  return hosttest::finish("host_engine_fails");
}
