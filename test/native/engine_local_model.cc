// Many queue pairs that share a ring, between two processes or within one, do all kinds of work at the same time in a
// random program. Each completion reports what was done, once and in order, and every posted request completes.
#include <map>

#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kMost = 300'000, kPlaces = 6, kSource = 1u << 20, kPosts = 60;

// One HCA whose queue pairs are connected with each other.
struct Alone : World {
  HostCounters told;
  std::shared_ptr<LocalPair> self = std::make_shared<LocalPair>(1, told);
  Node* const b = a.get();
  explicit Alone(uint64_t) {
    CHECK(self->startSelf());
    a->link.pair = self;
    a->link.local = true;
  }
};
struct Two : LocalWorld {
  explicit Two(uint64_t seed) : LocalWorld({}, seed % 2 ? Payload::kByReference : Payload::kCarried) {}
};

struct Message {
  uint32_t from, length;
  bool immediate;
  uint32_t number;
};
struct Request {
  uint32_t wqe, opcode, from, length, place;
  bool signaled;
  uint64_t before;  // the previous value of a FETCH_ADD
};

struct End {
  Node& node;
  TestSrq* srq;
  std::map<uint32_t, uint32_t>& shared;  // the slots of its receives
  TestQp qp;
  Buffer places, taken;  // READs end in the first part, the peer's WRITEs in the second; then a counter, receives
  End* peer = nullptr;
  std::deque<Message> coming;
  std::deque<Request> posted;
  std::map<uint32_t, uint32_t> receives;
  uint32_t sends = 0, received = 0, receivesPosted = 0, nextPlace = 0;
  uint64_t added = 0;
  static QpShape shape(uint64_t seed, TestSrq* s) {
    QpShape q;
    q.signalAll = seed % 7 == 0;
    if (s) q.srq = s->handle;
    return q;
  }
  End(Node& n, uint64_t seed, TestSrq* s, std::map<uint32_t, uint32_t>& ofSrq)
      : node(n),
        srq(s),
        shared(ofSrq),
        qp(n, shape(seed, s)),
        places(n, 2 * kPlaces * kMost + 8),
        taken(n, kPlaces * kMost) {}
  uint64_t counter() { return places.at(2 * kPlaces * kMost); }
  uint64_t& value() { return *reinterpret_cast<uint64_t*>(counter()); }
};

template <typename Base>
struct Program : Base {
  Random random;
  Buffer sourceA{*this->a, kSource, kAllAccess, 11}, sourceB{*this->b, kSource, kAllAccess, 12};
  TestSrq srq{*this->b, 16};
  std::map<uint32_t, uint32_t> ofSrq;
  Buffer srqPlaces{*this->b, 16 * kMost};
  std::vector<std::unique_ptr<End>> ends;
  uint32_t total = 0, number = 0;

