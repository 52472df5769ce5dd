// Two HCAs of one process that a test connects by the local link: each has its own mapping of one segment, and "the
// other process" is this one, so that single copies are made by the system.
#pragma once
#include <unistd.h>

#include "world.h"

namespace world {

struct LocalWorld : World {
  HostCounters countersA, countersB;
  std::shared_ptr<LocalPair> pa, pb;
  explicit LocalWorld(EngineOptions options = {}, bool pulls = true) : World(options) {
    pa = std::make_shared<LocalPair>(2, countersA);
    pb = std::make_shared<LocalPair>(1, countersB);
    UniqueFd memory;
    CHECK(pa->mapping.create(&memory));
    CHECK(pb->mapping.open(memory.get()));
    pa->attach(0, getpid());
    pb->attach(1, getpid());
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
