// Tests of MADs that wait for a kernel. MADs of known connections are kept apart, each source is bounded, and this
// host's processes come before the network.
#include "base/mad_queue.h"
#include "check.h"

using namespace nd;

namespace {

using Queue = MadQueue<int>;

PacketMeta byWire(uint8_t last) {
  PacketMeta meta;
  meta.source.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  return meta;
}

PacketMeta bySlot(uint32_t slot) {
  PacketMeta meta = byWire(1);
  meta.sender = slot;
  return meta;
}

struct Mad {
  uint8_t bytes[wire::kMadBytes] = {};
  Mad(uint32_t attribute, uint32_t localId, uint32_t remoteId) {
    bytes[mad::kAttribute + 1] = static_cast<uint8_t>(attribute);
    for (int i = 0; i < 4; i++) {
      bytes[mad::kMessage + i] = static_cast<uint8_t>(localId >> (24 - 8 * i));
      bytes[mad::kMessage + 4 + i] = static_cast<uint8_t>(remoteId >> (24 - 8 * i));
    }
  }
};

}  // namespace

TEST(mad_queue_one_source_has_its_share) {
  Queue queue;
  for (int n = 0; n < 10'000; n++) {
    const auto verdict = queue.add(byWire(9), true, int(n));
    CHECK(verdict == (size_t(n) < Queue::kMostOfSource ? MadVerdict::kTaken : MadVerdict::kSourceFull));
  }
  CHECK(queue.add(byWire(8), true, 1 << 20) == MadVerdict::kTaken);
  int mad = -1;
  CHECK(queue.take(&mad) && mad == 0);
  CHECK(queue.take(&mad) && mad == 1 << 20);
  for (int n = 1; n < int(Queue::kMostOfSource); n++) CHECK(queue.take(&mad) && mad == n);
  CHECK(!queue.take(&mad) && queue.empty());
  CHECK(queue.add(byWire(9), true, 5) == MadVerdict::kTaken);
}

