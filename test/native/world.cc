#include "world.h"

namespace world {

Port::Port() = default;

Port::~Port() = default;

void Port::onEvent(const HcaEvent& event) {
  const uint32_t* const w = event.words;
  if (event.kind == HcaEvent::Kind::kQp) events.push_back({w[0], w[1], QpEvent(w[2]), w[3]});
  if (event.kind == HcaEvent::Kind::kCq) cqEvents.emplace_back(w[0], CqEvent(w[1]));
  if (event.kind == HcaEvent::Kind::kSrq) srqEvents.push_back({w[0], SrqEvent(w[1])});
}

int Port::count(QpEvent e) const {
  int n = 0;
  for (const Event& x : events) n += x.event == e;
  return n;
}

void Sink::notify(Status s) {
  status = uint32_t(s);
  calls++;
}

Node::Node(Net& n, const Clock& clock, uint8_t number, const EngineOptions& options)
    : net(n), link(n, address(number)), engine(link, clock, options), gid(address(number)) {
  engine.setSlot(number);
  CHECK(engine.attachKernel(&port, &kernel) == Status::kSuccess);
  CHECK(engine.allocatePd(kernel, &pd) == Status::kSuccess);
}

Node::~Node() = default;

Gid Node::address(uint8_t n) {
  Gid g;
  g.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, n};
  return g;
}

bool Node::step() {
  std::lock_guard<EngineLock> lock(engine.lock());
  return engine.poll(Stepper::kEngine);
}

uint64_t Node::deadline() {
  std::lock_guard<EngineLock> lock(engine.lock());
  return engine.nextDeadline();
}

uint64_t Node::counter(const char* name) {
  const auto& names = Engine::counterNames();
  const auto values = engine.counters();
  for (size_t i = 0; i < names.size(); i++)
    if (std::string(names[i]) == name) return values[i];
  CHECK(!"counter exists");
  return 0;
}

Buffer::Buffer(Node& n, uint64_t bytes, uint32_t access, uint64_t seed, uint64_t alignment)
    : node(n),
      words(n.share ? 0 : (bytes + alignment + 7) / 8),
      size(bytes),
      base((reinterpret_cast<uint64_t>(words.data()) + alignment - 1) / alignment * alignment) {
  if (n.share) {
    CHECK(allocateShared(bytes ? bytes : 1, &shared) == Status::kSuccess);
    base = shared->base;
    n.share(*shared);
  }
  Random r(seed);
  if (seed)
    for (uint64_t i = 0; i < bytes; i++) data()[i] = uint8_t(r.next());
  CHECK(n.engine.pinRange(at(), bytes ? bytes : 1, &range) == Status::kSuccess);
  CHECK(n.engine.registerMr(n.pd, at(), bytes ? bytes : 1, access, &lkey, &rkey) == Status::kSuccess);
}

Buffer::~Buffer() {
  node.engine.deregisterMr(node.pd, lkey);
  node.engine.unpinRange(range);
}

Wr Window::bind(Buffer& memory, uint64_t length, uint32_t access) {
  const uint32_t next = (key & ~0xFFu) | ((key + 1) & 0xFF);
  Wr r{kOpBindWindow, kSendFlagSignaled, {}};
  r.remote = memory.at();
  r.rkey = memory.lkey;
  r.access = access;
  r.compare = length;
  r.swap = uint64_t(next) << 32 | key;
  key = next;
  return r;
}

TestCq::TestCq(Node& n, uint32_t count) : node(n), entries(count) {
  const uint64_t bytes = kCqHeaderBytes + uint64_t(count) * kCqeBytes;
  CHECK(n.engine.allocateRing(bytes, &ring) == Status::kSuccess);
  CHECK(n.engine.createCq(n.kernel, ring, bytes, count, &handle) == Status::kSuccess);
}

TestCq::~TestCq() {
  node.engine.destroyCq(handle);
  node.engine.releaseRing(ring);
}

