// Tests of large payload on the local link: references that use several PSNs, carried payload, and both mixed.
#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kReference = LocalPair::kMtu * LocalPair::kReferencePackets;

Wr request(uint32_t opcode, Buffer& local, uint32_t length, Buffer& remote) {
  Wr wr;
  wr.opcode = opcode;
  wr.sges = {{local.at(), length, local.lkey}};
  wr.remote = remote.at();
  wr.rkey = remote.rkey;
  return wr;
}

}  // namespace

// If the payload is carried, each PSN takes one entry; by reference, eight PSNs share one. The PSNs are the same.
TEST(named_payload_uses_several_psns) {
  for (const uint32_t opcode : {kOpSend, kOpWrite, kOpRead}) {
    for (const Payload payload : {Payload::kByReference, Payload::kCarried}) {
      LocalConnection w({}, {}, {}, payload);
      constexpr uint32_t kBytes = kReference + 3 * LocalPair::kMtu + 100;
      Buffer ours(*w.a, kBytes, kAllAccess, 7), theirs(*w.b, kBytes, kAllAccess, 8);
      QpAttributes before, after;
      CHECK(w.a->engine.queryQp(w.qa.handle, &before) == Status::kSuccess);
      if (opcode == kOpSend) w.qb.receive({{theirs.at(), kBytes, theirs.lkey}});
      const uint32_t i = w.qa.post(request(opcode, ours, kBytes, theirs));
      w.pump();
      only(w.qa.sendCq, i, opcode, kWcSuccess, opcode == kOpRead ? kBytes : 0);
      CHECK(std::memcmp(ours.data(), theirs.data(), kBytes) == 0);
      CHECK(w.a->engine.queryQp(w.qa.handle, &after) == Status::kSuccess);
      CHECK_EQ(after.sendPsn - before.sendPsn, 12u);
      const bool byReference = payload == Payload::kByReference;
      const HostCounters& taker = opcode == kOpRead ? w.countersA : w.countersB;
      CHECK_EQ(taker.get(HostCounter::kLocalRx), byReference ? 2u : 12u);
      CHECK_EQ(taker.get(HostCounter::kLocalPulled), byReference ? uint64_t(kBytes) : 0u);
      CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
    }
  }
}

// A small window is respected, and a message that is larger than it is sent nevertheless.
TEST(named_payload_fits_into_the_window) {
  EngineOptions options;
  options.window = 5;
  LocalConnection w({}, {}, options, Payload::kByReference);
  constexpr uint32_t kBytes = 2 * kReference;
  Buffer ours(*w.a, kBytes, kAllAccess, 7), theirs(*w.b, kBytes);
  const uint32_t i = w.qa.post(request(kOpWrite, ours, kBytes, theirs));
  CHECK_EQ(w.countersA.get(HostCounter::kLocalTx), 1u);
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, kWcSuccess);
  CHECK(std::memcmp(ours.data(), theirs.data(), kBytes) == 0);
  CHECK_EQ(w.countersB.get(HostCounter::kLocalRx), 4u);  // packets of 5, 5, 5 and 1 PSNs
}

// On this link READs may have two windows in flight, other requests one.
TEST(reads_take_two_windows) {
  EngineOptions options;
  options.window = 16;
  for (const uint32_t opcode : {kOpRead, kOpWrite}) {
    LocalConnection w({}, {}, options, Payload::kByReference);
    constexpr uint32_t kMessages = 12;
    Buffer ours(*w.a, kReference, kAllAccess, 7), theirs(*w.b, kReference, kAllAccess, 8);
    for (uint32_t i = 0; i < kMessages; i++) w.qa.post(request(opcode, ours, kReference, theirs));
    // A READ request covers a quarter of the window, a referenced payload eight packets.
    CHECK_EQ(w.countersA.get(HostCounter::kLocalTx), opcode == kOpRead ? 32 / 4u : 16 / 8u);
    w.pump();
    CHECK_EQ(w.qa.sendCq.written(), kMessages);
    CHECK(std::memcmp(ours.data(), theirs.data(), kReference) == 0);
    CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
    CHECK_EQ(w.qa.state(), kQpsRts);
  }
}

