// Tests of the transport on the local link: every operation and size, back-pressure, payload that cannot be copied,
// freed memory, a peer that has stopped, and a peer that writes invalid data.
#include <algorithm>

#include "local_world.h"

using namespace world;

namespace {

constexpr uint32_t kSizes[] = {
    0,       1,    20,   21,   36,   37,    40,     41,     64,     100,        119,     120,        121,
    200,     4096, 8191, 8192, 8193, 65536, 98'303, 98'304, 98'305, 128u << 10, 300'001, 512u << 10, (512u << 10) + 1,
    1u << 20};

Wr send(const Buffer& from, uint64_t address, uint32_t length, uint32_t opcode = kOpSend) {
  Wr wr;
  wr.opcode = opcode;
  if (length) wr.sges = {{address, length, from.lkey}};
  return wr;
}

void everySize(Payload payload) {
  LocalConnection w({}, {}, {}, payload);
  Buffer from(*w.a, 1u << 20, kAllAccess, 7), to(*w.b, 1u << 20), back(*w.a, 1u << 20);
  for (const uint32_t size : kSizes) {
    check::note = "size";
    check::noteNumber = size;
    std::memset(to.data(), 0xEE, to.size);
    w.qb.receive({{to.at(), uint32_t(to.size), to.lkey}});
    const uint32_t s = w.qa.post(send(from, from.at(), size));
    w.pump();
    only(w.qa.sendCq, s, kOpSend, kWcSuccess);
    CHECK_EQ(w.qb.receiveCq.drain().at(0).length, size);
    CHECK(std::memcmp(from.data(), to.data(), size) == 0);
    CHECK(size == to.size || to.data()[size] == 0xEE);

    std::memset(to.data(), 0xEE, to.size);
    Wr write = send(from, from.at(), size, kOpWrite);
    write.remote = to.at();
    write.rkey = to.rkey;
    const uint32_t wi = w.qa.post(write);
    w.pump();
    only(w.qa.sendCq, wi, kOpWrite, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), size) == 0);
    CHECK(size == to.size || to.data()[size] == 0xEE);

    std::memset(back.data(), 0xEE, back.size);
    Wr read = send(back, back.at(), size, kOpRead);
    read.remote = to.at();
    read.rkey = to.rkey;
    const uint32_t r = w.qa.post(read);
    w.pump();
    only(w.qa.sendCq, r, kOpRead, kWcSuccess, size);
    CHECK(std::memcmp(from.data(), back.data(), size) == 0);
    CHECK(size == back.size || back.data()[size] == 0xEE);
  }
  check::note = "";
  CHECK_EQ(w.net.frames.size(), 0u);
  CHECK_EQ(w.a->counter("retransmitted_pkts") + w.b->counter("retransmitted_pkts"), 0u);
  const uint64_t copied = w.countersA.get(HostCounter::kLocalPulled) + w.countersB.get(HostCounter::kLocalPulled);
  CHECK(payload == Payload::kByReference ? copied > 3u << 20 : copied == 0);
}

}  // namespace

TEST(local_every_size_by_single_copy) { everySize(Payload::kByReference); }
TEST(local_every_size_in_the_ring) { everySize(Payload::kCarried); }

