// Tests of single small messages over the network. They use the fast path, and everything unusual takes the usual path,
// with the same outcome and in the same order.
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "base/packet_headers.h"
#include "host/host.h"
#include "host_members.h"
#include "ring_user.h"

using hosttest::flows, hosttest::ownPort, hosttest::parseAddress, hosttest::RealClock;
using namespace nd;
using namespace nd::abi;

namespace {

constexpr uint32_t kEntries = 16, kStride = 256, kReceiveStride = 64, kCqEntries = 256, kInline = 128;
constexpr uint32_t kAccess = kAccessLocalWrite | kAccessRemoteWriteBit | kAccessRemoteRead;
constexpr uint32_t kMemory = 8192, kFrom = 0, kTo = 4096;  // source and destination of messages
constexpr uint32_t kWarm = 200;                            // messages after which both have sockets for each other

// All parts of a process without starting one: host, engine and one queue pair.
struct Peer final : KernelPort, hosttest::RingUser {
  RealClock clock;
  Host host{clock};
  Engine own{host, clock, EngineOptions()};
  uint32_t events = 0;
  std::vector<uint8_t> memory = std::vector<uint8_t>(kMemory);

  Peer() : RingUser(own, {kEntries, kStride, kReceiveStride, kCqEntries, 2, kInline}) {
    HostOptions options;
    options.link = LinkChoice::kWire;
    HOST_CHECK(host.start(options, engine) == Status::kSuccess && host.wireReady());
    engine.setSlot(host.slot());
    open(*this, memory.data(), kMemory, kAccess);
  }
  ~Peer() override {
    engine.detachKernel(id);
    host.stop();
  }
  void onMad(const PacketMeta&, bool, uint16_t, const uint8_t*) override {}
  void onEvent(const HcaEvent& e) override {
    events += e.kind == HcaEvent::Kind::kQp && QpEvent(e.words[2]) != QpEvent::kCommunicationEstablished;
  }

