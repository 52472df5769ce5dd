// Tests of exact ICRC checks (option icrc=exact), with packets over a cable from another host, over the loopback
// interface, and for other processes. Also tests what the check with a solved ID cannot detect.
#include <linux/capability.h>
#include <netinet/ip.h>
#include <sys/syscall.h>

#include "base/packet_headers.h"
#include "host_node.h"
#include "platform/unique_fd.h"

using namespace hosttest;
using namespace nd;

namespace {

const char* const kThere = "10.99.0.2";
const char* const kHere = "10.99.0.1";
constexpr uint32_t kPayload = 200;

bool shell(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

struct Shape {
  uint16_t id = 7;      // in the IP header
  uint16_t icrcId = 7;  // the ID in the ICRC
  bool dontFragment = true;
};

IcrcHeaders headersOf(const Shape& shape, uint16_t id) {
  IcrcHeaders h;
  h.source = parseAddress(kThere);
  h.destination = parseAddress(kHere);
  h.sourcePort = 51234;
  h.ipv4Id = id;
  h.dontFragment = shape.dontFragment;
  return h;
}

// A packet from its IP header on. `bth`: BTH to pad.
std::vector<uint8_t> packetOf(const std::vector<uint8_t>& bth, const Shape& shape) {
  std::vector<uint8_t> p(48);
  const auto length = static_cast<uint32_t>(bth.size());
  p.resize(buildHeaders(p.data(), headersOf(shape, shape.id), length + kIcrcBytes, false));
  p.insert(p.end(), bth.begin(), bth.end());
  uint8_t icrc[4];
  storeIcrc(icrc, icrcOf(headersOf(shape, shape.icrcId), bth.data(), length));
  p.insert(p.end(), icrc, icrc + 4);
  return p;
}

std::vector<uint8_t> send(uint32_t qpn, uint32_t psn) {
  std::vector<uint8_t> b(12 + kPayload);
  b[0] = 4;
  b[2] = b[3] = 0xff;
  for (int i = 0; i < 3; i++) {
    b[5 + i] = static_cast<uint8_t>(qpn >> (16 - 8 * i));
    b[9 + i] = static_cast<uint8_t>(psn >> (16 - 8 * i));
  }
  for (uint32_t i = 0; i < kPayload; i++) b[12 + i] = pattern(psn, i);
  return b;
}

// A REQ to a service without a listener.
std::vector<uint8_t> management(uint8_t tag) {
  std::vector<uint8_t> b(mad::kPacketBytes);
  b[0] = wire::kOpUdSendOnly;
  b[2] = b[3] = 0xff;
  b[7] = wire::kGsiQpn;
  b[12] = wire::kGsiQkey >> 24;
  b[13] = wire::kGsiQkey >> 16 & 0xff;
  b[19] = wire::kGsiQpn;
  uint8_t* m = b.data() + mad::kPacketMadOffset;
  m[0] = 1, m[1] = 7, m[2] = 2, m[3] = 3;
  m[15] = tag;
  m[17] = 0x10;
  return b;
}

// Changes a word of the payload so that the ICRC of ID `shape.icrcId` matches another ID than the one in the header.
std::vector<uint8_t> corrupt(std::vector<uint8_t> bth, const Shape& shape, uint16_t other) {
  const auto length = static_cast<uint32_t>(bth.size());
  const IcrcHeaders h = headersOf(shape, shape.id);
  const uint32_t base = icrcOf(h, bth.data(), length);
  uint32_t wanted = base ^ icrcOf(headersOf(shape, other), bth.data(), length);
  uint32_t effect[32], bits[32];
  for (uint32_t i = 0; i < 32; i++) {
    std::vector<uint8_t> flipped = bth;
    flipped[40 + i / 8] ^= static_cast<uint8_t>(1u << i % 8);
    effect[i] = icrcOf(h, flipped.data(), length) ^ base;
    bits[i] = 1u << i;
  }
  uint32_t flips = 0;
  for (uint32_t bit = 0; bit < 32; bit++) {  // Gaussian elimination over the 32 single-bit effects
    uint32_t row = bit;
    while (row < 32 && !(effect[row] >> bit & 1)) row++;
    if (row == 32) continue;
    std::swap(effect[row], effect[bit]);
    std::swap(bits[row], bits[bit]);
    for (uint32_t i = 0; i < 32; i++)
      if (i != bit && (effect[i] >> bit & 1)) effect[i] ^= effect[bit], bits[i] ^= bits[bit];
  }
  for (uint32_t bit = 0; bit < 32; bit++)
    if (wanted >> bit & 1) wanted ^= effect[bit], flips ^= bits[bit];
  HOST_CHECK(wanted == 0 && flips != 0);
  for (uint32_t i = 0; i < 32; i++)
    if (flips >> i & 1) bth[40 + i / 8] ^= static_cast<uint8_t>(1u << i % 8);
  return bth;
}

// A socket of the other host that sends packets unchanged, except for the total length and the checksum of the IP
// header.
class Sender {
 public:
  explicit Sender(int there, int here) {
    HOST_CHECK(setns(there, CLONE_NEWNET) == 0);
    fd_.reset(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    HOST_CHECK(fd_.valid());
    HOST_CHECK(setns(here, CLONE_NEWNET) == 0);
  }
  void send(const std::vector<uint8_t>& packet) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    inet_pton(AF_INET, kHere, &to.sin_addr);
    HOST_CHECK(sendto(fd_.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) ==
               static_cast<ssize_t>(packet.size()));
  }
  // Sends a packet in two pieces, as a router fragments a packet that may be fragmented.
  void sendFragments(const std::vector<uint8_t>& packet) {
    constexpr size_t kFirst = 64;
    std::vector<uint8_t> one(packet.begin(), packet.begin() + 20 + kFirst), two(packet.begin(), packet.begin() + 20);
    two.insert(two.end(), packet.begin() + 20 + kFirst, packet.end());
    one[6] = 0x20;
    two[6] = 0, two[7] = kFirst / 8;
    send(one);
    send(two);
  }

 private:
  UniqueFd fd_;
};

std::string arrival(uint32_t qpn, uint32_t psn) {
  std::ostringstream out;
  out << "packet qpn=" << std::hex << qpn << std::dec << " psn=" << psn << " ";
  return out.str();
}

bool has(const std::string& line, const char* what) { return line.find(what) != std::string::npos; }

void corruptPackets(Sender& sender, bool exact) {
  Node node(std::string("link=wire icrc=") + (exact ? "exact" : "solved"));
  const uint32_t qpn = node.slot << 16 | 5;
  const Shape good;
  sender.send(packetOf(send(qpn, 1), good));
  HOST_CHECK(has(node.expect(arrival(qpn, 1)), "good=1"));
  // The ICRC was right when the packet left. The bits that changed on the way would also be explained by the ID 0x1234.
  const std::vector<uint8_t> whole = send(qpn, 2), broken = corrupt(whole, good, 0x1234);
  std::vector<uint8_t> packet = packetOf(whole, good);
  std::copy(broken.begin(), broken.end(), packet.begin() + 28);
  sender.send(packet);
  sender.send(packetOf(send(qpn, 3), good));
  const std::string next = node.expect("packet ");
  if (exact) {
    HOST_CHECK(has(next, "psn=3 "));
    HOST_CHECK(node.counter("rx_icrc_errors") == 1);
    HOST_CHECK(node.counter("rx_ipv4_id_solved") == 0);
  } else {
    HOST_CHECK(has(next, "psn=2 ") && has(next, "good=0"));
    HOST_CHECK(has(node.expect(arrival(qpn, 3)), "good=1"));
    HOST_CHECK(node.counter("rx_icrc_errors") == 0);
  }
  HOST_CHECK(node.countUntilNow("packet ") == 0);  // each packet arrived once

  node.ask("kernel", "kernel ");
  // MADs are received from the UDP sockets. The raw socket's copy shows whether a MAD is intact.
  sender.send(packetOf(management(1), good));
  Shape wrong;
  wrong.icrcId = 0x1234;
  sender.send(packetOf(management(2), wrong));
  sender.send(packetOf(send(qpn, 4), good));
  node.expect(arrival(qpn, 4));
  sender.send(packetOf(management(3), good));
  const long mads = exact ? 2 : 3;
  HOST_CHECK(node.counterFrom("mad_rx", mads) == mads);
  HOST_CHECK(node.counter("rx_raw_unwitnessed") == (exact ? 1 : 0));

  // Tests packets that are reassembled, have IP options, or are truncated.
  Shape apart;
  apart.dontFragment = false;
  sender.sendFragments(packetOf(send(qpn, 5), apart));
  HOST_CHECK(has(node.expect(arrival(qpn, 5)), "good=1"));
  if (exact) {
    std::vector<uint8_t> optional = packetOf(send(qpn, 6), good);
    optional[0] = 0x46;
    optional.insert(optional.begin() + 20, {1, 1, 1, 1});
    sender.send(optional);
    std::vector<uint8_t> cut = packetOf(send(qpn, 7), good);
    cut.resize(cut.size() - 4);
    sender.send(cut);
    sender.send(packetOf(send(qpn, 8), good));
    HOST_CHECK(has(node.expect("packet "), "psn=8 "));
    HOST_CHECK(node.counter("wire_rx_bad_length") == 2);
  }
}

// Several packets with one header, as joined by the interface (consecutive IDs) or sent in one piece on this machine
// (one ID). `ids` are the IDs in the ICRCs.
std::vector<uint8_t> joined(uint32_t qpn, uint32_t psn, const std::vector<uint16_t>& ids, bool shorterLast) {
  std::vector<uint8_t> bytes;
  Shape shape;
  for (size_t i = 0; i < ids.size(); i++) {
    std::vector<uint8_t> bth = send(qpn, psn + static_cast<uint32_t>(i));
    if (shorterLast && i == ids.size() - 1) bth.resize(12 + kPayload / 2);
    shape.icrcId = ids[i];
    const std::vector<uint8_t> packet = packetOf(bth, shape);
    bytes.insert(bytes.end(), packet.begin() + 28, packet.end());
  }
  std::vector<uint8_t> whole(48);
  whole.resize(buildHeaders(whole.data(), headersOf(shape, shape.id), static_cast<uint32_t>(bytes.size()), false));
  whole.insert(whole.end(), bytes.begin(), bytes.end());
  return whole;
}

void joinedPackets(Sender& sender) {
  Node node("link=wire icrc=exact");
  const uint32_t qpn = node.slot << 16 | 5;
  const auto expect = [&](std::initializer_list<uint32_t> psns) {
    for (uint32_t psn : psns) HOST_CHECK(has(node.expect("packet "), ("psn=" + std::to_string(psn) + " ").c_str()));
  };
  sender.send(joined(qpn, 1, {7, 8, 9}, false));
  sender.send(joined(qpn, 4, {7, 7, 7, 7}, true));
  sender.send(joined(qpn, 8, {7, 7}, false));
  expect({1, 2, 3, 4, 5, 6, 7, 8, 9});
  HOST_CHECK(node.counter("rx_icrc_errors") == 0);
  // The second packet has the ICRC of an ID that it cannot have had.
  sender.send(joined(qpn, 10, {7, 10, 9}, true));
  expect({10, 12});
  HOST_CHECK(node.counter("rx_icrc_errors") == 1);
  // If the first packet is corrupt, its end is unknown.
  sender.send(joined(qpn, 13, {8, 8, 9}, false));
  sender.send(packetOf(send(qpn, 16), {}));
  expect({16});
  HOST_CHECK(node.counter("rx_icrc_errors") == 2);
  HOST_CHECK(node.countUntilNow("packet ") == 0);
}

// Each of two processes gets its own packets once, whichever process the OS gives them to. Then the host sends traffic
// to itself in runs.
void severalProcesses(Sender& sender) {
  Node one("link=wire icrc=exact"), two("link=wire icrc=exact"), other("link=wire");
  Node* const all[] = {&one, &two, &other};
  for (Node* n : all) n->ask("kernel", "kernel ");
  for (uint32_t index = 0; index < 3; index++) {
    one.ask("missteer " + std::to_string(index), "missteered 1");
    for (Node* to : all) {
      const uint32_t qpn = to->slot << 16 | 5, psn = 20 + index;
      sender.send(packetOf(send(qpn, psn), {}));
      HOST_CHECK(has(to->expect(arrival(qpn, psn)), "good=1"));
      std::vector<uint8_t> unreliable = send(qpn, psn + 10);
      unreliable[0] = 0x24;  // UC SEND only
      sender.send(packetOf(unreliable, {}));
      HOST_CHECK(has(to->expect(arrival(qpn, psn + 10)), "good=1"));
    }
    sender.send(packetOf(management(static_cast<uint8_t>(index)), {}));
  }
  const auto mads = [&] {
    long n = 0;
    for (Node* node : all) n += node->counter("mad_rx");
    return n;
  };
  const uint64_t end = RealClock().now() + kTimeoutNs;
  const auto come = [&](long count) {
    while (mads() < count && RealClock().now() < end) continue;
    return mads() == count;
  };
  HOST_CHECK(come(3));
  for (Node* n : all) HOST_CHECK(n->countUntilNow("packet ") == 0);
  for (Node* n : all) HOST_CHECK(n->counter("rx_raw_unwitnessed") == 0);

  // Waits until `two` has handled everything on its UDP socket that was for others. A message on that socket is behind
  // all of these packets.
  const long taken = two.counter("mad_rx");
  for (long n = 4; two.counter("mad_rx") == taken && RealClock().now() < end; n++) {
    one.ask("missteer " + std::to_string(two.slot), "missteered 1");
    sender.send(packetOf(management(static_cast<uint8_t>(n)), {}));
    HOST_CHECK(come(n));
  }

  // Runs long enough that a connected socket sends, whose IDs count from a random one. Packets are steered correctly,
  // or to other processes, which forward packets that the raw socket has copies of.
  const long solved = two.counter("rx_ipv4_id_solved");  // packets for others
  constexpr int kMany = 200;
  const auto sendMany = [&](uint32_t bytes) {  // each packet arrives once
    std::ostringstream runs;
    runs << "send 127.0.0.1 127.0.0.1 " << std::hex << (two.slot << 16 | 9) << std::dec << " " << kMany << " " << bytes;
    HOST_CHECK(one.ask(runs.str(), "sent ") == "sent " + std::to_string(kMany));
    const std::string rest = "bytes=" + std::to_string(bytes) + " good=1";
    for (uint32_t psn = 0; psn < kMany; psn++)
      HOST_CHECK(has(two.expect("packet "), (arrival(two.slot << 16 | 9, psn) + rest).c_str()));
  };
  for (const uint32_t bytes : {0u, 4u, 1000u, 1023u, 4096u}) {
    one.ask("missteer " + std::to_string(two.slot), "missteered 1");
    sendMany(bytes);
  }
  HOST_CHECK(two.countUntilNow("packet ") == 0);
  for (Node* wrong : {&one, &other}) {
    const long before = wrong->counter("slot_tx_forwarded");
    long handedOn = 0;
    for (int tries = 0; tries < 10 && handedOn == 0;
         tries++) {  // a round of steering that was already running may correct it
      one.ask("missteer " + std::to_string(wrong->slot), "missteered 1");
      sendMany(1000);
      for (int i = 0; i < 100 && handedOn < kMany; i++) handedOn = wrong->counter("slot_tx_forwarded") - before;
      for (int i = 0; i < 8; i++) HOST_CHECK(two.countUntilNow("packet ") == 0);  // a poll handles 64 of them
    }
    HOST_CHECK(handedOn > 0);
  }
  HOST_CHECK(one.counter("tx_flow_opened") == 1);
  HOST_CHECK(two.counter("rx_ipv4_id_solved") == solved);
  HOST_CHECK(two.counter("rx_icrc_errors") == 0);
  HOST_CHECK(two.counter("rx_raw_unsegmented") == 0);
  HOST_CHECK(two.countUntilNow("packet ") == 0);
}

void withoutThePrivilege() {
  const pid_t child = fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) _exit(2);
    RealClock clock;
    bool refused, taken;
    {
      Host host(clock);
      Engine engine(host, clock, EngineOptions());
      HostOptions options;
      options.icrc = IcrcCheck::kExact;
      refused = host.start(options, engine) == Status::kAccessDenied;
    }
    {
      // Nothing of the refused start is left over: a start without the option succeeds.
      Host host(clock);
      Engine engine(host, clock, EngineOptions());
      taken = host.start(HostOptions(), engine) == Status::kSuccess && host.slot() == 0;
      host.stop();
    }
    _exit(refused && taken ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "node") return nodeMain(argc, argv);
  if (!privateNetwork()) return finish("host_exact");
  withoutThePrivilege();
  int ready[2], done[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(done, O_CLOEXEC) != 0) std::abort();
  const pid_t other = fork();
  if (other == 0) {
    close(done[1]);
    const char ok = unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
    if (write(ready[1], &ok, 1) != 1) _exit(1);
    char end;
    _exit(read(done[0], &end, 1) == 0 ? 0 : 1);
  }
  char ok = 'n';
  if (read(ready[0], &ok, 1) != 1 || ok != 'y') std::abort();
  const std::string pid = std::to_string(other);
  if (!shell("ip link add m0 type veth peer name m1 netns " + pid)) {
    std::printf("host_exact: only the part without a cable: no veth interfaces here\n");
  } else {
    UniqueFd here(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    UniqueFd there(open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    HOST_CHECK(shell("ip addr add 10.99.0.1/24 dev m0 && ip link set m0 up"));
    HOST_CHECK(setns(there.get(), CLONE_NEWNET) == 0);
    HOST_CHECK(shell("ip addr add 10.99.0.2/24 dev m1 && ip link set m1 up"));
    HOST_CHECK(setns(here.get(), CLONE_NEWNET) == 0);
    Sender sender(there.get(), here.get());
    for (const bool exact : {false, true}) corruptPackets(sender, exact);
    joinedPackets(sender);
    severalProcesses(sender);
  }
  close(done[1]);
  waitpid(other, nullptr, 0);
  return finish("host_exact");
}