bool TestCq::poll(Cqe* c) {
  if (written() == consumer) return false;
  const uint32_t* w = words() + kCqHeaderBytes / 4 + size_t(consumer & (entries - 1)) * (kCqeBytes / 4);
  *c = {w[kCqeToken], w[kCqeWqe],       w[kCqeOpcode],    w[kCqeStatus], w[kCqeLength],
        w[kCqeFlags], w[kCqeImmediate], w[kCqeSourceQpn], w[kCqeVendor], w[kCqePkeyIndex]};
  consumer++;
  __atomic_store_n(words() + kCqConsumer, consumer, __ATOMIC_RELEASE);
  return true;
}

std::vector<Cqe> TestCq::drain() {
  std::vector<Cqe> all;
  Cqe c;
  while (poll(&c)) all.push_back(c);
  return all;
}

void TestCq::resize(uint32_t count, Status expected) {
  uint64_t fresh;
  const uint64_t bytes = kCqHeaderBytes + uint64_t(count) * kCqeBytes;
  CHECK(node.engine.allocateRing(bytes, &fresh) == Status::kSuccess);
  const Status s = node.engine.resizeCq(handle, fresh, bytes, count);
  CHECK_EQ(uint32_t(s), uint32_t(expected));
  if (s == Status::kSuccess) {
    node.engine.releaseRing(ring);
    ring = fresh;
    entries = count;
  } else {
    node.engine.releaseRing(fresh);
  }
}

TestSrq::TestSrq(Node& n, uint32_t count, uint32_t sges)
    : node(n), entries(count), sge(sges), stride(kReceiveWqeHeaderBytes + sges * kSgeBytes) {
  CHECK(n.engine.allocateRing(bytes(count), &ring) == Status::kSuccess);
  CHECK_EQ(uint32_t(n.engine.createSrq(request(), &handle)), 0u);
}

TestSrq::~TestSrq() {
  node.engine.destroySrq(handle);
  node.engine.releaseRing(ring);
}

uint32_t TestSrq::receive(const std::vector<Sge>& sges) {
  uint32_t* w = slot(producer);
  w[kRwSgeCount] = uint32_t(sges.size());
  TestQp::putSges(w + kReceiveWqeHeaderBytes / 4, sges);
  __atomic_store_n(words() + kSrqProducer, ++producer, __ATOMIC_SEQ_CST);
  if (const Handle qp = __atomic_load_n(words() + kSrqReceiveBell, __ATOMIC_SEQ_CST)) node.engine.doorbell(qp);
  return producer - 1;
}

Status TestSrq::limit(uint32_t n) {
  SrqAttributes a;
  a.limit = n;
  return node.engine.modifySrq(handle, srqmask::kLimit, a);
}

Status TestSrq::resize(uint32_t count) {
  SrqAttributes a;
  uint64_t fresh;
  CHECK(node.engine.allocateRing(bytes(count), &fresh) == Status::kSuccess);
  a.entries = count;
  a.ringAddress = fresh;
  a.ringBytes = bytes(count);
  const Status s = node.engine.modifySrq(handle, srqmask::kEntries, a);
  if (s == Status::kSuccess) {
    std::swap(ring, fresh);
    entries = count;
  }
  node.engine.releaseRing(fresh);
  return s;
}

TestQp::TestQp(Node& n, const QpShape& s, uint32_t tokenValue)
    : node(n), shape(s), sendCq(n, s.cqEntries), receiveCq(n, s.cqEntries), token(tokenValue) {
  sendStride = (kSendWqeHeaderBytes + std::max(s.sendSge * kSgeBytes, s.maxInline) + 63) & ~63u;
  receiveStride = kReceiveWqeHeaderBytes + s.receiveSge * kSgeBytes;
  ringBytes = kQpHeaderBytes + uint64_t(s.sendEntries) * sendStride + uint64_t(s.receiveEntries) * receiveStride;
  CHECK(n.engine.allocateRing(ringBytes, &ring) == Status::kSuccess);
  const QpCreate r = request();
  CHECK_EQ(uint32_t(n.engine.createQp(r, &handle, &qpn)), 0u);
}

