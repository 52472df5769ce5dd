// Tests of datagrams and multicast groups on real sockets: the HCAs of two processes on one host, one on another host
// at the other end of a cable, and hosts whose RoCEv2 port another program holds. All run in this process, each in its
// own network namespace.
#include <fstream>
#include <functional>

#include "base/packet_headers.h"
#include "host_node.h"
#include "platform/unique_fd.h"
#include "ring_user.h"

using namespace hosttest;
using namespace nd;
using namespace nd::abi;

namespace {

constexpr uint32_t kQkey = 0x11111111, kEntries = 64, kStride = 128, kReceiveStride = 32, kSlot = 256;

struct Receiver final : KernelPort {
  std::vector<uint16_t> pkeys;  // those of the MADs that arrived
  void onMad(const PacketMeta&, bool, uint16_t pkey, const uint8_t*) override { pkeys.push_back(pkey); }
  void onEvent(const HcaEvent&) override {}
};

struct Message {
  std::string text;
  uint32_t sourceQpn;
  std::vector<uint8_t> grh;
};

// An HCA with a UD queue pair, as one process has it.
struct Side : RingUser {
  int ns;
  RealClock clock;
  Host host{clock};
  Engine own{host, clock, EngineOptions()};
  Receiver port;
  std::vector<uint8_t> memory = std::vector<uint8_t>(kEntries * kSlot + kSlot);