  explicit Program(uint64_t seed) : Base(seed), random(seed) {
    const uint32_t count = 1 + random.below(4);
    for (uint32_t i = 0; i < count; i++) {
      ends.push_back(std::make_unique<End>(*this->a, seed, nullptr, ofSrq));
      ends.push_back(std::make_unique<End>(*this->b, seed, random.below(3) ? nullptr : &srq, ofSrq));
      ends[2 * i]->peer = ends[2 * i + 1].get();
      ends[2 * i + 1]->peer = ends[2 * i].get();
      connectTwo(*ends[2 * i]);
    }
  }
  // Only the SRQ of the second peers is empty now and then. Even then it delays no other queue pairs.
  void connectTwo(End& e) {
    Link2 l;
    l.rnrTimer = 1;
    l.rnrRetries = 7;
    l.psnA = random.below(1u << 24);
    l.psnB = random.below(1u << 24);
    l.depth = 1 + random.below(8);
    this->connect(e.qp, e.peer->qp, l);
  }
  Buffer& sourceOf(End& e) { return &e.qp.node == this->a.get() && &e != e.peer ? sourceA : sourceB; }
  uint32_t length() {
    switch (random.below(6)) {
      case 0: return random.below(4);
      case 1:
      case 2: return random.below(130);
      case 3: return random.below(5000);
      case 4: return random.below(70'000);
      default: return 90'000 + random.below(kMost - 90'000);
    }
  }
  void receive(End& e) {
    if (e.srq) {
      if (srq.producer - srq.taken() >= 8 || ofSrq.size() >= 16) return;
      uint32_t place = 0;
      for (const auto& r : ofSrq)
        if (r.second == place) place++;
      for (bool used = true; used;) {
        used = false;
        for (const auto& r : ofSrq)
          if (r.second == place) used = true, place++;
      }
      ofSrq[srq.receive({{srqPlaces.at(place * uint64_t(kMost)), kMost, srqPlaces.lkey}})] = place;
      return;
    }
    if (e.receives.size() >= kPlaces) return;
    const uint32_t place = e.receivesPosted++ % kPlaces, half = random.below(kMost);
    const uint64_t at = e.taken.at(place * uint64_t(kMost));
    std::vector<Sge> sges = {{at, kMost, e.taken.lkey}};
    if (random.below(3) == 0) sges = {{at, half, e.taken.lkey}, {at + half, kMost - half, e.taken.lkey}};
    e.receives[e.qp.receive(sges)] = place;
  }
  void post(End& e) {
    if (e.posted.size() >= kPlaces) return;
    Request r{0, kOpSend, 0, 0, e.nextPlace++ % kPlaces, e.qp.shape.signalAll || random.below(3) != 0, 0};
    if (e.posted.size() == kPlaces - 1) r.signaled = true;
    constexpr uint32_t kKinds[] = {kOpSend, kOpSend, kOpSend, kOpWrite, kOpWrite, kOpRead, kOpFetchAdd};
    r.opcode = kKinds[random.below(7)];
    r.length = r.opcode == kOpFetchAdd ? 8 : length();
    r.from = random.below(kSource - kMost);
    Wr wr;
    wr.opcode = r.opcode;
    wr.flags = (r.signaled ? kSendFlagSignaled : 0) | (random.below(10) ? 0 : kSendFlagFence);
    const bool consumes = r.opcode == kOpSend || (r.opcode == kOpWrite && random.below(4) == 0);
    const bool immediate = consumes && (r.opcode == kOpWrite || random.below(4) == 0);
    if (immediate) wr.flags |= kSendFlagImmediate;
    wr.immediate = ++number;
    Buffer& mine = sourceOf(e);
    if (r.opcode == kOpSend || r.opcode == kOpWrite) {
      const uint64_t at = mine.at(r.from);
      const uint32_t part = r.length ? random.below(r.length) : 0;
      if (r.length <= e.qp.shape.maxInline && random.below(2)) {
        wr.flags |= kSendFlagInline;
        wr.inlined.assign(mine.data() + r.from, mine.data() + r.from + r.length);
      } else if (random.below(4) == 0) {
        wr.sges = {{at, part, mine.lkey}, {at + part, r.length - part, mine.lkey}};
      } else {
        wr.sges = {{at, r.length, mine.lkey}};
      }
      wr.remote = e.peer->places.at((kPlaces + r.place) * uint64_t(kMost));
      wr.rkey = e.peer->places.rkey;
    } else {
      wr.sges = {{e.places.at(r.place * uint64_t(kMost)), r.length, e.places.lkey}};
      Buffer& theirs = sourceOf(*e.peer);
      wr.remote = r.opcode == kOpRead ? theirs.at(r.from) : e.peer->counter();
      wr.rkey = r.opcode == kOpRead ? theirs.rkey : e.peer->places.rkey;
      wr.compare = 3;
      if (r.opcode == kOpFetchAdd) r.before = 3 * e.added++;
    }
    if (consumes)
      e.peer->coming.push_back({r.opcode == kOpSend ? r.from : UINT32_MAX, r.length, immediate, wr.immediate});
    r.wqe = random.below(3) ? e.qp.post(wr) : e.qp.write(wr);
    e.posted.push_back(r);
    total++;
  }
  void check(End& e, const Request& r) {
    if (r.length == 0) return;
    const uint8_t* const place = e.places.data() + r.place * uint64_t(kMost);
    if (r.opcode == kOpWrite)
      CHECK(std::memcmp(e.peer->places.data() + (kPlaces + r.place) * uint64_t(kMost), sourceOf(e).data() + r.from,
                        r.length) == 0);
    if (r.opcode == kOpRead) CHECK(std::memcmp(place, sourceOf(*e.peer).data() + r.from, r.length) == 0);
    if (r.opcode == kOpFetchAdd) CHECK_EQ(*reinterpret_cast<const uint64_t*>(place), r.before);
  }
  void drain(End& e) {
    for (const Cqe& c : e.qp.sendCq.drain()) {
      CHECK_EQ(c.status, kWcSuccess);
      bool found = false;
      while (!found && CHECK(!e.posted.empty())) {
        const Request r = e.posted.front();
        e.posted.pop_front();
        check(e, r);
        found = r.wqe == c.wqe;
        if (found) CHECK_EQ(c.opcode, r.opcode);
        else CHECK(!r.signaled);
      }
    }
    for (const Cqe& c : e.qp.receiveCq.drain()) {
      CHECK_EQ(c.status, kWcSuccess);
      auto& places = e.srq ? ofSrq : e.receives;
      const auto place = places.find(c.wqe);
      if (!CHECK(!e.coming.empty()) || !CHECK(place != places.end())) continue;
      const Message m = e.coming.front();
      e.coming.pop_front();
      CHECK_EQ(c.length, m.length);
      CHECK_EQ((c.flags & kCqeFlagImmediate) != 0, m.immediate);
      if (m.immediate) CHECK_EQ(c.immediate, m.number);
      const uint8_t* const at = (e.srq ? srqPlaces : e.taken).data() + place->second * uint64_t(kMost);
      if (m.from != UINT32_MAX) CHECK(std::memcmp(at, sourceOf(*e.peer).data() + m.from, m.length) == 0);
      places.erase(place);
    }
  }
  // Restarts the connection. Everything that was in flight is forgotten.
  void anew(End& e) {
    for (End* x : {&e, e.peer}) CHECK(x->qp.toState(random.below(2) ? kQpsReset : kQpsError) == Status::kSuccess);
    for (End* x : {&e, e.peer}) {
      CHECK(x->qp.toState(kQpsReset) == Status::kSuccess);
      x->qp.sendCq.drain();
      for (const Cqe& c : x->qp.receiveCq.drain())
        if (x->srq) ofSrq.erase(c.wqe);
      x->coming.clear();
      x->posted.clear();
      x->receives.clear();
      x->added = 0;
      x->value() = 0;
    }
    connectTwo(e);
  }
  void act() {
    End& e = *ends[random.below(uint32_t(ends.size()))];
    switch (random.below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: post(e); break;
      case 6:
      case 7:
      case 8:
      case 9: receive(e); break;
      case 10: e.qp.node.engine.doorbell(e.qp.handle); break;
      case 11: {
        const Buffer unrelated(e.qp.node, 64);
      } break;  // memory that was referenced but not copied yet is requested again
      case 12:
        if (random.below(4) == 0) e.qp.toState(e.qp.state() == kQpsSqd ? kQpsRts : kQpsSqd);
        break;
      case 13:
        if (random.below(3) == 0) this->advance();
        break;
      case 14:
        if (random.below(60) == 0 && !e.srq && !e.peer->srq) anew(e);
        break;
      case 15: this->clock.time += random.below(200'000); break;
      case 16:
      case 17: (random.below(2) ? *this->a : *this->b).step(); break;
      default:
        e.node.engine.progress();
        drain(e);
        break;
    }
  }
  bool done() {
    bool all = true;
    for (auto& e : ends) {
      drain(*e);
      for (uint32_t i = 0; i < kPlaces && !e->coming.empty(); i++) receive(*e);
      all &= e->coming.empty();
      for (const Request& r : e->posted) all &= !r.signaled;
    }
    return all;
  }
  void run() {
    for (uint32_t i = 0; i < 4000; i++) act();
    for (auto& e : ends) {
      if (e->qp.state() == kQpsSqd) e->qp.toState(kQpsRts);
      e->qp.node.engine.doorbell(e->qp.handle);
    }
    CHECK(this->until([&] { return done(); }));
    for (auto& e : ends) {
      CHECK_EQ(e->qp.state(), kQpsRts);
      CHECK_EQ(e->value(), 3 * e->peer->added);
    }
  }
};

template <typename Base>
uint32_t programs(uint32_t seeds) {
  uint32_t total = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    Program<Base> program(seed);
    program.run();
    total += program.total;
  }
  return total;
}

}  // namespace

TEST(model_of_two_processes) { CHECK(programs<Two>(60) > 5000); }
TEST(model_of_one_process) { CHECK(programs<Alone>(60) > 5000); }