// If the ring is more than half full, READs have only one window in flight as well.
TEST(reads_take_one_window_of_a_crowded_ring) {
  EngineOptions options;
  options.window = 16;
  LocalConnection w({}, {}, options, Payload::kByReference);
  Buffer ours(*w.a, kReference, kAllAccess, 7), theirs(*w.b, kReference, kAllAccess, 8);
  constexpr uint32_t kOthers = LocalRing::kSlots / 2 + 1;
  for (uint32_t i = 0; i < kOthers; i++) w.pa->putUnpulled(w.qa.qpn, w.qb.qpn, 1, false);
  for (uint32_t i = 0; i < 8; i++) w.qa.post(request(kOpRead, ours, kReference, theirs));
  CHECK_EQ(w.countersA.get(HostCounter::kLocalTx), 16 / 4u);
  w.pump();
  CHECK_EQ(w.qa.sendCq.written(), 8u);
  CHECK(std::memcmp(ours.data(), theirs.data(), kReference) == 0);
}

// Messages of either kind are in flight in both directions while memory is freed and maps are lost. Payload that the
// peer can no longer copy arrives through the ring.
TEST(both_ways_mixed) {
  for (uint64_t seed = 1; seed <= 40; seed++) {
    check::note = "seed";
    check::noteNumber = seed;
    LocalConnection w;
    Random random(seed);
    constexpr uint32_t kMessages = 6, kMost = 3 * kReference / 2;
    std::vector<std::unique_ptr<Buffer>> ours, theirs;
    std::vector<uint32_t> sizes, opcodes;
    for (uint32_t i = 0; i < kMessages; i++) {
      w.shareFrom(random.chance(0.7) ? Payload::kByReference : Payload::kCarried);
      ours.push_back(std::make_unique<Buffer>(*w.a, kMost, kAllAccess, uint8_t(2 * i + 1)));
      theirs.push_back(std::make_unique<Buffer>(*w.b, kMost, kAllAccess, uint8_t(2 * i + 2)));
      sizes.push_back(1 + random.below(kMost));
      opcodes.push_back(random.chance(0.5) ? kOpWrite : kOpRead);
    }
    w.shareFrom(Payload::kCarried);
    uint32_t posted = 0;
    while (posted < kMessages || w.qa.sendCq.written() < kMessages) {
      if (posted < kMessages && random.chance(0.4)) {
        w.qa.post(request(opcodes[posted], *ours[posted], sizes[posted], *theirs[posted]));
        posted++;
      }
      if (random.chance(0.7)) w.a->step();
      if (random.chance(0.7)) w.b->step();
      // References under an older epoch are requested again, through the ring.
      if (random.chance(0.05)) Buffer(*(random.chance(0.5) ? w.a : w.b), 64);
      if (random.chance(0.01)) (random.chance(0.5) ? w.pa : w.pb)->maps.clear();
    }
    for (const Cqe& c : w.qa.sendCq.drain()) CHECK_EQ(c.status, kWcSuccess);
    for (uint32_t i = 0; i < kMessages; i++) CHECK(std::memcmp(ours[i]->data(), theirs[i]->data(), sizes[i]) == 0);
    CHECK_EQ(w.a->counter("ack_timeout") + w.b->counter("ack_timeout"), 0u);
  }
  check::note = "";
}

