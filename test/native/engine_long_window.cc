// Tests of the window over a path with delay: how it grows, what limits it, the effect of losses, and how connections
// share a path (objects/path_model.h).
#include <cstdio>

#include "path_world.h"

using namespace world;

namespace {

constexpr uint32_t kMtu = 4096, kMessage = 1 << 20, kInFlight = 64;
constexpr uint64_t kSecond = 1'000'000'000;

Link2 linkOf(uint32_t taken, uint32_t psn = 100) {
  Link2 l;
  l.mtu = kMtu;
  l.ackTimeout = 17;
  l.extensions = taken;
  l.psnA = psn;
  return l;
}

// Returns what each connection transfers over the path within the given time, as a share of the path's rate.
std::vector<double> sharesOf(PathWorld& w, std::vector<std::unique_ptr<Flow>>& flows, uint64_t ns) {
  std::vector<uint64_t> before;
  for (auto& f : flows) before.push_back(f->done);
  w.run(ns, [&] {
    for (auto& f : flows) f->turn();
    return false;
  });
  std::vector<double> shares;
  for (size_t i = 0; i < flows.size(); i++) {
    CHECK(!flows[i]->failed);
    shares.push_back(double(flows[i]->done - before[i]) * kMessage /
                     (double(w.shape.bytesPerSecond) * double(ns) * 1e-9));
  }
  return shares;
}

std::unique_ptr<Flow> flowIn(PathWorld& w, const Link2& link, uint32_t opcode = kOpWrite) {
  auto flow = std::make_unique<Flow>(w, link, kMessage, opcode);
  for (uint32_t i = 0; i < kInFlight; i++) flow->post();
  return flow;
}

double oneShare(const PathShape& shape, uint32_t taken, uint64_t warmNs, uint64_t ns, uint64_t seed = 1,
                uint32_t opcode = kOpWrite) {
  PathWorld w(shape, seed);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(flowIn(w, linkOf(taken), opcode));
  sharesOf(w, flows, warmNs);
  return sharesOf(w, flows, ns)[0];
}

}  // namespace

// At 1 Gbit/s, a round trip of 20 or 100 ms holds 600 or 3,000 packets. PSNs wrap meanwhile.
TEST(long_window_grows_to_what_the_path_holds) {
  for (uint64_t delay : {10'000'000, 50'000'000}) {
    PathShape shape;
    shape.delayNs = delay;
    shape.queue = 9000;
    PathWorld w(shape);
    std::vector<std::unique_ptr<Flow>> flows;
    flows.push_back(flowIn(w, linkOf(extensions::kAll, 0xFFF000)));
    sharesOf(w, flows, 2 * kSecond);
    CHECK(sharesOf(w, flows, 2 * kSecond)[0] > 0.9);
    CHECK_EQ(w.dropped, 0u);
    CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
  }
}

// The peer has not announced a larger window. rxe and network adapters support 128 packets.
TEST(long_window_of_any_other_peer_stays_at_the_common_size) {
  PathShape shape;
  PathWorld w(shape);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(flowIn(w, linkOf(0)));
  const double share = sharesOf(w, flows, 3 * kSecond)[0];
  CHECK(w.mostUnderWay <= 128);
  CHECK(share < 0.25);
}

TEST(long_window_has_the_limit_of_the_option) {
  PathShape shape;
  shape.delayNs = 50'000'000;
  shape.bytesPerSecond = 1'250'000'000;
  shape.queue = 100'000;
  EngineOptions options;
  options.longWindowBytes = 8 << 20;
  PathWorld w(shape, 1, options);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(flowIn(w, linkOf(extensions::kAll)));
  sharesOf(w, flows, 4 * kSecond);
  CHECK(w.mostUnderWay <= (8u << 20) / kMtu);
  CHECK(w.mostUnderWay > (4u << 20) / kMtu);  // the other requests are acknowledged, and responses are in flight
}

