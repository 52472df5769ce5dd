// Tests of the local link between processes: how pairs are set up or refused, a peer that sleeps, stops or is killed in
// the middle of copies, and memory that is freed while it is being written.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>

#include "host_peer.h"

using namespace hosttest;

namespace {

// Writes and reads back, with a size that may be referenced and one that may not.
void exchange(Side& side, const Peer& peer) {
  for (const uint32_t bytes : {64u, kMessage}) {
    for (uint32_t i = 0; i < bytes; i++) side.memory[i] = static_cast<uint8_t>(i * 7 + (i >> 11) + bytes);
    std::memset(&side.memory[2u << 20], 0, kMessage);
    side.post(kOpWrite, 0, bytes, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    side.post(kOpRead, 2u << 20, bytes, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    HOST_CHECK(std::memcmp(&side.memory[0], &side.memory[2u << 20], bytes) == 0);
  }
}

// Steering probes are not counted, because there are more of them if replies are late.
uint64_t packetsOnTheWire() {
  const uint64_t packets = hostCounter("wire_tx_packets");
  return packets - std::min(packets, hostCounter("steering_probes"));
}

// Whichever side starts, or if both do, there is one pair.
void pairsComeUp() {
  for (int round = 0; round < 6; round++) {
    const uint64_t before = hostCounter("local_link_pairs_up"), wire = packetsOnTheWire();
    Side side, second;
    Peer peer;
    peer.connect(side, kRest);
    exchange(side, peer);
    HOST_CHECK(hostCounter("local_link_pairs_up") == before + 1);
    HOST_CHECK(packetsOnTheWire() <= wire + 64);  // probes that were still to be sent, but not megabytes
    peer.end();
    HOST_CHECK(readable(side.kernel.wake, kTimeoutMs));
    HOST_CHECK(hostCounter("local_link_pairs_ended") == before + 1);
  }
}

void optionWire() {
  const uint64_t up = hostCounter("local_link_pairs_up");
  Side side;
  // Opens the wire, as connection management does when the peer's REQ or REP announces it.
  HOST_CHECK(hca().host().openWire() == Status::kSuccess);
  Peer peer("wire");
  peer.connect(side, kRest);
  exchange(side, peer);
  HOST_CHECK(hostCounter("local_link_pairs_up") == up);
  HOST_CHECK(hostCounter("local_link_refused_option") == 1);
  HOST_CHECK(hostCounter("wire_tx_packets") > 256);
  peer.end();
}

// Another user's process has slots of its own user, maybe with the same number, and no wire, because the port is taken.
// It can connect to this one's name; nothing is accepted from it.
void otherUser() {
  const uint64_t up = hostCounter("local_link_pairs_up"), refused = hostCounter("slot_refused_connections");
  Side side;
  std::fill(side.memory.begin(), side.memory.end(), uint8_t(0xEE));
  Peer peer("stranger");
  peer.greet(side, kInVain);
  peer.awaitConnected();
  peer.end();
  HOST_CHECK(std::all_of(side.memory.begin(), side.memory.end(), [](uint8_t byte) { return byte == 0xEE; }));
  HOST_CHECK(hostCounter("local_link_pairs_up") == up);
  HOST_CHECK(hostCounter("slot_refused_connections") > refused);
}

// The same test for queue pairs of one process.
void oneProcess() {
  Side a, b;
  const uint64_t wire = packetsOnTheWire();
  a.connect(b.hello(), 4096);
  b.connect(a.hello(), 4096);
  for (const uint32_t bytes : {8u, kMessage}) {
    for (uint32_t i = 0; i < bytes; i++) a.memory[i] = static_cast<uint8_t>(i * 5 + (i >> 9));
    b.postReceive(0, kMessage);
    a.post(kOpSend, 0, bytes);
    HOST_CHECK(a.waited() == kWcSuccess && b.waited() == kWcSuccess);
    HOST_CHECK(std::memcmp(&a.memory[0], &b.memory[0], bytes) == 0);
  }
  HOST_CHECK(packetsOnTheWire() <= wire + 64);
}

// A thread that polls once and then does something else does not stop its process from being woken.
void sleeper() {
  constexpr uint32_t kLongAckTimeout = 22;  // long enough for a busy machine, not for a thread that was not woken
  Side side;
  Peer peer;
  peer.connect(side, kPollOnce, kLongAckTimeout);
  const uint64_t timeouts = engineCounter("ack_timeout");
  for (int round = 0; round < 20; round++) {
    side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.waited() == kWcSuccess);
    peer.tell();
  }
  HOST_CHECK(engineCounter("ack_timeout") == timeouts);
  HOST_CHECK(hostCounter("local_link_wakes") > 0);
  peer.end();
}

// A peer stops for longer than the ACK timer, and continues. Nothing is retransmitted.
void stopped() {
  Side side;
  Peer peer;
  peer.connect(side, kRest);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  HOST_CHECK(side.waited() == kWcSuccess);
  const uint64_t timeouts = engineCounter("ack_timeout"), repeated = engineCounter("retransmitted_pkts");
  ::kill(peer.pid, SIGSTOP);
  int status;
  waitpid(peer.pid, &status, WUNTRACED);
  side.post(kOpWrite, 0, 8, peer.hello.address, peer.hello.rkey);
  while (engineCounter("ack_timeout") == timeouts) side.engine.progress();
  ::kill(peer.pid, SIGCONT);
  HOST_CHECK(side.waited() == kWcSuccess);
  HOST_CHECK(engineCounter("retransmitted_pkts") == repeated);
  peer.end();
}

// The peer keeps writing to this side's memory, through the ring or by reference, and may be killed in the middle,
// while the memory is withdrawn from it. From then on no peer writes there.
void hammer(const char* memory) {
  for (int round = 0; round < 12; round++) {
    Side side;
    Peer peer(memory);
    uint8_t* const last = &side.memory[kMessage - 1];
    const auto untouched = [&] { return __atomic_load_n(last, __ATOMIC_ACQUIRE) != 0; };
    peer.connect(side, kStream);
    // The peer has started when a first message is complete: its memory contains zeros, this side's does not.
    __atomic_store_n(last, uint8_t(1), __ATOMIC_RELEASE);
    const uint64_t end = clockNow() + kTimeoutNs;
    while (untouched() && clockNow() < end) {
      if (round % 2 == 0) side.engine.progress();
    }
    HOST_CHECK(!untouched());
    for (int i = 0; i < round * 20; i++) sched_yield();
    if (round % 3 == 0) peer.kill();
    HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
    std::memset(side.memory.data(), 0xA5, kBytes);
    // The peer's requests are refused, or the peer is gone. Either of these ends the connection.
    const uint64_t limit = clockNow() + kTimeoutNs;
    while (side.kernel.event == 0 && clockNow() < limit) side.engine.progress();
    HOST_CHECK(side.kernel.event != 0);
    HOST_CHECK(std::count(side.memory.begin(), side.memory.end(), 0xA5) == static_cast<long>(kBytes));
    HOST_CHECK(side.engine.registerMr(side.pd, reinterpret_cast<uint64_t>(side.memory.data()), kBytes,
                                      kAccessLocalWrite, &side.lkey, &side.rkey) == Status::kSuccess);
    if (round % 3 != 0) peer.end();
  }
}

// Returns how much of this side's memory from allocate() the peer has mapped for reading only, as Linux reports.
int mappings(const Peer& peer) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(peer.pid) + "/maps").c_str(), "re");
  if (file == nullptr) return -1;
  char line[512];
  int count = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    count += std::strstr(line, " r--s ") != nullptr && std::strstr(line, "/memfd:networkdirect ") != nullptr;
  std::fclose(file);
  return count;
}

