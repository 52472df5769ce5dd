// Tests of views: memory of a peer that stays mapped, whatever the peer does with it afterwards.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "direct_world.h"

using namespace world;

namespace {

constexpr uint64_t kPage = 4096, kBytes = 8 * kPage;
constexpr uint32_t kViews = kAllAccess | kAccessRemoteView;

// Memory from allocate() that peers may map.
struct Viewable : SharedBuffer {
  Viewable(Node& n, uint64_t bytes, uint32_t access = kViews, uint64_t seed = 7) : SharedBuffer(n, bytes, seed) {
    CHECK(n.engine.deregisterMr(n.pd, lkey) == Status::kSuccess);
    CHECK(n.engine.registerMr(n.pd, at(), bytes, access, &lkey, &rkey) == Status::kSuccess);
  }
};

struct View {
  DirectResult result = DirectResult::kRefused;
  FilePart part;
  Mapping pages;
  bool mapped = false;
  uint8_t* bytes() { return static_cast<uint8_t*>(pages.get()) + part.offset % kPage; }
};

View makeView(TestQp& by, uint64_t remote, uint32_t rkey, uint64_t length) {
  View view;
  view.result = by.node.engine.view(by.handle, length, remote, rkey, &view.part);
  if (view.result == DirectResult::kDone) view.mapped = view.pages.openView(view.part);
  return view;
}

DirectResult result(TestQp& by, uint64_t remote, uint32_t rkey, uint64_t length) {
  return makeView(by, remote, rkey, length).result;
}

uint32_t descriptors() {
  uint32_t count = 0;
  DIR* const open = opendir("/proc/self/fd");
  while (readdir(open) != nullptr) count++;
  closedir(open);
  return count;
}

// Requests the file of a view and receives it.
View meetAndLook(DirectConnection& w, SharedBuffer& memory, uint64_t offset, uint64_t length) {
  CHECK(result(w.qa, memory.at(offset), memory.rkey, length) == DirectResult::kNotMapped);
  CHECK_EQ(w.map(*w.a), 1u);
  View view = makeView(w.qa, memory.at(offset), memory.rkey, length);
  CHECK(view.result == DirectResult::kDone && view.mapped);
  return view;
}

}  // namespace

TEST(view_shows_what_the_owner_has) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{8}, uint64_t{5000}, kBytes - 1}) {
    check::note = "offset";
    check::noteNumber = offset;
    DirectConnection w;
    Viewable memory(*w.b, kBytes);
    const uint64_t length = kBytes - offset;
    View view = meetAndLook(w, memory, offset, length);
    CHECK(std::memcmp(view.bytes(), memory.data() + offset, length) == 0);
    memory.data()[kBytes - 1] ^= 0xFF;
    CHECK_EQ(view.bytes()[length - 1], memory.data()[kBytes - 1]);
  }
  check::note = "";
}

// A write to a view is visible only to the writer. From then on that page is private, and the others are still the
// owner's.
TEST(view_is_private) {
  DirectConnection w;
  Viewable memory(*w.b, kBytes);
  View view = meetAndLook(w, memory, 0, kBytes);
  std::memset(memory.data(), 1, kBytes);
  view.bytes()[100] = 9;
  CHECK_EQ(memory.data()[100], 1u);
  std::memset(memory.data(), 2, kBytes);
  CHECK_EQ(view.bytes()[100], 9u);
  CHECK_EQ(view.bytes()[101], 1u);
  CHECK_EQ(view.bytes()[kPage], 2u);
  // Another view does not show the write.
  View other = meetAndLook(w, memory, 0, kBytes);
  CHECK_EQ(other.bytes()[100], 2u);
}

TEST(view_rights) {
  struct Case {
    const char* name;
    bool done;
    uint32_t access;
    int64_t offset;
    uint64_t length;
    uint32_t rkeyChange;
    bool otherPd;
  };
  constexpr uint64_t kInner = 2 * kPage;
  const Case cases[] = {
      {"allowed", true, kViews, 0, kInner, 0, false},
      {"reading and views alone", true, kAccessRemoteRead | kAccessRemoteView, 0, kInner, 0, false},
      {"last byte", true, kViews, kInner - 1, 1, 0, false},
      {"without the right", false, kAllAccess, 0, kInner, 0, false},
      {"no bytes", false, kViews, 0, 0, 0, false},
      {"one byte too far", false, kViews, 1, kInner, 0, false},
      {"one byte below", false, kViews, -1, 8, 0, false},
      {"longer than all addresses", false, kViews, 0, UINT64_MAX, 0, false},
      {"another key", false, kViews, 0, 8, 1, false},
      {"another domain", false, kViews, 0, 8, 0, true},
  };
  for (const Case& c : cases) {
    check::note = c.name;
    DirectConnection w;
    SharedBuffer memory(*w.b, 3 * kInner, 3);
    Handle pd = w.b->pd;
    if (c.otherPd) CHECK(w.b->engine.allocatePd(w.b->kernel, &pd) == Status::kSuccess);
    uint32_t lkey = 0, rkey = 0;
    CHECK(w.b->engine.registerMr(pd, memory.at(kInner), kInner, c.access, &lkey, &rkey) == Status::kSuccess);
    const uint64_t at = memory.at(kInner) + uint64_t(c.offset), refused = w.a->counter("direct_refused");
    const uint32_t key = rkey + c.rkeyChange;
    CHECK(result(w.qa, at, key, c.length) == (c.done ? DirectResult::kNotMapped : DirectResult::kRefused));
    // A refused view requests no file.
    CHECK_EQ(w.map(*w.a), c.done ? 1u : 0u);
    CHECK(result(w.qa, at, key, c.length) == (c.done ? DirectResult::kDone : DirectResult::kRefused));
    CHECK_EQ(w.a->counter("direct_refused") - refused, c.done || c.length == 0 ? 0u : 2u);
    CHECK(w.b->engine.deregisterMr(pd, lkey) == Status::kSuccess);
  }
  check::note = "";
}

