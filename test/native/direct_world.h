// Two HCAs of one process that access each other's memory from allocate() directly (transport/direct_access.h).
#pragma once
#include "local_world.h"

namespace world {

struct DirectWorld : LocalWorld {
  explicit DirectWorld(ProcessId process = getpid());
  LocalPair& pairOf(const Node& node) { return &node == a.get() ? *pa : *pb; }
  Node& other(const Node& node) { return &node == a.get() ? *b : *a; }
  // Offers this side the files that it has requested, and maps them, as LocalPairs does over the connections of slots.
  // Returns the number of files.
  uint32_t map(Node& initiator);
  uint64_t hostCounter(Node& node, HostCounter counter) { return node.link.directCounters.get(counter); }
};

struct DirectConnection : DirectWorld {
  TestQp qa, qb;
  explicit DirectConnection(const Link2& l = {}, const QpShape& shape = {}, ProcessId process = getpid());
  ~DirectConnection();
  // Returns the number of requests of all kinds that used direct access.
  uint64_t direct(Node& node);
  // Sends a first WRITE in packets, after which the memory is mapped.
  void meet(SharedBuffer& target, uint64_t offset = 0);
};

Wr oneSided(uint32_t opcode, const std::vector<Sge>& sges, uint64_t remote, uint32_t rkey);

}  // namespace world
