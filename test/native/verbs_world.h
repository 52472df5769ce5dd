// A host of real HCAs over the fake of rdma-core (fake_rdma/), with what the user-mode provider does to rings: tests write WQEs and
// read CQEs.
#pragma once
#include <dlfcn.h>
#include <libgen.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "check.h"
#include "fake_rdma/fake.h"
#include "verbs/data_path.h"
#include "verbs/host.h"

namespace verbstest {

using namespace nd;
using namespace nd::abi;
using nd::verbs::CmAddress;
using nd::verbs::CmParameters;
using nd::verbs::Device;
using nd::verbs::Event;
using nd::verbs::Host;
using nd::verbs::RingMemory;
using nd::verbs::Rings;

// What has not come by then does not come.
constexpr auto kPatience = std::chrono::seconds(30);

// The fake, which the library under test loads from the same file: beside this program.
inline fake::Fake& theFake() {
  static fake::Fake* const found = [] {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) std::abort();
    const std::string file = std::string(dirname(self)) + "/libfake_rdma.so";
    setenv("NETWORKDIRECT_IBVERBS", file.c_str(), 1);
    setenv("NETWORKDIRECT_RDMACM", file.c_str(), 1);
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<fake::Fake* (*)()>(dlsym(handle, "fake_rdma"))();
  }();
  return *found;
}

// The kernel's thread as the event thread sees it.
struct Sleeper : Waker {
  Sleeper() {
    wake = [](Waker* self) {
      auto& me = *static_cast<Sleeper*>(self);
      std::lock_guard<std::mutex> lock(me.mutex);
      ++me.wakes;
      me.woken.notify_all();
    };
  }
  std::mutex mutex;
  std::condition_variable woken;
  uint64_t wakes = 0, seen = 0;
  bool sleep(std::chrono::steady_clock::time_point until) {
    std::unique_lock<std::mutex> lock(mutex);
    const bool came = woken.wait_until(lock, until, [&] { return wakes != seen; });
    seen = wakes;
    return came;
  }
};

struct TestCq {
  Handle handle = 0;
  std::shared_ptr<RingMemory> memory;
  uint32_t entries = 0;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
  bool dead() const { return loadWord(words() + kCqState) != 0; }
};

struct TestQp {
  Handle handle = 0;
  uint32_t qpn = 0, token = 0;
  std::shared_ptr<RingMemory> memory;
  QpCreate create;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
  uint32_t state() const { return loadWord(words() + kQpState); }
};

struct TestSrq {
  Handle handle = 0;
  std::shared_ptr<RingMemory> memory;
  SrqCreate create;
  uint32_t* words() const { return reinterpret_cast<uint32_t*>(memory->base); }
};

// A send WQE by its words.
struct Wqe {
  uint32_t opcode = kOpSend, flags = kSendFlagSignaled;
  std::vector<std::pair<uint64_t, std::pair<uint32_t, uint32_t>>> sges;  // address, (length, lkey)
  std::vector<uint8_t> inlined;
  uint32_t immediate = 0, rkey = 0, access = 0;
  uint64_t remote = 0, compare = 0, swap = 0;
  uint32_t ah = 0, remoteQpn = 0, remoteQkey = 0;
};

struct Cqe {
  uint32_t words[kCqeBytes / 4];
  uint32_t token() const { return words[kCqeToken]; }
  uint32_t wqe() const { return words[kCqeWqe]; }
  uint32_t status() const { return words[kCqeStatus]; }
  uint32_t opcode() const { return words[kCqeOpcode]; }
  uint32_t flags() const { return words[kCqeFlags]; }
};

inline void writeSge(uint32_t* to, uint64_t address, uint32_t length, uint32_t lkey) {
  to[kSgeAddressLo] = static_cast<uint32_t>(address);
  to[kSgeAddressHi] = static_cast<uint32_t>(address >> 32);
  to[kSgeLength] = length;
  to[kSgeLkey] = lkey;
}

