// Tests of the fault layer and the capture: the same seed gives the same faults, and Wireshark decodes the capture.
#include "host/faults.h"

#include <signal.h>

#include <set>

#include "base/mad.h"
#include "host/capture.h"
#include "host_node.h"
#include "host_test.h"

using namespace nd;
using hosttest::Node;

namespace {

bool has(const std::string& line, const std::string& part) { return line.find(part) != std::string::npos; }

std::string fates(const FaultOptions& options, int packets) {
  Faults faults;
  faults.configure(options);
  uint8_t bytes[64] = {4};
  std::string text;
  for (int i = 0; i < packets; i++) {
    const Faults::Fate f = faults.decide(bytes, sizeof bytes);
    text += static_cast<char>('a' + (f.drop | f.duplicate << 1 | f.reorder << 2 | f.corrupt << 3));
    text += std::to_string(f.bit % 512 * f.corrupt + f.holdFor * f.reorder);
  }
  return text;
}

void determinism() {
  FaultOptions o;
  o.drop = o.duplicate = o.reorder = o.corrupt = 0.1;
  o.seed = 42;
  const std::string first = fates(o, 2000);
  HOST_CHECK(first == fates(o, 2000));
  o.seed = 43;
  HOST_CHECK(first != fates(o, 2000));
  // One fault's probability does not affect the others.
  FaultOptions only;
  only.seed = 42;
  only.drop = 0.1;
  FaultOptions both = only;
  both.duplicate = 0.5;
  Faults a, b;
  a.configure(only);
  b.configure(both);
  uint8_t bytes[64] = {4};
  bool same = true;
  int drops = 0;
  for (int i = 0; i < 5000; i++) {
    const Faults::Fate x = a.decide(bytes, 64), y = b.decide(bytes, 64);
    same = same && x.drop == y.drop;
    drops += x.drop;
  }
  HOST_CHECK(same);
  HOST_CHECK(drops > 400 && drops < 600);
  // Configuring the same options again does not restart the sequence.
  Faults c;
  c.configure(only);
  std::string onward, again;
  for (int i = 0; i < 100; i++) onward += c.decide(bytes, 64).drop ? '1' : '0';
  Faults d;
  d.configure(only);
  for (int i = 0; i < 100; i++) {
    d.configure(only);
    again += d.decide(bytes, 64).drop ? '1' : '0';
  }
  HOST_CHECK(onward == again);
  Faults none;
  none.configure(FaultOptions());
  HOST_CHECK(!none.active());
}

void madDrops() {
  FaultOptions o;
  o.dropMadCount[mad::kRep - mad::kFirstAttribute] = 2;
  Faults faults;
  faults.configure(o);
  HOST_CHECK(faults.active());
  uint8_t packet[mad::kPacketBytes] = {wire::kOpUdSendOnly};
  packet[7] = 1;
  const auto dropped = [&](uint32_t attribute) {
    packet[mad::kPacketMadOffset + mad::kAttribute + 1] = static_cast<uint8_t>(attribute);
    return faults.decide(packet, sizeof packet).drop;
  };
  HOST_CHECK(!dropped(mad::kReq));
  HOST_CHECK(dropped(mad::kRep));
  HOST_CHECK(!dropped(mad::kRtu));
  HOST_CHECK(dropped(mad::kRep));
  HOST_CHECK(!dropped(mad::kRep));
  HOST_CHECK(!dropped(0xffff));
  faults.configure(o);  // another kernel of the process, with the same options: they are used up
  HOST_CHECK(!dropped(mad::kRep));
  // A change of any option restarts the sequence.
  const auto begunAnew = [&] {
    faults.configure(o);
    return dropped(mad::kRep) && dropped(mad::kRep) && !dropped(mad::kRep);
  };
  o.seed++;
  HOST_CHECK(begunAnew());
  for (double FaultRates::*rate :
       {&FaultRates::drop, &FaultRates::duplicate, &FaultRates::reorder, &FaultRates::corrupt}) {
    o.*rate = 1e-12;
    HOST_CHECK(begunAnew());
  }
  o.dropMadCount.back()++;
  HOST_CHECK(begunAnew());
}

// A setting of another kernel of a process applies to the whole process. Options that it omits are unchanged.
void furtherKernels(const std::string& directory) {
  const std::string file = directory + "/joined.pcapng";
  Node node("drop=1");
  const auto counted = [&](const char* counter) {
    const long before = node.counter(counter);
    node.ask("send 127.0.0.1 127.0.0.1 42 1 8", "sent");
    return node.counter(counter) - before;
  };
  HOST_CHECK(counted("fault_dropped") == 1);
  node.ask("join", "joined");
  HOST_CHECK(counted("fault_dropped") == 1);
  node.ask("join capture=" + file, "joined");
  HOST_CHECK(access(file.c_str(), F_OK) == 0 && counted("fault_dropped") == 1);
  node.ask("join duplicate=1", "joined");
  HOST_CHECK(counted("fault_dropped") == 0 && counted("fault_duplicated") == 1);
  std::remove(file.c_str());
}

// Between two processes, the faults that the sender counts are those that the receiver sees.
void onTheWire() {
  Node receiver, sender("seed=5 drop=0.1 duplicate=0.1 reorder=0.2"), corrupter("seed=6 corrupt=0.2");
  char qpn[16];
  std::snprintf(qpn, sizeof qpn, "%x", receiver.slot << 16 | 0x42);
  const std::string line = std::string("send 127.0.0.1 127.0.0.1 ") + qpn + " 1000 100";
  HOST_CHECK(sender.ask(line, "sent") == "sent 1000");
  const long dropped = sender.counter("fault_dropped"), doubled = sender.counter("fault_duplicated");
  HOST_CHECK(dropped > 60 && doubled > 50 && sender.counter("fault_reordered") > 50);
  std::set<int> seen;
  int outOfOrder = 0, last = -1;
  for (long n = 0; n < 1000 - dropped + doubled; n++) {  // the last one may be held back for a millisecond
    const std::string got = receiver.expect("packet");
    HOST_CHECK(has(got, "good=1"));
    const int psn = std::atoi(got.c_str() + got.find("psn=") + 4);
    outOfOrder += psn < last;
    last = psn;
    seen.insert(psn);
  }
  HOST_CHECK(static_cast<long>(seen.size()) == 1000 - dropped);
  HOST_CHECK(outOfOrder > 50);
  // Every corrupt packet is detected. A flipped bit is never mistaken for another IPv4 ID.
  HOST_CHECK(corrupter.ask(line, "sent") == "sent 1000");
  const long corrupted = corrupter.counter("fault_corrupted");
  for (long n = 0; n < 1000 - corrupted; n++) HOST_CHECK(has(receiver.expect("packet"), "good=1"));
  HOST_CHECK(corrupted > 100);
  // The last packet may still be in a socket. Its corrupted bits determine in which process's.
  long found = -1;
  for (const uint64_t end = hosttest::RealClock().now() + kTimeoutNs;
       found < corrupted && hosttest::RealClock().now() < end;) {
    found = 0;
    for (Node* node : {&receiver, &sender, &corrupter}) found += node->counter("rx_icrc_errors");
  }
  HOST_CHECK(found == corrupted);
  HOST_CHECK(receiver.countUntilNow("packet") == 0);
  // A CM message of a given kind is dropped the given number of times.
  Node cm("dropReq=1");
  cm.ask("kernel", "kernel");
  HOST_CHECK(has(cm.ask("claim 1 106 * 7000", "claim"), "claim 0 "));
  cm.ask("mad 127.0.0.1 127.0.0.1 10 1 8 0000000001061b58", "mad-status 0");
  cm.ask("mad 127.0.0.1 127.0.0.1 10 2 8 0000000001061b58", "mad-status 0");
  HOST_CHECK(has(cm.expect("mad kernel"), "tag=2 "));
  HOST_CHECK(cm.counter("fault_mads_dropped") == 1);
}

void capture(const char* directory) {
  if (std::system("tshark --version > /dev/null 2>&1") != 0) {
    std::printf("tshark is not installed: captures are not decoded\n");
    return;
  }
  const std::string pattern = std::string(directory) + "/host-capture-%p.pcapng";
  pid_t pid;
  {
    Node a("capture=" + pattern);
    pid = a.pid();
    a.ask("kernel", "kernel");
    char qpn[16];
    std::snprintf(qpn, sizeof qpn, "%x", a.slot << 16 | 0x42);
    a.ask(std::string("send 127.0.0.1 127.0.0.2 ") + qpn + " 3 30", "sent 3");
    for (int i = 0; i < 3; i++) a.expect("packet");
    a.ask(std::string("send ::1 ::1 ") + qpn + " 3 4096", "sent 3");
    for (int i = 0; i < 3; i++) a.expect("packet");
    a.ask("mad 127.0.0.1 127.0.0.2 10 7 8 0000000001061b58", "mad-status 0");
    a.expect("mad kernel");
  }
  const std::string file = std::string(directory) + "/host-capture-" + std::to_string(pid) + ".pcapng";
  const std::string command = "tshark -r " + file +
                              " -T fields -e frame.len -e ip.src -e ip.dst -e ipv6.src -e infiniband.bth.opcode -e "
                              "infiniband.bth.destqp -e infiniband.invariant.crc -e frame.packet_flags_direction "
                              "-e frame.time_epoch -e infiniband.mad.attributeid 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  std::vector<std::string> lines;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) lines.push_back(line);
  HOST_CHECK(pclose(pipe) == 0);
  HOST_CHECK(lines.size() == 14);  // seven packets, each sent and received
  int v4 = 0, v6 = 0, mads = 0, in = 0;
  for (const std::string& l : lines) {
    if (has(l, "127.0.0.2")) v4++;
    if (has(l, "::1")) v6++;
    if (has(l, "\t100\t")) mads++;  // UD SEND Only
    if (has(l, "\t0x00000001\t") || has(l, "\t1\t")) in++;
  }
  HOST_CHECK(v4 == 8 && v6 == 6 && mads == 2);
  std::printf("%s", lines.empty() ? "" : lines[0].c_str());
  std::remove(file.c_str());
  Node bad("capture=/nowhere/at/all");
  HOST_CHECK(bad.counter("capture_errors") == 1);  // a counter reports it, and everything else works
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return hosttest::nodeMain(argc, argv);
  signal(SIGPIPE, SIG_IGN);
  char directory[] = "/tmp/host-capture-XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  hosttest::privateNetwork();
  determinism();
  madDrops();
  furtherKernels(directory);
  onTheWire();
  capture(directory);
  rmdir(directory);
  return hosttest::finish("host_faults");
}
