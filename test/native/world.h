// Two (or more) HCAs on an in-memory network, with a manually advanced clock and seeded faults.
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
  std::vector<std::pair<Handle, CqEvent>> cqEvents;
  struct SrqNews {
    Handle srq;
    SrqEvent event;
  };
  std::vector<SrqNews> srqEvents;
  Port();
  ~Port() override;
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent& event) override;
  int count(QpEvent e) const;
};

struct Sink final : NotifySink {
  std::atomic<int> calls{0};
  std::atomic<uint32_t> status{0};
  void notify(Status s) override;
};

struct Node {
  Net& net;
  FakeLink link;
  Engine engine;
  Port port;
  KernelId kernel = 0;
  Handle pd = 0;
  Gid gid;
  // If set, Buffer uses memory from allocate(), which the peer has mapped (local_world.h).
  std::function<void(const SharedRange&)> share;
  Node(Net& n, const Clock& clock, uint8_t number, const EngineOptions& options);
  ~Node();
  static Gid address(uint8_t n);
  bool step();
  uint64_t deadline();
  uint64_t counter(const char* name);
};

constexpr uint32_t kAllAccess =
    kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite | kAccessMwBind;

struct Buffer {
  Node& node;
  std::shared_ptr<const SharedRange> shared;
  std::vector<uint64_t> words;
  uint64_t size, base, range = 0;
  uint32_t lkey = 0, rkey = 0;
  Buffer(Node& n, uint64_t bytes, uint32_t access = kAllAccess, uint64_t seed = 0, uint64_t alignment = 8);
  ~Buffer();
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

// A memory window. Each request to bind it gives it another key.
struct Window {
  Node& node;
  Handle handle = 0;
  uint32_t key = 0;
  explicit Window(Node& n) : node(n) { CHECK(n.engine.allocateMw(n.pd, &handle, &key) == Status::kSuccess); }
  ~Window() { CHECK(node.engine.deallocateMw(handle) == Status::kSuccess); }
  Wr bind(Buffer& memory, uint64_t length, uint32_t access = kAccessRemoteRead);
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
  TestCq(Node& n, uint32_t count);
  ~TestCq();
  uint32_t* words() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t written() { return __atomic_load_n(words() + kCqProducer, __ATOMIC_ACQUIRE); }
  bool dead() { return __atomic_load_n(words() + kCqState, __ATOMIC_ACQUIRE) != 0; }
  bool poll(Cqe* c);
  std::vector<Cqe> drain();
  void resize(uint32_t count, Status expected = Status::kSuccess);
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
  explicit TestSrq(Node& n, uint32_t count = 8, uint32_t sges = 2);
  ~TestSrq();
  uint64_t bytes(uint32_t count) const { return kSrqHeaderBytes + uint64_t(count) * stride; }
  SrqCreate request() const { return {node.pd, ring, bytes(entries), entries, stride, sge}; }
  uint32_t* words() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t* slot(uint32_t i) {
    return reinterpret_cast<uint32_t*>(ring + kSrqHeaderBytes + uint64_t(i & (entries - 1)) * stride);
  }
  uint32_t taken() { return __atomic_load_n(words() + kSrqConsumer, __ATOMIC_ACQUIRE); }
  uint32_t receive(const std::vector<Sge>& sges);
  Status limit(uint32_t n);
  Status resize(uint32_t count);
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
  explicit TestQp(Node& n, const QpShape& s = {}, uint32_t tokenValue = 77);
  QpCreate request() const;
  ~TestQp();
  uint32_t* header() { return reinterpret_cast<uint32_t*>(ring); }
  uint32_t* sendSlot(uint32_t i);
  uint32_t* receiveSlot(uint32_t i);
  uint32_t stateWord() { return __atomic_load_n(header() + kQpState, __ATOMIC_ACQUIRE); }
  uint32_t unfencedWord() { return __atomic_load_n(header() + kQpUnfenced, __ATOMIC_ACQUIRE); }
  uint32_t state();
  static void putSges(uint32_t* w, const std::vector<Sge>& sges);
  // Writes the WQE without a doorbell.
  uint32_t write(const Wr& r);
  uint32_t post(const Wr& r);
  uint32_t receive(const std::vector<Sge>& sges);
  // Writes the WQE without a doorbell.
  uint32_t writeReceive(const std::vector<Sge>& sges);
  Status modify(uint32_t mask, const QpAttributes& a);
  Status toState(uint32_t state);
};

struct Link2 {  // how two QPs are connected
  uint32_t mtu = 1024, psnA = 100, psnB = 5000, depth = 16, rnrTimer = 12, ackTimeout = 14, retries = 7, rnrRetries = 6;
  uint32_t rnrTimeout = 0, extensions = 0;
  uint32_t access = kAccessRemoteRead | kAccessRemoteWriteBit | kAccessRemoteAtomic | kAccessLocalWrite;
  uint8_t trafficClass = 0;
  uint32_t pkeyIndexA = 0;
};

constexpr uint32_t kInitMask = qpmask::kState | qpmask::kPkeyIndex | qpmask::kPort | qpmask::kAccess;
constexpr uint32_t kRtrMask = qpmask::kState | qpmask::kPath | qpmask::kPathMtu | qpmask::kDestinationQpn |
                              qpmask::kReceivePsn | qpmask::kResponderResources | qpmask::kMinRnrTimer |
                              qpmask::kRnrTimeout | qpmask::kExtensions;
constexpr uint32_t kRtsMask = qpmask::kState | qpmask::kAckTimeout | qpmask::kRetryCount | qpmask::kRnrRetry |
                              qpmask::kSendPsn | qpmask::kInitiatorDepth;
constexpr uint32_t kRtrMaskUc =
    qpmask::kState | qpmask::kPath | qpmask::kPathMtu | qpmask::kDestinationQpn | qpmask::kReceivePsn;
constexpr uint32_t kRtsMaskUc = qpmask::kState | qpmask::kSendPsn;

QpAttributes attributesFor(Node& node, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA);
void bring(TestQp& qp, const Gid& peer, uint32_t peerQpn, const Link2& l, bool isA, uint32_t upTo = kQpsRts);

// All extensions, with packets of this length.
constexpr uint32_t withPackets(uint32_t bytes, uint32_t taken = extensions::kAll) {
  return taken | extensions::kLongPackets | bytes << extensions::kPacketBytesShift;
}
constexpr uint32_t kJumboPacket = 8936, kEthernetPacket = 1432;  // for IPv4 with an MTU of 9000 and 1500

// Waits until another thread has done its part.
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
  explicit World(EngineOptions options = {});
  ~World();
  void connect(TestQp& qa, TestQp& qb, const Link2& l = {});
  // Runs until nothing more happens unless time passes.
  void pump();
  bool advance();  // advances the clock to the next timer; false: no timer is set
  bool until(const std::function<bool()>& done, uint64_t limitNs = 100'000'000'000ull);
};

struct Pair : World {
  TestQp qa, qb;
  explicit Pair(const Link2& l = {}, const QpShape& shape = {}, const EngineOptions& options = {});
  ~Pair();
};

// Checks that exactly one CQE arrived, with these values. Otherwise returns false and prints a message.
bool only(TestCq& cq, uint32_t wqe, uint32_t opcode, uint32_t status, uint32_t length = 0);

}  // namespace world
