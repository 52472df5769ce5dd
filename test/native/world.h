// Two (or more) HCAs on a network in memory, under a clock moved by hand, with seeded faults.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "engine/engine.h"
#include "world_net.h"

namespace world {

using namespace nd;
using namespace nd::abi;

struct Event {
  Handle qp;
  uint32_t token;
  QpEvent event;
  uint32_t reason;
};

struct Port final : KernelPort {
  std::vector<Event> events;
  std::vector<Handle> cqErrors;
  struct SrqNews {
    Handle srq;
    SrqEvent event;
  };
  std::vector<SrqNews> srqEvents;
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onQpEvent(Handle qp, uint32_t token, QpEvent event, uint32_t reason) override {
    events.push_back({qp, token, event, reason});
  }
  void onCqError(Handle cq) override { cqErrors.push_back(cq); }
  void onSrqEvent(Handle srq, SrqEvent event) override { srqEvents.push_back({srq, event}); }
  int count(QpEvent e) const {
    int n = 0;
    for (const Event& x : events) n += x.event == e;
    return n;
  }
};

struct Sink final : NotifySink {
  std::atomic<int> calls{0};
  std::atomic<uint32_t> status{0};
  void notify(Status s) override {
    status = uint32_t(s);
    calls++;
  }
};

struct Node {
  Net& net;
  FakeLink link;
  Engine engine;
  Port port;
  KernelId kernel = 0;
  Handle pd = 0;
  Gid gid;
  // If set, Buffer has memory of allocate(), which the peer has mapped (local_world.h).
  std::function<void(const SharedRange&)> share;
  Node(Net& n, const Clock& clock, uint8_t number, const EngineOptions& options)
      : net(n), link(n, address(number)), engine(link, clock, options), gid(address(number)) {
    engine.setSlot(number);
    CHECK(engine.attachKernel(&port, &kernel) == Status::kSuccess);
    CHECK(engine.allocatePd(kernel, &pd) == Status::kSuccess);
  }
  static Gid address(uint8_t n) {
    Gid g;
    g.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, n};
    return g;
  }
  bool step() {
    std::lock_guard<EngineLock> lock(engine.lock());
    return engine.poll(Stepper::kEngine);
  }
  uint64_t deadline() {
    std::lock_guard<EngineLock> lock(engine.lock());
    return engine.nextDeadline();
  }
  uint64_t counter(const char* name) {
    const auto& names = Engine::counterNames();
    const auto values = engine.counters();
    for (size_t i = 0; i < names.size(); i++)
      if (std::string(names[i]) == name) return values[i];
    CHECK(!"counter exists");
    return 0;
  }
};

constexpr uint32_t kAllAccess = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite |
                                kAccessMwBind;

struct Buffer {
  Node& node;
  std::shared_ptr<const SharedRange> shared;
  std::vector<uint64_t> words;
  uint64_t size, base, range = 0;
  uint32_t lkey = 0, rkey = 0;
  Buffer(Node& n, uint64_t bytes, uint32_t access = kAllAccess, uint64_t seed = 0, uint64_t alignment = 8)
      : node(n), words(n.share ? 0 : (bytes + alignment + 7) / 8), size(bytes),
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
  ~Buffer() {
    node.engine.deregisterMr(node.pd, lkey);
    node.engine.unpinRange(range);
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(base); }
  uint64_t at(uint64_t offset = 0) { return base + offset; }
};

struct Sge {
  uint64_t address;
  uint32_t length, lkey;
};

struct Wr {
  uint32_t opcode = kOpSend, flags = kSendFlagSignaled;
  std::vector<Sge> sges;
  uint32_t immediate = 0;
  uint64_t remote = 0;
  uint32_t rkey = 0, access = 0;
  uint64_t compare = 0, swap = 0;
  std::vector<uint8_t> inlined;
  uint32_t ah = 0, remoteQpn = 0, remoteQkey = 0;
};

