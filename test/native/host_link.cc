// Tests of the host side between processes: packets over the shared RoCEv2 port, forwarding, steering, the end of
// processes, ports and QP1.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/un.h>

#include <memory>

#include "base/icrc.h"
#include "host_node.h"
#include "host_test.h"
#include "platform/local_names.h"

using hosttest::Node;

namespace {

const char kAny[] = "127.0.0.1";

std::string qpn(const Node& node, unsigned index) {
  char text[16];
  std::snprintf(text, sizeof text, "%x", node.slot << 16 | index);
  return text;
}

std::string send(const Node& to, const std::string& source, const std::string& destination, int count, int bytes) {
  return "send " + source + " " + destination + " " + qpn(to, 0x42) + " " + std::to_string(count) + " " +
         std::to_string(bytes);
}

bool has(const std::string& line, const std::string& part) { return line.find(part) != std::string::npos; }

void exchange() {
  Node a, b;
  HOST_CHECK(a.slot == 0 && b.slot == 1);
  HOST_CHECK(has(a.started, "wire 1 problem") && a.started.back() == ' ');
  const struct {
    const char *from, *to;
  } ways[] = {{"127.0.0.1", "127.0.0.1"}, {"127.0.0.2", "127.0.0.3"}, {"::1", "::1"}};
  for (const auto& way : ways) {
    for (int bytes : {0, 1, 2, 3, 4, 255, 1024, 4095, 4096, 9152, 16384}) {
      for (const auto& pair : {std::pair<Node*, Node*>{&a, &b}, {&b, &a}, {&a, &a}}) {
        HOST_CHECK(pair.first->ask(send(*pair.second, way.from, way.to, 6, bytes), "sent") == "sent 6");
        for (int n = 0; n < 6; n++) {
          const std::string got = pair.second->expect("packet");
          HOST_CHECK(has(got, "qpn=" + qpn(*pair.second, 0x42) + " "));
          HOST_CHECK(has(got, " bytes=" + std::to_string(bytes) + " good=1"));
          HOST_CHECK(has(got, std::string("from=") + way.from + " to=" + way.to));
        }
      }
      // The socket on port 4791 sends ID 0. Sockets whose IDs count are opened later.
      if (way.from == ways[0].from && bytes == 2)
        HOST_CHECK(a.counter("rx_ipv4_id_solved") == 0 && b.counter("rx_ipv4_id_solved") == 0);
    }
  }
  HOST_CHECK(a.counter("rx_icrc_errors") == 0 && b.counter("rx_icrc_errors") == 0);
  HOST_CHECK(a.counter("tx_flow_opened") == 6 && a.counter("tx_flow_id_lost") == 0);  // one for each path and process
  // Frames that are too long for a packet or not a multiple of a word are refused, and the batch continues.
  HOST_CHECK(a.ask("send 127.0.0.1 127.0.0.1 10042 1 20000", "sent") == "sent 0");
  HOST_CHECK(a.ask("local 127.3.2.1", "local") == "local 1");
  HOST_CHECK(a.ask("local ::1", "local") == "local 1");
  HOST_CHECK(a.ask("local 192.0.2.1", "local") == "local 0");
}

// Waits until packets for `to` reach it without a detour. Every packet must arrive in any case. Steering queries all
// processes at most every 100 ms, and again if one did not reply within 20 ms: so the limit is a time, not a number of
// packets.
void settle(Node& from, Node& to, const std::vector<Node*>& all) {
  const uint64_t end = hosttest::RealClock().now() + kTimeoutNs;
  while (hosttest::RealClock().now() < end) {
    long before = 0, after = 0;
    for (Node* n : all) before += n->counter("rx_misdirected");
    from.ask(send(to, kAny, kAny, 20, 64), "sent");
    for (int n = 0; n < 20; n++) HOST_CHECK(has(to.expect("packet"), "good=1"));
    for (Node* n : all) after += n->counter("rx_misdirected");
    if (before == after) return;
  }
  HOST_CHECK(!"steering settles");
}

void steering() {
  auto a = std::make_unique<Node>();
  Node b, c, d;
  const std::vector<Node*> all = {a.get(), &b, &c, &d};
  for (Node* to : all)
    for (Node* from : {a.get(), &d}) settle(*from, *to, all);
  // All packets arrive at one process, which forwards them, detects this, and corrects the steering.
  const long forwarded = a->counter("slot_tx_forwarded");
  HOST_CHECK(b.ask("missteer 0", "missteered") == "missteered 1");
  settle(b, c, all);
  HOST_CHECK(a->counter("slot_tx_forwarded") > forwarded);
  settle(c, d, all);
  // When a member dies, the last member moves to its index.
  HOST_CHECK(d.ask("watch " + std::to_string(a->slot), "watch") == "watch 1");
  const unsigned freed = a->slot;
  a->kill();
  d.expect("gone " + std::to_string(freed));
  for (Node* to : {&b, &c, &d}) settle(c, *to, {&b, &c, &d});
  Node e;
  HOST_CHECK(e.slot == freed);
  settle(b, e, {&b, &c, &d, &e});
  settle(e, b, {&b, &c, &d, &e});
}

void deaths() {
  Node a;
  auto b = std::make_unique<Node>(), c = std::make_unique<Node>();
  const std::string slotB = std::to_string(b->slot), slotC = std::to_string(c->slot);
  HOST_CHECK(a.ask("watch " + slotB, "watch") == "watch 1");
  HOST_CHECK(a.ask("watch " + slotB, "watch") == "watch 1");
  HOST_CHECK(c->ask("watch " + slotB, "watch") == "watch 1");
  HOST_CHECK(a.ask("watch " + std::to_string(a.slot), "watch") == "watch 1");
  HOST_CHECK(a.ask("watch 77", "watch") == "watch 0");
  HOST_CHECK(a.ask("watch 254", "watch") == "watch 0");
  b->kill();
  HOST_CHECK(a.expect("gone") == "gone " + slotB + " lost");
  HOST_CHECK(c->expect("gone") == "gone " + slotB + " lost");
  HOST_CHECK(a.ask("watch " + slotB, "watch") == "watch 0");
  Node again;
  HOST_CHECK(std::to_string(again.slot) == slotB);
  HOST_CHECK(a.ask("watch " + slotB, "watch") == "watch 1");
  HOST_CHECK(a.ask("watch " + slotC, "watch") == "watch 1");
  c->quit();  // an orderly end counts as an end as well
  HOST_CHECK(a.expect("gone") == "gone " + slotC + " goodbye");
  HOST_CHECK(a.countUntilNow("gone") == 0);
  HOST_CHECK(a.counter("slot_peers_gone") == 2);
  // Packets for a slot without a process are lost, without an error.
  a.ask("send 127.0.0.1 127.0.0.1 4d0042 5 100", "sent 5");
  HOST_CHECK(a.alive());
}

// The slot's owner has changed twice before this process looks. The end of the first owner is not the end of the next.
void slotOfAnother() {
  Node a;
  auto b = std::make_unique<Node>();
  const std::string slot = std::to_string(b->slot);
  const auto unseen = [&] {  // the owner ends, and another takes the slot, while `a` does not look
    ::kill(a.pid(), SIGSTOP);
    b->kill();
    b = std::make_unique<Node>();
    HOST_CHECK(std::to_string(b->slot) == slot);
  };
  HOST_CHECK(a.ask("watch " + slot, "watch") == "watch 1");
  unseen();
  ::kill(a.pid(), SIGCONT);
  HOST_CHECK(a.expect("gone") == "gone " + slot + " lost");  // `a` is connected to the next one now
  unseen();
  a.tell("watch " + slot);
  ::kill(a.pid(), SIGCONT);
  HOST_CHECK(a.expect("watch") == "watch 1");
  HOST_CHECK(a.countUntilNow("gone") == 0);
  b->kill();
  HOST_CHECK(a.expect("gone") == "gone " + slot + " lost");
}

// A process that was not polling finds packets in its socket, and also the event that ends the connection: a message
// that slot 0 has handed over (`link=wire`), one that came through the slots, or the end of the peer. The packets are
// handled first.
void order(const std::string& link) {
  constexpr int kPackets = 400;
  Node zero(link), receiver(link);
  auto sender = std::make_unique<Node>(link);
  HOST_CHECK(zero.slot == 0);
  receiver.ask("kernel", "kernel 1");
  receiver.ask("watch " + std::to_string(sender->slot), "watch 1");
  settle(*sender, receiver, {&zero, &receiver, sender.get()});
  char id[16];
  std::snprintf(id, sizeof id, "%08x", receiver.slot << 24 | 1u << 18 | 5);
  const auto packetsBefore = [&](const std::string& news) {
    int packets = 0;
    for (;;) {
      const std::string line = receiver.expect("");
      if (line.compare(0, news.size(), news) == 0) return packets;
      if (line.compare(0, 6, "packet") == 0) packets++;
    }
  };
  ::kill(receiver.pid(), SIGSTOP);
  const long handedOver = zero.counter("mad_handed_over");
  // Each request goes through the other process, which runs meanwhile.
  const auto handsOver = [&](long count) {
    if (link.empty()) return true;  // the message is sent when its status is reported
    return zero.counterFrom("mad_handed_over", count) >= count;
  };
  // An earlier message makes the connection from slot 0 the first that is ready.
  sender->ask(std::string("mad 127.0.0.1 127.0.0.1 15 66 4 ") + id, "mad-status 0");
  HOST_CHECK(handsOver(handedOver + 1));
  HOST_CHECK(sender->ask(send(receiver, kAny, kAny, kPackets, 64), "sent") == "sent " + std::to_string(kPackets));
  sender->ask(std::string("mad 127.0.0.1 127.0.0.1 15 77 4 ") + id, "mad-status 0");  // a DREQ
  HOST_CHECK(handsOver(handedOver + 2));
  ::kill(receiver.pid(), SIGCONT);
  HOST_CHECK(packetsBefore("mad kernel=1 attr=15 tag=77") == kPackets);

  ::kill(receiver.pid(), SIGSTOP);
  sender->ask(send(receiver, kAny, kAny, kPackets, 64), "sent");
  sender->kill();
  ::kill(receiver.pid(), SIGCONT);
  HOST_CHECK(packetsBefore("gone ") == kPackets);
}

void ports() {
  Node a;
  auto b = std::make_unique<Node>();
  a.ask("kernel", "kernel 1");
  a.ask("kernel", "kernel 2");
  b->ask("kernel", "kernel 1");
  const std::string taken = "claim c000020a", ok = "claim 0 ";
  HOST_CHECK(has(a.ask("claim 1 106 127.0.0.1 7000", "claim"), ok + "port 7000"));
  HOST_CHECK(has(b->ask("claim 1 106 127.0.0.1 7000", "claim"), taken));
  HOST_CHECK(has(a.ask("claim 2 106 127.0.0.1 7000", "claim"), taken));
  HOST_CHECK(has(b->ask("claim 1 106 * 7000", "claim"), taken));
  HOST_CHECK(has(b->ask("claim 1 106 127.0.0.2 7000", "claim"), ok));
  HOST_CHECK(has(b->ask("claim 1 106 ::1 7000", "claim"), ok));
  HOST_CHECK(has(b->ask("claim 1 111 * 7000", "claim"), ok));  // in another port space
  HOST_CHECK(has(b->ask("claim 1 106 * 7001", "claim"), ok));
  HOST_CHECK(has(a.ask("claim 1 106 127.0.0.1 7001", "claim"), taken));
  HOST_CHECK(has(a.ask("claim 1 106 * 7001", "claim"), taken));
  HOST_CHECK(has(a.ask("claim 0 106 * 7002", "claim"), "claim c000000d"));
  // Free ports are distinct, and in the ephemeral range.
  std::string seen;
  for (int i = 0; i < 20; i++) {
    const std::string line = (i % 2 ? a : *b).ask(i % 3 ? "claim 1 106 127.0.0.1 0" : "claim 1 106 * 0", "claim");
    unsigned status = 1, port = 0, id = 0;
    std::sscanf(line.c_str(), "claim %x port %u id %u", &status, &port, &id);
    HOST_CHECK(status == 0 && port >= 49152 && id != 0);
    const std::string name = "<" + std::to_string(port) + ">";
    HOST_CHECK(!has(seen, name));
    seen += name;
  }
  // Ports are released explicitly, with the kernel, and with the process.
  unsigned id = 0;
  std::sscanf(a.ask("claim 2 106 * 7100", "claim").c_str(), "claim 0 port 7100 id %u", &id);
  HOST_CHECK(has(b->ask("claim 1 106 * 7100", "claim"), taken));
  a.ask("unclaim " + std::to_string(id), "unclaimed");
  HOST_CHECK(has(b->ask("claim 1 106 * 7100", "claim"), ok));
  HOST_CHECK(has(a.ask("claim 2 106 * 7101", "claim"), ok));
  a.ask("endkernel 2", "ended");
  HOST_CHECK(has(b->ask("claim 1 106 * 7101", "claim"), ok));
  HOST_CHECK(has(b->ask("claim 1 106 127.0.0.1 7000", "claim"), taken));  // the claims of kernel 1 remain
  a.ask("watch " + std::to_string(b->slot), "watch 1");
  b->kill();
  a.expect("gone");
  HOST_CHECK(has(a.ask("claim 1 106 * 7001", "claim"), ok));
}

std::string idBytes(unsigned long id) {
  char text[24];
  std::snprintf(text, sizeof text, "%08lx", id);
  return text;
}

// `label` says whether there is a wire. The tests without one use this function too.
void gsi(const std::string& label, const std::vector<std::string>& addresses) {
  std::printf("gsi %s\n", label.c_str());
  Node a;
  auto b = std::make_unique<Node>();
  unsigned long baseA1 = 0, baseA2 = 0, baseB = 0;
  std::sscanf(a.ask("kernel", "kernel 1").c_str(), "kernel 1 base %lx", &baseA1);
  std::sscanf(a.ask("kernel", "kernel 2").c_str(), "kernel 2 base %lx", &baseA2);
  std::sscanf(b->ask("kernel", "kernel 1").c_str(), "kernel 1 base %lx", &baseB);
  HOST_CHECK(baseA1 == (static_cast<unsigned long>(a.slot) << 24 | 1u << 18));
  HOST_CHECK(baseB == (static_cast<unsigned long>(b->slot) << 24 | 1u << 18));
  HOST_CHECK(has(a.ask("claim 2 106 * 7000", "claim"), "claim 0 "));
  HOST_CHECK(has(b->ask("claim 1 106 * 7001", "claim"), "claim 0 "));
  HOST_CHECK(has(b->ask("claim 1 111 * 7002", "claim"), "claim 0 "));
  unsigned tag = 0x100;
  const auto mad = [&](Node& from, const std::string& address, const char* attribute, const std::string& fields) {
    char text[16];
    std::snprintf(text, sizeof text, "%x", ++tag);
    const std::string line = "mad " + address + " " + address + " " + attribute + " " + text + " " + fields;
    HOST_CHECK(from.ask(line, "mad-status") == "mad-status 0");
  };
  const auto arrives = [&](Node& at, int kernel, const char* attribute) {
    char text[64];
    std::snprintf(text, sizeof text, "mad kernel=%d attr=%s tag=%x ", kernel, attribute, tag);
    HOST_CHECK(has(at.expect("mad kernel"), text));
  };
  for (const std::string& address : addresses) {
    for (Node* from : {&a, b.get()}) {
      mad(*from, address, "10", "8 0000000001061b58");  // REQ to port 7000
      arrives(a, 2, "10");
      mad(*from, address, "10", "8 0000000001061b59");  // REQ to port 7001
      arrives(*b, 1, "10");
      mad(*from, address, "17", "8 0000000001111b5a");  // SIDR_REQ to UDP port space 7002
      arrives(*b, 1, "17");
      for (const char* attribute : {"11", "12", "13", "14", "15", "16"}) {
        mad(*from, address, attribute, "4 " + idBytes(baseA1 | 5));
        arrives(a, 1, attribute);
        mad(*from, address, attribute, "4 " + idBytes(baseA2 | 5));
        arrives(a, 2, attribute);
        mad(*from, address, attribute, "4 " + idBytes(baseB | 5));
        arrives(*b, 1, attribute);
      }
      mad(*from, address, "18", "0 " + idBytes(baseB | 5));  // SIDR_REP names the request
      arrives(*b, 1, "18");
      // A REJ that withdraws a REQ goes to all processes.
      mad(*from, address, "12", "4 00000000 10 0004");
      arrives(a, 1, "12");
      arrives(a, 2, "12");
      arrives(*b, 1, "12");
    }
  }
  // A claim of one address takes precedence over a claim of all addresses. Here the two are in one process.
  HOST_CHECK(has(a.ask("claim 1 106 127.0.0.5 7005", "claim"), "claim 0 "));
  a.ask("mad 127.0.0.1 127.0.0.5 10 fff 8 0000000001061b5d", "mad-status 0");
  HOST_CHECK(has(a.expect("mad"), "kernel=1 attr=10 tag=fff"));
  // For a DREQ to an id of a process that is gone, any kernel replies.
  b->kill();
  mad(a, "127.0.0.1", "15", "4 " + idBytes(baseB | 5));
  arrives(a, 1, "15");
  mad(a, "127.0.0.1", "10", "8 0000000001061b59");  // REQ to the port of the process that is gone
  arrives(a, 1, "10");
  a.ask("endkernel 2", "ended");
  mad(a, "127.0.0.1", "14", "4 " + idBytes(baseA2 | 5));  // to a kernel that has ended
  arrives(a, 1, "14");
  a.ask("endkernel 1", "ended");
  const long before = a.counter("mad_unroutable");
  mad(a, "127.0.0.1", "14", "4 " + idBytes(baseA1 | 5));
  while (a.counter("mad_unroutable") == before && a.alive()) continue;
  // LAP is not a message of RoCE.
  mad(a, "127.0.0.1", "19", "4 00000000");
  while (a.counter("mad_rx_malformed") == 0 && a.alive()) continue;
  // CM messages of another version, with another method, or of another class are not valid either. They are counted,
  // and get no reply.
  for (const char* other : {"-22 01", "-21 01", "-23 04"}) mad(a, "127.0.0.1", "10", other);
  while (a.counter("mad_rx_foreign") < 3 && a.alive()) continue;
  HOST_CHECK(a.counter("mad_rx_malformed") == 1);
  // A send fails if the source is not a local address, or if no route leads out of this host.
  HOST_CHECK(a.ask("mad 192.0.2.7 127.0.0.1 10 1", "mad-status") == "mad-status c0000141");
  const std::string away = a.ask("mad 127.0.0.1 192.0.2.7 10 1", "mad-status");
  HOST_CHECK(away != "mad-status 0");
}

void withoutWire() {
  // Another process has the port and does not share it.
  const int blocker = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(4791);
  HOST_CHECK(bind(blocker, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
  {
    Node a, b;
    HOST_CHECK(has(a.started, "started 0 "));
    HOST_CHECK(has(a.started, "held by process " + std::to_string(getpid()) + " ("));
    HOST_CHECK(has(a.started, "IPv4") && !has(a.started, "IPv6"));
    for (int bytes : {0, 3, 4096}) {
      for (const auto& pair : {std::pair<Node*, Node*>{&a, &b}, {&b, &a}, {&a, &a}}) {
        HOST_CHECK(pair.first->ask(send(*pair.second, "127.0.0.1", "127.0.0.7", 50, bytes), "sent") == "sent 50");
        for (int n = 0; n < 50; n++)
          HOST_CHECK(has(pair.second->expect("packet"), " good=1 from=127.0.0.1 to=127.0.0.7"));
      }
    }
    HOST_CHECK(a.ask(send(b, "127.0.0.1", "192.0.2.1", 3, 8), "sent") == "sent 0");
    HOST_CHECK(a.counter("tx_unroutable") == 3);
    // What is kept for a peer that does not read is bounded. Dropped messages are counted, and the rest arrives in
    // order.
    ::kill(b.pid(), SIGSTOP);
    for (int i = 0; i < 20; i++) a.ask(send(b, "127.0.0.1", "127.0.0.1", 200, 4000), "sent");
    HOST_CHECK(a.counter("slot_queue_full") > 0);
    ::kill(b.pid(), SIGCONT);
    for (int n = 0; n < 500; n++) HOST_CHECK(has(b.expect("packet"), "psn=" + std::to_string(n % 200) + " "));
  }
  gsi("without a wire on IPv4", {"127.0.0.1", "127.0.0.9", "::1"});
  close(blocker);
}

void foreignPackets() {
  Node a;
  // A sender uses its own IPv4 IDs. They are found from the ICRC, whatever the DF bit is.
  const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  if (raw < 0) {
    std::printf("no raw sockets here: packets with foreign IPv4 IDs not tested\n");
    return;
  }
  nd::IcrcHeaders h;
  for (nd::Gid* g : {&h.source, &h.destination}) {
    g->raw[10] = g->raw[11] = 0xff;
    g->raw[12] = 127;
    g->raw[15] = 1;
  }
  h.sourcePort = 0xC123;
  const auto packet = [&](uint16_t id, bool dontFragment, bool corrupt) {
    h.ipv4Id = id;
    h.dontFragment = dontFragment;
    uint8_t bytes[256];
    const size_t n = nd::buildHeaders(bytes, h, 16 + 8, false);
    uint8_t* bth = bytes + n;
    std::memset(bth, 0, 20);
    bth[0] = 4;
    bth[2] = bth[3] = 0xff;
    bth[5] = static_cast<uint8_t>(a.slot);
    bth[7] = 0x42;
    for (unsigned i = 0; i < 8; i++) bth[12 + i] = static_cast<uint8_t>(i * 7);
    nd::storeIcrc(bth + 20, nd::icrcOf(h, bth, 20));
    if (corrupt) bth[15] ^= 1;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HOST_CHECK(sendto(raw, bytes, n + 24, 0, reinterpret_cast<sockaddr*>(&to), sizeof to) ==
               static_cast<ssize_t>(n + 24));
  };
  for (uint16_t id : {uint16_t{0x1234}, uint16_t{0xffff}, uint16_t{1}})
    for (bool df : {true, false}) {
      packet(id, df, false);
      HOST_CHECK(has(a.expect("packet"), "bytes=8 good=1"));
    }
  HOST_CHECK(a.counter("rx_ipv4_id_solved") == 6);
  packet(0x4321, true, true);
  while (a.counter("rx_icrc_errors") == 0 && a.alive()) continue;
  HOST_CHECK(a.countUntilNow("packet") == 0);
  close(raw);
}

void hostility() {
  Node a, b;
  a.ask("kernel", "kernel 1");
  HOST_CHECK(has(a.ask("claim 1 106 * 7000", "claim"), "claim 0 "));
  unsigned seed = 12345;
  const auto random = [&] { return seed = seed * 1664525 + 1013904223, seed >> 8; };
  std::vector<uint8_t> bytes(9000);
  // Sends random bytes of all lengths over UDP, some with a valid ICRC.
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  from.sin_addr.s_addr = to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  HOST_CHECK(bind(udp, reinterpret_cast<sockaddr*>(&from), sizeof from) == 0);
  socklen_t fromBytes = sizeof from;
  getsockname(udp, reinterpret_cast<sockaddr*>(&from), &fromBytes);
  const int df = IP_PMTUDISC_DO;
  setsockopt(udp, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof df);
  to.sin_port = htons(4791);
  nd::IcrcHeaders h;
  for (nd::Gid* g : {&h.source, &h.destination}) {
    g->raw[10] = g->raw[11] = 0xff;
    g->raw[12] = 127;
    g->raw[15] = 1;
  }
  h.sourcePort = ntohs(from.sin_port);
  for (int i = 0; i < 4000; i++) {
    uint32_t length = i % 50 == 0 ? random() % 9000 : random() % 400;
    for (uint32_t k = 0; k < length; k++) bytes[k] = static_cast<uint8_t>(random());
    if (i % 2 == 0 && length >= 16) {
      length &= ~3u;
      const uint32_t targets[] = {0x000001, 0x000042, 0x010042, 0xff0001, 0xffffff, 0xfd0000, random()};
      const uint32_t target = targets[random() % 7];
      bytes[5] = static_cast<uint8_t>(target >> 16), bytes[6] = static_cast<uint8_t>(target >> 8);
      bytes[7] = static_cast<uint8_t>(target);
      if (random() % 2) bytes[0] = target == 0xff0001 ? 0x1f : 0x64;
      nd::storeIcrc(&bytes[length - 4], nd::icrcOf(h, bytes.data(), length - 4));
    }
    sendto(udp, bytes.data(), length, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&to), sizeof to);
    if (i % 200 == 0) HOST_CHECK(a.alive() && b.alive());
  }
  close(udp);
  // Attacks slots and ports with random frames, frames that look valid, attached descriptors, silence, and many
  // connections.
  std::vector<int> silent;
  for (const std::string& name : {nd::ownName("slot/") + std::to_string(a.slot), nd::ownName("port/0106/7000/*")}) {
    for (int i = 0; i < 300; i++) {
      const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path + 1, name.data(), name.size());
      const auto size = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
      HOST_CHECK(connect(s, reinterpret_cast<sockaddr*>(&address), size) == 0);
      if (i % 3 == 0) {
        silent.push_back(s);
      } else {
        for (int k = 0; k < 8; k++) {
          const uint32_t length = random() % (k == 7 ? 9000 : 500);
          for (uint32_t n = 0; n < length; n++) bytes[n] = static_cast<uint8_t>(random());
          if (i % 3 == 1 && length > 60) {  // a frame's header, with an address of this host
            bytes[0] = 1;
            bytes[1] = static_cast<uint8_t>(1 + random() % 3);
            std::memcpy(&bytes[8], h.source.raw.data(), 16);
            std::memcpy(&bytes[24], h.source.raw.data(), 16);
            if (random() % 2) bytes[45] = 0, bytes[46] = 0, bytes[47] = 1;
          }
          char control[CMSG_SPACE(sizeof(int))] = {};
          iovec piece = {bytes.data(), length};
          msghdr message{};
          message.msg_iov = &piece;
          message.msg_iovlen = 1;
          if (k == 3) {
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            cmsghdr* c = CMSG_FIRSTHDR(&message);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(sizeof(int));
            std::memcpy(CMSG_DATA(c), &s, sizeof s);
          }
          sendmsg(s, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        close(s);
      }
      if (i % 50 == 0) HOST_CHECK(a.alive());
    }
  }
  HOST_CHECK(a.counter("slot_bad_frames") > 0);
  for (int s : silent) close(s);
  // Everything still works.
  HOST_CHECK(a.countUntilNow("nothing") == 0);
  b.countUntilNow("nothing");
  HOST_CHECK(a.ask(send(b, "127.0.0.1", "127.0.0.1", 1, 77), "sent") == "sent 1");
  HOST_CHECK(has(b.expect("packet qpn=" + qpn(b, 0x42) + " psn=0 bytes=77"), "good=1"));
  HOST_CHECK(b.ask("mad 127.0.0.1 127.0.0.1 10 abc 8 0000000001061b58", "mad-status") == "mad-status 0");
  HOST_CHECK(has(a.expect("mad kernel=1 attr=10 tag=abc"), "from=127.0.0.1"));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return hosttest::nodeMain(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  const std::string only = argc > 1 ? argv[1] : "";
  hosttest::privateNetwork();
  const struct {
    const char* name;
    void (*run)();
  } tests[] = {
      {"exchange", exchange},
      {"steering", steering},
      {"deaths", deaths},
      {"slotOfAnother", slotOfAnother},
      {"orderByWire", [] { order("link=wire"); }},
      {"orderBySlots", [] { order(""); }},
      {"ports", ports},
      {"gsi",
       [] {
         gsi("with a wire", {"127.0.0.1", "127.0.0.9", "::1"});
       }},
      {"withoutWire", withoutWire},
      {"foreignPackets", foreignPackets},
      {"hostility", hostility},
  };
  for (const auto& test : tests) {
    if (!only.empty() && only != test.name) continue;
    std::printf("%s\n", test.name);
    std::fflush(stdout);
    test.run();
  }
  return hosttest::finish("host_link");
}