  explicit Side(int nsFd) : RingUser(own, {kEntries, kStride, kReceiveStride, 256, 1, 0, kQptUd}), ns(nsFd) {
    enter();
    HOST_CHECK(host.start(HostOptions(), engine) == Status::kSuccess && host.openWire() == Status::kSuccess);
    open(port, memory.data(), memory.size(), kAccessLocalWrite);
    QpAttributes a;
    a.port = 1;
    a.qkey = kQkey;
    a.state = kQpsInit;
    using namespace qpmask;
    HOST_CHECK(engine.modifyQp(qp, kState | kPkeyIndex | kPort | qpmask::kQkey, a) == Status::kSuccess);
    a.state = kQpsRtr;
    HOST_CHECK(engine.modifyQp(qp, kState, a) == Status::kSuccess);
    a.state = kQpsRts;
    HOST_CHECK(engine.modifyQp(qp, kState | kSendPsn, a) == Status::kSuccess);
    for (uint32_t i = 0; i < kEntries; i++) receive();
  }
  ~Side() {
    enter();
    engine.detachKernel(id);
    host.stop();
  }
  void enter() const { HOST_CHECK(setns(ns, CLONE_NEWNET) == 0); }
  void receive() { postReceive(received % kEntries * kSlot, kSlot); }
  void send(const Gid& source, const Gid& destination, uint32_t toQpn, const std::string& text) {
    enter();
    Path path;
    path.source = source;
    path.destination = destination;
    Handle ah = 0;
    HOST_CHECK(engine.createAh(pd, path, 1024, &ah) == Status::kSuccess);
    std::memcpy(memory.data() + kEntries * kSlot, text.data(), text.size());
    uint32_t* const w = request();
    w[kSwSgeCount] = 1;
    w[kSwAh] = ah;
    w[kSwRemoteQpn] = toQpn;
    w[kSwRemoteQkey] = kQkey;
    sge(w + kSendWqeHeaderBytes / 4, kEntries * kSlot, static_cast<uint32_t>(text.size()));
    publish();
    engine.doorbell(qp);
    HOST_CHECK(engine.destroyAh(ah) == Status::kSuccess);
  }
  void step() {
    enter();
    std::lock_guard<nd::EngineLock> lock(engine.lock());
    engine.poll(Stepper::kEngine);
  }
  // Returns the arrivals since the last call.
  std::vector<Message> messages() {
    std::vector<Message> out;
    for (uint32_t cqe[kCqeBytes / 4]; completion(cqe);) {
      HOST_CHECK(cqe[kCqeStatus] == kWcSuccess);
      if (cqe[kCqeFlags] & kCqeFlagReceiveQueue) {
        HOST_CHECK((cqe[kCqeFlags] & kCqeFlagGrh) != 0 && cqe[kCqeLength] >= kGrhBytes);
        const uint8_t* bytes = memory.data() + cqe[kCqeWqe] % kEntries * kSlot;
        out.push_back({std::string(bytes + kGrhBytes, bytes + cqe[kCqeLength]), cqe[kCqeSourceQpn],
                       std::vector<uint8_t>(bytes, bytes + kGrhBytes)});
        receive();
      }
    }
    return out;
  }
};

std::vector<Side*> sides;

bool until(const std::function<bool()>& done) {
  const uint64_t end = RealClock().now() + kTimeoutNs;
  while (!done()) {
    for (Side* s : sides) s->step();
    if (RealClock().now() > end) return false;
  }
  return true;
}

// Sends a datagram, and then to all members a marker that follows it on the same path. Returns what each member got
// until all markers, and as many copies as expected, have arrived (a forwarded copy may be overtaken).
std::vector<std::vector<Message>> cast(Side& from, const Gid& source, const Gid& destination, const std::string& text,
                                       const std::function<Gid(Side&)>& unicastOf, size_t copies,
                                       uint32_t qpn = wire::kMulticastQpn) {
  static int round = 0;
  const std::string mark = "mark " + std::to_string(round++);
  from.send(source, destination, qpn, text);
  for (Side* s : sides) from.send(source, unicastOf(*s), s->qpn, mark);
  std::vector<std::vector<Message>> got(sides.size());
  size_t marked = 0, came = 0;
  const bool all = until([&] {
    for (size_t i = 0; i < sides.size(); i++)
      for (Message& m : sides[i]->messages()) {
        if (m.text == mark) {
          marked++;
        } else {
          came++;
          got[i].push_back(std::move(m));
        }
      }
    return marked == sides.size() && came >= copies;
  });
  HOST_CHECK(all);
  return got;
}

bool once(const std::vector<Message>& got, const std::string& text, const Side& from) {
  return got.size() == 1 && got[0].text == text && got[0].sourceQpn == from.qpn;
}

bool shell(const std::string& command) { return std::system((command + " 2> /dev/null").c_str()) == 0; }

int namespaceOf(const char* path) { return open(path, O_RDONLY | O_CLOEXEC); }

uint32_t index(Side& side, const char* name) {
  side.enter();
  return if_nametoindex(name);
}

// A member's process id represents its namespace until the end of this test.
pid_t otherHost() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) std::abort();
  const pid_t pid = fork();
  if (pid == 0) {
    const char ok = unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
    if (write(ready[1], &ok, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char ok = 'n';
  HOST_CHECK(read(ready[0], &ok, 1) == 1 && ok == 'y');
  close(ready[0]);
  close(ready[1]);
  return pid;
}

const std::string kUp = "ip link set lo up && ip link set ";

uint64_t counterOf(Side& side, const char* name) {
  const auto values = side.host.counters();
  for (size_t i = 0; i < values.size(); i++)
    if (std::strcmp(Host::counterNames()[i], name) == 0) return values[i];
  std::abort();
}

// Returns the number of sockets on the IPv4 port with unread data.
int unread(Side& side) {
  side.enter();
  std::ifstream table("/proc/thread-self/net/udp");
  int n = 0;
  for (std::string line; std::getline(table, line);) {
    unsigned port = 0, queued = 0;
    if (std::sscanf(line.c_str(), " %*d: %*8x:%x %*s %*x %*x:%x", &port, &queued) == 2 && port == kRocePort &&
        queued != 0)
      n++;
  }
  return n;
}

// Of two members on one host, one leaves before it has read its copy from its socket, and then forwards the copy as if
// the OS had given it to the wrong process. The other delivers it once, whether its own copy comes first or last.
void whoLeavesRepeatsNothing(Side& stays, Side& leaves, Side& sender) {
  const Gid own = parseAddress("10.50.0.1"), far = parseAddress("10.50.0.2"), group = parseAddress("239.1.2.10");
  const auto unicastOf = [&](Side& s) { return &s == &sender ? far : own; };
  HOST_CHECK(stays.engine.attachMulticast(stays.qp, group, index(stays, "m0")) == Status::kSuccess);
  const std::vector<Side*> all = std::exchange(sides, {&stays, &sender});
  for (const bool ownFirst : {true, false}) {
    const uint64_t dropped = counterOf(stays, "rx_group_copies"), passed = counterOf(leaves, "rx_misdirected");
    HOST_CHECK(leaves.engine.attachMulticast(leaves.qp, group, index(leaves, "m0")) == Status::kSuccess);
    std::vector<Message> got;
    const auto take = [&] {
      sender.messages();
      for (Message& m : stays.messages()) got.push_back(std::move(m));
      return !got.empty();
    };
    if (!ownFirst) sides = {&sender};
    sender.send(far, group, wire::kMulticastQpn, "unread");
    if (ownFirst) HOST_CHECK(until(take));
    else HOST_CHECK(until([&] { return unread(leaves) == 2; }));
    HOST_CHECK(leaves.engine.detachMulticast(leaves.qp, group, index(leaves, "m0")) == Status::kSuccess);
    sides = {&leaves};
    HOST_CHECK(until([&] { return counterOf(leaves, "rx_misdirected") > passed; }));
    sides = {&stays, &sender};
    HOST_CHECK(until([&] { return take() && counterOf(stays, "rx_group_copies") > dropped; }));
    HOST_CHECK(once(got, "unread", sender));
  }
  sides = all;
  for (const char* text : {"after", "and again"}) {
    const auto later = cast(sender, far, group, text, unicastOf, 1);
    for (size_t i = 0; i < sides.size(); i++)
      HOST_CHECK(sides[i] == &stays ? once(later[i], text, sender) : later[i].empty());
  }
  HOST_CHECK(stays.engine.detachMulticast(stays.qp, group, index(stays, "m0")) == Status::kSuccess);
}

void onTheWire(int here, int there) {
  Side a1(here), a2(here), b(there);
  sides = {&a1, &a2, &b};
  HOST_CHECK(a1.host.wireReady() && a2.host.wireReady() && b.host.wireReady());
  for (const bool v4 : {true, false}) {
    const Gid own = parseAddress(v4 ? "10.50.0.1" : "fd50::1"), far = parseAddress(v4 ? "10.50.0.2" : "fd50::2");
    const Gid lo = parseAddress(v4 ? "127.0.0.1" : "::1");
    const Gid group = parseAddress(v4 ? "239.1.2.3" : "ff0e::1:3"),
              other = parseAddress(v4 ? "239.1.2.4" : "ff0e::1:4");
    const auto unicastOf = [&](Side& s) { return &s == &b ? far : own; };
    const uint32_t cable = index(a1, "m0"), loop = index(a1, "lo");

    // Sends to one receiver: in the same process, in another process on this host, and across the cable.
    for (Side* to : sides) {
      const auto got = cast(a1, own, unicastOf(*to), "hello", unicastOf, 1, to->qpn);
      for (size_t i = 0; i < sides.size(); i++) HOST_CHECK(sides[i] == to ? once(got[i], "hello", a1) : got[i].empty());
    }
    // Sends to a group without members, with some, and with all. Each member gets the datagram once.
    auto got = cast(a1, own, group, "nobody", unicastOf, 0);
    HOST_CHECK(got[0].empty() && got[1].empty() && got[2].empty());
    HOST_CHECK(a2.engine.attachMulticast(a2.qp, group, cable) == Status::kSuccess);
    b.enter();
    HOST_CHECK(b.engine.attachMulticast(b.qp, group, index(b, "m1")) == Status::kSuccess);
    got = cast(a1, own, group, "others", unicastOf, 2);
    HOST_CHECK(got[0].empty() && once(got[1], "others", a1) && once(got[2], "others", a1));
    a1.enter();
    HOST_CHECK(a1.engine.attachMulticast(a1.qp, group, cable) == Status::kSuccess);
    HOST_CHECK(a1.engine.attachMulticast(a1.qp, group, loop) == Status::kSuccess);
    got = cast(a1, own, group, "everybody", unicastOf, 3);
    for (const auto& g : got) HOST_CHECK(once(g, "everybody", a1));
    // The far side needs these to reply: hop limit, addresses.
    if (got[2].size() == 1) {
      const std::vector<uint8_t>& grh = got[2][0].grh;
      HOST_CHECK(v4 ? grh[20] == 0x45 && grh[28] == 64 : grh[0] >> 4 == 6 && grh[7] == 64);
      HOST_CHECK(std::memcmp(grh.data() + (v4 ? 36 : 24), group.raw.data() + (v4 ? 12 : 0), v4 ? 4 : 16) == 0);
      HOST_CHECK(std::memcmp(grh.data() + (v4 ? 32 : 8), own.raw.data() + (v4 ? 12 : 0), v4 ? 4 : 16) == 0);
    }
    got = cast(b, far, group, "back", unicastOf, 3);
    for (const auto& g : got) HOST_CHECK(once(g, "back", b));
    // The loopback is an interface like any other: its members receive what is sent there.
    a1.enter();
    HOST_CHECK(a2.engine.attachMulticast(a2.qp, other, loop) == Status::kSuccess);
    HOST_CHECK(a1.engine.attachMulticast(a1.qp, other, cable) == Status::kSuccess);
    got = cast(a1, own, other, "by cable", unicastOf, 1);
    HOST_CHECK(once(got[0], "by cable", a1) && got[1].empty() && got[2].empty());
    if (v4) {  // Linux delivers no IPv6 multicast on its loopback
      sides = {&a1, &a2};
      got = cast(
          a1, lo, other, "by loop", [&](Side&) { return lo; }, 1);
      HOST_CHECK(got[0].empty() && once(got[1], "by loop", a1));
      sides = {&a1, &a2, &b};
    }
    // A member that leaves no longer receives anything, but the others still do.
    HOST_CHECK(a2.engine.detachMulticast(a2.qp, group, cable) == Status::kSuccess);
    got = cast(b, far, group, "fewer", unicastOf, 2);
    HOST_CHECK(once(got[0], "fewer", b) && got[1].empty() && once(got[2], "fewer", b));
    HOST_CHECK(a1.engine.attachMulticast(a1.qp, group, 9999) == Status::kNetworkUnreachable);
  }
  // The packets of a group's only member arrive, whichever process on the host the OS gives them to. Nothing arrives
  // twice.
  {
    const Gid far = parseAddress("10.50.0.2"), group = parseAddress("239.1.2.9");
    const auto unicastOf = [&](Side& s) { return &s == &b ? far : parseAddress("10.50.0.1"); };
    for (Side* member : {&a1, &a2}) {
      HOST_CHECK(member->engine.attachMulticast(member->qp, group, index(*member, "m0")) == Status::kSuccess);
      for (const char* text : {"alone", "and again"}) {
        const auto got = cast(b, far, group, text, unicastOf, 1);
        for (size_t i = 0; i < sides.size(); i++)
          HOST_CHECK(sides[i] == member ? once(got[i], text, b) : got[i].empty());
      }
      HOST_CHECK(member->engine.detachMulticast(member->qp, group, index(*member, "m0")) == Status::kSuccess);
    }
  }
  whoLeavesRepeatsNothing(a1, a2, b);
  // The interface leaves the group with the last QP, however that QP ends.
  const auto member = [&] { return shell("ip maddr show dev m0 | grep -q 239.1.2.3"); };
  a1.enter();
  HOST_CHECK(member());
  HOST_CHECK(a1.engine.destroyQp(a1.qp) == Status::kSuccess);
  HOST_CHECK(!member());
  // Linux lets a socket join 20 IPv4 groups unless it is configured otherwise.
  Status status = Status::kSuccess;
  for (uint32_t i = 0; i < 4096 && status == Status::kSuccess; i++) {
    Gid many = parseAddress("239.9.0.0");
    many.raw[14] = static_cast<uint8_t>(i >> 8);
    many.raw[15] = static_cast<uint8_t>(i);
    status = a2.engine.attachMulticast(a2.qp, many, index(a2, "m0"));
  }
  HOST_CHECK(status == Status::kInsufficientResources);

  // Tests MADs with different P_Keys.
  const Gid own = parseAddress("10.50.0.1"), far = parseAddress("10.50.0.2");
  Handle table = 0;
  HOST_CHECK(b.engine.createPkeyTable(b.id, &table) == Status::kSuccess);
  HOST_CHECK(b.engine.setPkeyTable(table, {0x8123}, {far}) == Status::kSuccess);
  Path path;
  path.source = own;
  path.destination = far;
  const uint8_t m[256] = {1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10};
  a1.enter();
  for (const uint16_t pkey : {uint16_t(0xFFFF), uint16_t(0x8124), uint16_t(0x0123), uint16_t(0x8123)})
    HOST_CHECK(a1.host.sendMad(path, m, pkey) == Status::kSuccess);
  HOST_CHECK(a1.host.sendMad(path, m, 0x8000) == Status::kInvalidParameter);
  HOST_CHECK(until([&] { return b.port.pkeys.size() >= 2; }));
  HOST_CHECK((b.port.pkeys == std::vector<uint16_t>{0x0123, 0x8123}));
  PkeyViolations v;
  HOST_CHECK(b.engine.queryPkeyTable(b.id, table, &v) == Status::kSuccess && v.badPkeys == 2);
}

// Another program holds the port, so the processes on this host forward group datagrams to each other.
void withoutWire(int ns) {
  HOST_CHECK(setns(ns, CLONE_NEWNET) == 0);
  const UniqueFd holder(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(4791);
  HOST_CHECK(bind(holder.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
  Side c1(ns), c2(ns), c3(ns);
  sides = {&c1, &c2, &c3};
  HOST_CHECK(c1.host.wireProblem().find("IPv4") != std::string::npos);
  const Gid lo = parseAddress("127.0.0.1"), group = parseAddress("239.1.2.3");
  const auto unicastOf = [&](Side&) { return lo; };
  const uint32_t loop = index(c1, "lo");
  for (Side* s : {&c1, &c2}) HOST_CHECK(s->engine.attachMulticast(s->qp, group, loop) == Status::kSuccess);
  HOST_CHECK(c3.engine.attachMulticast(c3.qp, group, 9999) == Status::kNetworkUnreachable);
  auto got = cast(c1, lo, group, "local", unicastOf, 2);
  HOST_CHECK(once(got[0], "local", c1) && once(got[1], "local", c1) && got[2].empty());
  got = cast(c3, lo, group, "again", unicastOf, 2);
  HOST_CHECK(once(got[0], "again", c3) && once(got[1], "again", c3) && got[2].empty());
  for (const auto& [name, value] : [&] {
         std::map<std::string, uint64_t> all;
         const auto values = c3.host.counters();
         for (size_t i = 0; i < values.size(); i++) all[Host::counterNames()[i]] = values[i];
         return all;
       }())
    if (name == "slot_bad_frames") HOST_CHECK(value == 0);
}

}  // namespace

int main() {
  if (!privateNetwork()) {
    std::printf("host_multicast: skipped, it may not make interfaces here\n");
    return 0;
  }
  // The program runs on one CPU, which has one queue of packets, so what is sent later to a socket arrives later.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  const int here = namespaceOf("/proc/self/ns/net");
  const pid_t far = otherHost();
  const std::string pid = std::to_string(far);
  const int there = namespaceOf(("/proc/" + pid + "/ns/net").c_str());
  if (!shell("ip link add m0 type veth peer name m1 netns " + pid)) {
    std::printf("host_multicast: only the part without a wire: no veth interfaces here\n");
    withoutWire(here);
  } else {
    HOST_CHECK(shell(kUp + "m0 up && ip addr add 10.50.0.1/24 dev m0 && ip addr add fd50::1/64 dev m0 nodad"));
    HOST_CHECK(setns(there, CLONE_NEWNET) == 0);
    HOST_CHECK(shell(kUp + "m1 up && ip addr add 10.50.0.2/24 dev m1 && ip addr add fd50::2/64 dev m1 nodad"));
    onTheWire(here, there);
    withoutWire(there);
  }
  kill(far, SIGKILL);
  waitpid(far, nullptr, 0);
  return finish("host_multicast");
}
