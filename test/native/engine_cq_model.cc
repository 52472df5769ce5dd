// Random notifications: arms and waiters arrive, each in their own order, some waiters are cancelled, and entries are
// written and consumed in between. A waiter must be notified of an entry that was written after its arm and was not
// consumed.
#include "objects/cq.h"
#include "world.h"

using namespace world;

namespace {

enum class Kind : uint32_t { kAny, kSolicited, kBatch };

struct Notification {
  Kind kind = Kind::kAny;
  uint32_t count = 1;    // requested entries
  uint32_t armedAt = 0;  // entries written at the time of the arm
  bool armed = false, there = false, gone = false;
  std::shared_ptr<Sink> sink = std::make_shared<Sink>();
  bool complete() const { return gone || (armed && there); }
};

struct Model {
  static constexpr uint32_t kEntries = 64, kNotifications = 8;
  std::vector<uint32_t> ring = std::vector<uint32_t>((kCqHeaderBytes + kEntries * kCqeBytes) / 4);
  Cq cq;
  std::vector<bool> solicited;  // for each entry
  uint32_t taken = 0;
  std::vector<Notification> all;
  std::string story;

  Model() { cq.attach(nullptr, reinterpret_cast<uint64_t>(ring.data()), kEntries, 0, 0); }
  uint32_t written() const { return uint32_t(solicited.size()); }
  void tell(const char* step, size_t number) { story += std::string(step) + " " + std::to_string(number) + "; "; }

  void arm(size_t i) {
    static const char* const names[] = {"arm any", "arm solicited", "arm batch"};
    Notification& n = all[i];
    tell(names[uint32_t(n.kind)], i);
    n.armed = true;
    n.armedAt = written();
    if (n.kind == Kind::kBatch) {
      cq.armBatch(n.count);
    } else {
      cq.arm(n.kind == Kind::kSolicited);
    }
  }
  void come(size_t i) {
    tell("waiter", i);
    all[i].there = true;
    cq.addWaiter(all[i].kind == Kind::kSolicited ? kCqNotifySolicited : kCqNotifyAny, all[i].sink);
  }
  void cancel(size_t i) {
    tell("cancel", i);
    if (all[i].there) CHECK(cq.removeWaiter(all[i].sink.get()));
    all[i].gone = true;
  }
  void entry(bool isSolicited) {
    tell(isSolicited ? "solicited entry" : "entry", solicited.size());
    solicited.push_back(isSolicited);
    Completion c;
    c.flags = isSolicited ? kCqeFlagSolicited : 0;
    CHECK(cq.write(c));
  }
  void take(uint32_t n) {
    tell("take", n);
    taken += n;
    storeWord(ring.data() + kCqConsumer, taken);
  }
  // Returns the oldest notification whose arm or waiter is still to come. Both paths keep their order.
  void next() {
    for (size_t i = 0; i < all.size(); i++) {
      if (all[i].complete()) continue;
      return all[i].armed ? come(i) : arm(i);
    }
  }
  // The waiter has arrived, and at least as many entries as it requested were written since its arm and are unconsumed.
  bool overdue(const Notification& n) const {
    if (!n.armed || !n.there || n.gone || n.sink->calls != 0) return false;
    if (n.kind == Kind::kBatch) return taken <= n.armedAt && written() - n.armedAt >= n.count;
    for (uint32_t i = std::max(taken, n.armedAt); i < written(); i++)
      if (n.kind == Kind::kAny || solicited[i]) return true;
    return false;
  }
};

bool nobodyIsForgotten(uint64_t seed, bool waitersFirst, bool batches, bool cancels) {
  Random r(seed);
  Model m;
  for (uint32_t step = 0; step < 48; step++) {
    switch (r.below(8)) {
      case 0:
      case 1: {
        if (m.all.size() == Model::kNotifications) break;
        Notification n;
        n.kind = Kind(r.below(batches ? 3 : 2));
        n.count = 1 + r.below(4);
        m.all.push_back(n);
        if (waitersFirst) {
          m.come(m.all.size() - 1);
        } else {
          m.arm(m.all.size() - 1);
        }
        break;
      }
      case 2:
      case 3:
        if (m.written() - m.taken < Model::kEntries) m.entry(r.below(2));
        break;
      case 4:
        if (m.written() != m.taken) m.take(1 + r.below(m.written() - m.taken));
        break;
      case 5: {
        if (!cancels || m.all.empty()) break;
        const size_t i = r.below(uint32_t(m.all.size()));
        // A waiter cannot arrive first and leave before the arm arrives, because the arm takes the shorter path.
        if (!m.all[i].gone && m.all[i].armed && m.all[i].sink->calls == 0 && r.below(3) == 0) m.cancel(i);
        break;
      }
      default: m.next();
    }
  }
  for (uint32_t i = 0; i < Model::kNotifications; i++) m.next();
  for (size_t i = 0; i < m.all.size(); i++) {
    CHECK(m.all[i].sink->calls <= 1);
    if (!m.overdue(m.all[i])) continue;
    std::fprintf(stderr, "waiter %zu was not notified: %s\n", i, m.story.c_str());
    return false;
  }
  return true;
}

}  // namespace

TEST(cq_model_no_waiter_is_forgotten) {
  check::note = "seed";
  for (uint64_t seed = 1; seed <= check::seeds(60'000); seed++) {
    check::noteNumber = seed;
    if (!CHECK(nobodyIsForgotten(seed, seed & 4, seed & 2, seed & 1))) break;
  }
}