// A memory window; each request to bind it gives it another key.
struct Window {
  Node& node;
  Handle handle = 0;
  uint32_t key = 0;
  explicit Window(Node& n) : node(n) { CHECK(n.engine.allocateMw(n.pd, &handle, &key) == Status::kSuccess); }
  ~Window() { CHECK(node.engine.deallocateMw(handle) == Status::kSuccess); }
  Wr bind(Buffer& memory, uint64_t length, uint32_t access = kAccessRemoteRead) {
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
};

struct Cqe {
  uint32_t token, wqe, opcode, status, length, flags, immediate, sourceQpn, vendor, pkeyIndex;
};

struct TestCq {
  Node& node;
  Handle handle = 0;
  uint64_t ring = 0;
  uint32_t entries;
  uint32_t consumer = 0;
  TestCq(Node& n, uint32_t count) : node(n), entries(count) {
    const uint64_t bytes = kCqHeaderBytes + uint64_t(count) * kCqeBytes;
    CHECK(n.engine.allocateRing(bytes, &ring) == Status::kSuccess);
    CHECK(n.engine.createCq(n.kernel, ring, bytes, count, &handle) == Status::kSuccess);
  }
  ~TestCq() {
    node.engine.destroyCq(handle);
    node.engine.releaseRing(ring);
  }
  uint32_t* words() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t written() { return __atomic_load_n(words() + kCqProducer, __ATOMIC_ACQUIRE); }
  bool dead() { return __atomic_load_n(words() + kCqState, __ATOMIC_ACQUIRE) != 0; }
  bool poll(Cqe* c) {
    if (written() == consumer) return false;
    const uint32_t* w = words() + kCqHeaderBytes / 4 + size_t(consumer & (entries - 1)) * (kCqeBytes / 4);
    *c = {w[kCqeToken], w[kCqeWqe],   w[kCqeOpcode],    w[kCqeStatus],    w[kCqeLength],
          w[kCqeFlags], w[kCqeImmediate], w[kCqeSourceQpn], w[kCqeVendor], w[kCqePkeyIndex]};
    consumer++;
    __atomic_store_n(words() + kCqConsumer, consumer, __ATOMIC_RELEASE);
    return true;
  }
  std::vector<Cqe> drain() {
    std::vector<Cqe> all;
    Cqe c;
    while (poll(&c)) all.push_back(c);
    return all;
  }
  void resize(uint32_t count, Status expected = Status::kSuccess) {
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
};

struct QpShape {
  uint32_t sendEntries = 64, sendSge = 4, maxInline = 128, receiveEntries = 64, receiveSge = 4, cqEntries = 256;
  bool signalAll = false;
  uint32_t type = kQptRc;
  Handle srq = 0, pkeyTable = 0;
};

struct TestSrq {
  Node& node;
  Handle handle = 0;
  uint64_t ring = 0;
  uint32_t entries, sge, stride, producer = 0;
  explicit TestSrq(Node& n, uint32_t count = 8, uint32_t sges = 2)
      : node(n), entries(count), sge(sges), stride(kReceiveWqeHeaderBytes + sges * kSgeBytes) {
    CHECK(n.engine.allocateRing(bytes(count), &ring) == Status::kSuccess);
    CHECK_EQ(uint32_t(n.engine.createSrq(request(), &handle)), 0u);
  }
  ~TestSrq() {
    node.engine.destroySrq(handle);
    node.engine.releaseRing(ring);
  }
  uint64_t bytes(uint32_t count) const { return kSrqHeaderBytes + uint64_t(count) * stride; }
  SrqCreate request() const { return {node.kernel, node.pd, ring, bytes(entries), entries, stride, sge}; }
  uint32_t* words() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t* slot(uint32_t i) {
    return reinterpret_cast<uint32_t*>(ring + kSrqHeaderBytes + uint64_t(i & (entries - 1)) * stride);
  }
  uint32_t taken() { return __atomic_load_n(words() + kSrqConsumer, __ATOMIC_ACQUIRE); }
  inline uint32_t receive(const std::vector<Sge>& sges);
  Status limit(uint32_t n) {
    SrqAttributes a;
    a.limit = n;
    return node.engine.modifySrq(handle, srqmask::kLimit, a);
  }
  Status resize(uint32_t count) {
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
};

struct TestQp {
  Node& node;
  QpShape shape;
  TestCq sendCq, receiveCq;
  Handle handle = 0;
  uint32_t qpn = 0, token;
  uint64_t ring = 0, ringBytes;
  uint32_t sendStride, receiveStride;
  uint32_t sendProducer = 0, receiveProducer = 0;
  explicit TestQp(Node& n, const QpShape& s = {}, uint32_t tokenValue = 77)
      : node(n), shape(s), sendCq(n, s.cqEntries), receiveCq(n, s.cqEntries), token(tokenValue) {
    sendStride = (kSendWqeHeaderBytes + std::max(s.sendSge * kSgeBytes, s.maxInline) + 63) & ~63u;
    receiveStride = kReceiveWqeHeaderBytes + s.receiveSge * kSgeBytes;
    ringBytes = kQpHeaderBytes + uint64_t(s.sendEntries) * sendStride + uint64_t(s.receiveEntries) * receiveStride;
    CHECK(n.engine.allocateRing(ringBytes, &ring) == Status::kSuccess);
    const QpCreate r = request();
    CHECK_EQ(uint32_t(n.engine.createQp(r, &handle, &qpn)), 0u);
  }
  QpCreate request() const {
    QpCreate r;
    r.kernel = node.kernel;
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
  ~TestQp() {
    node.engine.destroyQp(handle);
    node.engine.releaseRing(ring);
  }
  uint32_t* header() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t* sendSlot(uint32_t i) {
    return reinterpret_cast<uint32_t*>(ring + kQpHeaderBytes + uint64_t(i & (shape.sendEntries - 1)) * sendStride);
  }
  uint32_t* receiveSlot(uint32_t i) {
    return reinterpret_cast<uint32_t*>(ring + kQpHeaderBytes + uint64_t(shape.sendEntries) * sendStride +
                                       uint64_t(i & (shape.receiveEntries - 1)) * receiveStride);
  }
  uint32_t stateWord() { return __atomic_load_n(header() + kQpState, __ATOMIC_ACQUIRE); }
  uint32_t unfencedWord() { return __atomic_load_n(header() + kQpUnfenced, __ATOMIC_ACQUIRE); }
  uint32_t state() {
    QpAttributes a;
    CHECK(node.engine.queryQp(handle, &a) == Status::kSuccess);
    return a.state;
  }
  static void putSges(uint32_t* w, const std::vector<Sge>& sges) {
    for (const Sge& s : sges) {
      w[kSgeAddressLo] = uint32_t(s.address);
      w[kSgeAddressHi] = uint32_t(s.address >> 32);
      w[kSgeLength] = s.length;
      w[kSgeLkey] = s.lkey;
      w += kSgeBytes / 4;
    }
  }
  // Writes the WQE without telling anybody.
  uint32_t write(const Wr& r) {
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
  uint32_t post(const Wr& r) {
    const uint32_t index = write(r);
    node.engine.doorbell(handle);
    return index;
  }
  uint32_t receive(const std::vector<Sge>& sges) {
    const uint32_t index = writeReceive(sges);
    if (__atomic_load_n(header() + kQpReceiveBell, __ATOMIC_SEQ_CST)) node.engine.doorbell(handle);
    return index;
  }
  // Writes the WQE without telling anybody.
  uint32_t writeReceive(const std::vector<Sge>& sges) {
    uint32_t* w = receiveSlot(receiveProducer);
    w[kRwSgeCount] = uint32_t(sges.size());
    putSges(w + kReceiveWqeHeaderBytes / 4, sges);
    __atomic_store_n(header() + kQpReceiveProducer, ++receiveProducer, __ATOMIC_SEQ_CST);
    return receiveProducer - 1;
  }
  Status modify(uint32_t mask, const QpAttributes& a) { return node.engine.modifyQp(handle, mask, a); }
  Status toState(uint32_t state) {
    QpAttributes a;
    a.state = state;
    return modify(qpmask::kState, a);
  }
};

uint32_t TestSrq::receive(const std::vector<Sge>& sges) {
  uint32_t* w = slot(producer);
  w[kRwSgeCount] = uint32_t(sges.size());
  TestQp::putSges(w + kReceiveWqeHeaderBytes / 4, sges);
  __atomic_store_n(words() + kSrqProducer, ++producer, __ATOMIC_SEQ_CST);
  if (const Handle qp = __atomic_load_n(words() + kSrqReceiveBell, __ATOMIC_SEQ_CST)) node.engine.doorbell(qp);
  return producer - 1;
}

struct Link2 {  // how two QPs are connected
  uint32_t mtu = 1024, psnA = 100, psnB = 5000, depth = 16, rnrTimer = 12, ackTimeout = 14, retries = 7, rnrRetries = 6;
  uint32_t patience = 0, extensions = 0;
  uint32_t access = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite;
  uint8_t trafficClass = 0;
  uint32_t pkeyIndexA = 0;
};

constexpr uint32_t kInitMask = qpmask::kState | qpmask::kPkeyIndex | qpmask::kPort | qpmask::kAccess;
constexpr uint32_t kRtrMask = qpmask::kState | qpmask::kPath | qpmask::kPathMtu | qpmask::kDestinationQpn |
                              qpmask::kReceivePsn | qpmask::kResponderResources | qpmask::kMinRnrTimer | qpmask::kPatience |
                              qpmask::kExtensions;
constexpr uint32_t kRtsMask = qpmask::kState | qpmask::kAckTimeout | qpmask::kRetryCount | qpmask::kRnrRetry |
                              qpmask::kSendPsn | qpmask::kInitiatorDepth;
constexpr uint32_t kRtrMaskUc = qpmask::kState | qpmask::kPath | qpmask::kPathMtu | qpmask::kDestinationQpn |
                                qpmask::kReceivePsn;
constexpr uint32_t kRtsMaskUc = qpmask::kState | qpmask::kSendPsn;

inline QpAttributes attributesFor(Node& node, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA) {
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
  a.patience = l.patience;
  a.extensions = l.extensions;
  return a;
}

inline void bring(TestQp& qp, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA, uint32_t upTo = kQpsRts) {
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

// All extensions, with packets of this length.
constexpr uint32_t withPackets(uint32_t bytes, uint32_t taken = extensions::kAll) {
  return taken | extensions::kLongPackets | bytes << extensions::kPacketBytesShift;
}
constexpr uint32_t kJumboPacket = 8936, kEthernetPacket = 1432;  // of IPv4 with an MTU of 9000 and 1500

// Until another thread has done its part.
template <typename Done>
bool eventually(Done done) {
  for (const uint64_t end = monotonicNs() + 60'000'000'000; monotonicNs() < end; yieldThread())
    if (done()) return true;
  return false;
}

struct World {
  Net net;
  ManualClock clock;
  std::unique_ptr<Node> a, b;
  explicit World(EngineOptions options = {}) {
    a = std::make_unique<Node>(net, clock, 1, options);
    b = std::make_unique<Node>(net, clock, 2, options);
  }
  void connect(TestQp& qa, TestQp& qb, const Link2& l = {}) {
    bring(qa, qb.node.gid, qb.qpn, l, true);
    bring(qb, qa.node.gid, qa.qpn, l, false);
  }
  // Until nothing moves without time passing.
  void pump() {
    for (uint32_t i = 0; i < 10'000'000; i++) {
      const bool moved = a->step();
      if (!(b->step() | moved)) return;
    }
    CHECK(!"the engines come to rest");
  }
  bool advance() {  // to the next timer; false: there is none
    const uint64_t due = std::min(a->deadline(), b->deadline());
    if (due == UINT64_MAX) return false;
    if (due > clock.time) clock.time = due;
    return true;
  }
  bool until(const std::function<bool()>& done, uint64_t limitNs = 100'000'000'000ull) {
    const uint64_t end = clock.time + limitNs;
    for (;;) {
      pump();
      if (done()) return true;
      if (clock.time >= end || !advance()) return false;
    }
  }
};

struct Pair : World {
  TestQp qa, qb;
  explicit Pair(const Link2& l = {}, const QpShape& shape = {}, const EngineOptions& options = {})
      : World(options), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
    connect(qa, qb, l);
  }
};

// The only CQE that came, with these values; false and a message otherwise.
inline bool only(TestCq& cq, uint32_t wqe, uint32_t opcode, uint32_t status, uint32_t length = 0) {
  const std::vector<Cqe> all = cq.drain();
  if (!CHECK_EQ(all.size(), 1u)) return false;
  bool ok = CHECK_EQ(all[0].wqe, wqe);
  ok &= CHECK_EQ(all[0].opcode, opcode);
  ok &= CHECK_EQ(all[0].status, status);
  if (status == kWcSuccess) ok &= CHECK_EQ(all[0].length, length);
  return ok;
}

}  // namespace world
