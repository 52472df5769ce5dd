// The path to real HCAs over the fake of rdma-core in test/native/fake_rdma, whose sends complete when they are posted:
// post and poll of one request, in batches.
//
//   verbs bare [--count BATCH]      libibverbs' calls alone
//   verbs door [--count BATCH]      rings and doorbells of the addon, in C++: the time in addition to the bare calls
#include <dlfcn.h>

#include "bench.h"
#include "fake_rdma/fake.h"
#include "verbs/data_path.h"
#include "verbs/verbs_hca.h"

using namespace nd;
using namespace nd::abi;
using namespace nd::verbs;

namespace {

constexpr uint32_t kDepth = 64, kStride = 192;
constexpr long kSamples = 401, kRequests = 2048;

void must(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "verbs: %s failed\n", what);
  exit(1);
}

std::shared_ptr<RingMemory> ringOf(uint64_t bytes) {
  std::shared_ptr<RingMemory> memory = Rings::all().allocate(bytes);
  must(memory != nullptr, "a ring");
  return memory;
}

// A queue pair in RTS with its rings, as the user-mode provider has them.
struct Side {
  std::unique_ptr<VerbsHca> host;
  Waker waker{[](Waker*) {}};
  std::shared_ptr<RingMemory> cqRing, qpRing;
  Handle cq = 0, qp = 0;
  QpObject* object = nullptr;

  explicit Side(fake::Fake& rdma) {
    std::string why;
    host = VerbsHca::open(&waker, &why);
    must(host != nullptr, why.c_str());
    Device* const device = host->openDevice("fake0", &why);
    must(device != nullptr, why.c_str());
    Handle pd = 0;
    must(host->allocatePd(device->number, &pd) == Status::kSuccess, "the PD");
    const uint64_t cqBytes = kCqHeaderBytes + kDepth * kCqeBytes;
    cqRing = ringOf(cqBytes);
    must(host->createCq(device->number, reinterpret_cast<uintptr_t>(cqRing->base), cqBytes, kDepth, &cq) ==
             Status::kSuccess,
         "the CQ");
    QpCreate create;
    create.pd = pd;
    create.sendCq = create.receiveCq = cq;
    create.sendEntries = create.receiveEntries = kDepth;
    create.sendSge = create.receiveSge = 1;
    create.sendStride = kStride;
    create.receiveStride = kReceiveWqeHeaderBytes + kSgeBytes;
    create.ringBytes = kQpHeaderBytes + kDepth * (kStride + create.receiveStride);
    qpRing = ringOf(create.ringBytes);
    create.ringAddress = reinterpret_cast<uintptr_t>(qpRing->base);
    uint32_t qpn = 0;
    must(host->createQp(create, &qp, &qpn) == Status::kSuccess, "the QP");
    object = Tables::all().qps.find(qp);
    must(object != nullptr, "the QP");
    object->publish(kQpsRts);  // the fake sends in any state
    rdma.echo = true;
  }

  // The caller's part is minimal: it writes the words of a WQE and reads each CQE once.
  void throughRings(long batch) {
    uint32_t* const words = reinterpret_cast<uint32_t*>(qpRing->base);
    uint32_t* const cqes = reinterpret_cast<uint32_t*>(cqRing->base);
    uint32_t producer = words[kQpSendProducer];
    for (long i = 0; i < batch; ++i, ++producer) {
      uint32_t* const wqe = words + (kQpHeaderBytes + size_t{producer & (kDepth - 1)} * kStride) / 4;
      wqe[kSwOpcode] = kOpWrite;
      wqe[kSwFlags] = kSendFlagSignaled;
      wqe[kSwSgeCount] = 1;
      wqe[kSwRkey] = 1;
    }
    storeWord(words + kQpSendProducer, producer);
    ringSends(qp);
    nd::verbs::progress(cq);
    uint32_t consumer = cqes[kCqConsumer];
    const uint32_t end = loadWord(cqes + kCqProducer);
    must(end - consumer == static_cast<uint32_t>(batch), "a poll");
    for (; consumer != end; ++consumer)
      must(cqes[kCqHeaderBytes / 4 + size_t{consumer & (kDepth - 1)} * (kCqeBytes / 4) + kCqeStatus] == 0, "a request");
    storeWord(cqes + kCqConsumer, consumer);
  }

  void bare(long batch) {
    static ibv_send_wr list[kDepth];
    static ibv_sge sges[kDepth];
    static ibv_wc wcs[kDepth];
    for (long i = 0; i < batch; ++i) {
      list[i].wr_id = static_cast<uint64_t>(i);
      list[i].next = i + 1 < batch ? &list[i + 1] : nullptr;
      list[i].sg_list = &sges[i];
      list[i].num_sge = 1;
      list[i].opcode = kWrWrite;
      list[i].send_flags = kSendSignaled;
      list[i].wr.rdma = {0, 1};
    }
    ibv_send_wr* bad = nullptr;
    ibv_context* const context = object->qp->context;
    must(context->ops.post_send(object->qp, list, &bad) == 0, "a post");
    ibv_cq* const queue = object->sendCq->cq;
    const int count = context->ops.poll_cq(queue, 32, wcs);
    must(count == batch, "a poll");
    for (int i = 0; i < count; ++i) must(wcs[i].status == 0, "a request");
  }
};

// The time of a request, in µs.
template <typename Call>
double timeOf(long batch, Call call) {
  const double begun = nowUs();
  for (long i = 0; i < kRequests; i += batch) call();
  return (nowUs() - begun) / static_cast<double>(kRequests);
}

}  // namespace

int main(int argc, char** argv) {
  struct options o = parse(argc, argv, 1, 1);
  const bool door = strcmp(o.mode, "door") == 0;
  must((door || strcmp(o.mode, "bare") == 0) && o.count <= 32, "the command line: bare or door, --count 1 to 32,");
  pinTo(&o, 0);
  char self[4096] = {};
  must(readlink("/proc/self/exe", self, sizeof self - 32) > 0, "/proc/self/exe");
  strcpy(strrchr(self, '/'), "/libfake_rdma.so");
  setenv("NETWORKDIRECT_IBVERBS", self, 1);
  setenv("NETWORKDIRECT_RDMACM", self, 1);
  void* const handle = dlopen(self, RTLD_NOW | RTLD_LOCAL);
  must(handle != nullptr, self);
  Side side(*reinterpret_cast<fake::Fake* (*)()>(dlsym(handle, "fake_rdma"))());
  static double samples[kSamples];
  for (long i = -20; i < kSamples; ++i) {
    const double bare = timeOf(o.count, [&] { side.bare(o.count); });
    const double all = door ? timeOf(o.count, [&] { side.throughRings(o.count); }) : 0;
    if (i >= 0) samples[i] = door ? all - bare : bare;
  }
  reportLatency(o.mode, samples, kSamples);
  // The host's threads end with the process.
  fflush(stdout);
  _exit(0);
}
