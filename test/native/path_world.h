// Two HCAs at the ends of a path: a delay each way, and from `a` to `b` a rate, a queue and losses by seed, under a clock that jumps
// from event to event.
#pragma once
#include <deque>

#include "world.h"

namespace world {

struct PathShape {
  uint64_t delayNs = 10'000'000;     // one way
  uint64_t bytesPerSecond = 125'000'000;
  uint32_t queue = 1000;             // frames that wait
  double loss = 0, reorder = 0, duplicate = 0;
  uint64_t lateNs = 0;               // both hosts wake so much later than they want to
};

// IP, UDP and ICRC.
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

  explicit PathWorld(const PathShape& s, uint64_t seed = 1, const EngineOptions& options = {})
      : World(options), shape(s), random(seed) {
    net.filter = [this](Frame& f) {
      carry(f);
      return false;
    };
  }
  void carry(Frame& f) {
    const uint64_t now = clock.time;
    const bool forth = f.source == a->gid;
    Way& way = forth ? there : back;
    uint64_t due = now + shape.delayNs;
    if (forth) {
      if (random.chance(shape.loss)) {
        lost++;
        return;
      }
      const uint64_t each = (f.bytes.size() + kFrameOverhead) * 1'000'000'000ull / shape.bytesPerSecond;
      const uint64_t start = std::max(way.freeAt, now);
      if (start - now > shape.queue * each) {
        dropped++;
        return;
      }
      if (now >= queuedSinceNs) mostQueuedNs = std::max(mostQueuedNs, start - now);
      way.freeAt = start + each;
      due = way.freeAt + shape.delayNs;
      if (random.chance(shape.duplicate)) put(way, {due, f});
      if (random.chance(shape.reorder)) due += 5 * each;
    }
    put(way, {due, std::move(f)});
    mostUnderWay = std::max(mostUnderWay, uint32_t(there.late.size()));
  }
  static void put(Way& way, Late&& late) {
    auto at = way.late.end();
    while (at != way.late.begin() && std::prev(at)->due > late.due) --at;
    way.late.insert(at, std::move(late));
  }
  void arrive(Way& way) {
    std::lock_guard<std::mutex> lock(net.mutex);
    for (; !way.late.empty() && way.late.front().due <= clock.time; way.late.pop_front())
      net.frames.push_back(std::move(way.late.front().frame));
  }
  // Runs until `done` or for so long. False: the time is over.
  bool run(uint64_t ns, const std::function<bool()>& done = [] { return false; }) {
    const uint64_t end = clock.time + ns;
    for (;;) {
      pump();
      if (done()) return true;
      uint64_t next = std::min({a->deadline(), b->deadline(), end});
      for (const Way* way : {&there, &back})
        if (!way->late.empty()) next = std::min(next, way->late.front().due);
      if (next >= end) {
        clock.time = std::max<uint64_t>(end, clock.time);
        return false;
      }
      if (next > clock.time) clock.time = next + shape.lateNs;
      arrive(there);
      arrive(back);
    }
  }
};

// A connection that has requests of `bytes` under way all the time.
struct Flow {
  PathWorld& w;
  TestQp qa, qb;
  Buffer from, to;
  uint32_t bytes, opcode;
  uint64_t done = 0;
  bool failed = false;
  Flow(PathWorld& world, const Link2& link, uint32_t size, uint32_t op = kOpWrite, uint64_t seed = 0)
      : w(world), qa(*world.a), qb(*world.b), from(*world.a, size, kAllAccess, op == kOpWrite ? seed : 0),
        to(*world.b, size, kAllAccess, op == kOpRead ? seed : 0), bytes(size), opcode(op) {
    w.connect(qa, qb, link);
  }
  void post() { qa.post({opcode, kSendFlagSignaled, {{from.at(), bytes, from.lkey}}, 0, to.at(), to.rkey}); }
  // Takes completions, and posts as many again.
  void turn(bool more = true) {
    for (const Cqe& c : qa.sendCq.drain()) {
      failed |= c.status != kWcSuccess;
      done++;
      if (more) post();
    }
  }
};

}  // namespace world
