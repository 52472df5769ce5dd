// Tests of ports in blocks: two processes never have the same port, whether it was requested by number, for one address
// or for all. Also tests the block of a process that is gone or does not reply, and the case that all blocks are taken.
#include <sys/socket.h>
#include <sys/un.h>

#include <set>
#include <thread>

#include "host_node.h"
#include "host_test.h"
#include "platform/local_socket.h"
#include "slots/frame.h"
#include "slots/rdma_ports.h"

using namespace hosttest;

namespace {

constexpr unsigned kFirst = 49152, kBlock = 64, kPorts = 65536 - kFirst;
constexpr unsigned kTaken = 0xc000020a, kNoneFree = 0xc0000209, kBadClaim = 0xc000000d;

struct Claim {
  unsigned status = 1, port = 0, id = 0;
  bool late = false;
  bool ok() const { return status == 0; }
};

// Claims a port once. The claim is also refused if the replies of others took all the time that there is for them.
Claim claimOnce(Node& node, const std::string& service, const std::string& address, unsigned port) {
  const int64_t start = nd::monotonicMs();
  const std::string line = node.ask("claim 1 " + service + " " + address + " " + std::to_string(port), "claim");
  Claim c;
  HOST_CHECK(std::sscanf(line.c_str(), "claim %x port %u id %u", &c.status, &c.port, &c.id) == 3);
  c.late = !c.ok() && nd::monotonicMs() - start >= nd::RdmaPorts::kReplyMs;
  return c;
}

// Returns the result of a claim to which others reply in time.
Claim claim(Node& node, const std::string& service, const std::string& address, unsigned port) {
  const int64_t end = nd::monotonicMs() + kTimeoutMs;
  Claim c = claimOnce(node, service, address, port);
  while (c.late && nd::monotonicMs() < end) c = claimOnce(node, service, address, port);
  return c;
}

unsigned openPort(Node& node, const Claim& c) {
  unsigned status = 1;
  HOST_CHECK(std::sscanf(node.ask("open " + std::to_string(c.id), "open").c_str(), "open %x", &status) == 1);
  return status;
}

void release(Node& node, const Claim& c) { node.ask("unclaim " + std::to_string(c.id), "unclaimed"); }

// Claims another port of the same block.
unsigned besides(unsigned port) { return port % kBlock == 0 ? port + 1 : port - 1; }

void byNumber() {
  Node a, b;
  a.ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  const Claim all = claim(a, "106", "*", 0), one = claim(a, "106", "127.0.0.1", 0);
  HOST_CHECK(all.ok() && one.ok() && all.port >= kFirst && all.port != one.port);
  HOST_CHECK(all.port / kBlock == one.port / kBlock);
  // The claims of a follow the rules of names.
  for (Node* who : {&a, &b}) {
    HOST_CHECK(claim(*who, "106", "*", all.port).status == kTaken);
    HOST_CHECK(claim(*who, "106", "127.0.0.1", all.port).status == kTaken);
    HOST_CHECK(claim(*who, "106", "*", one.port).status == kTaken);
    HOST_CHECK(claim(*who, "106", "127.0.0.1", one.port).status == kTaken);
  }
  HOST_CHECK(claim(b, "106", "127.0.0.2", one.port).ok());
  HOST_CHECK(claim(a, "106", "127.0.0.2", one.port).status == kTaken);
  HOST_CHECK(claim(a, "106", "127.0.0.3", one.port).ok());
  HOST_CHECK(claim(b, "111", "*", all.port).ok());  // in another port space
  // A port that a does not have is available to b, and a never assigns it, even after b has released it.
  const unsigned lent = besides(all.port) == one.port ? one.port ^ 32 : besides(all.port);
  const Claim borrowed = claim(b, "106", "*", lent);
  HOST_CHECK(borrowed.ok() && borrowed.port == lent);
  HOST_CHECK(claim(a, "106", "127.0.0.1", lent).status == kTaken);
  release(b, borrowed);
  std::set<unsigned> handedOut = {all.port, one.port};
  for (unsigned i = 0; i < 2 * kBlock; i++) {
    const Claim c = claim(a, "106", "127.0.0.1", 0);
    HOST_CHECK(c.ok() && handedOut.insert(c.port).second);
  }
  HOST_CHECK(handedOut.count(lent) == 0);
  HOST_CHECK(claim(a, "106", "*", lent).ok());  // by number, the claim succeeds
  // A port that is returned is available to all.
  release(a, all);
  HOST_CHECK(claim(b, "106", "*", all.port).ok());
  HOST_CHECK(claim(a, "106", "*", all.port).status == kTaken);
}

// REQs reach a process that listens, and no other.
void listening() {
  Node a, b;
  a.ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  const Claim c = claim(a, "106", "*", 0);
  char fields[64];
  std::snprintf(fields, sizeof fields, "8 000000000106%04x", c.port);
  const auto request = [&](const char* tag) {
    HOST_CHECK(b.ask(std::string("mad 127.0.0.1 127.0.0.1 10 ") + tag + " " + fields, "mad-status") == "mad-status 0");
  };
  request("a1");
  b.expect("mad kernel=1 attr=10 tag=a1");  // the CM of b refuses it
  HOST_CHECK(openPort(a, c) == 0 && openPort(a, c) == 0);
  request("a2");
  a.expect("mad kernel=1 attr=10 tag=a2");
  HOST_CHECK(claim(b, "106", "127.0.0.1", c.port).status == kTaken);
  release(a, c);
  request("a3");
  b.expect("mad kernel=1 attr=10 tag=a3");
  HOST_CHECK(openPort(a, c) == kBadClaim);
  // A port claimed by number is open immediately.
  const Claim lent = claim(b, "106", "*", besides(c.port));
  std::snprintf(fields, sizeof fields, "8 000000000106%04x", lent.port);
  HOST_CHECK(a.ask(std::string("mad 127.0.0.1 127.0.0.1 10 a4 ") + fields, "mad-status") == "mad-status 0");
  b.expect("mad kernel=1 attr=10 tag=a4");
}

void ownersThatGo() {
  Node b;
  auto a = std::make_unique<Node>();
  a->ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  const Claim c = claim(*a, "106", "*", 0);
  b.ask("watch " + std::to_string(a->slot), "watch 1");
  // A process that does not reply keeps its block.
  ::kill(a->pid(), SIGSTOP);
  HOST_CHECK(claimOnce(b, "106", "*", besides(c.port)).status == kTaken);
  ::kill(a->pid(), SIGCONT);
  HOST_CHECK(claim(b, "106", "*", besides(c.port)).ok());
  HOST_CHECK(claim(b, "106", "*", c.port).status == kTaken);
  a->kill();
  b.expect("gone");
  HOST_CHECK(claim(b, "106", "*", c.port).ok());
}

void noBlockLeft() {
  Node a, b;
  a.ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  // Ports that already have names do not belong to any block.
  const std::set<unsigned> named = {kFirst, kFirst + 1000, 65535};
  for (unsigned port : named) HOST_CHECK(claim(b, "106", "127.0.0.1", port).ok());
  std::map<unsigned, Claim> had;
  for (;;) {
    const Claim c = claim(a, "106", "127.0.0.1", 0);
    if (c.status == kNoneFree) break;
    HOST_CHECK(c.ok() && named.count(c.port) == 0 && had.emplace(c.port, c).second);
  }
  HOST_CHECK(had.size() == kPorts - named.size());
  HOST_CHECK(claimOnce(b, "106", "127.0.0.1", 0).status == kNoneFree);
  HOST_CHECK(claim(b, "106", "127.0.0.2", had.begin()->first).ok());  // for another address
  // A port of another block than the one that was last queried is found again.
  Claim& early = std::next(had.begin(), 70)->second;
  release(a, early);
  const Claim again = claim(a, "106", "127.0.0.1", 0);
  HOST_CHECK(again.ok() && again.port == early.port);
  early = again;
  const int64_t end = nd::monotonicMs() + kTimeoutMs;
  auto back = std::next(had.begin(), 5000);
  release(a, back->second);
  Claim got = claimOnce(b, "106", "127.0.0.1", 0);
  for (; got.late && nd::monotonicMs() < end; got = claimOnce(b, "106", "127.0.0.1", 0)) {
    // The port may have been lent to a process that gave up. Then it is found only by its number, so another port is
    // released.
    back->second = claim(a, "106", "127.0.0.1", back->first);
    HOST_CHECK(back->second.ok());
    release(a, (++back)->second);
  }
  HOST_CHECK(got.ok() && got.port == back->first);
  HOST_CHECK(claimOnce(b, "106", "*", 0).status == kNoneFree);
  // All ports of a block are returned, so a gives the block up, and b gets it.
  const unsigned first = kFirst + 5 * kBlock;
  const auto blocks = [] { return nd::listLocalListeners(nd::ownName("ports/0106/")).value().size(); };
  HOST_CHECK(blocks() == kPorts / kBlock);
  for (unsigned port = first; port < first + kBlock; port++) release(a, had.at(port));
  HOST_CHECK(blocks() == kPorts / kBlock - 1);
  std::set<unsigned> mine;
  for (unsigned i = 0; i < kBlock; i++) {
    const Claim c = claim(b, "106", "127.0.0.1", 0);
    HOST_CHECK(c.ok() && c.port / kBlock == first / kBlock && mine.insert(c.port).second);
  }
  HOST_CHECK(claimOnce(b, "106", "127.0.0.1", 0).status == kNoneFree);
}

// A signal is not a reply: the requesting thread continues to wait.
void signalsWhileAsking() {
  nd::UniqueFd listener, connection;
  HOST_CHECK(nd::listenLocal(nd::ownName("ports/0106/") + std::to_string(kFirst), &listener) == 0);
  struct sigaction nothing {};
  nothing.sa_handler = [](int) {};
  nothing.sa_flags = SA_RESTART;
  HOST_CHECK(sigaction(SIGUSR1, &nothing, nullptr) == 0);
  nd::PortReply answer;
  std::thread asker([&] {
    nd::LocalNames names;
    int refused = 0;
    answer = nd::requestPort(names, {0x106, kFirst + 1, kFirst, 1}, nullptr, nd::monotonicMs() + 60'000, &refused);
  });
  pollfd waited{listener.get(), POLLIN, 0};
  HOST_CHECK(poll(&waited, 1, kTimeoutMs) == 1 && nd::acceptLocal(listener.get(), &connection) == 0);
  for (int i = 0; i < 20; i++) {
    pthread_kill(asker.native_handle(), SIGUSR1);
    poll(nullptr, 0, 2);
  }
  const nd::PortReply yours{nd::PortVerdict::kYours, kFirst + 1};
  nd::Frame frame;
  frame.kind = nd::FrameKind::kPortReply;
  frame.body = reinterpret_cast<const uint8_t*>(&yours);
  frame.bodyLength = sizeof yours;
  nd::sendFrame(connection.get(), frame);
  asker.join();
  HOST_CHECK(answer.verdict == nd::PortVerdict::kYours && answer.port == kFirst + 1);
}

// A holder of a block's name that closes each connection without a reply is queried for a second, but not continuously.
void ownerThatOnlyCloses() {
  Node b;
  b.ask("kernel", "kernel 1");
  nd::UniqueFd listener;
  HOST_CHECK(nd::listenLocal(nd::ownName("ports/0106/") + std::to_string(kFirst), &listener) == 0);
  std::atomic<bool> stop{false};
  uint32_t questions = 0;
  std::thread owner([&] {
    while (!stop) {
      pollfd waited = {listener.get(), POLLIN, 0};
      nd::UniqueFd connection;
      if (::poll(&waited, 1, 10) == 1 && nd::acceptLocal(listener.get(), &connection) == 0) questions++;
    }
  });
  HOST_CHECK(claimOnce(b, "106", "*", kFirst + 1).status == kTaken);
  stop = true;
  owner.join();
  for (nd::UniqueFd connection; nd::acceptLocal(listener.get(), &connection) == 0;)
    questions++;  // the owner may not have accepted it yet
  HOST_CHECK(questions > 0 && questions < 64);
  listener.reset();
  HOST_CHECK(claim(b, "106", "*", kFirst + 1).ok());
}

// Sends invalid requests to a block's name.
void nonsense() {
  Node a, b;
  a.ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  const Claim c = claim(a, "106", "*", 0);
  const std::string name = nd::ownName("ports/0106/") + std::to_string(c.port - c.port % kBlock);
  unsigned random = 1;
  for (int i = 0; i < 300; i++) {
    const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    HOST_CHECK(connect(s, reinterpret_cast<sockaddr*>(&address),
                       static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size())) == 0);
    uint8_t bytes[128] = {};
    nd::Frame frame;
    frame.kind = i % 4 == 0 ? nd::FrameKind::kPortReply : nd::FrameKind::kPortRequest;
    frame.encodeHeader(bytes);
    for (size_t k = nd::Frame::kHeaderBytes; k < sizeof bytes; k++)
      bytes[k] = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
    // Some requests have the right length, with any service and any port.
    const size_t length = nd::Frame::kHeaderBytes + (i % 3 == 0 ? 12 : i % 80);
    HOST_CHECK(::send(s, bytes, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length));
    close(s);
  }
  HOST_CHECK(claim(b, "106", "*", c.port).status == kTaken);
  HOST_CHECK(a.counter("slot_bad_frames") > 0);
  HOST_CHECK(claim(b, "106", "*", besides(c.port)).ok());
}

// After many frames for services without a listener, such frames cost no more lookups, and no service is reported as
// absent without a lookup. A process that has started to listen meanwhile is found nevertheless.
void manyForNobody() {
  using HandOver = nd::RdmaPorts::HandOver;
  nd::LocalNames listenersNames, askersNames;
  nd::Readiness readiness;
  nd::RdmaPorts listener(listenersNames, readiness), asker(askersNames, readiness);
  const Gid address = parseAddress("127.0.0.1");
  constexpr uint64_t kNow = 1'000'000'000, kLookups = 64;
  uint8_t body[64] = {};
  nd::Frame frame;
  frame.kind = nd::FrameKind::kMad;
  frame.body = body;
  frame.bodyLength = sizeof body;
  const auto ask = [&](uint16_t port, uint64_t now) { return asker.handOver(0x106, port, address, frame, now); };

  for (uint64_t n = 0; n < kLookups; n++) HOST_CHECK(ask(4001, kNow) == HandOver::kNoOwner);
  for (int n = 0; n < 1000; n++) HOST_CHECK(ask(4001, kNow) == HandOver::kUnsure);
  uint16_t port = 4002;
  uint32_t claim = 0;
  HOST_CHECK(listener.claim(1, 0x106, &address, &port, &claim) == Status::kSuccess);
  HOST_CHECK(listener.open(claim) == Status::kSuccess);
  HandOver found = HandOver::kUnsure;
  for (int64_t end = nd::monotonicMs() + kTimeoutMs; found != HandOver::kDone && nd::monotonicMs() < end;) {
    ask(4001, kNow);
    found = ask(4002, kNow);
  }
  HOST_CHECK(found == HandOver::kDone);
  // There is one lookup per millisecond.
  for (uint64_t ms = 1; ms <= 10; ms++) {
    HOST_CHECK(ask(4001, kNow + ms * 1'000'000) == HandOver::kNoOwner);
    HOST_CHECK(ask(4001, kNow + ms * 1'000'000) == HandOver::kUnsure);
  }
}

// A name that is missing in the recent list counts as absent without a system call. So a new listener is not found in
// the list, but by an immediate lookup, and as soon as a new name is noticed.
void absentForAMoment() {
  const std::string name = "slot/9999";
  bool held = false;
  for (int64_t end = nd::monotonicMs() + kTimeoutMs; !held && nd::monotonicMs() < end;) {
    nd::LocalNames names, others;
    nd::UniqueFd listener, connection;
    nd::ProcessId pid = 0;
    using Lookup = nd::LocalNames::Lookup;
    HOST_CHECK(names.connect(name, &connection, &pid, Lookup::kRecent) == ECONNREFUSED);
    HOST_CHECK(others.listenAt(name, &listener) == 0);
    // On a busy machine this may take longer than the list counts as recent.
    held = names.connect(name, &connection, &pid, Lookup::kRecent) == ECONNREFUSED;
    HOST_CHECK(names.connect(name, &connection, &pid) == 0);
    names.forget();
    HOST_CHECK(names.connect(name, &connection, &pid, Lookup::kRecent) == 0);
  }
  HOST_CHECK(held);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return nodeMain(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  privateNetwork();
  byNumber();
  listening();
  ownersThatGo();
  signalsWhileAsking();
  ownerThatOnlyCloses();
  noBlockLeft();
  nonsense();
  manyForNobody();
  absentForAMoment();
  return finish("host_rdma_ports");
}
