#include "direct_world.h"

#include <map>

namespace world {

DirectWorld::DirectWorld(ProcessId process) : LocalWorld({}, Payload::kCarried, true, process) {
  // Each peer gets its own descriptor.
  CHECK(pa->peer.open(b->link.keyTable->fd()) && pb->peer.open(a->link.keyTable->fd()));
}

uint32_t DirectWorld::map(Node& initiator) {
  Node& owner = other(initiator);
  LocalPair &own = pairOf(initiator), &theirs = pairOf(owner);
  std::map<uint32_t, bool> answers;  // the replies are sent later
  own.peer.sendAll([&](const DirectPeer::Wish& wish) {
    bool writable;
    const SharedRange* const range = owner.link.keyTable->rangeOf(wish.file, &writable);
    if (range) theirs.offers.offer(*range, writable);
    else own.peer.forgetWish(wish.file);
    return true;
  });
  theirs.offers.sweep();
  theirs.offers.sendAll(true, [&](const LocalMemory& memory, Descriptor fd) {
    if (fd == kNoDescriptor) {
      own.peer.forgetWish(memory.file);
      own.maps.remove(memory.number);
      return true;
    }
    answers[memory.number] = own.maps.add(memory, fd, true);
    if (own.peer.wantsDescriptor(memory.file)) own.maps.keep(memory.number, duplicateDescriptor(fd));
    return true;
  });
  uint32_t mapped = 0;
  for (const auto& [number, taken] : answers) {
    theirs.offers.onReply(number, taken);
    mapped += taken;
  }
  return mapped;
}

DirectConnection::DirectConnection(const Link2& l, const QpShape& shape, ProcessId process)
    : DirectWorld(process), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
  connect(qa, qb, l);
  pump();
}

DirectConnection::~DirectConnection() = default;

uint64_t DirectConnection::direct(Node& node) {
  return node.counter("direct_write") + node.counter("direct_read") + node.counter("direct_atomic");
}

void DirectConnection::meet(SharedBuffer& target, uint64_t offset) {
  Buffer byte(*a, 8);
  const uint32_t i =
      qa.post({kOpWrite, kSendFlagSignaled, {{byte.at(), 1, byte.lkey}}, 0, target.at(offset), target.rkey});
  pump();
  only(qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK_EQ(map(*a), 1u);
}

Wr oneSided(uint32_t opcode, const std::vector<Sge>& sges, uint64_t remote, uint32_t rkey) {
  Wr r{opcode, kSendFlagSignaled, sges};
  r.remote = remote;
  r.rkey = rkey;
  return r;
}

}  // namespace world
