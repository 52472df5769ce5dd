// Tests of datagrams: address handles, Q_Keys, the GRH area, dropped and failing datagrams, and multicast groups.
#include "ud_world.h"

using namespace world;

TEST(ud_datagram_and_its_grh) {
  for (const uint32_t length : {0u, 1u, 99u, 1024u}) {
    check::note = "length";
    check::noteNumber = length;
    UdWorld w;
    w.net.logging = true;
    w.receive(w.qb, 0, 40 + length);
    w.qa.post(w.send(5, length, w.qb.qpn, kSendFlagSignaled | kSendFlagImmediate | kSendFlagSolicited));
    only(w.qa.sendCq, 0, kOpSend, kWcSuccess);  // the datagram is sent, without an acknowledgement
    w.pump();
    const auto got = w.qb.receiveCq.drain();
    if (!CHECK_EQ(got.size(), 1u)) continue;
    CHECK(got[0].status == kWcSuccess && got[0].length == 40 + length && got[0].sourceQpn == w.qa.qpn);
    CHECK_EQ(got[0].flags, kCqeFlagReceiveQueue | kCqeFlagGrh | kCqeFlagImmediate | kCqeFlagSolicited);
    CHECK_EQ(got[0].immediate, 0x4321u);
    CHECK(std::memcmp(w.to.data() + 40, w.from.data() + 5, length) == 0);
    if (!CHECK_EQ(w.net.log.size(), 1u)) continue;
    const Frame& f = w.net.log[0];
    CHECK(f.bth().opcode == 0x65 && f.bth().psn == 77 && !f.bth().ackRequest && f.bth().solicited);
    CHECK_EQ(wire::load32(f.bytes.data() + 12), kKey);
    CHECK_EQ(wire::load32(f.bytes.data() + 16), w.qa.qpn);
    // Checks for 20 zero bytes and an IPv4 header with a valid checksum.
    const uint8_t* grh = w.to.data();
    for (int i = 0; i < 20; i++) CHECK_EQ(grh[i], 0);
    CHECK_EQ(grh[20], 0x45);
    CHECK_EQ(wire::load16(grh + 22), 20 + 8 + f.bytes.size() + 4);
    CHECK_EQ(grh[29], 17);
    CHECK(std::memcmp(grh + 32, w.a->gid.raw.data() + 12, 4) == 0);
    CHECK(std::memcmp(grh + 36, w.b->gid.raw.data() + 12, 4) == 0);
    uint32_t sum = 0;
    for (int i = 20; i < 40; i += 2) sum += wire::load16(grh + i);
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    CHECK_EQ(sum, 0xFFFFu);
    CHECK(w.a->deadline() == UINT64_MAX && w.b->deadline() == UINT64_MAX);
  }
}

TEST(ud_grh_of_ipv6) {
  UdWorld w;
  w.receive(w.qb, 0, 100);
  PacketMeta meta;
  meta.source.raw = {0xfd, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  meta.destination.raw = {0xfd, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8};
  meta.trafficClass = 0xA4;
  meta.hopLimit = 33;
  uint8_t packet[12 + 8 + 8] = {};
  wire::Bth bth;
  bth.opcode = 0x64;
  bth.destinationQpn = w.qb.qpn;
  wire::emitBth(packet, bth);
  wire::emitDeth(packet + 12, {kKey, 0x123456});
  packet[20] = 0x77;
  {
    std::lock_guard<EngineLock> lock(w.b->engine.lock());
    w.b->engine.onPacket(meta, packet, sizeof packet);
  }
  only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 48);
  const uint8_t expected[8] = {0x6A, 0x40, 0, 0, 0, 8 + 28 + 4, 17, 33};
  CHECK(std::memcmp(w.to.data(), expected, 8) == 0);
  CHECK(std::memcmp(w.to.data() + 8, meta.source.raw.data(), 16) == 0);
  CHECK(std::memcmp(w.to.data() + 24, meta.destination.raw.data(), 16) == 0);
  CHECK_EQ(w.to.data()[40], 0x77);
}

