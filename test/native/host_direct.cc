// Tests of direct access between processes. One writes to memory of the other, which withdraws the memory, ends the
// connection or exits, while the writer runs, is stopped or is killed.
#include "host_peer.h"

using namespace hosttest;

namespace {

constexpr uint8_t kOwn = 0xAB;

char heard(const Peer& peer) {
  char told = 0;
  HOST_CHECK(read(peer.out, &told, 1) == 1);
  return told;
}
constexpr char as(uint32_t status) { return static_cast<char>(status + 1); }

// A process that writes directly to memory of this one.
struct Writer {
  Side side{true};
  Peer peer;
  explicit Writer(const char* words = "") : peer(words) {
    peer.connect(side, kDirect);
    HOST_CHECK(heard(peer) == as(kWcSuccess));
  }
  void fill() { std::memset(side.memory.data(), kOwn, kBytes); }
  bool unchanged() {
    bool whole = true;
    for (const uint8_t byte : side.memory) whole &= byte == kOwn;
    return whole;
  }
  void deregister() {
    HOST_CHECK(side.engine.deregisterMr(side.pd, side.lkey) == Status::kSuccess);
    fill();
  }
};

// The memory belongs to the owner alone as soon as the command has returned, whatever the writer is doing.
void deregisteredUnderAWriter() {
  for (int round = 0; round < 20; round++) {
    Writer w;
    w.deregister();
    HOST_CHECK(heard(w.peer) == as(kWcRemoteAccess));
    HOST_CHECK(w.unchanged());
    w.peer.end();
  }
}

void disconnectedUnderAWriter() {
  for (int round = 0; round < 10; round++) {
    Writer w;
    QpAttributes a;
    a.state = kQpsError;
    HOST_CHECK(w.side.engine.modifyQp(w.side.qp, qpmask::kState, a) == Status::kSuccess);
    w.fill();
    HOST_CHECK(heard(w.peer) != as(kWcSuccess));
    HOST_CHECK(w.unchanged());
    w.peer.end();
  }
}

// The owner does not wait for a stopped writer. Sooner or later the writer is stopped in the middle of a copy.
void deregisteredUnderAStoppedWriter() {
  const uint64_t before = hostCounter("direct_memory_reclaimed");
  for (int round = 0; round < 5 || hostCounter("direct_memory_reclaimed") == before; round++) {
    Writer w;
    w.peer.stop();
    w.deregister();
    ::kill(w.peer.pid, SIGCONT);
    HOST_CHECK(heard(w.peer) == as(kWcRemoteAccess));
    HOST_CHECK(w.unchanged());
    w.peer.end();
  }
}

// A writer that was killed in the middle leaves nothing behind.
void deregisteredAfterAKilledWriter() {
  const uint64_t before = hostCounter("direct_memory_reclaimed");
  for (int round = 0; round < 20; round++) {
    Writer w;
    w.peer.stop();
    w.peer.kill();
    w.deregister();
    HOST_CHECK(w.unchanged());
    HOST_CHECK(!w.side.memory.shared->reclaimed);
  }
  HOST_CHECK(hostCounter("direct_memory_reclaimed") == before);
}

// In the reverse case, the owner ends. The writer is notified of this, and of the end of each request.
void ownerEnds(bool killed) {
  Side side;
  Peer owner("allocate");
  owner.connect(side, kRest);
  while (engineCounter("direct_write") == 0) {
    side.post(kOpWrite, 0, 64, owner.hello.address, owner.hello.rkey);
    if (side.polled() != kWcSuccess) return HOST_CHECK(!"a write succeeds");
  }
  const uint64_t before = engineCounter("direct_write");
  side.post(kOpRead, 64, 64, owner.hello.address, owner.hello.rkey);
  HOST_CHECK(side.polled() == kWcSuccess && std::memcmp(&side.memory[0], &side.memory[64], 64) == 0);
  killed ? owner.kill() : owner.end();
  HOST_CHECK(readable(side.kernel.wake, kTimeoutMs) && isLost(side));
  side.post(kOpWrite, 0, 64, owner.hello.address, owner.hello.rkey);
  HOST_CHECK(side.polled() == kWcFlushed);
  HOST_CHECK(engineCounter("direct_write") == before);
}

// If one of the two does not allow direct access, everything uses packets.
void optionIndirect() {
  Side side;
  Peer peer("allocate indirect");
  const uint64_t before = engineCounter("direct_write");
  peer.connect(side, kRest);
  for (int i = 0; i < 20; i++) {
    side.post(kOpWrite, 0, kMessage, peer.hello.address, peer.hello.rkey);
    HOST_CHECK(side.polled() == kWcSuccess);
  }
  HOST_CHECK(engineCounter("direct_write") == before);
  peer.end();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "peer") == 0) return peerMain(argv[2]);
  privateNetwork();
  startProcess();
  deregisteredUnderAWriter();
  disconnectedUnderAWriter();
  deregisteredUnderAStoppedWriter();
  deregisteredAfterAKilledWriter();
  ownerEnds(false);
  ownerEnds(true);
  optionIndirect();
  return finish("host_direct");
}
