// Another user holds every name that this user's processes would have, as a listener, as a bound socket, or as a
// listener with a full queue of connections. This blocks nothing, and each name has one owner, whatever the stranger
// releases meanwhile.
#include <sys/socket.h>
#include <sys/un.h>

#include <set>

#include "host_node.h"
#include "host_test.h"
#include "platform/local_names.h"
#include "slots/rdma_ports.h"

using namespace hosttest;

namespace {

enum class Manner { kListens, kBinds, kFull };

// A process of another user with names of this one, until it is stopped.
class Stranger {
 public:
  Stranger(Manner manner, const std::vector<std::string>& names) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) std::abort();
    std::vector<std::string> whole;
    for (const std::string& name : names) whole.push_back(nd::ownName(name));
    pid_ = fork();
    if (pid_ == 0) {
      close(to[1]);
      const bool done =
          setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0 && take(manner, whole);
      char word = done ? 1 : 0;
      if (write(from[1], &word, 1) == 1 && read(to[0], &word, 1) < 0) _exit(2);
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    char done = 0;
    HOST_CHECK(read(from[0], &done, 1) == 1 && done == 1);
    close(from[0]);
  }
  ~Stranger() { letGo(); }
  void letGo() {
    if (in_ < 0) return;
    close(in_);
    in_ = -1;
    waitpid(pid_, nullptr, 0);
  }

 private:
  static bool take(Manner manner, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path + 1, name.data(), name.size());
      const auto bytes = static_cast<socklen_t>(sizeof(sa_family_t) + 1 + name.size());
      const auto* where = reinterpret_cast<const sockaddr*>(&address);
      const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
      if (fd < 0 || bind(fd, where, bytes) != 0) return false;
      if (manner != Manner::kBinds && listen(fd, manner == Manner::kFull ? 0 : 64) != 0) return false;
      if (manner != Manner::kFull) continue;
      const int filler = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
      if (connect(filler, where, bytes) != 0) return false;
    }
    return true;
  }
  pid_t pid_ = 0;
  int in_ = -1;
};

std::vector<std::string> slots() {
  std::vector<std::string> names;
  for (unsigned n = 0; n < nd::Slots::kMax; n++) names.push_back("slot/" + std::to_string(n));
  return names;
}

// Returns the names of the test's claims by number.
std::vector<std::string> ports() {
  std::vector<std::string> names;
  for (const char* service : {"0106", "0111"})
    for (unsigned first = nd::RdmaPortBlocks::kFirstPort; first < 65536; first += nd::RdmaPortBlocks::kPorts)
      names.push_back(std::string("ports/") + service + "/" + std::to_string(first));
  for (const char* port : {"port/0106/7000/*", "port/0106/7001/*", "port/0106/7000/00000000000000000000ffff7f000001"})
    names.push_back(port);
  return names;
}

struct Claim {
  unsigned status = 1, port = 0, id = 0;
};

Claim claim(Node& node, const std::string& address, unsigned port, const std::string& service = "106") {
  Claim c;
  const std::string line = node.ask("claim 1 " + service + " " + address + " " + std::to_string(port), "claim");
  HOST_CHECK(std::sscanf(line.c_str(), "claim %x port %u id %u", &c.status, &c.port, &c.id) == 3);
  return c;
}

std::string serviceId(unsigned port) {
  char text[32];
  std::snprintf(text, sizeof text, "000000000106%04x", port);
  return text;
}

constexpr unsigned kTaken = 0xc000020a;

// A REQ for the port reaches its owner.
void reaches(Node& from, Node& owner, unsigned port, const char* tag) {
  from.ask("mad 127.0.0.1 127.0.0.1 10 " + std::string(tag) + " 8 " + serviceId(port), "mad-status 0");
  owner.expect("mad kernel=1 attr=10 tag=" + std::string(tag));
}

void works(Manner manner) {
  std::vector<std::string> names = slots();
  for (const std::string& name : ports()) names.push_back(name);
  Stranger stranger(manner, names);
  Node a, b;
  HOST_CHECK(a.slot != b.slot);
  a.ask("kernel", "kernel 1");
  b.ask("kernel", "kernel 1");
  // Claims ports by number, for one address and for all, and free ports, in both port spaces.
  const Claim one = claim(a, "127.0.0.1", 7000), all = claim(b, "*", 7001), free = claim(a, "*", 0),
              other = claim(b, "*", 0);
  HOST_CHECK(one.status == 0 && all.status == 0 && free.status == 0 && other.status == 0);
  HOST_CHECK(free.port != other.port && claim(a, "*", 0, "111").status == 0);
  HOST_CHECK(claim(b, "127.0.0.1", 7000).status == kTaken && claim(b, "*", 7000).status == kTaken);
  HOST_CHECK(claim(a, "127.0.0.1", 7001).status == kTaken && claim(b, "*", free.port).status == kTaken);
  a.ask("open " + std::to_string(free.id), "open 0");
  reaches(b, a, 7000, "a1");
  reaches(a, b, 7001, "a2");
  reaches(b, a, free.port, "a3");
  // Process b watches the slot of process a.
  b.ask("watch " + std::to_string(a.slot), "watch 1");
  // The usual names are free now, but the slots and ports that they represent are not.
  stranger.letGo();
  Node c;
  c.ask("kernel", "kernel 1");
  HOST_CHECK(c.slot != a.slot && c.slot != b.slot);
  HOST_CHECK(claim(c, "127.0.0.1", 7000).status == kTaken && claim(c, "*", 7000).status == kTaken);
  HOST_CHECK(claim(c, "*", free.port).status == kTaken && claim(c, "127.0.0.1", 7001).status == kTaken);
  reaches(c, a, 7000, "a4");
  reaches(c, b, 7001, "a5");
  reaches(c, a, free.port, "a6");
  c.ask("watch " + std::to_string(b.slot), "watch 1");
}

// Many processes run at the same time, while strangers come and go. Each process has its own slot.
void unique() {
  for (int round = 0; round < 5; round++) {
    Stranger stranger(Manner::kListens, slots());
    std::vector<std::unique_ptr<Node>> nodes;
    std::set<uint32_t> seen;
    for (int n = 0; n < 12; n++) {
      if (n == 4) stranger.letGo();
      nodes.push_back(std::make_unique<Node>());
      HOST_CHECK(seen.insert(nodes.back()->slot).second);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return nodeMain(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  privateNetwork();
  if (geteuid() != 0) {
    std::puts("host_strangers: skipped: only root can start a process of another user");
    return 0;
  }
  for (const Manner manner : {Manner::kListens, Manner::kBinds, Manner::kFull}) works(manner);
  unique();
  return finish("host_strangers");
}
