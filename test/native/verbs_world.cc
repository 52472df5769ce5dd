#include "verbs_world.h"

namespace verbstest {

fake::Fake& theFake() {
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

bool Sleeper::sleep(std::chrono::steady_clock::time_point until) {
  std::unique_lock<std::mutex> lock(mutex);
  const bool came = woken.wait_until(lock, until, [&] { return wakes != seen; });
  seen = wakes;
  return came;
}

void writeSge(uint32_t* to, uint64_t address, uint32_t length, uint32_t lkey) {
  to[kSgeAddressLo] = static_cast<uint32_t>(address);
  to[kSgeAddressHi] = static_cast<uint32_t>(address >> 32);
  to[kSgeLength] = length;
  to[kSgeLkey] = lkey;
}

uint32_t write(const TestQp& qp, const Wqe& w) {
  uint32_t* const words = qp.words();
  const uint32_t index = words[kQpSendProducer];
  uint32_t* const to =
      words + (kQpHeaderBytes + size_t{index & (qp.create.sendEntries - 1)} * qp.create.sendStride) / 4;
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

uint32_t writeReceive(const TestQp& qp, uint64_t address, uint32_t length, uint32_t lkey) {
  uint32_t* const words = qp.words();
  const uint32_t index = words[kQpReceiveProducer];
  uint32_t* const to = words + (kQpHeaderBytes + size_t{qp.create.sendEntries} * qp.create.sendStride +
                                size_t{index & (qp.create.receiveEntries - 1)} * qp.create.receiveStride) /
                                   4;
  to[kRwSgeCount] = length > 0 ? 1 : 0;
  writeSge(to + kReceiveWqeHeaderBytes / 4, address, length, lkey);
  storeWord(words + kQpReceiveProducer, index + 1);
  return index;
}

uint32_t writeReceive(const TestSrq& srq, uint64_t address, uint32_t length, uint32_t lkey) {
  uint32_t* const words = srq.words();
  const uint32_t index = words[kSrqProducer];
  uint32_t* const to = words + (kSrqHeaderBytes + size_t{index & (srq.create.entries - 1)} * srq.create.stride) / 4;
  to[kRwSgeCount] = length > 0 ? 1 : 0;
  writeSge(to + kReceiveWqeHeaderBytes / 4, address, length, lkey);
  storeWord(words + kSrqProducer, index + 1);
  return index;
}

std::vector<Cqe> take(const TestCq& cq) {
  uint32_t* const words = cq.words();
  std::vector<Cqe> out;
  uint32_t consumer = words[kCqConsumer];
  for (const uint32_t producer = loadWord(words + kCqProducer); consumer != producer; ++consumer) {
    Cqe one;
    std::memcpy(one.words, words + kCqHeaderBytes / 4 + size_t{consumer & (cq.entries - 1)} * (kCqeBytes / 4),
                kCqeBytes);
    out.push_back(one);
  }
  storeWord(words + kCqConsumer, consumer);
  return out;
}

std::vector<Cqe> poll(const TestCq& cq) {
  nd::verbs::progress(cq.handle);
  return take(cq);
}

World::World(bool opened) {
  rdma.reset();
  if (opened) open();
}

World::~World() {
  close();
  CHECK(rdma.left().empty());
  if (!rdma.left().empty()) std::fprintf(stderr, "left: %s\n", rdma.left().c_str());
}

void World::open() {
  std::string why;
  host = VerbsHca::open(&sleeper, &why);
  CHECK(host != nullptr);
  device = host->openDevice("fake0", &why);
  CHECK(device != nullptr);
  if (device == nullptr) std::fprintf(stderr, "%s\n", why.c_str());
  CHECK(host->allocatePd(device->number, &pd) == Status::kSuccess);
}

void World::close() {
  host.reset();
  for (auto& ring : rings) Rings::all().release(reinterpret_cast<uintptr_t>(ring->base));
  rings.clear();
}

std::shared_ptr<RingMemory> World::ring(uint64_t bytes) {
  rings.push_back(Rings::all().allocate(bytes));
  return rings.back();
}

Status World::make(TestCq* out, uint32_t entries) {
  out->entries = entries;
  const uint64_t bytes = kCqHeaderBytes + uint64_t{entries} * kCqeBytes;
  out->memory = ring(bytes);
  return host->createCq(device->number, reinterpret_cast<uintptr_t>(out->memory->base), bytes, entries, &out->handle);
}

Status World::make(TestSrq* out, uint32_t entries) {
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

Status World::make(TestQp* out, const TestCq& sendCq, const TestCq& receiveCq, const TestSrq* srq, uint32_t type,
                   uint32_t entries) {
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

QpAttributes World::attributes(uint32_t state) const {
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

Status World::step(const TestQp& qp, uint32_t state) {
  using namespace nd::qpmask;
  const bool ud = qp.create.type == kQptUd;
  const uint32_t init = kState | kPkeyIndex | kPort | (ud ? kQkey : kAccess);
  const uint32_t rtr =
      kState | (ud ? 0 : kPath | kPathMtu | kDestinationQpn | kReceivePsn | kResponderResources | kMinRnrTimer);
  const uint32_t rts = kState | kSendPsn | (ud ? 0 : kAckTimeout | kRetryCount | kRnrRetry | kInitiatorDepth);
  const uint32_t mask = state == kQpsInit  ? init
                        : state == kQpsRtr ? rtr
                        : state == kQpsRts ? rts
                                           : static_cast<uint32_t>(kState);
  return host->modifyQp(qp.handle, mask, attributes(state));
}

Status World::run(const TestQp& qp) {
  for (const uint32_t state : {kQpsInit, kQpsRtr, kQpsRts}) {
    const Status status = step(qp, state);
    if (status != Status::kSuccess) return status;
  }
  return Status::kSuccess;
}

Gid World::localGid() {
  Gid gid;
  const uint8_t raw[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1};
  std::copy(std::begin(raw), std::end(raw), gid.raw.begin());
  return gid;
}

Seen::Seen(Event&& taken) : Event(std::move(taken)) {
  const auto name = [&](std::initializer_list<uint32_t*> names) {
    const uint32_t* from = words;
    for (uint32_t* to : names) *to = *from++;
  };
  uint32_t qpn, qkey, code = 0;
  if (kind == Kind::kQp) name({&handle, &token, &event, &reason});
  if (kind == Kind::kCq || kind == Kind::kSrq) name({&handle, &event});
  if (kind == Kind::kCm)
    name({&event, &code, &handle, &listener, &responderResources, &initiatorDepth, &retryCount, &rnrRetryCount, &srq,
          &qpn, &qkey, &length});
  status = static_cast<int32_t>(code);
}

Seen World::await(Event::Kind kind) {
  const auto until = std::chrono::steady_clock::now() + kTimeout;
  for (;;) {
    Event event;
    while (host->events().take(&event))
      if (event.kind == kind) return Seen(std::move(event));
    if (!sleeper.sleep(until)) return Seen();
  }
}

std::vector<Seen> World::events() {
  std::vector<Seen> out;
  Event event;
  while (host->events().take(&event)) out.emplace_back(std::move(event));
  return out;
}

Ready::Ready(uint32_t entries, uint32_t type) {
  CHECK(world.make(&sendCq) == Status::kSuccess);
  CHECK(world.make(&receiveCq) == Status::kSuccess);
  CHECK(world.make(&qp, sendCq, receiveCq, nullptr, type, entries) == Status::kSuccess);
  CHECK(world.run(qp) == Status::kSuccess);
}

Ready::~Ready() = default;

}  // namespace verbstest
