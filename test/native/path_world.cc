#include "path_world.h"

namespace world {

PathWorld::PathWorld(const PathShape& s, uint64_t seed, const EngineOptions& options)
    : World(options), shape(s), random(seed) {
  net.filter = [this](Frame& f) {
    carry(f);
    return false;
  };
}

PathWorld::~PathWorld() = default;

void PathWorld::carry(Frame& f) {
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

void PathWorld::put(Way& way, Late&& late) {
  auto at = way.late.end();
  while (at != way.late.begin() && std::prev(at)->due > late.due) --at;
  way.late.insert(at, std::move(late));
}

void PathWorld::arrive(Way& way) {
  std::lock_guard<std::mutex> lock(net.mutex);
  for (; !way.late.empty() && way.late.front().due <= clock.time; way.late.pop_front())
    net.frames.push_back(std::move(way.late.front().frame));
}

bool PathWorld::run(uint64_t ns, const std::function<bool()>& done) {
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

Flow::Flow(PathWorld& world, const Link2& link, uint32_t size, uint32_t op, uint64_t seed)
    : w(world),
      qa(*world.a),
      qb(*world.b),
      from(*world.a, size, kAllAccess, op == kOpWrite ? seed : 0),
      to(*world.b, size, kAllAccess, op == kOpRead ? seed : 0),
      bytes(size),
      opcode(op) {
  w.connect(qa, qb, link);
}

Flow::~Flow() = default;

void Flow::post() { qa.post({opcode, kSendFlagSignaled, {{from.at(), bytes, from.lkey}}, 0, to.at(), to.rkey}); }

void Flow::turn(bool more) {
  for (const Cqe& c : qa.sendCq.drain()) {
    failed |= c.status != kWcSuccess;
    done++;
    if (more) post();
  }
}

}  // namespace world