// The view right requires the read right of the key and of the queue pair. A window neither has nor grants it.
TEST(view_right_goes_with_reading) {
  DirectConnection w;
  Viewable memory(*w.b, kBytes);
  uint32_t lkey = 0, rkey = 0;
  for (const uint32_t access : {kAccessRemoteView, kViews & ~kAccessRemoteRead})
    CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), kBytes, access, &lkey, &rkey) == Status::kInvalidParameter);
  static_cast<void>(meetAndLook(w, memory, 0, kBytes));
  QpAttributes a;
  a.access = kAccessRemoteWriteBit | kAccessRemoteAtomic;
  CHECK(w.qb.modify(qpmask::kAccess, a) == Status::kSuccess);
  CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
  a.access = kAccessRemoteRead;
  CHECK(w.qb.modify(qpmask::kAccess, a) == Status::kSuccess);
  CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kNotMapped);
  Window window(*w.b);
  const auto bind = [&](uint32_t access) {
    Wr r{kOpBindWindow, kSendFlagSignaled, {}};
    const uint32_t next = (window.key & ~0xFFu) | ((window.key + 1) & 0xFF);
    r.remote = memory.at();
    r.rkey = memory.lkey;
    r.access = access;
    r.compare = kBytes;
    r.swap = uint64_t(next) << 32 | window.key;
    w.qb.post(r);
    w.pump();
    const uint32_t status = w.qb.sendCq.drain().at(0).status;
    if (status == kWcSuccess) window.key = next;
    return status;
  };
  CHECK_EQ(bind(kAccessRemoteRead), kWcSuccess);
  CHECK(result(w.qa, memory.at(), window.key, kBytes) == DirectResult::kRefused);
}

// Each view uses a descriptor, which is requested from the peer each time. None is kept, and the mapping for requests
// stays.
TEST(view_requests_a_descriptor) {
  DirectConnection w;
  Viewable memory(*w.b, kBytes);
  w.meet(memory);  // without a view, its descriptor is closed
  const uint8_t* const requests = w.pa->maps.findFile(uint32_t(memory.memory->id), memory.at(), kBytes, true);
  CHECK(requests != nullptr);
  const uint32_t before = descriptors();
  for (int round = 0; round < 3; round++) {
    for (int again = 0; again < 3; again++)
      CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kNotMapped);
    CHECK_EQ(w.map(*w.a), 1u);
    CHECK_EQ(w.map(*w.a), 0u);
    CHECK_EQ(descriptors(), before + 1);
    View view = makeView(w.qa, memory.at(), memory.rkey, kBytes);
    CHECK(view.mapped);
    view.part.fd.reset();
    CHECK_EQ(descriptors(), before);
    CHECK(w.pa->maps.findFile(uint32_t(memory.memory->id), memory.at(), kBytes, true) == requests);
  }
  // A descriptor that is not fetched is closed with the memory or with the peer.
  CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kNotMapped);
  CHECK_EQ(w.map(*w.a), 1u);
  w.pa->maps.remove(1);
  CHECK_EQ(descriptors(), before);
}

TEST(view_outlives_its_owner) {
  std::vector<uint8_t> bytes;
  View view;
  {
    DirectConnection w;
    Viewable memory(*w.b, kBytes);
    view = meetAndLook(w, memory, 100, kBytes - 100);
    CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
    memory.lkey = 0;
    CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
    memory.data()[100] ^= 0xFF;  // the page is still the owner's
    bytes.assign(memory.data() + 100, memory.data() + kBytes);
    CHECK(std::memcmp(view.bytes(), bytes.data(), bytes.size()) == 0);
    w.pa->close();
    CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
  }
  view.part.fd.reset();
  CHECK(std::memcmp(view.bytes(), bytes.data(), bytes.size()) == 0);
}