// Writes a WQE at the ring's end; nobody hears of it before the doorbell.
inline uint32_t write(const TestQp& qp, const Wqe& w) {
  uint32_t* const words = qp.words();
  const uint32_t index = words[kQpSendProducer];
  uint32_t* const to = words + (kQpHeaderBytes + size_t{index & (qp.create.sendEntries - 1)} * qp.create.sendStride) / 4;
  std::memset(to, 0, kSendWqeHeaderBytes);
  to[kSwOpcode] = w.opcode;
  to[kSwFlags] = w.flags;
  to[kSwImmediate] = w.immediate;
  to[kSwRemoteLo] = static_cast<uint32_t>(w.remote);
  to[kSwRemoteHi] = static_cast<uint32_t>(w.remote >> 32);
  to[kSwRkey] = w.rkey;
  to[kSwAccess] = w.access;
  to[kSwCompareLo] = static_cast<uint32_t>(w.compare);
  to[kSwCompareHi] = static_cast<uint32_t>(w.compare >> 32);
  to[kSwSwapLo] = static_cast<uint32_t>(w.swap);
  to[kSwSwapHi] = static_cast<uint32_t>(w.swap >> 32);
  to[kSwAh] = w.ah;
  to[kSwRemoteQpn] = w.remoteQpn;
  to[kSwRemoteQkey] = w.remoteQkey;
  uint32_t* const body = to + kSendWqeHeaderBytes / 4;
  if ((w.flags & kSendFlagInline) != 0) {
    to[kSwSgeCount] = static_cast<uint32_t>(w.inlined.size());
    const size_t room = qp.create.sendStride - kSendWqeHeaderBytes;
    if (!w.inlined.empty()) std::memcpy(body, w.inlined.data(), std::min(room, w.inlined.size()));
  } else {
    to[kSwSgeCount] = static_cast<uint32_t>(w.sges.size());
    for (size_t i = 0; i < w.sges.size() && i < qp.create.sendSge; ++i)
      writeSge(body + 4 * i, w.sges[i].first, w.sges[i].second.first, w.sges[i].second.second);
  }
  storeWord(words + kQpSendProducer, index + 1);
  return index;
}

inline uint32_t writeReceive(const TestQp& qp, uint64_t address = 0, uint32_t length = 0, uint32_t lkey = 0) {
  uint32_t* const words = qp.words();
  const uint32_t index = words[kQpReceiveProducer];
  uint32_t* const to = words + (kQpHeaderBytes + size_t{qp.create.sendEntries} * qp.create.sendStride +
                                size_t{index & (qp.create.receiveEntries - 1)} * qp.create.receiveStride) / 4;
  to[kRwSgeCount] = length > 0 ? 1 : 0;
  writeSge(to + kReceiveWqeHeaderBytes / 4, address, length, lkey);
  storeWord(words + kQpReceiveProducer, index + 1);
  return index;
}

inline uint32_t writeReceive(const TestSrq& srq, uint64_t address = 0, uint32_t length = 0, uint32_t lkey = 0) {
  uint32_t* const words = srq.words();
  const uint32_t index = words[kSrqProducer];
  uint32_t* const to = words + (kSrqHeaderBytes + size_t{index & (srq.create.entries - 1)} * srq.create.stride) / 4;
  to[kRwSgeCount] = length > 0 ? 1 : 0;
  writeSge(to + kReceiveWqeHeaderBytes / 4, address, length, lkey);
  storeWord(words + kSrqProducer, index + 1);
  return index;
}

// The CQEs that are in the ring and were not taken, without fetching more.
inline std::vector<Cqe> take(const TestCq& cq) {
  uint32_t* const words = cq.words();
  std::vector<Cqe> out;
  uint32_t consumer = words[kCqConsumer];
  for (const uint32_t producer = loadWord(words + kCqProducer); consumer != producer; ++consumer) {
    Cqe one;
    std::memcpy(one.words, words + kCqHeaderBytes / 4 + size_t{consumer & (cq.entries - 1)} * (kCqeBytes / 4), kCqeBytes);
    out.push_back(one);
  }
  storeWord(words + kCqConsumer, consumer);
  return out;
}

// Fetches, as a poll of an empty ring does.
inline std::vector<Cqe> poll(const TestCq& cq) {
  nd::verbs::progress(cq.handle);
  return take(cq);
}

class World {
 public:
  fake::Fake& rdma = theFake();
  Sleeper sleeper;
  std::unique_ptr<Host> host;
  Device* device = nullptr;
  Handle pd = 0;
  std::vector<std::shared_ptr<RingMemory>> rings;

  explicit World(bool opened = true) {
    rdma.reset();
    if (opened) open();
  }
  ~World() {
    close();
    CHECK(rdma.left().empty());
    if (!rdma.left().empty()) std::fprintf(stderr, "left: %s\n", rdma.left().c_str());
  }
  void open() {
    std::string why;
    host = Host::open(&sleeper, &why);
    CHECK(host != nullptr);
    device = host->openDevice("fake0", &why);
    CHECK(device != nullptr);
    if (device == nullptr) std::fprintf(stderr, "%s\n", why.c_str());
    CHECK(host->allocatePd(*device, &pd) == Status::kSuccess);
  }
  // Ends all with the host.
  void close() {
    host.reset();
    for (auto& ring : rings) Rings::all().release(reinterpret_cast<uintptr_t>(ring->base));
    rings.clear();
  }
  std::shared_ptr<RingMemory> ring(uint64_t bytes) {
    rings.push_back(Rings::all().allocate(bytes));
    return rings.back();
  }