TEST(mad_queue_processes_of_this_host_come_first_however_full_the_wire_is) {
  Queue queue;
  for (int n = 0; n < 10'000; n++) queue.add(byWire(static_cast<uint8_t>(n % 200)), true, int(n));
  CHECK(queue.add(byWire(201), true, 1) == MadVerdict::kFull);
  CHECK(queue.add(bySlot(3), true, -3) == MadVerdict::kTaken);
  CHECK(queue.add(bySlot(4), true, -4) == MadVerdict::kTaken);
  int mad = 0;
  CHECK(queue.take(&mad) && mad == -3);
  CHECK(queue.take(&mad) && mad == -4);
  CHECK(queue.take(&mad) && mad == 0);
}

TEST(mad_queue_mads_for_no_service_neither_fill_a_share_nor_precede_requests) {
  Queue queue;
  for (int n = 0; n < 10'000; n++) {
    const auto verdict = queue.add(byWire(9), false, int(n));
    CHECK(verdict == (size_t(n) < Queue::kMostUnaddressed ? MadVerdict::kTaken : MadVerdict::kSourceFull));
  }
  for (int n = 0; n < 3; n++) CHECK(queue.add(byWire(9), true, -1 - n) == MadVerdict::kTaken);
  int mad = 0;
  for (int n = 0; n < 3; n++) {
    CHECK(queue.take(&mad) && mad == n);
    CHECK(queue.take(&mad) && mad == -1 - n);
  }
  CHECK(queue.take(&mad) && mad == 3);
}

TEST(mad_queue_sources_take_turns_in_the_order_in_which_they_came) {
  Queue queue;
  for (int n = 0; n < 3; n++)
    for (const uint8_t source : {7, 5, 6}) queue.add(byWire(source), true, 10 * source + n);
  queue.add(byWire(4), true, 40);
  int mad = 0;
  for (const int expected : {70, 50, 60, 40, 71, 51, 61, 72, 52, 62}) CHECK(queue.take(&mad) && mad == expected);
  CHECK(queue.empty());
}

TEST(mad_queue_a_message_is_known_by_our_id_and_where_it_comes_from) {
  KnownPeers peers;
  const Gid peer = byWire(2).source, other = byWire(3).source;
  const uint32_t own = 0x0104'0007, theirs = 77;
  CHECK(!peers.knows(Mad(mad::kRep, theirs, own).bytes, peer));
  peers.onSent(Mad(mad::kReq, own, 0).bytes, peer);
  for (const uint32_t attribute : {mad::kMra, mad::kRej, mad::kRep, mad::kRtu, mad::kDreq, mad::kDrep}) {
    CHECK(peers.knows(Mad(attribute, theirs, own).bytes, peer));
    CHECK(!peers.knows(Mad(attribute, theirs, own).bytes, other));
    CHECK(!peers.knows(Mad(attribute, theirs, own + 1).bytes, peer));
  }
  CHECK(!peers.knows(Mad(mad::kReq, theirs, own).bytes, peer));
  CHECK(!peers.knows(Mad(mad::kRej, theirs, 0).bytes, peer));
  peers.onSent(Mad(mad::kSidrReq, own + 9, 0).bytes, peer);
  CHECK(peers.knows(Mad(mad::kSidrRep, own + 9, 0).bytes, peer));
  CHECK(!peers.knows(Mad(mad::kSidrReq, own + 9, own).bytes, peer));
}

TEST(kernel_queue_known_ones_go_first_and_leave_others_their_turn) {
  KernelQueue<int> queue;
  const int row = KernelQueue<int>::kMostInRow;
  for (int n = 0; n < 2; n++) CHECK(queue.pushOther(byWire(9), true, -1 - n) == MadVerdict::kTaken);
  for (int n = 0; n < 3 * row; n++) queue.push(int(n));
  int got = 0;
  for (int n = 0; n < row; n++) CHECK(queue.take(&got, true) && got == n);
  CHECK(queue.take(&got, true) && got == -1);
  // Without a request it waits. Once requested, it is next.
  for (int n = row; n < 2 * row + 1; n++) CHECK(queue.take(&got, false) && got == n);
  CHECK(queue.take(&got, true) && got == -2);
  for (int n = 2 * row + 1; n < 3 * row; n++) CHECK(queue.take(&got, true) && got == n);
  CHECK(!queue.take(&got, true) && queue.empty());
}

TEST(kernel_queue_a_request_never_overtakes_what_came_before_it) {
  KernelQueue<int> queue;
  const int before = 5 * KernelQueue<int>::kMostInRow + 3;
  for (int n = 0; n < before; n++) {
    if (n % 2 == 0) queue.push(int(n));
    else CHECK(queue.pushKnown(int(n)) == MadVerdict::kTaken);
  }
  CHECK(queue.pushOther(bySlot(3), true, -1) == MadVerdict::kTaken);
  int got = 0;
  for (int n = 0; n < before; n++) {
    CHECK(queue.take(&got, true) && got == n);
    queue.push(before + n);  // later arrivals delay it by at most kMostInRow
  }
  CHECK(queue.take(&got, true) && got == -1);
  for (int n = 0; n < before; n++) CHECK(queue.take(&got, true) && got == before + n);
}

TEST(kernel_queue_known_connections_have_a_share_that_grows_again) {
  KernelQueue<int> queue;
  const int most = KernelQueue<int>::kMostKnown;
  for (int n = 0; n < most; n++) CHECK(queue.pushKnown(int(n)) == MadVerdict::kTaken);
  CHECK(queue.pushKnown(int(most)) == MadVerdict::kFull);
  queue.push(-1);  // an object's event is never dropped
  int got = 0;
  CHECK(queue.take(&got, true) && got == 0);
  CHECK(queue.pushKnown(int(most)) == MadVerdict::kTaken);
  CHECK(queue.pushKnown(int(most)) == MadVerdict::kFull);
}
