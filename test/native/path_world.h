// Two HCAs at the ends of a path: a delay in each direction, and from `a` to `b` a rate, a queue and seeded losses,
// with a clock that jumps from event to event.
#pragma once
#include <deque>

#include "world.h"

namespace world {

struct PathShape {
  uint64_t delayNs = 10'000'000;  // one way
  uint64_t bytesPerSecond = 125'000'000;
  uint32_t queue = 1000;  // waiting frames
  double loss = 0, reorder = 0, duplicate = 0;
  uint64_t lateNs = 0;  // how much later than due both hosts wake
};

// Bytes of IP, UDP and ICRC.
constexpr uint32_t kFrameOverhead = 32;

struct PathWorld : World {
  struct Late {
    uint64_t due;
    Frame frame;
  };
  struct Way {
    std::deque<Late> late;
    uint64_t freeAt = 0;
  };
  PathShape shape;
  Random random;
  Way there, back;
  uint64_t dropped = 0, lost = 0, mostQueuedNs = 0, queuedSinceNs = 0;
  uint32_t mostUnderWay = 0;

  explicit PathWorld(const PathShape& s, uint64_t seed = 1, const EngineOptions& options = {});
  ~PathWorld();
  void carry(Frame& f);
  static void put(Way& way, Late&& late);
  void arrive(Way& way);
  // Runs until `done` or for the given time. False: the time is over.
  bool run(
      uint64_t ns, const std::function<bool()>& done = [] { return false; });
};

// A connection that always has requests of `bytes` in flight.
struct Flow {
  PathWorld& w;
  TestQp qa, qb;
  Buffer from, to;
  uint32_t bytes, opcode;
  uint64_t done = 0;
  bool failed = false;
  Flow(PathWorld& world, const Link2& link, uint32_t size, uint32_t op = kOpWrite, uint64_t seed = 0);
  ~Flow();
  void post();
  // Consumes completions, and posts as many requests again.
  void turn(bool more = true);
};

}  // namespace world
