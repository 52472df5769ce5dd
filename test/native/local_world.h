// Two HCAs of one process that a test connects by the local link: each has its own mapping of one segment, and of the other's memory of
// allocate().
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

struct Told {
  LocalMemory memory;
  UniqueFd fd;
};

inline std::vector<Told> tellings(LocalPair& pair, bool carried = true) {
  std::vector<Told> all;
  pair.offers.sweep();
  pair.offers.tellAll(false, [&](const LocalMemory& memory, Descriptor fd) {
    if (!carried) return false;
    all.push_back({memory, fd == kNoDescriptor ? UniqueFd() : duplicateDescriptor(fd)});
    return true;
  });
  return all;
}

// What LocalPairs does by the slots' connections. The number of offers that were taken.
inline uint32_t exchange(LocalPair& from, LocalPair& to) {
  uint32_t taken = 0;
  for (const Told& told : tellings(from)) {
    if (!told.fd.valid()) {
      CHECK(to.maps.remove(told.memory.number));
      continue;
    }
    const bool mapped = to.maps.add(told.memory, told.fd.get(), false);
    taken += mapped;
    from.offers.onAnswer(told.memory.number, mapped);
  }
  return taken;
}

// Buffers are private memory, whose payload is carried, or memory of allocate() that the peer maps at once, whose payload is named.
enum class Payload { kCarried, kNamed };

struct LocalWorld : World {
  HostCounters countersA, countersB;
  std::shared_ptr<LocalPair> pa, pb;
  explicit LocalWorld(EngineOptions options = {}, Payload payload = Payload::kCarried, bool direct = false, ProcessId process = getpid())
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
    a->link.pair = pa;
    b->link.pair = pb;
    a->link.local = b->link.local = true;
    shareFrom(payload);
  }
  // Applies to Buffers constructed afterwards.
  void shareFrom(Payload payload) {
    const auto sharing = [payload](LocalPair& own, LocalPair& other) -> std::function<void(const SharedRange&)> {
      if (payload == Payload::kCarried) return {};
      return [&own, &other](const SharedRange& range) {
        if (!own.up()) return;
        own.isMapped(&range);  // has it offered
        exchange(own, other);
        CHECK(own.isMapped(&range));
      };
    };
    a->share = sharing(*pa, *pb);
    b->share = sharing(*pb, *pa);
  }
  LocalSegment& segment() { return *pa->mapping.get(); }
};

struct LocalConnection : LocalWorld {
  TestQp qa, qb;
  explicit LocalConnection(const Link2& l = {}, const QpShape& shape = {}, const EngineOptions& options = {},
                           Payload payload = Payload::kCarried)
      : LocalWorld(options, payload), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
    connect(qa, qb, l);
  }
};

}  // namespace world