  void connect(const Peer& peer, const Gid& gid) {
    QpAttributes a;
    a.access = kAccess;
    a.port = 1;
    a.path.source = a.path.destination = gid;
    a.pathMtu = 1024;
    a.destinationQpn = peer.qpn;
    a.responderResources = a.initiatorDepth = 4;
    a.minRnrTimer = 1;
    a.ackTimeout = 12;
    a.retryCount = a.rnrRetry = 7;
    using namespace qpmask;
    constexpr uint32_t rtr =
        kState | kPath | kPathMtu | kDestinationQpn | kReceivePsn | kResponderResources | kMinRnrTimer;
    constexpr uint32_t rts = kState | kAckTimeout | kRetryCount | kRnrRetry | kSendPsn | kInitiatorDepth;
    HOST_CHECK(engine.connectQp(qp, {kState | qpmask::kAccess | kPkeyIndex | kPort, rtr, rts}, a) == Status::kSuccess);
  }
  // Posts a request without the doorbell. RDMA Writes go to `remote`.
  void queue(uint32_t opcode, uint32_t flags, uint32_t length, const Peer* remote = nullptr, uint32_t key = 0) {
    uint32_t* const w = request();
    w[kSwOpcode] = opcode;
    w[kSwFlags] = flags;
    if (remote != nullptr) {
      const uint64_t to = const_cast<Peer*>(remote)->address(kTo);
      w[kSwRemoteLo] = static_cast<uint32_t>(to);
      w[kSwRemoteHi] = static_cast<uint32_t>(to >> 32);
      w[kSwRkey] = key;
    }
    if (flags & kSendFlagInline) {
      w[kSwSgeCount] = length;
      std::memcpy(w + kSendWqeHeaderBytes / 4, memory.data() + kFrom, length);
    } else {
      w[kSwSgeCount] = 1;
      sge(w + kSendWqeHeaderBytes / 4, kFrom, length);
    }
    publish();
  }
  void post(uint32_t opcode, uint32_t flags, uint32_t length, const Peer* remote = nullptr, uint32_t key = 0) {
    queue(opcode, flags, length, remote, key);
    engine.doorbell(qp);
  }
  void receive(uint32_t length) { postReceive(kTo, length); }
  uint64_t counter(const char* name) {
    const auto& ours = Engine::counterNames();
    for (size_t i = 0; i < ours.size(); i++)
      if (std::strcmp(ours[i], name) == 0) return engine.counters()[i];
    const auto& hosts = Host::counterNames();
    for (size_t i = 0; i < hosts.size(); i++)
      if (std::strcmp(hosts[i], name) == 0) return host.counters()[i];
    HOST_CHECK(!"a counter of this name");
    return 0;
  }
  void configure(const HostOptions& options) {
    std::lock_guard<EngineLock> guard(engine.lock());
    host.configure(options);
  }
};

struct Two {
  Peer a, b;
  uint8_t seed = 1;
  explicit Two(const char* address) {
    hosttest::steer<Peer>({&a, &b}, [](Peer& peer) { peer.engine.progress(); });
    a.connect(b, parseAddress(address));
    b.connect(a, parseAddress(address));
    for (uint32_t i = 0; i < kWarm; i++) {
      exchange(a, b, kOpSend, i % 8 == 7 ? kSendFlagSignaled : 0, 8);
      exchange(b, a, kOpSend, i % 8 == 7 ? kSendFlagSignaled : 0, 8);
    }
    HOST_CHECK(a.counter("tx_flow_opened") == 1 && b.counter("rx_peer_socket_opened") == 1);
  }
  void step() {
    a.engine.progress();
    b.engine.progress();
  }
  // Returns the status of the next receive, or of the newest request; 99 if none completes.
  uint32_t status(Peer& peer, bool ofReceive, uint32_t* cqe) {
    const uint64_t end = peer.clock.now() + kTimeoutNs;
    for (;;) {
      while (peer.completion(cqe)) {
        const bool receives = (cqe[kCqeFlags] & kCqeFlagReceiveQueue) != 0;
        if (receives == ofReceive && (receives || cqe[kCqeWqe] == peer.sent - 1)) return cqe[kCqeStatus];
      }
      if (peer.clock.now() > end) return 99;
      step();
    }
  }
  void fill(Peer& from, uint32_t length) {
    seed++;
    for (uint32_t i = 0; i < length; i++) from.memory[kFrom + i] = hosttest::pattern(seed, i);
  }
  bool there(const Peer& to, uint32_t length) const {
    for (uint32_t i = 0; i < length; i++)
      if (to.memory[kTo + i] != hosttest::pattern(seed, i)) return false;
    return to.memory[kTo + length] == 0;
  }
  // Sends one message, which must arrive whole and in order.
  void exchange(Peer& from, Peer& to, uint32_t opcode, uint32_t flags, uint32_t length) {
    uint32_t cqe[kCqeBytes / 4];
    fill(from, length);
    std::fill(to.memory.begin() + kTo, to.memory.end(), uint8_t(0));
    if (opcode == kOpSend) {
      to.receive(1024);
      from.post(opcode, flags, length);
      HOST_CHECK(status(to, true, cqe) == kWcSuccess);
      HOST_CHECK(cqe[kCqeLength] == length && cqe[kCqeSourceQpn] == from.qpn);
      HOST_CHECK(((cqe[kCqeFlags] & kCqeFlagSolicited) != 0) == ((flags & kSendFlagSolicited) != 0));
    } else {
      from.post(opcode, flags, length, &to, to.rkey);
      const uint64_t end = from.clock.now() + kTimeoutNs;
      while (!there(to, length) && from.clock.now() < end) step();
    }
    HOST_CHECK(there(to, length));
  }
};

// Tests every length that uses the fast path, and the first that does not, in pieces and inline, also as Writes.
void fastPath(const char* address) {
  Two w(address);
  uint32_t cqe[kCqeBytes / 4];
  uint32_t expected = 0, fast = 0;
  const uint32_t send = Link::kSingleMostBytes - wire::kBthBytes, write = send - wire::kRethBytes;
  for (const uint32_t flags : {0u, uint32_t(kSendFlagInline), uint32_t(kSendFlagSolicited)})
    for (const uint32_t opcode : {uint32_t(kOpSend), uint32_t(kOpWrite)}) {
      if (opcode == kOpWrite && flags == kSendFlagSolicited) continue;
      const uint32_t most = opcode == kOpSend ? send : write;
      for (uint32_t length = opcode == kOpSend ? 0 : 1; length <= most + 1; length++) {
        const uint64_t before = w.a.counter("sent_fast");
        // Waits for the acknowledgement, so that the window and the queue stay open.
        const bool signals = length % 4 == 3;
        w.exchange(w.a, w.b, opcode, flags | (signals ? kSendFlagSignaled : 0), length);
        if (signals) HOST_CHECK(w.status(w.a, false, cqe) == kWcSuccess && cqe[kCqeOpcode] == opcode);
        const auto went = static_cast<uint32_t>(w.a.counter("sent_fast") - before);
        HOST_CHECK(went == 0 || length <= most);
        expected += length <= most;
        fast += went;
        if (length % 8 == 0) w.exchange(w.b, w.a, kOpSend, length % 16 == 0 ? kSendFlagSignaled : 0, 8);
      }
    }
  // All use the fast path, except those among which something was re-requested, or an IPv4 ID was examined.
  HOST_CHECK(fast > expected - expected / 10);
  HOST_CHECK(w.b.counter("rcvd_fast") > 5 * 90 && w.a.counter("rcvd_fast") > 100);
  HOST_CHECK(w.a.counter("rx_icrc_errors") == 0 && w.b.counter("rx_icrc_errors") == 0);
  HOST_CHECK(w.a.events == 0 && w.b.events == 0);
}

// Several messages with one doorbell leave in one piece, in order with those before and after.
void together() {
  Two w("127.0.0.1");
  uint32_t cqe[kCqeBytes / 4];
  uint32_t lengths = 0;
  for (int round = 0; round < 100; round++) {
    const uint64_t before = w.a.counter("sent_fast");
    for (int i = 0; i < 4; i++) w.b.receive(64);
    w.a.post(kOpSend, 0, 1);
    for (uint32_t length = 2; length <= 4; length++) w.a.queue(kOpSend, length == 4 ? kSendFlagSignaled : 0, length);
    w.a.engine.doorbell(w.a.qp);
    for (uint32_t i = 1; i <= 4; i++) {
      HOST_CHECK(w.status(w.b, true, cqe) == kWcSuccess);
      lengths += cqe[kCqeLength] == i;
    }
    HOST_CHECK(w.status(w.a, false, cqe) == kWcSuccess);
    HOST_CHECK(w.a.counter("sent_fast") - before <= 1);
  }
  HOST_CHECK(lengths == 400);
}

// The fault layer and the capture see every packet. The message of a lost, duplicated, late or modified packet arrives
// once and whole.
void faults() {
  Two w("127.0.0.1");
  HostOptions options;
  options.link = LinkChoice::kWire;
  options.faults.drop = options.faults.duplicate = options.faults.reorder = options.faults.corrupt = 0.05;
  for (int round = 0; round < 4; round++) {
    const bool faulty = round % 2 == 0;
    if (!faulty) options.faults = {};
    w.a.configure(options);
    const uint64_t before = w.a.counter("sent_fast"), peers = w.b.counter("sent_fast");
    for (uint32_t i = 0; i < 100; i++) {
      w.exchange(w.a, w.b, kOpSend, i % 4 == 3 ? kSendFlagSignaled : 0, 8 + i % 3);
      w.exchange(w.b, w.a, kOpSend, i % 4 == 3 ? kSendFlagSignaled : 0, 8);
    }
    HOST_CHECK(faulty ? w.a.counter("sent_fast") == before : w.a.counter("sent_fast") > before);
    HOST_CHECK(w.b.counter("sent_fast") > peers);
    options.faults.drop = options.faults.duplicate = options.faults.reorder = options.faults.corrupt = 0.1;
  }
  HOST_CHECK(w.b.counter("rx_icrc_errors") > 0 && w.a.counter("fault_dropped") > 0);
  char path[] = "/tmp/nd-alone-XXXXXX";
  const int fd = mkstemp(path);
  options.faults = {};
  options.capture = path;
  w.a.configure(options);
  const uint64_t before = w.a.counter("sent_fast"), alone = w.a.counter("rcvd_fast");
  for (uint32_t i = 0; i < 20; i++) {
    w.exchange(w.a, w.b, kOpSend, kSendFlagSignaled, 8);
    w.exchange(w.b, w.a, kOpSend, kSendFlagSignaled, 8);
  }
  HOST_CHECK(w.a.counter("sent_fast") == before && w.a.counter("rcvd_fast") == alone);
  // A capture that has ended by itself, here at the file size limit, no longer prevents the fast path.
  rlimit limit{};
  HOST_CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit none{1, limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  HOST_CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  const uint64_t end = w.a.clock.now() + kTimeoutNs;
  while (w.a.counter("capture_errors") == 0 && w.a.clock.now() < end) w.step();
  HOST_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  HOST_CHECK(w.a.counter("capture_errors") == 1);
  for (uint32_t i = 0; i < 20; i++) w.exchange(w.a, w.b, kOpSend, kSendFlagSignaled, 8);
  HOST_CHECK(w.a.counter("sent_fast") > before);
  close(fd);
  unlink(path);
}

// Messages are refused as on the usual path.
void refusals() {
  uint32_t cqe[kCqeBytes / 4];
  {  // Without a receive, there is an RNR NAK, and the message arrives when there is one.
    Two w("127.0.0.1");
    for (int i = 0; i < 3; i++) {
      const uint64_t before = w.a.counter("rcvd_rnr_err");
      w.fill(w.a, 8);
      w.a.post(kOpSend, kSendFlagSignaled, 8);
      const uint64_t end = w.a.clock.now() + kTimeoutNs;
      while (w.a.counter("rcvd_rnr_err") == before && w.a.clock.now() < end) w.step();
      std::fill(w.b.memory.begin() + kTo, w.b.memory.end(), uint8_t(0));
      w.b.receive(64);
      HOST_CHECK(w.status(w.b, true, cqe) == kWcSuccess && w.there(w.b, 8));
      HOST_CHECK(w.status(w.a, false, cqe) == kWcSuccess);
      w.exchange(w.a, w.b, kOpSend, kSendFlagSignaled, 9);
    }
  }
  {  // The message is longer than the receive.
    Two w("127.0.0.1");
    w.b.receive(4);
    w.a.post(kOpSend, kSendFlagSignaled, 8);
    HOST_CHECK(w.status(w.b, true, cqe) == kWcLocalLength);
    HOST_CHECK(w.status(w.a, false, cqe) == kWcRemoteInvalidRequest);
  }
  {  // The peer never gave this key.
    Two w("127.0.0.1");
    w.a.post(kOpWrite, kSendFlagSignaled, 8, &w.b, w.b.rkey ^ 1);
    HOST_CHECK(w.status(w.a, false, cqe) == kWcRemoteAccess);
  }
  {  // The local key is unknown.
    Two w("127.0.0.1");
    w.a.lkey ^= 1;
    w.a.post(kOpSend, kSendFlagSignaled, 8);
    HOST_CHECK(w.status(w.a, false, cqe) == kWcLocalProtection);
  }
}

// Finds the socket on which `from` sends to `to`. A stray datagram sent on it is counted by `to`.
int flowOf(Two& w, Peer& from, Peer& to) {
  for (const int fd : flows()) {
    const uint8_t nobodys[24] = {};
    const uint64_t theirs = to.counter("rx_icrc_errors"), ours = from.counter("rx_icrc_errors");
    HOST_CHECK(send(fd, nobodys, sizeof nobodys, 0) == sizeof nobodys);
    const uint64_t end = from.clock.now() + kTimeoutNs;
    while (to.counter("rx_icrc_errors") == theirs && from.counter("rx_icrc_errors") == ours && from.clock.now() < end)
      w.step();
    if (to.counter("rx_icrc_errors") != theirs) return fd;
  }
  HOST_CHECK(!"a socket of its own");
  return -1;
}

// Every bit that the ICRC covers is flipped in flight. The packet is refused, and the connection and its memory are
// unaffected.
void corrupt(const char* address) {
  Two w(address);
  uint32_t cqe[kCqeBytes / 4];
  const int fd = flowOf(w, w.a, w.b);
  IcrcHeaders headers;
  headers.source = headers.destination = parseAddress(address);
  headers.sourcePort = ownPort(fd);
  constexpr uint32_t kData = 8, kLength = kBthBytes + kData;
  uint8_t packet[kLength + kIcrcBytes];
  const auto make = [&](uint32_t psn) {
    wire::Bth bth;
    bth.opcode = wire::kOpSendOnly;
    bth.destinationQpn = w.b.qpn;
    bth.psn = psn;
    bth.ackRequest = true;
    wire::emitBth(packet, bth);
    w.fill(w.a, kData);
    std::memcpy(packet + kBthBytes, w.a.memory.data() + kFrom, kData);
    const uint32_t icrc = icrcOf(headers, packet, kLength);
    std::memcpy(packet + kLength, &icrc, sizeof icrc);
    std::fill(w.b.memory.begin() + kTo, w.b.memory.end(), uint8_t(0));
    w.b.receive(64);
  };
  make(w.a.sent);
  const auto arrives = [&](const char* counter) {
    const uint64_t before = w.b.counter(counter), end = w.b.clock.now() + kTimeoutNs;
    HOST_CHECK(send(fd, packet, sizeof packet, 0) == sizeof packet);
    while (w.b.counter(counter) == before && w.b.clock.now() < end) w.step();
    return w.b.counter(counter) == before + 1;
  };
  uint32_t unnoticed = 0;
  for (uint32_t bit = 0; bit < 8 * sizeof packet; bit++) {
    if (bit / 8 == 4) continue;  // the ICRC does not cover these bits
    packet[bit / 8] ^= uint8_t(1u << bit % 8);
    unnoticed += !arrives("rx_icrc_errors");
    packet[bit / 8] ^= uint8_t(1u << bit % 8);
  }
  HOST_CHECK(unnoticed == 0);
  for (uint32_t i = 0; i < 64; i++) HOST_CHECK(w.b.memory[kTo + i] == 0);
  while (w.b.completion(cqe)) HOST_CHECK(!(cqe[kCqeFlags] & kCqeFlagReceiveQueue));  // completions of earlier sends
  HOST_CHECK(w.a.events == 0 && w.b.events == 0);
  // Correct packets are accepted, many of them on the fast path. Packets whose header fields are examined do not use
  // it.
  const uint64_t before = w.b.counter("rcvd_fast");
  for (uint32_t i = 0; i < 32; i++) {
    if (i != 0) make(w.a.sent + i);
    HOST_CHECK(arrives("rcvd_pkts"));
    HOST_CHECK(w.status(w.b, true, cqe) == kWcSuccess && w.there(w.b, kData));
  }
  HOST_CHECK(w.b.counter("rcvd_fast") >= before + 8);
}

// The ICRC of another flow, length or ID differs.
void icrcs() {
  uint32_t state = 12345;
  const auto random = [&state] { return state = state * 1664525 + 1013904223, state >> 8; };
  uint32_t wrong = 0;
  for (const char* address : {"127.0.0.1", "192.0.2.77", "::1", "fd00::77"})
    for (uint32_t length = 12; length <= FlowIcrc::kMostBytes; length += 4) {
      IcrcHeaders headers;
      headers.source = parseAddress(address);
      headers.destination = parseAddress(headers.source.isV4() ? "127.0.0.9" : "fd00::9");
      headers.sourcePort = static_cast<uint16_t>(random());
      const FlowIcrc flow(headers);
      if (headers.source.isV4()) headers.ipv4Id = static_cast<uint16_t>(random());
      std::vector<uint8_t> bytes(FlowIcrc::kRoom + length);
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
      uint8_t* const bth = bytes.data() + FlowIcrc::kRoom;
      const std::vector<uint8_t> copy(bth, bth + length);
      wrong += flow.of(bth, length, headers.ipv4Id) != icrcOf(headers, copy.data(), length);
      wrong += std::memcmp(bth, copy.data(), length) != 0;
    }
  HOST_CHECK(wrong == 0);
}

}  // namespace

int main() {
  hosttest::privateNetwork();
  icrcs();
  fastPath("127.0.0.1");
  fastPath("::1");
  together();
  faults();
  refusals();
  corrupt("::1");
  return hosttest::finish("host_single");
}
