// The program's side of an engine, for tests over real sockets: memory, a completion queue, a queue pair, and the
// requests and completions in their rings.
#pragma once
#include <cstring>

#include "engine/engine.h"
#include "host_test.h"

namespace hosttest {

// The numbers of entries are powers of two.
struct RingShape {
  uint32_t entries, stride, receiveStride, cqEntries, sge = 2, inlineBytes = 0, type = nd::abi::kQptRc;
};

inline uint32_t load(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store(uint32_t* word, uint32_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }

struct RingUser {
  nd::Engine& engine;
  const RingShape shape;
  nd::KernelId id = 0;
  nd::Handle pd = 0, cq = 0, qp = 0;
  uint32_t qpn = 0, lkey = 0, rkey = 0, sent = 0, received = 0, taken = 0;
  uint64_t cqRing = 0, qpRing = 0, range = 0, base = 0;

  RingUser(nd::Engine& e, const RingShape& s) : engine(e), shape(s) {}

  // Creates the objects. The memory is the caller's.
  void open(nd::KernelPort& port, const void* memory, uint64_t length, uint32_t access) {
    using namespace nd::abi;
    base = reinterpret_cast<uint64_t>(memory);
    must(engine.attachKernel(&port, &id));
    must(engine.allocatePd(id, &pd));
    must(engine.pinRange(base, length, &range));
    must(engine.registerMr(pd, base, length, access, &lkey, &rkey));
    const uint64_t cqBytes = kCqHeaderBytes + shape.cqEntries * kCqeBytes;
    must(engine.allocateRing(cqBytes, &cqRing));
    must(engine.createCq(id, cqRing, cqBytes, shape.cqEntries, &cq));
    nd::QpCreate r;
    r.pd = pd;
    r.sendCq = r.receiveCq = cq;
    r.type = shape.type;
    r.ringBytes = kQpHeaderBytes + shape.entries * (shape.stride + shape.receiveStride);
    must(engine.allocateRing(r.ringBytes, &qpRing));
    r.ringAddress = qpRing;
    r.sendEntries = r.receiveEntries = shape.entries;
    r.sendStride = shape.stride;
    r.receiveStride = shape.receiveStride;
    r.sendSge = r.receiveSge = shape.sge;
    r.maxInline = shape.inlineBytes;
    must(engine.createQp(r, &qp, &qpn));
  }

  uint64_t address(uint32_t offset) const { return base + offset; }
  void sge(uint32_t* at, uint32_t offset, uint32_t length) const {
    using namespace nd::abi;
    at[kSgeAddressLo] = static_cast<uint32_t>(address(offset));
    at[kSgeAddressHi] = static_cast<uint32_t>(address(offset) >> 32);
    at[kSgeLength] = length;
    at[kSgeLkey] = lkey;
  }
  // Returns the next WQE of the send queue, all zero. It belongs to the HCA from publish() on.
  uint32_t* request() const {
    auto* wqe = reinterpret_cast<uint32_t*>(qpRing + nd::abi::kQpHeaderBytes + sent % shape.entries * shape.stride);
    std::memset(wqe, 0, shape.stride);
    return wqe;
  }
  void publish() { store(reinterpret_cast<uint32_t*>(qpRing) + nd::abi::kQpSendProducer, ++sent); }
  void postReceive(uint32_t offset, uint32_t length) {
    using namespace nd::abi;
    const uint64_t first = qpRing + kQpHeaderBytes + shape.entries * shape.stride;
    auto* wqe = reinterpret_cast<uint32_t*>(first + received % shape.entries * shape.receiveStride);
    wqe[kRwSgeCount] = 1;
    sge(wqe + kReceiveWqeHeaderBytes / 4, offset, length);
    store(reinterpret_cast<uint32_t*>(qpRing) + kQpReceiveProducer, ++received);
  }
  // Consumes the next completion, of kCqeBytes. False: the ring is empty.
  bool completion(uint32_t* cqe) {
    using namespace nd::abi;
    auto* words = reinterpret_cast<uint32_t*>(cqRing);
    if (load(words + kCqProducer) == taken) return false;
    std::memcpy(cqe, words + kCqHeaderBytes / 4 + taken % shape.cqEntries * (kCqeBytes / 4), kCqeBytes);
    store(words + kCqConsumer, ++taken);
    return true;
  }

 private:
  static void must(nd::Status status) { HOST_CHECK(status == nd::Status::kSuccess); }
};

}  // namespace hosttest