TEST(ud_qkeys) {
  UdWorld w;
  w.receive(w.qb, 0, 500);
  Wr wrong = w.send(0, 10, w.qb.qpn);
  wrong.remoteQkey = kKey + 1;
  w.qa.post(wrong);
  w.pump();
  CHECK_EQ(w.b->counter("bad_qkey"), 1u);
  CHECK_EQ(w.qb.receiveCq.written(), 0u);
  // The high bit selects the QP's own Q_Key.
  wrong.remoteQkey = 0x80000000u | 5;
  w.qa.post(wrong);
  w.pump();
  only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 50);
}

TEST(ud_drops) {
  UdWorld w;
  w.qa.post(w.send(0, 100, w.qb.qpn));  // no receive is posted
  w.pump();
  CHECK_EQ(w.b->counter("dropped_message"), 1u);
  w.receive(w.qb, 0, 139);
  w.qa.post(w.send(0, 100, w.qb.qpn));  // the datagram is one byte too long
  w.pump();
  CHECK_EQ(w.b->counter("dropped_message"), 2u);
  CHECK_EQ(w.to.data()[20], 0);
  CHECK_EQ(w.qb.stateWord(), kQpsRts);
  w.qa.post(w.send(0, 99, w.qb.qpn));  // the receive is still there
  w.pump();
  only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 139);
  // Local errors of the receiver affect only itself.
  w.qb.receive({{w.to.at(), 200, w.to.lkey ^ 1}});
  w.qa.post(w.send(0, 99, w.qb.qpn));
  w.pump();
  only(w.qb.receiveCq, 1, kOpReceive, kWcLocalProtection);
  CHECK_EQ(w.qb.stateWord(), kQpsError);
}

TEST(ud_send_errors) {
  struct Case {
    uint32_t status;
    std::function<void(UdWorld&, Wr&)> spoil;
  };
  const Case cases[] = {
      {kWcLocalLength, [](UdWorld&, Wr& r) { r.sges[0].length = 1025; }},
      {kWcLocalOp, [](UdWorld&, Wr& r) { r.ah ^= 1u << 20; }},
      {kWcLocalOp, [](UdWorld& w, Wr&) { w.a->engine.destroyAh(w.ah); }},
      {kWcLocalOp, [](UdWorld&, Wr& r) { r.opcode = kOpWrite; }},
      {kWcLocalOp, [](UdWorld&, Wr& r) { r.opcode = kOpBindWindow; }},
      {kWcLocalOp,
       [](UdWorld& w, Wr& r) {
         Handle pd;
         CHECK(w.a->engine.allocatePd(w.a->kernel, &pd) == Status::kSuccess);
         Path path;
         path.source = w.a->gid;
         path.destination = w.b->gid;
         CHECK(w.a->engine.createAh(pd, path, 1024, &r.ah) == Status::kSuccess);
       }},
      {kWcLocalProtection, [](UdWorld&, Wr& r) { r.sges[0].lkey ^= 1; }},
  };
  for (const Case& c : cases) {
    UdWorld w;
    w.net.logging = true;
    Wr bad = w.send(0, 100, w.qb.qpn, 0);
    c.spoil(w, bad);
    w.qa.post(bad);
    only(w.qa.sendCq, 0, bad.opcode, c.status);
    CHECK_EQ(w.qa.stateWord(), kQpsSqError);
    CHECK_EQ(w.net.log.size(), 0u);
    CHECK(w.qa.toState(kQpsRts) == Status::kSuccess);
  }
}