bool becomes(const Peer& peer, int expected) {
  const uint64_t end = clockNow() + kTimeoutNs;
  while (mappings(peer) != expected && clockNow() < end) sched_yield();
  return mappings(peer) == expected;
}

// Memory from allocate() is mapped by the other process at its first use, copied from there, and unmapped when it is
// freed. Not `readable`: processes may not read each other's memory, so the peer's mappings cannot be listed.
void mapsMemory(const char* words, bool readable) {
  const uint64_t before = hostCounter("local_link_memory_mapped"), ended = hostCounter("local_link_memory_unmapped");
  Peer peer(words);
  {
    Side side(true);
    peer.connect(side, kRest);
    exchange(side, peer);  // possibly with ordinary copies
    if (readable) HOST_CHECK(becomes(peer, 1));
    const uint64_t limit = clockNow() + kTimeoutNs;
    while (hostCounter("local_link_memory_mapped") == before && clockNow() < limit) sched_yield();
    HOST_CHECK(hostCounter("local_link_memory_mapped") == before + 1);
    // The peer references the memory once it has this side's reply.
    uint64_t mapped = hostCounter("local_link_mapped_copy_bytes");
    for (const uint64_t none = mapped; mapped == none && clockNow() < limit;) {
      exchange(side, peer);
      mapped = hostCounter("local_link_mapped_copy_bytes");
    }
    exchange(side, peer);
    HOST_CHECK(hostCounter("local_link_mapped_copy_bytes") == mapped + kMessage);
    HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
    if (readable) HOST_CHECK(mappings(peer) == 1);
  }
  if (readable) HOST_CHECK(becomes(peer, 0));
  HOST_CHECK(hostCounter("local_link_memory_unmapped") == ended);  // the mapping of the peer's memory remains
  peer.end();
}

