#include "local_world.h"

namespace world {

SharedBuffer::SharedBuffer(Node& n, uint64_t bytes, uint64_t seed) : node(n), size(bytes) {
  CHECK(allocateShared(bytes, &memory) == Status::kSuccess);
  Random r(seed);
  if (seed)
    for (uint64_t i = 0; i < bytes; i++) data()[i] = uint8_t(r.next());
  CHECK(n.engine.pinRange(at(), bytes, &range) == Status::kSuccess);
  CHECK(n.engine.registerMr(n.pd, at(), bytes, kAllAccess, &lkey, &rkey) == Status::kSuccess);
}

SharedBuffer::~SharedBuffer() {
  if (lkey) node.engine.deregisterMr(node.pd, lkey);
  node.engine.unpinRange(range);
}

std::vector<SentOffer> sentOffers(LocalPair& pair, bool carried) {
  std::vector<SentOffer> all;
  pair.offers.sweep();
  pair.offers.sendAll(false, [&](const LocalMemory& memory, Descriptor fd) {
    if (!carried) return false;
    all.push_back({memory, fd == kNoDescriptor ? UniqueFd() : duplicateDescriptor(fd)});
    return true;
  });
  return all;
}

uint32_t exchange(LocalPair& from, LocalPair& to) {
  uint32_t taken = 0;
  for (const SentOffer& offer : sentOffers(from)) {
    if (!offer.fd.valid()) {
      CHECK(to.maps.remove(offer.memory.number));
      continue;
    }
    const bool mapped = to.maps.add(offer.memory, offer.fd.get(), false);
    taken += mapped;
    from.offers.onReply(offer.memory.number, mapped);
  }
  return taken;
}

LocalWorld::LocalWorld(EngineOptions options, Payload payload, bool direct, ProcessId process) : World(options) {
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

LocalWorld::~LocalWorld() = default;

void LocalWorld::shareFrom(Payload payload) {
  const auto sharing = [payload](LocalPair& own, LocalPair& other) -> std::function<void(const SharedRange&)> {
    if (payload == Payload::kCarried) return {};
    return [&own, &other](const SharedRange& range) {
      if (!own.up()) return;
      own.isMapped(&range);  // causes the memory to be offered
      exchange(own, other);
      CHECK(own.isMapped(&range));
    };
  };
  a->share = sharing(*pa, *pb);
  b->share = sharing(*pb, *pa);
}

LocalConnection::LocalConnection(const Link2& l, const QpShape& shape, const EngineOptions& options, Payload payload)
    : LocalWorld(options, payload), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
  connect(qa, qb, l);
}

LocalConnection::~LocalConnection() = default;

}  // namespace world
