// Two HCAs of one process that access each other's memory of allocate() directly (transport/direct.h).
#pragma once
#include <map>

#include "local_world.h"

namespace world {

struct DirectWorld : LocalWorld {
  explicit DirectWorld(ProcessId process = getpid()) : LocalWorld({}, Payload::kCarried, true, process) {
    // A peer gets a descriptor of its own.
    CHECK(pa->peer.open(b->link.board->fd()) && pb->peer.open(a->link.board->fd()));
  }
  LocalPair& pairOf(const Node& node) { return &node == a.get() ? *pa : *pb; }
  Node& other(const Node& node) { return &node == a.get() ? *b : *a; }
  // What LocalPairs does by the slots' connections: the files that this side has asked for are offered to it, and mapped. Their number.
  uint32_t map(Node& visitor) {
    Node& owner = other(visitor);
    LocalPair &own = pairOf(visitor), &theirs = pairOf(owner);
    std::map<uint32_t, bool> answers;  // they come later
    own.peer.tellAll([&](const DirectPeer::Wish& wish) {
      bool writable;
      const SharedRange* const range = owner.link.board->rangeOf(wish.file, &writable);
      if (range) theirs.offers.offer(*range, writable);
      else own.peer.forgetWish(wish.file);
      return true;
    });
    theirs.offers.sweep();
    theirs.offers.tellAll(true, [&](const LocalMemory& memory, Descriptor fd) {
      if (fd == kNoDescriptor) {
        own.peer.forgetWish(memory.file);
        own.maps.remove(memory.number);
        return true;
      }
      answers[memory.number] = own.maps.add(memory, fd, true);
      return true;
    });
    uint32_t mapped = 0;
    for (const auto& [number, taken] : answers) {
      theirs.offers.onAnswer(number, taken);
      mapped += taken;
    }
    return mapped;
  }
  uint64_t hostCounter(Node& node, HostCounter counter) { return node.link.directCounters.get(counter); }
};

struct DirectConnection : DirectWorld {
  TestQp qa, qb;
  explicit DirectConnection(const Link2& l = {}, const QpShape& shape = {}, ProcessId process = getpid())
      : DirectWorld(process), qa(*a, shape, 0xA), qb(*b, shape, 0xB) {
    connect(qa, qb, l);
    pump();
  }
  // Requests of all kinds that have gone directly.
  uint64_t direct(Node& node) {
    return node.counter("direct_write") + node.counter("direct_read") + node.counter("direct_atomic");
  }
  // A first WRITE by packets, after which the memory is mapped.
  void meet(SharedBuffer& target, uint64_t offset = 0) {
    Buffer byte(*a, 8);
    const uint32_t i = qa.post({kOpWrite, kSendFlagSignaled, {{byte.at(), 1, byte.lkey}}, 0, target.at(offset), target.rkey});
    pump();
    only(qa.sendCq, i, kOpWrite, kWcSuccess);
    CHECK_EQ(map(*a), 1u);
  }
};

inline Wr oneSided(uint32_t opcode, const std::vector<Sge>& sges, uint64_t remote, uint32_t rkey) {
  Wr r{opcode, kSendFlagSignaled, sges};
  r.remote = remote;
  r.rkey = rkey;
  return r;
}

}  // namespace world
