// Two HCAs of one process that a test connects over the local link. Each has its own mapping of one segment, and of the
// other's memory from allocate().
#pragma once
#include <unistd.h>

#include "world.h"

namespace world {

// Registered memory from allocate().
struct SharedBuffer {
  Node& node;
  std::shared_ptr<const SharedRange> memory;
  uint64_t range = 0, size;
  uint32_t lkey = 0, rkey = 0;
  SharedBuffer(Node& n, uint64_t bytes, uint64_t seed = 0);
  ~SharedBuffer();
  uint8_t* data() { return reinterpret_cast<uint8_t*>(memory->base); }
  uint64_t at(uint64_t offset = 0) { return memory->base + offset; }
};

struct SentOffer {
  LocalMemory memory;
  UniqueFd fd;
};

std::vector<SentOffer> sentOffers(LocalPair& pair, bool carried = true);

// Passes offers between the HCAs, as LocalPairs does over the connections of slots. Returns the number of offers that
// were accepted.
uint32_t exchange(LocalPair& from, LocalPair& to);

// Buffers are private memory, whose payload is carried, or memory from allocate() that the peer maps immediately, whose
// payload is referenced.
enum class Payload { kCarried, kByReference };

struct LocalWorld : World {
  HostCounters countersA, countersB;
  std::shared_ptr<LocalPair> pa, pb;
  explicit LocalWorld(EngineOptions options = {}, Payload payload = Payload::kCarried, bool direct = false,
                      ProcessId process = getpid());
  ~LocalWorld();
  // Applies to Buffers that are constructed afterwards.
  void shareFrom(Payload payload);
  LocalSegment& segment() { return *pa->mapping.get(); }
};

struct LocalConnection : LocalWorld {
  TestQp qa, qb;
  explicit LocalConnection(const Link2& l = {}, const QpShape& shape = {}, const EngineOptions& options = {},
                           Payload payload = Payload::kCarried);
  ~LocalConnection();
};

}  // namespace world