TEST(ud_address_handles) {
  World w;
  Engine& e = w.a->engine;
  Path path;
  Handle h = 0;
  CHECK(e.createAh(w.a->pd + 1, path, 1024, &h) == Status::kInvalidHandle);
  for (const uint32_t mtu : {0u, 128u, 1000u, 8192u})
    CHECK(e.createAh(w.a->pd, path, mtu, &h) == Status::kInvalidParameter);
  path.source = w.a->gid;
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kInvalidAddress);
  path.destination.raw[15] = 7;  // IPv6
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kInvalidAddress);
  path.destination = w.b->gid;
  path.source = group(1);  // a group is not a source address
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kInvalidAddress);
  path.source = w.b->gid;  // no local interface has it
  path.destination = group(1);
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kInvalidAddress);
  path.source = w.a->gid;
  path.destination = w.b->gid;
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kSuccess);
  CHECK_EQ(e.ahCount(), 1u);
  CHECK(e.deallocatePd(w.a->pd) == Status::kDeviceBusy);
  CHECK(e.destroyAh(h) == Status::kSuccess);
  CHECK(e.destroyAh(h) == Status::kInvalidHandle);
  CHECK(e.createAh(w.a->pd, path, 1024, &h) == Status::kSuccess);
  e.detachKernel(w.a->kernel);
  CHECK_EQ(e.ahCount(), 0u);
}

TEST(ud_with_a_shared_receive_queue) {
  UdWorld w;
  TestSrq srq(*w.b);
  TestQp q1(*w.b, ud(srq.handle), 1), q2(*w.b, ud(srq.handle), 2);
  bringUd(q1);
  bringUd(q2, kKey, kQpsRtr);
  srq.receive({{w.to.at(), 100, w.to.lkey}});
  srq.receive({{w.to.at(1000), 200, w.to.lkey}});
  w.qa.post(w.send(0, 60, q2.qpn));
  w.qa.post(w.send(0, 60, q1.qpn));
  w.pump();
  only(q2.receiveCq, 0, kOpReceive, kWcSuccess, 100);
  only(q1.receiveCq, 1, kOpReceive, kWcSuccess, 100);
}

TEST(ud_multicast) {
  UdWorld w;
  TestQp second(*w.b, ud()), otherKey(*w.b, ud()), outside(*w.b, ud());
  bringUd(second);
  bringUd(otherKey, kKey + 1);
  bringUd(outside);
  Engine& e = w.b->engine;
  const Gid g = group(1);
  CHECK(e.attachMulticast(w.qb.handle, w.b->gid, 2) == Status::kInvalidAddress);
  CHECK(e.attachMulticast(w.qb.handle + 99, g, 2) == Status::kInvalidHandle);
  CHECK(e.attachMulticast(w.qb.handle, g, 1) == Status::kNetworkUnreachable);
  for (TestQp* qp : {&w.qb, &second, &otherKey}) CHECK(e.attachMulticast(qp->handle, g, 2) == Status::kSuccess);
  CHECK(e.attachMulticast(w.qb.handle, g, 2) == Status::kInvalidDeviceState);
  CHECK(w.a->engine.attachMulticast(w.qa.handle, g, 1) == Status::kSuccess);
  CHECK_EQ(w.net.members.size(), 2u);
  for (TestQp* qp : {&w.qb, &second, &otherKey, &outside}) w.receive(*qp, 0, 1000);
  w.qa.receive({{w.from.at(4000), 1000, w.from.lkey}});
  Wr toGroup = w.send(0, 123, 0xFFFFFF);
  toGroup.ah = UdWorld::handle(*w.a, g);
  w.qa.post(toGroup);
  w.pump();
  only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 163);
  only(second.receiveCq, 0, kOpReceive, kWcSuccess, 163);
  only(w.qa.receiveCq, 0, kOpReceive, kWcSuccess, 163);  // this process receives its own datagram
  CHECK_EQ(otherKey.receiveCq.written() + outside.receiveCq.written(), 0u);
  CHECK_EQ(w.b->counter("bad_qkey"), 1u);
  CHECK(std::memcmp(w.to.data() + 36, g.raw.data() + 12, 4) == 0);
  // The link stays in the group until the last member has left.
  CHECK(e.detachMulticast(second.handle, g, 2) == Status::kSuccess);
  CHECK(e.detachMulticast(second.handle, g, 2) == Status::kInvalidParameter);
  CHECK(e.detachMulticast(otherKey.handle, g, 2) == Status::kSuccess);
  CHECK_EQ(w.net.members.size(), 2u);
  CHECK(e.destroyQp(w.qb.handle) == Status::kSuccess);
  CHECK_EQ(w.net.members.size(), 1u);
  CHECK(e.attachMulticast(second.handle, g, 0) == Status::kInvalidParameter);
  Pair rc;
  CHECK(rc.b->engine.attachMulticast(rc.qb.handle, g, 2) == Status::kInvalidDeviceRequest);
}

