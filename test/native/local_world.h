// Two HCAs of one process that a test connects by the local link: each has its own mapping of one segment, and "the
// other process" is this one, so that single copies are made by the system.
#pragma once
#include <unistd.h>

#include "world.h"

namespace world {

// Registered memory of allocate().
struct SharedBuffer {
  Node& node;
  std::shared_ptr<const SharedRange> memory;
  uint64_t range = 0, size;
  uint32_t lkey = 0, rkey = 0;
  SharedBuffer(Node& n, uint64_t bytes, uint64_t seed = 0) : node(n), size(bytes) {
    CHECK(allocateShared(bytes, &memory) == Status::kSuccess);
    Random r(seed);
    if (seed)
      for (uint64_t i = 0; i < bytes; i++) data()[i] = uint8_t(r.next());
    CHECK(n.engine.pinRange(at(), bytes, &range) == Status::kSuccess);
    CHECK(n.engine.registerMr(n.pd, at(), bytes, kAllAccess, &lkey, &rkey) == Status::kSuccess);
  }
  ~SharedBuffer() {
    if (lkey) node.engine.deregisterMr(node.pd, lkey);
    node.engine.unpinRange(range);
  }
  uint8_t* data() { return reinterpret_cast<uint8_t*>(memory->base); }
  uint64_t at(uint64_t offset = 0) { return memory->base + offset; }
};

struct LocalWorld : World {
  HostCounters countersA, countersB;
  std::shared_ptr<LocalPair> pa, pb;
  explicit LocalWorld(EngineOptions options = {}, bool pulls = true, bool direct = false, ProcessId process = getpid())
      : World(options) {
    pa = std::make_shared<LocalPair>(2, countersA);
    pb = std::make_shared<LocalPair>(1, countersB);
    UniqueFd memory;
    CHECK(pa->mapping.create(&memory));
    CHECK(pb->mapping.open(memory.get()));
    for (Node* node : {a.get(), b.get()})
      if (direct) CHECK(node->link.publish());
    pa->attach(0, process, direct);
    pb->attach(1, process, direct);
    pa->state = pb->state = LocalPair::State::kUp;
    // Which way is cheaper differs from machine to machine.
    fixWay(LocalChoice::Way::kName);
    if (pulls) {
      pa->probe();
      pb->probe();
    }
    a->link.pair = pa;
    b->link.pair = pb;
    a->link.local = b->link.local = true;
  }
  void fixWay(LocalChoice::Way way) {
    pa->choice.fix(way);
    pb->choice.fix(way);
  }
  LocalSegment& segment() { return *pa->mapping.get(); }
};

struct LocalConnection : LocalWorld {
  TestQp qa, qb;
  explicit LocalConnection(const Link2& l = {}, const QpShape& shape = {}, const EngineOptions& options = {},
                           bool pulls = true)
      : LocalWorld(options, pulls), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
    connect(qa, qb, l);
  }
};

}  // namespace world