QpCreate TestQp::request() const {
  QpCreate r;
  r.pd = node.pd;
  r.sendCq = sendCq.handle;
  r.receiveCq = receiveCq.handle;
  r.signalAll = shape.signalAll;
  r.ringAddress = ring;
  r.ringBytes = ringBytes;
  r.sendEntries = shape.sendEntries;
  r.sendStride = sendStride;
  r.sendSge = shape.sendSge;
  r.maxInline = shape.maxInline;
  r.receiveEntries = shape.receiveEntries;
  r.receiveStride = receiveStride;
  r.receiveSge = shape.receiveSge;
  r.token = token;
  r.type = shape.type;
  r.srq = shape.srq;
  r.pkeyTable = shape.pkeyTable;
  if (shape.srq) r.receiveEntries = 0;
  return r;
}

TestQp::~TestQp() {
  node.engine.destroyQp(handle);
  node.engine.releaseRing(ring);
}

uint32_t* TestQp::sendSlot(uint32_t i) {
  return reinterpret_cast<uint32_t*>(ring + kQpHeaderBytes + uint64_t(i & (shape.sendEntries - 1)) * sendStride);
}

uint32_t* TestQp::receiveSlot(uint32_t i) {
  return reinterpret_cast<uint32_t*>(ring + kQpHeaderBytes + uint64_t(shape.sendEntries) * sendStride +
                                     uint64_t(i & (shape.receiveEntries - 1)) * receiveStride);
}

uint32_t TestQp::state() {
  QpAttributes a;
  CHECK(node.engine.queryQp(handle, &a) == Status::kSuccess);
  return a.state;
}

void TestQp::putSges(uint32_t* w, const std::vector<Sge>& sges) {
  for (const Sge& s : sges) {
    w[kSgeAddressLo] = uint32_t(s.address);
    w[kSgeAddressHi] = uint32_t(s.address >> 32);
    w[kSgeLength] = s.length;
    w[kSgeLkey] = s.lkey;
    w += kSgeBytes / 4;
  }
}

uint32_t TestQp::write(const Wr& r) {
  uint32_t* w = sendSlot(sendProducer);
  w[kSwOpcode] = r.opcode;
  w[kSwFlags] = r.flags;
  w[kSwSgeCount] = r.flags & kSendFlagInline ? uint32_t(r.inlined.size()) : uint32_t(r.sges.size());
  w[kSwImmediate] = r.immediate;
  w[kSwRemoteLo] = uint32_t(r.remote);
  w[kSwRemoteHi] = uint32_t(r.remote >> 32);
  w[kSwRkey] = r.rkey;
  w[kSwAccess] = r.access;
  w[kSwCompareLo] = uint32_t(r.compare);
  w[kSwCompareHi] = uint32_t(r.compare >> 32);
  w[kSwSwapLo] = uint32_t(r.swap);
  w[kSwSwapHi] = uint32_t(r.swap >> 32);
  w[kSwAh] = r.ah;
  w[kSwRemoteQpn] = r.remoteQpn;
  w[kSwRemoteQkey] = r.remoteQkey;
  if (r.flags & kSendFlagInline) {
    std::copy(r.inlined.begin(), r.inlined.end(), reinterpret_cast<uint8_t*>(w + kSendWqeHeaderBytes / 4));
  } else {
    putSges(w + kSendWqeHeaderBytes / 4, r.sges);
  }
  __atomic_store_n(header() + kQpSendProducer, ++sendProducer, __ATOMIC_RELEASE);
  return sendProducer - 1;
}

uint32_t TestQp::post(const Wr& r) {
  const uint32_t index = write(r);
  node.engine.doorbell(handle);
  return index;
}

uint32_t TestQp::receive(const std::vector<Sge>& sges) {
  const uint32_t index = writeReceive(sges);
  if (__atomic_load_n(header() + kQpReceiveBell, __ATOMIC_SEQ_CST)) node.engine.doorbell(handle);
  return index;
}

