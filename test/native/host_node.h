// A process with a host side, which is driven by lines on its standard input and replies and reports on its standard
// output. The tests start several (their own binary, with the argument "node") and let them interact.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <deque>
#include <map>
#include <memory>
#include <sstream>

#include "base/icrc.h"
#include "base/mad.h"
#include "host/host.h"
#include "host_test.h"

namespace hosttest {

using nd::Engine, nd::EngineOptions, nd::Gid, nd::Handle, nd::HcaEvent, nd::Host, nd::HostOptions, nd::KernelId,
    nd::KernelPort;
using nd::OutPacket, nd::PacketMeta, nd::PacketSink, nd::Path, nd::Status;
namespace mad = nd::mad;
namespace wire = nd::wire;

class RealClock final : public nd::Clock {
 public:
  uint64_t now() const override {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
  }
};

Gid parseAddress(const std::string& text);
std::string addressText(const Gid& gid);

inline uint8_t pattern(uint32_t seed, uint32_t i) { return static_cast<uint8_t>(seed * 31 + i * 7 + (i >> 8)); }

// Rewrites the steering of the RoCEv2 group so that everything goes to one index, whatever the slot.
bool missteer(uint32_t index);

// The child's main function.
int nodeMain(int argc, char** argv);

// ── The parent ──────────────────────────────────────────────────────────────────────────────────────────────

// The parent's view of a child.
class Node {
 public:
  // Starts a child. `options` are its arguments: link=wire, capture=<path>, drop=<p>, duplicate=<p>, reorder=<p>,
  // corrupt=<p>, seed=<n>, dropReq=<n>.
  explicit Node(const std::string& options = "");
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void tell(const std::string& line);
  // Waits for a line that starts with `prefix`, dropping others before it. Ends the test if none arrives within
  // kTimeoutMs.
  std::string expect(const std::string& prefix);
  // Sends a command and waits for its reply.
  std::string ask(const std::string& line, const std::string& prefix) {
    tell(line);
    return expect(prefix);
  }
  long counter(const std::string& name);
  // Waits until the counter has reached `least`. Returns its value then, or after kTimeoutMs.
  long counterFrom(const std::string& name, long least);
  // Returns the number of lines with the prefix that arrived until all commands so far were done.
  int countUntilNow(const std::string& prefix);
  void kill();
  void quit();
  bool alive();
  pid_t pid() const { return pid_; }
  unsigned slot = 0;
  std::string started;  // the line that reports the start

 private:
  bool readMore(int timeoutMs);
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string partial_;
  std::deque<std::string> lines_;
};

}  // namespace hosttest