// A member on one interface receives nothing of the group on another.
TEST(ud_multicast_by_interface) {
  UdWorld w;
  CHECK(w.b->engine.attachMulticast(w.qb.handle, group(1), 2) == Status::kSuccess);
  w.receive(w.qb, 0, 100);
  uint8_t packet[12 + 8 + 8] = {};
  wire::Bth bth;
  bth.opcode = wire::kOpUdSendOnly;
  bth.destinationQpn = wire::kMulticastQpn;
  wire::emitBth(packet, bth);
  wire::emitDeth(packet + 12, {kKey, 0x123456});
  PacketMeta meta;
  meta.source = w.a->gid;
  meta.destination = group(1);
  for (const uint32_t interface : {0u, 3u, 2u}) {
    CHECK_EQ(w.qb.receiveCq.written(), 0u);
    meta.scopeId = interface;
    std::lock_guard<EngineLock> lock(w.b->engine.lock());
    w.b->engine.onPacket(meta, packet, sizeof packet);
  }
  only(w.qb.receiveCq, 0, kOpReceive, kWcSuccess, 48);
  CHECK_EQ(w.b->counter("unknown_qp"), 2u);
  // A group's QPN at a host's own address reaches no queue pair, and a group ignores a connection's packet.
  meta.destination = w.b->gid;
  bth.opcode = 0x04;
  {
    std::lock_guard<EngineLock> lock(w.b->engine.lock());
    w.b->engine.onPacket(meta, packet, sizeof packet);
    meta.destination = group(1);
    wire::emitBth(packet, bth);
    w.b->engine.onPacket(meta, packet, sizeof packet);
  }
  CHECK_EQ(w.b->counter("unknown_qp"), 3u);
  CHECK_EQ(w.b->counter("wrong_transport"), 1u);
}