TEST(local_scattered_pieces) {
  LocalConnection w({}, {}, {}, Payload::kByReference);
  Buffer from(*w.a, 200'000, kAllAccess, 3), to(*w.b, 200'000);
  // The pieces are not adjacent. If there are more of them than fit in a reference, they go through the ring.
  for (const uint32_t count : {2u, 4u}) {
    std::vector<Sge> out, in;
    std::vector<uint8_t> expected;
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t length = 20'000 + 777 * i;
      out.push_back({from.at(i * 45'001), length, from.lkey});
      expected.insert(expected.end(), from.data() + i * 45'001, from.data() + i * 45'001 + length);
    }
    in = {{to.at(3), 17'000, to.lkey}, {to.at(50'000), 120'000, to.lkey}};
    w.qb.receive(in);
    Wr wr;
    wr.sges = out;
    w.qa.post(wr);
    w.pump();
    CHECK_EQ(w.qb.receiveCq.drain().at(0).status, kWcSuccess);
    CHECK(std::memcmp(to.data() + 3, expected.data(), 17'000) == 0);
    CHECK(std::memcmp(to.data() + 50'000, expected.data() + 17'000, expected.size() - 17'000) == 0);
  }
}

TEST(local_atomics_immediate_and_protection) {
  LocalConnection w;
  Buffer from(*w.a, 64), to(*w.b, 64);
  *reinterpret_cast<uint64_t*>(to.data()) = 41;
  Wr add = send(from, from.at(), 8, kOpFetchAdd);
  add.remote = to.at();
  add.rkey = to.rkey;
  add.compare = 1;
  const uint32_t i = w.qa.post(add);
  w.pump();
  only(w.qa.sendCq, i, kOpFetchAdd, kWcSuccess, 8);
  CHECK_EQ(*reinterpret_cast<uint64_t*>(to.data()), 42u);
  CHECK_EQ(*reinterpret_cast<uint64_t*>(from.data()), 41u);

  w.qb.receive({{to.at(), 64, to.lkey}});
  Wr immediate = send(from, from.at(), 8);
  immediate.flags |= kSendFlagImmediate | kSendFlagSolicited;
  immediate.immediate = 0x12345678;
  w.qa.post(immediate);
  w.pump();
  const Cqe c = w.qb.receiveCq.drain().at(0);
  CHECK_EQ(c.immediate, 0x12345678u);
  CHECK(c.flags & kCqeFlagSolicited);
  w.qa.sendCq.drain();

  Wr write = send(from, from.at(), 8, kOpWrite);
  write.remote = to.at(60);  // the range ends four bytes too far
  write.rkey = to.rkey;
  const uint32_t bad = w.qa.post(write);
  w.pump();
  only(w.qa.sendCq, bad, kOpWrite, kWcRemoteAccess);
  CHECK_EQ(w.qb.state(), kQpsError);
}

// A full ring stops the senders of both directions at the same time, and loses nothing.
TEST(local_ring_full_is_back_pressure) {
  constexpr uint32_t kCount = 30, kBytes = 128u << 10;
  QpShape shape;
  shape.cqEntries = 256;
  LocalConnection w({}, shape);
  Buffer fromA(*w.a, kBytes, kAllAccess, 5), toA(*w.a, kBytes), fromB(*w.b, kBytes, kAllAccess, 6), toB(*w.b, kBytes);
  for (uint32_t i = 0; i < kCount; i++) {
    w.qa.receive({{toA.at(), kBytes, toA.lkey}});
    w.qb.receive({{toB.at(), kBytes, toB.lkey}});
  }
  for (uint32_t i = 0; i < kCount; i++) {
    w.qa.post(send(fromA, fromA.at(), kBytes));
    w.qb.post(send(fromB, fromB.at(), kBytes));
  }
  CHECK(w.countersA.get(HostCounter::kLocalStalls) > 0 && w.countersB.get(HostCounter::kLocalStalls) > 0);
  CHECK(w.countersA.get(HostCounter::kLocalTx) < kCount);
  w.pump();
  CHECK_EQ(w.qa.sendCq.drain().size(), size_t(kCount));
  CHECK_EQ(w.qb.sendCq.drain().size(), size_t(kCount));
  CHECK_EQ(w.qa.receiveCq.drain().size(), size_t(kCount));
  CHECK_EQ(w.qb.receiveCq.drain().size(), size_t(kCount));
  CHECK(std::memcmp(fromA.data(), toB.data(), kBytes) == 0 && std::memcmp(fromB.data(), toA.data(), kBytes) == 0);
  CHECK_EQ(w.a->counter("retransmitted_pkts") + w.b->counter("retransmitted_pkts"), 0u);
}

// Queue pairs that wait for room can be ended.
TEST(local_stalled_queue_pairs_go_away) {
  LocalConnection w;
  Buffer from(*w.a, 128u << 10);
  {
    TestQp other(*w.a), gone(*w.a), peer(*w.b);
    w.connect(other, peer);
    bring(gone, w.b->gid, peer.qpn, {}, true);
    for (TestQp* qp : {&w.qa, &other, &gone})
      for (int i = 0; i < 6; i++) qp->post(send(from, from.at(), 128u << 10));
    CHECK(w.countersA.get(HostCounter::kLocalStalls) > 0);
    CHECK(other.toState(kQpsReset) == Status::kSuccess);
  }
  w.pump();
  CHECK_EQ(w.qa.state(), kQpsRts);
}

// For a READ, memory that the responder frees between the reference and the copy does not count.
TEST(local_read_is_requested_again_when_memory_was_freed) {
  for (const bool same : {false, true}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    constexpr uint32_t kBytes = 100'000;
    Buffer to(*w.a, kBytes), unrelated(*w.b, 64), from(*w.b, kBytes, kAllAccess, 9);
    Wr read = send(to, to.at(), kBytes, kOpRead);
    read.remote = from.at();
    read.rkey = from.rkey;
    const uint32_t r = w.qa.post(read);
    w.b->step();  // b references its memory
    CHECK(w.b->engine.deregisterMr(w.b->pd, same ? from.lkey : unrelated.lkey) == Status::kSuccess);
    if (same) std::memset(from.data(), 0xAB, kBytes);  // the memory is the owner's again
    w.pump();
    CHECK_EQ(w.countersA.get(HostCounter::kLocalPullChanged), 1u);
    if (same) {
      only(w.qa.sendCq, r, kOpRead, kWcRemoteAccess);
    } else {
      only(w.qa.sendCq, r, kOpRead, kWcSuccess, kBytes);
      CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
      // Only payload that was in flight goes through the ring.
      const uint64_t before = w.countersA.get(HostCounter::kLocalPulled);
      w.qa.post(read);
      w.pump();
      CHECK_EQ(w.countersA.get(HostCounter::kLocalPulled) - before, uint64_t(kBytes));
    }
  }
}

// For SEND and WRITE, memory that the sender freed before the copy is not copied, and the message fails at the sender.
TEST(local_send_from_memory_given_back) {
  for (const uint32_t opcode : {kOpSend, kOpWrite}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    constexpr uint32_t kBytes = 100'000;
    Buffer from(*w.a, kBytes, kAllAccess, 4), to(*w.b, kBytes);
    w.qb.receive({{to.at(), kBytes, to.lkey}});
    Wr wr = send(from, from.at(), kBytes, opcode);
    wr.remote = to.at();
    wr.rkey = to.rkey;
    const uint32_t i = w.qa.post(wr);
    CHECK(w.a->engine.deregisterMr(w.a->pd, from.lkey) == Status::kSuccess);
    w.pump();
    only(w.qa.sendCq, i, opcode, kWcLocalProtection);
    CHECK_EQ(w.qb.receiveCq.drain().size(), 0u);
    CHECK_EQ(w.countersB.get(HostCounter::kLocalPullChanged), 1u);
  }
}

// A queue pair that ends withdraws the memory that its packets have referenced.
TEST(local_flushed_send_is_not_copied) {
  LocalConnection w({}, {}, {}, Payload::kByReference);
  constexpr uint32_t kBytes = 100'000;
  Buffer from(*w.a, kBytes, kAllAccess, 4), to(*w.b, kBytes);
  w.qb.receive({{to.at(), kBytes, to.lkey}});
  w.qa.post(send(from, from.at(), kBytes));
  CHECK(w.qa.toState(kQpsError) == Status::kSuccess);
  CHECK_EQ(w.qa.sendCq.drain().at(0).status, kWcFlushed);
  std::memset(from.data(), 0xCD, kBytes);
  w.pump();
  CHECK_EQ(w.qb.receiveCq.drain().size(), 0u);
}

// A queue pair that ends also withdraws its READ responses: its program may now use the memory for something else,
// though the key is still valid.
TEST(local_response_of_a_connection_that_ended_is_not_copied) {
  for (const uint32_t state : {kQpsError, kQpsReset}) {
    LocalConnection w({}, {}, {}, Payload::kByReference);
    constexpr uint32_t kBytes = 100'000;
    Buffer to(*w.a, kBytes), from(*w.b, kBytes, kAllAccess, 9);
    Wr read = send(to, to.at(), kBytes, kOpRead);
    read.remote = from.at();
    read.rkey = from.rkey;
    const uint32_t r = w.qa.post(read);
    w.b->step();  // b references its memory
    CHECK(w.qb.toState(state) == Status::kSuccess);
    std::memset(from.data(), 0xCD, kBytes);
    w.pump();
    CHECK_EQ(w.countersA.get(HostCounter::kLocalPullChanged), 1u);
    CHECK(w.until([&] { return w.qa.sendCq.written() != 0; }));
    only(w.qa.sendCq, r, kOpRead, kWcTimeoutRetry);
  }
}

// The peer has not mapped the referenced memory. From then on, the payload goes through the ring.
TEST(local_copy_that_fails_goes_on_in_the_ring) {
  LocalConnection w({}, {}, {}, Payload::kByReference);
  constexpr uint32_t kBytes = 300'000;
  Buffer from(*w.a, kBytes, kAllAccess, 4), to(*w.b, kBytes);
  w.pa->maps.clear();
  w.pb->maps.clear();
  for (int round = 0; round < 3; round++) {
    std::memset(to.data(), 0, kBytes);
    w.qb.receive({{to.at(), kBytes, to.lkey}});
    const uint32_t i = w.qa.post(send(from, from.at(), kBytes));
    w.pump();
    only(w.qa.sendCq, i, kOpSend, kWcSuccess);
    CHECK_EQ(w.qb.receiveCq.drain().at(0).length, kBytes);
    CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
    std::memset(from.data(), round, kBytes);
    Wr read = send(from, from.at(), kBytes, kOpRead);
    read.remote = to.at();
    read.rkey = to.rkey;
    const uint32_t r = w.qa.post(read);
    w.pump();
    only(w.qa.sendCq, r, kOpRead, kWcSuccess, kBytes);
    CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
  }
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPullFailed), 1u);
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPulled), 0u);
  CHECK_EQ(w.qa.state(), kQpsRts);
}

// If the peer has stopped, nothing is retransmitted, and the message fails with the usual status at the usual time.
TEST(local_stopped_peer_ends_in_timeout) {
  Link2 l;
  l.retries = 3;
  LocalConnection w(l);
  Buffer from(*w.a, 8);
  const uint32_t i = w.qa.post(send(from, from.at(), 8));
  const uint64_t start = w.clock.time, timeout = wire::ackNanoseconds(l.ackTimeout);
  while (w.qa.sendCq.written() == 0 && w.a->deadline() != UINT64_MAX) {
    w.clock.time = std::max<uint64_t>(w.clock.time, w.a->deadline());
    w.a->step();
  }
  only(w.qa.sendCq, i, kOpSend, kWcTimeoutRetry);
  CHECK_EQ(w.a->counter("retransmitted_pkts"), 0u);
  CHECK(w.clock.time - start >= 4 * timeout && w.clock.time - start <= 6 * timeout);
}

// A peer that resumes in time has lost nothing, and received nothing twice.
TEST(local_stopped_peer_goes_on) {
  LocalConnection w;
  Buffer from(*w.a, 8), to(*w.b, 8);
  w.qb.receive({{to.at(), 8, to.lkey}});
  const uint32_t i = w.qa.post(send(from, from.at(), 8));
  for (int n = 0; n < 5; n++) {
    w.clock.time = std::max<uint64_t>(w.clock.time, w.a->deadline());
    w.a->step();
  }
  w.pump();
  only(w.qa.sendCq, i, kOpSend, kWcSuccess);
  CHECK_EQ(w.b->counter("duplicate_request") + w.a->counter("retransmitted_pkts"), 0u);
}

TEST(local_receiver_not_ready) {
  LocalConnection w;
  constexpr uint32_t kBytes = 50'000;
  Buffer from(*w.a, kBytes, kAllAccess, 2), to(*w.b, kBytes);
  const uint32_t i = w.qa.post(send(from, from.at(), kBytes));
  w.pump();
  CHECK_EQ(w.qa.sendCq.written(), 0u);
  w.qb.receive({{to.at(), kBytes, to.lkey}});
  CHECK(w.until([&] { return w.qa.sendCq.written() == 1; }));
  only(w.qa.sendCq, i, kOpSend, kWcSuccess);
  CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
  CHECK(w.b->counter("send_rnr_err") >= 1);
}

// A connection changes its path after SQD to one with another packet size. Waiting messages are segmented again.
TEST(local_connection_moves_to_the_wire) {
  LocalConnection w;
  constexpr uint32_t kBytes = 200'000;
  Buffer from(*w.a, kBytes, kAllAccess, 5), to(*w.b, kBytes), back(*w.a, 8);
  w.qb.receive({{to.at(), kBytes, to.lkey}});
  Wr read = send(back, back.at(), 8, kOpRead);
  read.remote = to.at();
  read.rkey = to.rkey;
  w.qa.post(read);
  Wr fenced = send(from, from.at(), kBytes);
  fenced.flags |= kSendFlagFence;
  w.qa.post(fenced);
  for (TestQp* qp : {&w.qa, &w.qb}) CHECK(qp->toState(kQpsSqd) == Status::kSuccess);
  w.pump();
  only(w.qa.sendCq, 0, kOpRead, kWcSuccess, 8);
  w.a->link.local = w.b->link.local = false;
  for (TestQp* qp : {&w.qa, &w.qb}) {
    QpAttributes a;
    CHECK(qp->node.engine.queryQp(qp->handle, &a) == Status::kSuccess);
    CHECK(qp->modify(qpmask::kPath, a) == Status::kSuccess);
  }
  for (TestQp* qp : {&w.qa, &w.qb}) CHECK(qp->toState(kQpsRts) == Status::kSuccess);
  w.pump();
  only(w.qa.sendCq, 1, kOpSend, kWcSuccess);
  CHECK_EQ(w.qb.receiveCq.drain().at(0).length, kBytes);
  CHECK(std::memcmp(from.data(), to.data(), kBytes) == 0);
}

// The report that a payload could not be copied is still waiting for room in the ring when the connection changes its
// path. It no longer has a receiver.
TEST(local_connection_moves_while_it_has_something_to_report) {
  QpShape shape;
  shape.sendEntries = 2048;
  shape.cqEntries = 4096;
  EngineOptions options;
  options.window = 4096;
  LocalConnection w({}, {}, options, Payload::kByReference);
  TestQp xa(*w.a, shape), xb(*w.b, shape);
  w.connect(xa, xb);
  w.pump();
  constexpr uint32_t kBytes = 100'000;
  Buffer from(*w.a, kBytes, kAllAccess, 5), to(*w.b, kBytes), word(*w.a, 8);
  {
    const Buffer unrelated(*w.a, 64);
    w.qa.post(send(from, from.at(), kBytes));
  }
  w.qb.receive({{to.at(), kBytes, to.lkey}});
  Wr write = send(to, to.at(), 8, kOpWrite);
  write.remote = word.at();
  write.rkey = word.rkey;
  for (int i = 0; i < 2000; i++) xb.post(write);
  CHECK(w.pb->stalled);
  CHECK(w.qb.toState(kQpsSqd) == Status::kSuccess);
  w.b->step();
  CHECK_EQ(w.countersB.get(HostCounter::kLocalPullChanged), 1u);
  w.b->link.local = false;
  QpAttributes a;
  CHECK(w.b->engine.queryQp(w.qb.handle, &a) == Status::kSuccess);
  CHECK(w.qb.modify(qpmask::kPath, a) == Status::kSuccess);
  CHECK(w.qb.toState(kQpsRts) == Status::kSuccess);
  w.pump();
  CHECK_EQ(w.qb.state(), kQpsRts);
  CHECK_EQ(w.qb.receiveCq.written(), 0u);
}

// The peer's process has ended in order, and its pair is closed, but its DREQ may still be in flight. Requests that are
// posted until it arrives wait for it, because the shared memory is gone.
TEST(local_pair_is_closed_before_its_connections_end) {
  for (const Payload payload : {Payload::kByReference, Payload::kCarried}) {
    for (const uint32_t bytes : {8u, 100'000u, 1u << 20}) {
      for (const bool reads : {false, true}) {
        check::note = "bytes";
        check::noteNumber = bytes;
        LocalConnection w({}, {}, {}, payload);
        Buffer from(*w.a, 1u << 20), to(*w.b, 1u << 20);
        // The peer's READ of this side's memory is accepted, but its response finds no room.
        w.pump();
        if (reads) {
          for (int i = 0; i < 4; i++) {
            Wr read = send(to, to.at(), 1u << 20, kOpRead);
            read.remote = from.at();
            read.rkey = from.rkey;
            w.qb.post(read);
          }
          w.a->step();
        }
        Wr wr = send(from, from.at(), bytes, kOpWrite);
        wr.remote = to.at();
        wr.rkey = to.rkey;
        for (int i = 0; i < 4; i++) w.qa.post(wr);
        w.a->link.ended = {2};
        w.pa->close();
        w.a->step();
        CHECK_EQ(w.qa.state(), kQpsRts);
        const uint32_t last = w.qa.post(wr);
        w.a->step();
        for (int i = 0; i < 100 && w.qa.state() == kQpsRts; i++) w.clock.time += 10'000'000, w.a->step();
        CHECK_EQ(w.qa.state(), kQpsError);
        const auto ended = w.qa.sendCq.drain();
        if (CHECK_EQ(ended.size(), size_t(last + 1))) CHECK_EQ(ended.back().status, kWcFlushed);
      }
    }
  }
  check::note = "";
}

// There are enough small messages to fill more than half of the ring, which is more than a window. A closed pair is not
// checked for room.
TEST(local_pair_is_closed_with_its_ring_full) {
  QpShape shape;
  shape.sendEntries = 1024;
  shape.cqEntries = 2048;
  EngineOptions options;
  options.window = 200;
  LocalConnection w({}, shape, options);
  Buffer from(*w.a, 120), to(*w.b, 120);
  Wr wr = send(from, from.at(), 120, kOpWrite);
  wr.remote = to.at();
  wr.rkey = to.rkey;
  for (int i = 0; i < 300; i++) w.qa.post(wr);
  CHECK_EQ(w.countersA.get(HostCounter::kLocalTx), 200u);
  CHECK(w.pa->crowded());
  w.a->link.ended = {2};
  w.pa->close();
  w.a->step();
  w.qa.post(wr);
  for (int i = 0; i < 100 && w.qa.state() == kQpsRts; i++) w.clock.time += 10'000'000, w.a->step();
  CHECK_EQ(w.qa.sendCq.drain().size(), 301u);
}

// No packet is sent until its path is known.
TEST(local_waits_for_the_pair) {
  for (const bool refused : {false, true}) {
    LocalWorld w;
    w.pa->state = LocalPair::State::kRequested;
    TestQp qa(*w.a), qb(*w.b);
    if (refused) w.b->link.pair.reset();
    w.connect(qa, qb);
    Buffer from(*w.a, 3000, kAllAccess, 8), to(*w.b, 3000);
    qb.receive({{to.at(), 3000, to.lkey}});
    const uint32_t i = qa.post(send(from, from.at(), 3000));
    w.pump();
    CHECK_EQ(w.countersA.get(HostCounter::kLocalTx) + w.a->counter("sent_pkts"), 0u);
    w.pa->state = refused ? LocalPair::State::kRefused : LocalPair::State::kUp;
    {
      std::lock_guard<EngineLock> lock(w.a->engine.lock());
      w.a->engine.onLocalPair(*w.pa);
    }
    w.pump();
    only(qa.sendCq, i, kOpSend, kWcSuccess);
    CHECK(std::memcmp(from.data(), to.data(), 3000) == 0);
    CHECK_EQ(w.a->counter("sent_pkts"), refused ? 3u : 1u);  // of 1024 bytes on the wire
  }
}

// A packet from the network for a connection on the local link does not belong to it.
TEST(local_connection_accepts_nothing_from_the_network) {
  LocalConnection w;
  Frame f;
  f.source = w.a->gid;
  f.destination = f.port = w.b->gid;
  f.bytes.resize(12);
  wire::Bth bth;
  bth.opcode = wire::kSelectors[wire::selector(wire::kFirst | wire::kLast | wire::kSend)];
  bth.destinationQpn = w.qb.qpn;
  bth.psn = 100;
  wire::emitBth(f.bytes.data(), bth);
  w.net.send(f);
  w.pump();
  CHECK_EQ(w.b->counter("wrong_address"), 1u);
}