// This side keeps writing from allocate() memory and withdraws it in the middle, or the peer is killed.
void freeing() {
  for (int round = 0; round < 12; round++) {
    Peer peer;
    {
      Side side(true);
      peer.connect(side, kRest);
      exchange(side, peer);
      HOST_CHECK(becomes(peer, 1));
      for (int i = 0; i < 64; i++) side.post(kOpWrite, 0, kMessage, peer.hello.address, peer.hello.rkey);
      for (int i = 0; i < round * 20; i++) side.engine.progress();
      if (round % 3 == 0) peer.kill();
      HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
      std::memset(side.memory.data(), 0xA5, kBytes);
      if (round % 3 == 1) {
        // Posted requests that are not done yet fail. None hangs.
        uint32_t status = kWcSuccess, done = 0;
        for (; done < 64 && status == kWcSuccess; done++) status = side.polled();
        HOST_CHECK(status == kWcSuccess || status == kWcLocalProtection);
      }
    }
    if (round % 3 != 0) {
      HOST_CHECK(becomes(peer, 0));
      peer.end();
    }
  }
}

// Processes do not need permission to read each other's memory: payload goes through the ring, or is in memory from
// allocate().
int unprivilegedMain() {
  if (!becomeNobody()) return 0;
  prctl(PR_SET_DUMPABLE, 0UL);
  startProcess();
  {
    Side side;
    Peer peer("undumpable");
    peer.connect(side, kRest);
    exchange(side, peer);
    HOST_CHECK(hostCounter("local_link_pairs_up") == 1);
    HOST_CHECK(hostCounter("local_link_single_copy_bytes") == 0);
    peer.end();
  }
  mapsMemory("undumpable allocate indirect", false);
  return hosttest::failures;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "unprivileged") == 0) return unprivilegedMain();
  hosttest::privateNetwork();
  if (geteuid() == 0) apart("unprivileged");  // only root can become another user
  startProcess();
  pairsComeUp();
  optionWire();
  if (geteuid() == 0) otherUser();  // otherwise it cannot become another user
  oneProcess();
  sleeper();
  stopped();
  hammer("private");
  mapsMemory("allocate indirect", true);
  hammer("allocate");
  freeing();
  return hosttest::finish("host_pairs");
}