// Memory that the owner has withdrawn from a peer is no longer available to it, on any path.
TEST(view_of_memory_that_was_reclaimed) {
  DirectConnection w;
  Viewable memory(*w.b, kBytes);
  static_cast<void>(meetAndLook(w, memory, 0, kBytes));
  DirectPeer::Refusal why;
  const DirectPeer::Request request = {w.qa.qpn,    w.qb.qpn, memory.rkey, kAccessRemoteRead, wire::kDefaultPkey,
                                       memory.at(), 8};
  CHECK(w.pa->peer.enter(request, w.pa->maps, &why) != nullptr);
  w.b->link.keyTable->setEvictionTimeoutNs(1'000'000);
  CHECK(w.b->engine.deregisterMr(w.b->pd, memory.lkey) == Status::kSuccess);
  CHECK(!w.pa->peer.leave());
  CHECK(memory.memory->reclaimed);
  CHECK(w.b->engine.registerMr(w.b->pd, memory.at(), kBytes, kViews, &memory.lkey, &memory.rkey) == Status::kSuccess);
  CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
}

// Views fail without direct access: for a peer that does not publish, and over the network.
TEST(view_needs_direct_access) {
  LocalConnection carried;
  Viewable other(*carried.b, kBytes);
  CHECK(result(carried.qa, other.at(), other.rkey, kBytes) == DirectResult::kRefused);
  Pair wire;
  Viewable far(*wire.b, kBytes);
  CHECK(result(wire.qa, far.at(), far.rkey, kBytes) == DirectResult::kRefused);
  DirectConnection w;
  Viewable memory(*w.b, kBytes);
  TestQp unconnected(*w.a);
  CHECK(result(unconnected, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
  for (const Handle handle : {Handle(0), ~Handle(0)}) {
    FilePart part;
    CHECK(w.a->engine.view(handle, kBytes, memory.at(), memory.rkey, &part) == DirectResult::kRefused);
  }
  CHECK(w.qa.toState(kQpsSqd) == Status::kSuccess);
  CHECK(result(w.qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
}

// Between queue pairs of one process, nothing is published, because the file is available directly.
TEST(view_within_a_process) {
  World w;
  HostCounters counters;
  CHECK(w.a->link.publish());
  const auto self = std::make_shared<LocalPair>(1, counters);
  CHECK(self->startSelf());
  w.a->link.pair = self;
  w.a->link.local = true;
  TestQp qa(*w.a), qb(*w.a);
  w.connect(qa, qb);
  Viewable memory(*w.a, kBytes);
  View view = makeView(qa, memory.at(5000), memory.rkey, 1000);
  CHECK(view.result == DirectResult::kDone && view.mapped);
  CHECK(std::memcmp(view.bytes(), memory.data() + 5000, 1000) == 0);
  memory.data()[5999] ^= 0xFF;
  CHECK_EQ(view.bytes()[999], memory.data()[5999]);
  view.bytes()[0] ^= 0xFF;
  CHECK(view.bytes()[0] != memory.data()[5000]);
  CHECK(result(qa, memory.at(1), memory.rkey, kBytes) == DirectResult::kRefused);
  CHECK(result(qa, memory.at(), memory.rkey + 1, kBytes) == DirectResult::kRefused);
  SharedBuffer closed(*w.a, kBytes);
  CHECK(result(qa, closed.at(), closed.rkey, kBytes) == DirectResult::kRefused);
  Buffer heap(*w.a, 4096, kViews);
  CHECK(result(qa, heap.at(), heap.rkey, 4096) == DirectResult::kRefused);
  memory.memory->reclaimed = true;
  CHECK(result(qa, memory.at(), memory.rkey, kBytes) == DirectResult::kRefused);
}

// Tests files that could raise a signal, or cost memory, later.
TEST(view_of_unsafe_files) {
  const auto file = [](int seals, bool whole) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    CHECK(ftruncate(fd.get(), off_t(2 * kPage)) == 0);
    if (whole) CHECK(posix_fallocate(fd.get(), 0, off_t(2 * kPage)) == 0);
    if (seals) CHECK(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
    return fd;
  };
  const auto opens = [](UniqueFd fd, uint64_t fileBytes, uint64_t offset, uint64_t length) {
    Mapping pages;
    return pages.openView({std::move(fd), fileBytes, offset, length});
  };
  CHECK(opens(file(F_SEAL_SHRINK, true), 2 * kPage, 0, 2 * kPage));
  CHECK(opens(file(F_SEAL_SHRINK | F_SEAL_WRITE, true), 2 * kPage, kPage + 1, kPage - 1));
  CHECK(!opens(file(0, true), 2 * kPage, 0, 2 * kPage));
  CHECK(!opens(file(F_SEAL_GROW, true), 2 * kPage, 0, 2 * kPage));
  CHECK(!opens(file(F_SEAL_SHRINK, false), 2 * kPage, 0, 2 * kPage));
  CHECK(!opens(file(F_SEAL_SHRINK, true), 3 * kPage, 0, kPage));
  CHECK(!opens(file(F_SEAL_SHRINK, true), 2 * kPage, 0, 0));
  CHECK(!opens(file(F_SEAL_SHRINK, true), 2 * kPage, 1, 2 * kPage));
  CHECK(!opens(file(F_SEAL_SHRINK, true), 2 * kPage, 2 * kPage + 1, UINT64_MAX));
  CHECK(!opens(UniqueFd(), 2 * kPage, 0, kPage));
}