// On a short path, as inside a host, there is nothing to gain.
TEST(long_window_on_a_near_path_stays) {
  PathShape shape;
  shape.delayNs = 50'000;
  PathWorld w(shape);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(std::make_unique<Flow>(w, linkOf(extensions::kAll), kMessage));
  Flow& flow = *flows[0];
  flow.qa.post({kOpWrite, kSendFlagSignaled, {{flow.from.at(), 8, flow.from.lkey}}, 0, flow.to.at(), flow.to.rkey});
  w.run(kSecond, [&] { return flow.qa.sendCq.written() == 1; });  // the round trip is known from now on
  for (uint32_t i = 1; i < kInFlight; i++) flow.post();
  sharesOf(w, flows, kSecond);
  CHECK(w.mostUnderWay <= 128);
}

// A queue of ten seconds does not fill up. It holds no more than the path itself.
TEST(long_window_leaves_no_standing_queue) {
  PathShape shape;
  shape.queue = 300'000;
  PathWorld w(shape);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(flowIn(w, linkOf(extensions::kAll)));
  sharesOf(w, flows, 3 * kSecond);
  w.queuedSinceNs = w.clock.time;
  CHECK(sharesOf(w, flows, 12 * kSecond)[0] > 0.9);  // although the queue is drained twice
  CHECK(w.mostQueuedNs < 4 * shape.delayNs);         // a round trip, and for a moment more than that
}

// The queue holds less than twice as much as the path. Losses shrink the window, and the path stays in use.
TEST(long_window_follows_losses_of_a_short_queue) {
  PathShape shape;
  shape.queue = 200;
  const double share = oneShare(shape, extensions::kAll, 2 * kSecond, 5 * kSecond);
  CHECK(share > 0.6);
}

// After losses, the window grows faster than TCP's does with segments of 9000 bytes, because packets are smaller
// (congestion.cc).
TEST(long_window_grows_after_losses_as_larger_packets_do) {
  PathShape shape;
  shape.queue = 9000;
  PathWorld w(shape);
  std::vector<std::unique_ptr<Flow>> flows;
  flows.push_back(flowIn(w, linkOf(extensions::kAll)));
  sharesOf(w, flows, kSecond);
  w.shape.loss = 0.06;
  sharesOf(w, flows, 70'000'000);
  w.shape.loss = 0;
  sharesOf(w, flows, 200'000'000);
  const auto underWay = [&] {
    w.mostUnderWay = 0;
    sharesOf(w, flows, 40'000'000);
    return w.mostUnderWay;
  };
  const uint32_t before = underWay();
  sharesOf(w, flows, 460'000'000);
  CHECK(before < 600);               // less than the path holds
  CHECK(underWay() >= before + 30);  // in 23 round trips; with the increase of TCP's own segments it is 16
}

// Packets that were due while the thread slept are sent when it wakes.
TEST(long_window_is_filled_by_a_thread_that_wakes_late) {
  PathShape shape;
  shape.lateNs = 1'500'000;
  CHECK(oneShare(shape, extensions::kAll, 2 * kSecond, 5 * kSecond) > 0.8);
}

TEST(long_window_is_shared_fairly) {
  for (uint64_t seed = 1; seed <= check::seeds(4); seed++) {
    PathShape shape;
    shape.delayNs = 5'000'000;
    shape.queue = seed % 2 ? 2000 : 400;
    PathWorld w(shape, seed);
    std::vector<std::unique_ptr<Flow>> flows;
    flows.push_back(flowIn(w, linkOf(extensions::kAll)));
    sharesOf(w, flows, seed * kSecond / 2);
    flows.push_back(flowIn(w, linkOf(extensions::kAll)));
    sharesOf(w, flows, 4 * kSecond);
    const std::vector<double> shares = sharesOf(w, flows, 8 * kSecond);
    const double sum = shares[0] + shares[1];
    const double jain = sum * sum / (2 * (shares[0] * shares[0] + shares[1] * shares[1]));
    if (!CHECK(jain >= 0.9) || !CHECK(sum > 0.7))
      std::printf("seed %u: %.2f and %.2f\n", unsigned(seed), shares[0], shares[1]);
  }
}

// The responses to Reads use the window of the other direction.
TEST(long_window_of_reads_grows) {
  PathShape shape;
  CHECK(oneShare(shape, extensions::kAll, 2 * kSecond, 2 * kSecond, 1, kOpRead) >
        1.5 * oneShare(shape, 0, 2 * kSecond, 2 * kSecond, 1, kOpRead));
}