TEST(ud_groups_are_limited) {
  EngineOptions o;
  o.maxGroups = 2;
  World w(o);
  TestQp qp(*w.a, ud()), other(*w.a, ud());
  Engine& e = w.a->engine;
  for (uint8_t n : {uint8_t(1), uint8_t(2)}) CHECK(e.attachMulticast(qp.handle, group(n), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(qp.handle, group(3), 1) == Status::kInsufficientResources);
  CHECK(e.attachMulticast(other.handle, group(2), 1) == Status::kSuccess);
  CHECK(e.detachMulticast(qp.handle, group(1), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(qp.handle, group(3), 1) == Status::kSuccess);
  e.detachKernel(w.a->kernel);
  CHECK_EQ(w.net.members.size(), 0u);
}

TEST(ud_address_handles_are_limited) {
  EngineOptions o;
  o.maxAh = 2;
  World w(o);
  Path path;
  path.source = w.a->gid;
  path.destination = w.b->gid;
  Engine& e = w.a->engine;
  Handle first = 0, second = 0, third = 0;
  CHECK(e.createAh(w.a->pd, path, 1024, &first) == Status::kSuccess);
  CHECK(e.createAh(w.a->pd, path, 1024, &second) == Status::kSuccess);
  CHECK(e.createAh(w.a->pd, path, 1024, &third) == Status::kInsufficientResources);
  CHECK_EQ(e.ahCount(), 2u);
  CHECK(e.destroyAh(first) == Status::kSuccess);
  CHECK(e.createAh(w.a->pd, path, 1024, &third) == Status::kSuccess);
}

TEST(ud_members_of_a_group_are_limited) {
  EngineOptions o;
  o.maxGroupQps = 2;
  World w(o);
  TestQp one(*w.a, ud()), two(*w.a, ud()), three(*w.a, ud());
  Engine& e = w.a->engine;
  for (TestQp* qp : {&one, &two}) CHECK(e.attachMulticast(qp->handle, group(1), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(three.handle, group(1), 1) == Status::kInsufficientResources);
  CHECK(e.attachMulticast(one.handle, group(1), 1) == Status::kInvalidDeviceState);
  CHECK(e.attachMulticast(three.handle, group(2), 1) == Status::kSuccess);
  CHECK(e.detachMulticast(one.handle, group(1), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(three.handle, group(1), 1) == Status::kSuccess);
}

TEST(ud_attachments_are_limited) {
  EngineOptions o;
  o.maxAttached = 3;
  World w(o);
  TestQp one(*w.a, ud()), two(*w.a, ud());
  Engine& e = w.a->engine;
  for (uint8_t n : {uint8_t(1), uint8_t(2)}) CHECK(e.attachMulticast(one.handle, group(n), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(two.handle, group(1), 1) == Status::kSuccess);
  // Neither another group nor another member is affected.
  CHECK(e.attachMulticast(two.handle, group(3), 1) == Status::kInsufficientResources);
  CHECK(e.attachMulticast(two.handle, group(2), 1) == Status::kInsufficientResources);
  CHECK_EQ(w.net.members.size(), 2u);
  // A QP that is destroyed frees its slots.
  CHECK(e.destroyQp(one.handle) == Status::kSuccess);
  for (uint8_t n : {uint8_t(2), uint8_t(3)}) CHECK(e.attachMulticast(two.handle, group(n), 1) == Status::kSuccess);
  CHECK(e.attachMulticast(two.handle, group(4), 1) == Status::kInsufficientResources);
}

TEST(fuzz_ud) {
  Random r(99);
  for (int round = 0; round < 150; round++) {
    check::note = "round";
    check::noteNumber = uint64_t(round);
    UdWorld w;
    CHECK(w.b->engine.attachMulticast(w.qb.handle, group(1), 2) == Status::kSuccess);
    for (int i = 0; i < 60; i++) {
      w.receive(w.qb, r.below(8000), r.below(4000));
      Frame f;
      f.source = w.a->gid;
      f.destination = f.port = w.b->gid;
      f.bytes.resize(r.below(3) ? 20 + r.below(30) : r.below(5000));
      for (uint8_t& byte : f.bytes) byte = uint8_t(r.next());
      if (f.bytes.size() >= 20) {
        wire::Bth bth;
        bth.opcode = r.below(6) ? uint8_t(0x64 + r.below(2)) : uint8_t(r.next());
        bth.pad = uint8_t(r.below(4));
        bth.destinationQpn = r.below(4) ? w.qb.qpn : 0xFFFFFF;
        wire::emitBth(f.bytes.data(), bth);
        wire::emitDeth(f.bytes.data() + 12, {r.below(8) ? kKey : r.next(), r.next()});
        if (bth.destinationQpn == 0xFFFFFF && r.below(2)) f.destination = group(1);
      }
      w.net.frames.push_back(f);
      Wr wr = w.send(r.below(4000), r.below(1400), r.below(2) ? w.qb.qpn : r.next(), 0);
      if (r.below(6) == 0) wr.ah = r.next();
      uint32_t* words = w.qa.sendSlot(w.qa.sendProducer);
      w.qa.write(wr);
      if (r.below(3) == 0) words[r.below(w.qa.sendStride / 4)] = r.next();
      w.a->engine.doorbell(w.qa.handle);
      w.pump();
      for (const Cqe& c : w.qb.receiveCq.drain())
        if (c.status == kWcSuccess) CHECK(c.length >= 40 && c.length <= 40 + 4096);
      w.qa.sendCq.drain();
      if (w.qa.stateWord() == kQpsSqError) w.qa.toState(kQpsRts);
    }
  }
}