uint32_t TestQp::writeReceive(const std::vector<Sge>& sges) {
  uint32_t* w = receiveSlot(receiveProducer);
  w[kRwSgeCount] = uint32_t(sges.size());
  putSges(w + kReceiveWqeHeaderBytes / 4, sges);
  __atomic_store_n(header() + kQpReceiveProducer, ++receiveProducer, __ATOMIC_SEQ_CST);
  return receiveProducer - 1;
}

Status TestQp::modify(uint32_t mask, const QpAttributes& a) { return node.engine.modifyQp(handle, mask, a); }

Status TestQp::toState(uint32_t state) {
  QpAttributes a;
  a.state = state;
  return modify(qpmask::kState, a);
}

QpAttributes attributesFor(Node& node, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA) {
  QpAttributes a;
  a.port = 1;
  a.pkeyIndex = isA ? l.pkeyIndexA : 0;
  a.access = l.access;
  a.path.source = node.gid;
  a.path.destination = peer;
  a.path.trafficClass = l.trafficClass;
  a.pathMtu = l.mtu;
  a.destinationQpn = peerQpn;
  a.receivePsn = isA ? l.psnB : l.psnA;
  a.sendPsn = isA ? l.psnA : l.psnB;
  a.responderResources = a.initiatorDepth = l.depth;
  a.minRnrTimer = l.rnrTimer;
  a.ackTimeout = l.ackTimeout;
  a.retryCount = l.retries;
  a.rnrRetry = l.rnrRetries;
  a.rnrTimeout = l.rnrTimeout;
  a.extensions = l.extensions;
  return a;
}

void bring(TestQp& qp, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA, uint32_t upTo) {
  QpAttributes a = attributesFor(qp.node, peer, peerQpn, l, isA);
  a.state = kQpsInit;
  CHECK_EQ(uint32_t(qp.modify(kInitMask, a)), 0u);
  if (upTo == kQpsInit) return;
  a.state = kQpsRtr;
  CHECK_EQ(uint32_t(qp.modify(qp.shape.type == kQptUc ? kRtrMaskUc : kRtrMask, a)), 0u);
  if (upTo == kQpsRtr) return;
  a.state = kQpsRts;
  CHECK_EQ(uint32_t(qp.modify(qp.shape.type == kQptUc ? kRtsMaskUc : kRtsMask, a)), 0u);
}

World::World(EngineOptions options) {
  a = std::make_unique<Node>(net, clock, 1, options);
  b = std::make_unique<Node>(net, clock, 2, options);
}

World::~World() = default;

void World::connect(TestQp& qa, TestQp& qb, const Link2& l) {
  bring(qa, qb.node.gid, qb.qpn, l, true);
  bring(qb, qa.node.gid, qa.qpn, l, false);
}

void World::pump() {
  for (uint32_t i = 0; i < 10'000'000; i++) {
    const bool moved = a->step();
    if (!(b->step() | moved)) return;
  }
  CHECK(!"the engines come to rest");
}

bool World::advance() {
  const uint64_t due = std::min(a->deadline(), b->deadline());
  if (due == UINT64_MAX) return false;
  if (due > clock.time) clock.time = due;
  return true;
}

bool World::until(const std::function<bool()>& done, uint64_t limitNs) {
  const uint64_t end = clock.time + limitNs;
  for (;;) {
    pump();
    if (done()) return true;
    if (clock.time >= end || !advance()) return false;
  }
}

Pair::Pair(const Link2& l, const QpShape& shape, const EngineOptions& options)
    : World(options), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
  connect(qa, qb, l);
}

Pair::~Pair() = default;

bool only(TestCq& cq, uint32_t wqe, uint32_t opcode, uint32_t status, uint32_t length) {
  const std::vector<Cqe> all = cq.drain();
  if (!CHECK_EQ(all.size(), 1u)) return false;
  bool ok = CHECK_EQ(all[0].wqe, wqe);
  ok &= CHECK_EQ(all[0].opcode, opcode);
  ok &= CHECK_EQ(all[0].status, status);
  if (status == kWcSuccess) ok &= CHECK_EQ(all[0].length, length);
  return ok;
}

}  // namespace world