  Status make(TestCq* out, uint32_t entries = 64) {
    out->entries = entries;
    const uint64_t bytes = kCqHeaderBytes + uint64_t{entries} * kCqeBytes;
    out->memory = ring(bytes);
    return host->createCq(*device, reinterpret_cast<uintptr_t>(out->memory->base), bytes, entries, &out->handle);
  }
  Status make(TestSrq* out, uint32_t entries = 16) {
    SrqCreate& c = out->create;
    c.pd = pd;
    c.entries = entries;
    c.sge = 2;
    c.stride = kReceiveWqeHeaderBytes + 2 * kSgeBytes;
    c.ringBytes = kSrqHeaderBytes + uint64_t{entries} * c.stride;
    out->memory = ring(c.ringBytes);
    c.ringAddress = reinterpret_cast<uintptr_t>(out->memory->base);
    return host->createSrq(c, &out->handle);
  }
  Status make(TestQp* out, const TestCq& sendCq, const TestCq& receiveCq, const TestSrq* srq = nullptr, uint32_t type = kQptRc,
              uint32_t entries = 16) {
    QpCreate& c = out->create;
    c.pd = pd;
    c.sendCq = sendCq.handle;
    c.receiveCq = receiveCq.handle;
    c.srq = srq != nullptr ? srq->handle : 0;
    c.type = type;
    c.sendEntries = c.receiveEntries = entries;
    c.sendSge = c.receiveSge = 4;
    c.maxInline = 128;
    c.sendStride = 192;
    c.receiveStride = kReceiveWqeHeaderBytes + 4 * kSgeBytes;
    c.token = out->token = ++tokens_;
    c.ringBytes = kQpHeaderBytes + uint64_t{entries} * (c.sendStride + c.receiveStride);
    out->memory = ring(c.ringBytes);
    c.ringAddress = reinterpret_cast<uintptr_t>(out->memory->base);
    return host->createQp(c, &out->handle, &out->qpn);
  }
  uint32_t initiatorDepth = 2;  // of queue pairs that are moved from now on
  QpAttributes attributes(uint32_t state) const {
    QpAttributes a;
    a.state = state;
    a.access = kAccessRemoteRead | kAccessRemoteWriteBit;
    a.port = 1;
    a.path.source = localGid();
    a.path.destination = localGid();
    a.pathMtu = 1024;
    a.destinationQpn = 0x77;
    a.receivePsn = 5;
    a.sendPsn = 9;
    a.responderResources = 3;
    a.initiatorDepth = initiatorDepth;
    a.minRnrTimer = 12;
    a.ackTimeout = 14;
    a.retryCount = 6;
    a.rnrRetry = 5;
    a.qkey = 0x1111;
    return a;
  }
  // One step to a state of the way to RTS.
  Status step(const TestQp& qp, uint32_t state) {
    using namespace nd::qpmask;
    const bool ud = qp.create.type == kQptUd;
    const uint32_t init = kState | kPkeyIndex | kPort | (ud ? kQkey : kAccess);
    const uint32_t rtr = kState | (ud ? 0 : kPath | kPathMtu | kDestinationQpn | kReceivePsn | kResponderResources | kMinRnrTimer);
    const uint32_t rts = kState | kSendPsn | (ud ? 0 : kAckTimeout | kRetryCount | kRnrRetry | kInitiatorDepth);
    const uint32_t mask = state == kQpsInit ? init : state == kQpsRtr ? rtr : state == kQpsRts ? rts : static_cast<uint32_t>(kState);
    return host->modifyQp(qp.handle, mask, attributes(state));
  }
  Status run(const TestQp& qp) {
    for (const uint32_t state : {kQpsInit, kQpsRtr, kQpsRts}) {
      const Status status = step(qp, state);
      if (status != Status::kSuccess) return status;
    }
    return Status::kSuccess;
  }
  static Gid localGid() {
    Gid gid;
    const uint8_t raw[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1};
    std::copy(std::begin(raw), std::end(raw), gid.raw.begin());
    return gid;
  }
  // The next event of this kind; others are dropped. kNone: none came.
  Event await(Event::Kind kind) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      Event event;
      while (host->events().take(&event))
        if (event.kind == kind) return event;
      if (!sleeper.sleep(until)) return Event();
    }
  }
  // Events that are there.
  std::vector<Event> events() {
    std::vector<Event> out;
    Event event;
    while (host->events().take(&event)) out.push_back(event);
    return out;
  }

 private:
  uint32_t tokens_ = 100;
};

// A pair of queues that is ready to send: most tests begin with it.
struct Ready {
  World world;
  TestCq sendCq, receiveCq;
  TestQp qp;
  explicit Ready(uint32_t entries = 16, uint32_t type = kQptRc) {
    CHECK(world.make(&sendCq) == Status::kSuccess);
    CHECK(world.make(&receiveCq) == Status::kSuccess);
    CHECK(world.make(&qp, sendCq, receiveCq, nullptr, type, entries) == Status::kSuccess);
    CHECK(world.run(qp) == Status::kSuccess);
  }
};

}  // namespace verbstest
