// Measures the engine's memory per idle connected queue pair after one message, in bytes. The rings belong to the
// program and do not count. Both ends are in this process, on a simulated network.
//
//   queue_pairs [--count N]     pairs of queue pairs; depth 16, one SGE
#include <malloc.h>
#include "bench.h"
#include "world.h"

using namespace world;

namespace {

constexpr uint32_t kDepth = 16;

struct Ring {
  uint64_t address = 0, bytes = 0;
};

struct End {
  Node& node;
  Ring ring;
  Handle qp = 0;
  uint32_t qpn = 0;
};

void must(Status status, const char* what) {
  if (status == Status::kSuccess) return;
  fprintf(stderr, "queue_pairs: %s failed with 0x%08x\n", what, uint32_t(status));
  exit(1);
}

size_t allocated() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

constexpr uint32_t kSendStride = (kSendWqeHeaderBytes + kSgeBytes + 63) & ~63u;
constexpr uint32_t kReceiveStride = kReceiveWqeHeaderBytes + kSgeBytes;

void makeRing(End& end) {
  end.ring.bytes = kQpHeaderBytes + kDepth * (kSendStride + kReceiveStride);
  must(end.node.engine.allocateRing(end.ring.bytes, &end.ring.address), "allocateRing");
}

void makeQp(End& end, Handle cq) {
  QpCreate r;
  r.pd = end.node.pd;
  r.sendCq = r.receiveCq = cq;
  r.ringAddress = end.ring.address;
  r.ringBytes = end.ring.bytes;
  r.sendEntries = r.receiveEntries = kDepth;
  r.sendStride = kSendStride;
  r.receiveStride = kReceiveStride;
  r.sendSge = r.receiveSge = 1;
  must(end.node.engine.createQp(r, &end.qp, &end.qpn), "createQp");
}

void connect(End& end, const End& peer, bool first) {
  QpAttributes a = attributesFor(end.node, peer.node.gid, peer.qpn, Link2{}, first);
  a.state = kQpsInit;
  must(end.node.engine.modifyQp(end.qp, kInitMask, a), "INIT");
  a.state = kQpsRtr;
  must(end.node.engine.modifyQp(end.qp, kRtrMask, a), "RTR");
  a.state = kQpsRts;
  must(end.node.engine.modifyQp(end.qp, kRtsMask, a), "RTS");
}

uint32_t* words(const End& end) { return reinterpret_cast<uint32_t*>(end.ring.address); }

// Sends an empty message to a Receive without SGEs.
void post(const End& from, const End& to) {
  uint32_t* receive = words(to) + (kQpHeaderBytes + kDepth * kSendStride) / 4;
  receive[kRwSgeCount] = 0;
  __atomic_store_n(words(to) + kQpReceiveProducer, 1, __ATOMIC_RELEASE);
  uint32_t* send = words(from) + kQpHeaderBytes / 4;
  send[kSwOpcode] = kOpSend;
  send[kSwFlags] = kSendFlagSignaled;
  send[kSwSgeCount] = 0;
  __atomic_store_n(words(from) + kQpSendProducer, 1, __ATOMIC_RELEASE);
  from.node.engine.doorbell(from.qp);
}

}  // namespace

int main(int argc, char** argv) {
  const options o = parse(argc, argv, 8, 10000);
  const size_t count = size_t(o.count);
  EngineOptions engineOptions;
  engineOptions.keepAliveNs = 0;
  World w(engineOptions);
  uint32_t entries = 1;
  while (entries < 2 * count) entries *= 2;
  TestCq cqA(*w.a, entries), cqB(*w.b, entries);
  std::vector<End> a(count, End{*w.a, {}}), b(count, End{*w.b, {}});
  for (size_t i = 0; i < count; i++) {
    makeRing(a[i]);
    makeRing(b[i]);
  }
  const size_t before = allocated();
  for (size_t i = 0; i < count; i++) {
    makeQp(a[i], cqA.handle);
    makeQp(b[i], cqB.handle);
    connect(a[i], b[i], true);
    connect(b[i], a[i], false);
    post(a[i], b[i]);
    bool busy = true;
    while (busy) {
      const bool stepA = w.a->step();
      busy = w.b->step() || stepA;
    }
  }
  const size_t after = allocated();
  if (cqA.written() != count || cqB.written() != count) {
    fprintf(stderr, "queue_pairs: only %u and %u of %zu messages completed\n", cqA.written(), cqB.written(), count);
    return 1;
  }
  printf("{\"what\":\"engine memory of a queue pair\",\"count\":%zu,\"mean\":%.1f,\"rings\":%zu}\n", count,
         double(after - before) / (2.0 * double(count)), size_t(a[0].ring.bytes));
  // The process frees everything else when it exits.
  fflush(stdout);
  _exit(0);
}