// Tests a peer whose referenced response is longer than requested, or does not end at a packet boundary.
TEST(named_response_of_wrong_length) {
  for (const uint32_t length : {LocalPair::kMtu + 4, 3 * LocalPair::kMtu, kReference}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    constexpr uint32_t kBytes = 2 * LocalPair::kMtu;
    Buffer ours(*w.a, 2 * kReference, kAllAccess, 7), theirs(*w.b, 2 * kReference, kAllAccess, 8);
    const std::vector<uint8_t> before(ours.data(), ours.data() + 2 * kReference);
    const uint32_t i = w.qa.post(request(kOpRead, ours, kBytes, theirs));
    w.b->step();
    // The lengths in the only entry of B's ring: that of the payload, and that of its only piece.
    uint8_t* body = w.segment().rings[1].slots[0].body;
    const uint32_t word = LocalEntry::word(length, LocalKind::kReference, 1);
    CHECK_EQ(uint32_t(*reinterpret_cast<uint32_t*>(body)), LocalEntry::word(kBytes, LocalKind::kReference, 1));
    std::memcpy(body, &word, sizeof word);
    std::memcpy(body + LocalEntry::kHeadBytes + wire::kBthBytes + wire::kAethBytes + 8 + 8, &length, sizeof length);
    w.pump();
    only(w.qa.sendCq, i, kOpRead, kWcBadResponse, kBytes);
    CHECK(std::memcmp(before.data() + kBytes, ours.data() + kBytes, before.size() - kBytes) == 0);
  }
}

// The same test with a request, whose sender is notified.
TEST(named_request_of_wrong_length) {
  LocalConnection w({}, {}, {}, Payload::kByReference);
  constexpr uint32_t kBytes = kReference + LocalPair::kMtu;
  Buffer ours(*w.a, kBytes, kAllAccess, 7), theirs(*w.b, kBytes);
  const uint32_t i = w.qa.post(request(kOpWrite, ours, kBytes, theirs));
  const uint32_t length = kReference - 64;
  uint8_t* body = w.segment().rings[0].slots[0].body;
  const uint32_t word = LocalEntry::word(length, LocalKind::kReference, 1);
  CHECK_EQ(uint32_t(*reinterpret_cast<uint32_t*>(body)), LocalEntry::word(kReference, LocalKind::kReference, 1));
  std::memcpy(body, &word, sizeof word);
  std::memcpy(body + LocalEntry::kHeadBytes + wire::kBthBytes + wire::kRethBytes + 8 + 8, &length, sizeof length);
  w.pump();
  only(w.qa.sendCq, i, kOpWrite, kWcRemoteInvalidRequest);
  // The data before the packet of the wrong length was as requested.
  for (uint32_t at = kReference - LocalPair::kMtu; at < kBytes; at++) CHECK_EQ(uint32_t(theirs.data()[at]), 0u);
}

// Half of a large message is in a full ring while its queue pair is to be drained. It waits, and the entries of other
// queue pairs in the ring stay as they are.
TEST(nothing_is_requested_in_a_full_ring) {
  LocalWorld w;
  TestQp first(*w.a, QpShape(), 1), second(*w.a, QpShape(), 3), atFirst(*w.b, QpShape(), 2),
      atSecond(*w.b, QpShape(), 4);
  w.connect(first, atFirst, {});
  w.connect(second, atSecond, {});
  constexpr uint32_t kSmaller = 12u << 16, kLarger = 20u << 16;
  Buffer from(*w.a, kLarger, kAllAccess, 1), to(*w.b, kLarger), from2(*w.a, kSmaller, kAllAccess, 7),
      to2(*w.b, kSmaller);
  for (TestQp* qp : {&atFirst, &atSecond}) qp->receive({});
  for (TestQp* qp : {&first, &second}) qp->post({kOpSend, 0, {}});
  w.pump();
  second.post({kOpWrite, kSendFlagSignaled, {{from2.at(), kSmaller, from2.lkey}}, 0, to2.at(), to2.rkey});
  first.post({kOpWrite, kSendFlagSignaled, {{from.at(), kLarger, from.lkey}}, 0, to.at(), to.rkey});
  CHECK(w.countersA.get(HostCounter::kLocalStalls) > 0);
  CHECK(first.toState(kQpsSqd) == Status::kSuccess);
  w.a->step();
  w.pump();
  CHECK_EQ(w.a->counter("late_ack_request"), 0u);
  CHECK(std::memcmp(to.data(), from.data(), kLarger) == 0);
  CHECK(std::memcmp(to2.data(), from2.data(), kSmaller) == 0);
  CHECK(only(first.sendCq, 1, kOpWrite, kWcSuccess));
  CHECK(only(second.sendCq, 1, kOpWrite, kWcSuccess));
}
