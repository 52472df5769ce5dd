// Tests of memory from allocate(): its file, how long the file is kept, and what the HCA knows about it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "platform/shared_memory.h"
#include "world.h"

using namespace world;

// Whether a byte of memory is mapped.
static bool mapped(uint64_t address) {
  unsigned char present;
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &present) == 0;
}

static bool openFile(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(shared_memory_is_a_sealed_file) {
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  std::shared_ptr<const SharedRange> a;
  CHECK(allocateShared(0, &a) == Status::kInvalidParameter);
  CHECK(allocateShared(UINT64_MAX, &a) == Status::kInvalidParameter);
  CHECK(!a);
  CHECK(allocateShared(page + 1, &a) == Status::kSuccess);
  CHECK_EQ(a->length, 2 * page);
  CHECK_EQ(a->base % page, 0u);
  const int fd = a->fd.get();
  a->seal(false);
  CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  const int seals = fcntl(fd, F_GET_SEALS);
  CHECK_EQ(uint32_t(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)),
           uint32_t(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(ftruncate(fd, off_t(page)) != 0);
  CHECK(ftruncate(fd, off_t(4 * page)) != 0);
  // A write through one mapping is visible in another mapping of the file, which cannot be writable.
  auto* bytes = reinterpret_cast<uint8_t*>(a->base);
  for (uint64_t i = 0; i < a->length; i++) CHECK_EQ(bytes[i], 0);
  bytes[page] = 42;
  CHECK(mmap(nullptr, a->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  void* view = mmap(nullptr, a->length, PROT_READ, MAP_SHARED, fd, 0);
  if (CHECK(view != MAP_FAILED)) {
    CHECK_EQ(static_cast<uint8_t*>(view)[page], 42);
    munmap(view, a->length);
  }
  // A forked child shares the memory.
  const pid_t child = fork();
  if (child == 0) {
    bytes[0] = 7;
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_EQ(bytes[0], 7);
}

TEST(shared_memory_on_huge_pages_begins_on_one) {
  std::shared_ptr<const SharedRange> a;
  CHECK(allocateShared((4u << 20) + 1, &a) == Status::kSuccess);
  CHECK_EQ(a->base % (2u << 20), 0u);
  CHECK(mapped(a->base) && mapped(a->base + a->length - 1));
}

TEST(shared_memory_is_found_and_given_back) {
  const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  std::shared_ptr<const SharedRange> a, b;
  CHECK(allocateShared(3 * page, &a) == Status::kSuccess);
  CHECK(allocateShared(page, &b) == Status::kSuccess);
  CHECK(a->id != b->id);
  CHECK(sharedRangeAt(a->base, a->length) == a);
  CHECK(sharedRangeAt(a->base + page, page) == a);
  CHECK(sharedRangeAt(b->base + page - 1, 1) == b);
  CHECK(!sharedRangeAt(a->base + 1, a->length));
  CHECK(!sharedRangeAt(a->base + page, UINT64_MAX));
  CHECK(!sharedRangeAt(16, 1));
  const uint64_t base = a->base;
  const int fd = a->fd.get();
  a.reset();
  CHECK(!mapped(base));
  CHECK(!openFile(fd));
  CHECK(!sharedRangeAt(base, 1));
}

TEST(shared_memory_that_is_pinned_stays) {
  World w;
  Node& n = *w.a;
  std::shared_ptr<const SharedRange> a;
  CHECK(allocateShared(1 << 16, &a) == Status::kSuccess);
  const uint64_t base = a->base;
  uint64_t first, second, other;
  uint32_t lkey, rkey;
  CHECK(n.engine.pinRange(base, 1 << 16, &first) == Status::kSuccess);
  CHECK(n.engine.pinRange(base + 100, 1000, &second) == Status::kSuccess);
  CHECK(n.engine.registerMr(n.pd, base + 200, 100, 0, &lkey, &rkey) == Status::kSuccess);
  CHECK(n.engine.sharedAt(base + 200, 100) == a);
  const uint64_t own[2] = {};
  CHECK(n.engine.pinRange(reinterpret_cast<uint64_t>(own), sizeof own, &other) == Status::kSuccess);
  CHECK(!n.engine.sharedAt(reinterpret_cast<uint64_t>(own), 8));
  // The file has no other holder now.
  a.reset();
  CHECK(mapped(base));
  n.engine.unpinRange(first);
  CHECK(mapped(base));
  CHECK(n.engine.sharedAt(base + 200, 100) != nullptr);
  CHECK(!n.engine.sharedAt(base, 100));
  n.engine.unpinRange(second);
  CHECK(!mapped(base));
  CHECK(!n.engine.sharedAt(base + 200, 100));
  n.engine.deregisterMr(n.pd, lkey);
  n.engine.unpinRange(other);
}

TEST(shared_memory_without_file_descriptors) {
  struct rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  struct rlimit none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  std::shared_ptr<const SharedRange> a;
  const Status status = allocateShared(4096, &a);
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(status == Status::kTooManyOpenedFiles);
  CHECK(!a);
}

// All HCAs of a process are notified, as long as they are registered.
TEST(shared_memory_that_peers_know_is_freed) {
  uint32_t first = 0, second = 0;
  const auto count = [](void* heard) { ++*static_cast<uint32_t*>(heard); };
  const auto freeOne = [](bool offered) {
    std::shared_ptr<const SharedRange> a;
    CHECK(allocateShared(4096, &a) == Status::kSuccess);
    a->offered = offered;
  };
  const uint32_t before = offeredRangesFreed();
  onOfferedRangeFreed(count, &first);
  onOfferedRangeFreed(count, &second);
  freeOne(false);
  CHECK(first == 0 && second == 0 && offeredRangesFreed() == before);
  freeOne(true);
  CHECK(first == 1 && second == 1 && offeredRangesFreed() == before + 1);
  endOnOfferedRangeFreed(&second);
  freeOne(true);
  CHECK(first == 2 && second == 1);
  endOnOfferedRangeFreed(&first);
  freeOne(true);
  CHECK(first == 2 && second == 1 && offeredRangesFreed() == before + 3);
}
