// Tests the translation of WQEs of the rings to work requests of libibverbs, and of its completions to CQEs.
#include <arpa/inet.h>

#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

namespace {

// Posts one WQE and returns the work request that was passed to the device.
fake::Send posted(Ready& r, const Wqe& wqe) {
  write(r.qp, wqe);
  ringSends(r.qp.handle);
  std::vector<fake::Send> sends = r.world.rdma.takeSends(r.qp.qpn);
  CHECK_EQ(sends.size(), 1u);
  return sends.empty() ? fake::Send{} : sends[0];
}

// Checks that the queue pair failed with this request, which never reached the device.
void refused(const Wqe& wqe, uint32_t status, uint32_t type = kQptRc) {
  Ready r(16, type);
  write(r.qp, wqe);
  ringSends(r.qp.handle);
  CHECK(r.world.rdma.takeSends(r.qp.qpn).empty());
  const std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 1u);
  if (cqes.size() == 1) CHECK_EQ(cqes[0].status(), status);
  CHECK_EQ(r.qp.state(), kQpsError);
  const Seen event = r.world.await(Event::Kind::kQp);
  CHECK_EQ(event.event, static_cast<uint32_t>(QpEvent::kFatal));
  CHECK_EQ(event.reason, status);
  CHECK_EQ(event.token, r.qp.token);
}

}  // namespace

TEST(verbs_flags_and_sges_of_a_send) {
  Ready r;
  Wqe wqe;
  wqe.flags = kSendFlagSignaled | kSendFlagFence | kSendFlagSolicited;
  wqe.sges = {{0x1122334455667788, {5, 0x100}}, {0x99, {6, 0x200}}};
  const fake::Send send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrSend);
  CHECK_EQ(send.wr.send_flags, kSendSignaled | kSendFence | nd::verbs::kSendSolicited);
  CHECK_EQ(send.sges.size(), 2u);
  CHECK_EQ(send.sges[0].addr, 0x1122334455667788u);
  CHECK_EQ(send.sges[0].length, 5u);
  CHECK_EQ(send.sges[1].lkey, 0x200u);
  wqe = Wqe();
  wqe.flags = 0;
  CHECK_EQ(posted(r, wqe).wr.send_flags, 0u);
}

TEST(verbs_every_opcode) {
  Ready r;
  Wqe wqe;
  wqe.flags = kSendFlagSignaled | kSendFlagImmediate;
  wqe.immediate = 0x01020304;
  CHECK_EQ(posted(r, wqe).wr.opcode, kWrSendImm);
  wqe.opcode = kOpWrite;
  wqe.remote = 0xABCDEF0123456789;
  wqe.rkey = 0x4242;
  fake::Send send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrWriteImm);
  CHECK_EQ(send.wr.immediate, htonl(0x01020304));
  CHECK_EQ(send.wr.wr.rdma.remote_addr, 0xABCDEF0123456789u);
  CHECK_EQ(send.wr.wr.rdma.rkey, 0x4242u);
  wqe.flags = kSendFlagSignaled;
  send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrWrite);
  CHECK_EQ(send.wr.immediate, 0u);  // not that of the previous request
  wqe.opcode = kOpRead;
  CHECK_EQ(posted(r, wqe).wr.opcode, kWrRead);
  wqe.opcode = kOpCompareExchange;
  wqe.sges = {{0, {8, 1}}};
  wqe.compare = 0x1111222233334444;
  wqe.swap = 0x5555666677778888;
  send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrCompareSwap);
  CHECK_EQ(send.wr.wr.atomic.compare_add, 0x1111222233334444u);
  CHECK_EQ(send.wr.wr.atomic.swap, 0x5555666677778888u);
  CHECK_EQ(send.wr.wr.atomic.rkey, 0x4242u);
  wqe.opcode = kOpFetchAdd;
  CHECK_EQ(posted(r, wqe).wr.opcode, kWrFetchAdd);
  wqe = Wqe();
  wqe.flags = kSendFlagSignaled | kSendFlagInvalidate;
  wqe.immediate = 0x777;
  send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrSendInvalidate);
  CHECK_EQ(send.wr.immediate, 0x777u);  // keys are not in network byte order
}

TEST(verbs_inline_data) {
  Ready r;
  Wqe wqe;
  wqe.flags = kSendFlagSignaled | kSendFlagInline;
  for (int i = 0; i < 100; ++i) wqe.inlined.push_back(static_cast<uint8_t>(i));
  fake::Send send = posted(r, wqe);
  CHECK_EQ(send.wr.send_flags, kSendSignaled | kSendInline);
  CHECK(send.inlined == wqe.inlined);
  wqe.inlined.clear();
  CHECK_EQ(posted(r, wqe).wr.num_sge, 0);
}

TEST(verbs_bind_and_invalidate_a_window) {
  Ready r;
  VerbsHca& host = *r.world.host;
  alignas(64) static uint8_t memory[4096];
  const uint64_t address = reinterpret_cast<uintptr_t>(memory), range = Ranges::all().add(address, sizeof memory);
  uint32_t lkey = 0, rkey = 0, windowKey = 0;
  Handle window = 0;
  CHECK(host.registerMr(r.world.pd, address, sizeof memory, kAccessMwBind | kAccessRemoteWriteBit, &lkey, &rkey) ==
        Status::kSuccess);
  CHECK(host.allocateMw(r.world.pd, &window, &windowKey) == Status::kSuccess);
  Wqe wqe;
  wqe.opcode = kOpBindWindow;
  wqe.rkey = lkey;
  wqe.remote = address + 16;
  wqe.compare = 64;
  wqe.access = kAccessRemoteWriteBit | kAccessRemoteRead;
  wqe.swap = uint64_t{windowKey + 1} << 32 | windowKey;
  const fake::Send send = posted(r, wqe);
  CHECK_EQ(send.wr.opcode, kWrBindMw);
  CHECK_EQ(send.wr.bind_mw.rkey, windowKey + 1);
  CHECK(send.wr.bind_mw.mw != nullptr && send.wr.bind_mw.mw->rkey == windowKey);
  CHECK(send.wr.bind_mw.bind_info.mr != nullptr && send.wr.bind_mw.bind_info.mr->lkey == lkey);
  CHECK_EQ(send.wr.bind_mw.bind_info.addr, address + 16);
  CHECK_EQ(send.wr.bind_mw.bind_info.length, 64u);
  CHECK_EQ(send.wr.bind_mw.bind_info.mw_access_flags, kRemoteWriteBit | kRemoteReadBit);
  r.world.rdma.completeSends(r.qp.qpn, 1);
  CHECK_EQ(poll(r.sendCq).size(), 1u);
  // When the window is bound again, its key is the last one. In lists, each bind has its own key.
  r.world.rdma.takePostSizes();
  for (uint32_t key = windowKey + 1; key < windowKey + 3; ++key) {
    write(r.qp, Wqe());
    wqe.swap = uint64_t{key + 1} << 32 | key;
    write(r.qp, wqe);
  }
  ringSends(r.qp.handle);
  CHECK((r.world.rdma.takePostSizes() == std::vector<int>{1, 2, 1}));
  const std::vector<fake::Send> again = r.world.rdma.takeSends(r.qp.qpn);
  CHECK_EQ(again.size(), 4u);
  if (again.size() == 4) CHECK_EQ(again[3].wr.bind_mw.mw->rkey, windowKey + 2);
  r.world.rdma.completeSends(r.qp.qpn, 4);
  CHECK_EQ(poll(r.sendCq).size(), 4u);
  Wqe invalidate;
  invalidate.opcode = kOpLocalInvalidate;
  invalidate.rkey = windowKey + 3;
  const fake::Send ended = posted(r, invalidate);
  CHECK_EQ(ended.wr.opcode, kWrLocalInvalidate);
  CHECK_EQ(ended.wr.immediate, windowKey + 3);
  r.world.rdma.completeSends(r.qp.qpn, 1);
  CHECK_EQ(poll(r.sendCq).size(), 1u);
  // The peer's Send has ended the binding, so a device of rdma_rxe must not be called again.
  wqe.swap = uint64_t{windowKey + 4} << 32 | (windowKey + 3);
  posted(r, wqe);
  writeReceive(r.qp);
  ringReceives(r.qp.handle);
  ibv_wc wc{};
  wc.wc_flags = kWcWithInv;
  wc.immediate = windowKey + 4;
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, wc));
  CHECK_EQ(poll(r.receiveCq).size(), 1u);
  invalidate.rkey = windowKey + 4;
  write(r.qp, invalidate);
  ringSends(r.qp.handle);
  for (const fake::Send& one : r.world.rdma.takeSends(r.qp.qpn)) CHECK(one.wr.opcode != kWrLocalInvalidate);
  r.world.rdma.completeSends(r.qp.qpn, 2);
  const std::vector<Cqe> last = poll(r.sendCq);
  CHECK_EQ(last.size(), 2u);
  if (last.size() == 2) CHECK_EQ(last[1].status(), kWcLocalOp);
  CHECK(host.deallocateMw(window) == Status::kSuccess);
  CHECK(host.deregisterMr(r.world.pd, lkey) == Status::kSuccess);
  Ranges::all().remove(range);
  // Neither object exists any more.
  write(r.qp, wqe);
  ringSends(r.qp.handle);
  CHECK(r.world.rdma.takeSends(r.qp.qpn).empty());
  CHECK_EQ(poll(r.sendCq).size(), 1u);
}

TEST(verbs_what_cannot_be_handed_over_completes_in_error) {
  Wqe wqe;
  wqe.opcode = kOpFastRegister;
  refused(wqe, kWcLocalOp);
  wqe.opcode = 99;
  refused(wqe, kWcLocalOp);
  wqe = Wqe();
  wqe.sges.assign(5, {0, {1, 1}});  // one more than the queue pair supports
  refused(wqe, kWcLocalOp);
  wqe = Wqe();
  wqe.flags |= kSendFlagInline;
  wqe.inlined.assign(129, 1);
  refused(wqe, kWcLocalLength);
  wqe = Wqe();
  wqe.opcode = kOpFetchAdd;
  wqe.sges = {{0, {4, 1}}};
  refused(wqe, kWcLocalLength);
  wqe = Wqe();
  wqe.opcode = kOpRead;
  wqe.flags |= kSendFlagImmediate;
  refused(wqe, kWcLocalOp);
  wqe = Wqe();
  wqe.opcode = kOpBindWindow;
  wqe.rkey = 0x12345;
  refused(wqe, kWcLocalOp);
  wqe = Wqe();
  wqe.ah = 0x777;
  refused(wqe, kWcLocalOp, kQptUd);
}

TEST(verbs_no_read_or_atomic_where_none_may_be_in_flight) {
  for (const uint32_t opcode : {kOpRead, kOpFetchAdd, kOpCompareExchange}) {
    World world;
    world.initiatorDepth = 0;
    TestCq cq;
    TestQp qp;
    CHECK(world.make(&cq) == Status::kSuccess);
    CHECK(world.make(&qp, cq, cq, nullptr, kQptRc, 16) == Status::kSuccess);
    CHECK(world.run(qp) == Status::kSuccess);
    Wqe wqe;
    wqe.opcode = kOpWrite;
    write(qp, wqe);
    ringSends(qp.handle);
    CHECK_EQ(world.rdma.takeSends(qp.qpn).size(), 1u);
    world.rdma.completeSends(qp.qpn, 1);
    CHECK_EQ(poll(cq).size(), 1u);
    wqe.opcode = opcode;
    write(qp, wqe);
    ringSends(qp.handle);
    CHECK(world.rdma.takeSends(qp.qpn).empty());
    const std::vector<Cqe> cqes = poll(cq);
    CHECK_EQ(cqes.size(), 1u);
    if (cqes.size() == 1) CHECK_EQ(cqes[0].status(), kWcLocalOp);
    CHECK_EQ(qp.state(), kQpsError);
  }
}

TEST(verbs_a_held_request_waits_for_those_before_it) {
  Ready r;
  const uint32_t first = write(r.qp, Wqe());
  Wqe bad;
  bad.opcode = 99;
  const uint32_t second = write(r.qp, bad), third = write(r.qp, Wqe());
  r.world.rdma.flushAfterPolls = -1;  // the device keeps its requests for now
  ringSends(r.qp.handle);
  CHECK(poll(r.sendCq).empty());
  r.world.rdma.completeSends(r.qp.qpn, 2);  // completes the marker behind the request, too
  std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 3u);
  if (cqes.size() != 3) return;
  CHECK_EQ(cqes[0].wqe(), first);
  CHECK_EQ(cqes[0].status(), kWcSuccess);
  CHECK_EQ(cqes[1].wqe(), second);
  CHECK_EQ(cqes[1].status(), kWcLocalOp);
  CHECK_EQ(cqes[2].wqe(), third);
  CHECK_EQ(cqes[2].status(), kWcFlushed);
}

TEST(verbs_datagrams) {
  Ready r(16, kQptUd);
  Path path;
  path.source = path.destination = World::localGid();
  Handle ah = 0;
  CHECK(r.world.host->createAh(r.world.pd, path, 1024, &ah) == Status::kSuccess);
  Wqe wqe;
  wqe.ah = ah;
  wqe.remoteQpn = 0x99;
  wqe.remoteQkey = 0x123;
  wqe.sges = {{0, {1024, 1}}};
  fake::Send send = posted(r, wqe);
  CHECK(send.wr.wr.ud.ah != nullptr);
  CHECK_EQ(send.wr.wr.ud.remote_qpn, 0x99u);
  CHECK_EQ(send.wr.wr.ud.remote_qkey, 0x123u);
  wqe.remoteQkey = 0x80000000;  // selects the Q_Key of the queue pair itself
  CHECK_EQ(posted(r, wqe).wr.wr.ud.remote_qkey, 0x1111u);
  wqe.sges = {{0, {1025, 1}}};
  write(r.qp, wqe);
  r.world.rdma.completeSends(r.qp.qpn, 2);
  ringSends(r.qp.handle);
  const std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 3u);
  if (cqes.size() == 3) CHECK_EQ(cqes[2].status(), kWcLocalLength);
  CHECK(r.world.host->destroyAh(ah) == Status::kSuccess);
}

TEST(verbs_one_call_hands_over_a_doorbell) {
  Ready r(64);
  for (int i = 0; i < 40; ++i) write(r.qp, Wqe());
  for (int i = 0; i < 3; ++i) writeReceive(r.qp, 0x1000, 8, 7);
  ringSends(r.qp.handle);
  ringReceives(r.qp.handle);
  CHECK((r.world.rdma.takePostSizes() == std::vector<int>{32, 8, 3}));
  const auto receives = r.world.rdma.takeReceives(r.qp.qpn);
  CHECK_EQ(receives.size(), 3u);
  CHECK_EQ(receives[0].sges[0].addr, 0x1000u);
  CHECK_EQ(receives[0].sges[0].lkey, 7u);
  TestSrq srq;
  CHECK(r.world.make(&srq) == Status::kSuccess);
  for (int i = 0; i < 5; ++i) writeReceive(srq, 0x2000, 4, 9);
  ringReceives(kSharedBit | srq.handle);
  CHECK((r.world.rdma.takePostSizes() == std::vector<int>{5}));
  CHECK_EQ(r.world.rdma.takeShared(srq.handle).size(), 5u);
}

TEST(verbs_completions_of_sends) {
  Ready r;
  Wqe read;
  read.opcode = kOpRead;
  Wqe add;
  add.opcode = kOpFetchAdd;
  add.sges = {{0, {8, 1}}};
  Wqe silent;
  silent.flags = 0;
  write(r.qp, read);
  write(r.qp, silent);
  const uint32_t last = write(r.qp, add);
  ringSends(r.qp.handle);
  r.world.rdma.completeSends(r.qp.qpn, 3);
  const std::vector<Cqe> cqes = poll(r.sendCq);
  CHECK_EQ(cqes.size(), 2u);
  if (cqes.size() != 2) return;
  CHECK_EQ(cqes[0].token(), r.qp.token);
  CHECK_EQ(cqes[0].opcode(), kOpRead);
  CHECK_EQ(cqes[0].words[kCqeLength], 77u);
  CHECK_EQ(cqes[1].wqe(), last);
  CHECK_EQ(cqes[1].opcode(), kOpFetchAdd);
  CHECK_EQ(cqes[1].words[kCqeLength], 8u);
}

TEST(verbs_completions_of_receives) {
  Ready r;
  for (int i = 0; i < 4; ++i) writeReceive(r.qp);
  ringReceives(r.qp.handle);
  ibv_wc wc{};
  wc.byte_len = 100;
  wc.src_qp = 0x55;
  wc.wc_flags = kWcWithImm | kWcGrh;
  wc.immediate = htonl(0xCAFE);
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, wc));
  wc.opcode = kWcOpRecvImm;
  CHECK(r.world.rdma.completeReceive(r.qp.qpn, wc));
  wc = ibv_wc{};
  wc.immediate = 0x99;
  for (const unsigned flag : {kWcWithInv, kWcIpChecksum}) {  // the second one is a flag of rdma_rxe
    wc.wc_flags = flag;
    CHECK(r.world.rdma.completeReceive(r.qp.qpn, wc));
  }
  const std::vector<Cqe> cqes = poll(r.receiveCq);
  CHECK_EQ(cqes.size(), 4u);
  if (cqes.size() != 4) return;
  CHECK_EQ(cqes[0].opcode(), kOpReceive);
  CHECK_EQ(cqes[0].words[kCqeLength], 100u);
  CHECK_EQ(cqes[0].words[kCqeImmediate], 0xCAFEu);
  CHECK_EQ(cqes[0].words[kCqeSourceQpn], 0x55u);
  // Only datagrams have a GRH, but rdma_rxe reports one for all messages.
  CHECK_EQ(cqes[0].flags(), kCqeFlagImmediate | kCqeFlagReceiveQueue);
  CHECK_EQ(cqes[1].opcode(), kOpReceiveRdmaWrite);
  for (const size_t i : {2, 3}) {
    CHECK_EQ(cqes[i].flags(), kCqeFlagInvalidated | kCqeFlagReceiveQueue);
    CHECK_EQ(cqes[i].words[kCqeImmediate], 0x99u);
  }
}

TEST(verbs_every_status_of_a_completion) {
  const std::pair<int, uint32_t> pairs[] = {{kIbLocalLength, kWcLocalLength},
                                            {kIbLocalQpOp, kWcLocalOp},
                                            {kIbLocalProtection, kWcLocalProtection},
                                            {kIbFlushed, kWcFlushed},
                                            {kIbMwBind, kWcMwBind},
                                            {kIbBadResponse, kWcBadResponse},
                                            {kIbLocalAccess, kWcLocalAccess},
                                            {kIbRemoteInvalidRequest, kWcRemoteInvalidRequest},
                                            {kIbRemoteAccess, kWcRemoteAccess},
                                            {kIbRemoteOp, kWcRemoteOp},
                                            {kIbRetryExceeded, kWcTimeoutRetry},
                                            {kIbRnrRetryExceeded, kWcRnrRetry},
                                            {kIbResponseTimeout, kWcTimeoutRetry},
                                            {21, kWcError}};
  for (const auto& [theirs, ours] : pairs) {
    check::note = "status";
    check::noteNumber = static_cast<uint64_t>(theirs);
    Ready r;
    Wqe write1;
    write1.opcode = kOpWrite;
    const uint32_t first = write(r.qp, write1), second = write(r.qp, Wqe());
    writeReceive(r.qp);
    ringReceives(r.qp.handle);
    ringSends(r.qp.handle);
    r.world.rdma.completeSends(r.qp.qpn, 1, theirs);
    const std::vector<Cqe> cqes = poll(r.sendCq), receives = poll(r.receiveCq);
    CHECK_EQ(cqes.size(), 2u);
    CHECK_EQ(receives.size(), 1u);
    if (cqes.size() != 2 || receives.size() != 1) continue;
    CHECK_EQ(cqes[0].status(), ours);
    CHECK_EQ(cqes[0].wqe(), first);
    CHECK_EQ(cqes[0].opcode(), kOpWrite);  // the opcode of the device is not valid
    CHECK_EQ(cqes[1].status(), kWcFlushed);
    CHECK_EQ(cqes[1].wqe(), second);
    CHECK_EQ(receives[0].status(), kWcFlushed);
    if (theirs == kIbFlushed) continue;
    CHECK_EQ(r.qp.state(), kQpsError);
    const Seen event = r.world.await(Event::Kind::kQp);
    CHECK_EQ(event.reason, ours);
    CHECK_EQ(event.event, static_cast<uint32_t>(ours == kWcTimeoutRetry ? QpEvent::kPeerLost : QpEvent::kFatal));
    CHECK_EQ(r.world.events().size(), 0u);  // the event was reported once
  }
  check::note = "";
}

TEST(verbs_shared_receives) {
  World w;
  TestCq cq;
  TestSrq srq;
  TestQp one, two;
  CHECK(w.make(&cq) == Status::kSuccess);
  CHECK(w.make(&srq, 4) == Status::kSuccess);
  CHECK(w.make(&one, cq, cq, &srq) == Status::kSuccess);
  CHECK(w.make(&two, cq, cq, &srq) == Status::kSuccess);
  CHECK(w.run(one) == Status::kSuccess && w.run(two) == Status::kSuccess);
  for (int i = 0; i < 4; ++i) writeReceive(srq);
  ringReceives(kSharedBit | srq.handle);
  w.rdma.takesNewest = true;
  CHECK(w.rdma.completeReceive(two.qpn, ibv_wc{}));
  CHECK(w.rdma.completeReceive(one.qpn, ibv_wc{}));
  std::vector<Cqe> cqes = poll(cq);
  CHECK_EQ(cqes.size(), 2u);
  if (cqes.size() == 2) {
    CHECK_EQ(cqes[0].token(), two.token);
    CHECK_EQ(cqes[1].token(), one.token);
    CHECK_EQ(cqes[1].flags(), kCqeFlagReceiveQueue | kCqeFlagSharedReceive);
  }
  CHECK_EQ(loadWord(srq.words() + kSrqConsumer), 2u);
  // The ring grows, and its indexes continue from the same counters.
  SrqAttributes bigger;
  bigger.entries = 16;
  bigger.ringBytes = kSrqHeaderBytes + 16 * uint64_t{srq.create.stride};
  auto memory = w.ring(bigger.ringBytes);
  bigger.ringAddress = reinterpret_cast<uintptr_t>(memory->base);
  CHECK(w.host->modifySrq(srq.handle, srqmask::kEntries, bigger) == Status::kSuccess);
  srq.memory = memory;
  srq.create.entries = 16;
  for (int i = 0; i < 12; ++i) writeReceive(srq);
  ringReceives(kSharedBit | srq.handle);
  int came = 0;
  while (w.rdma.completeReceive(one.qpn, ibv_wc{})) ++came;
  CHECK_EQ(came, 14);
  CHECK_EQ(poll(cq).size(), 14u);
  CHECK_EQ(loadWord(srq.words() + kSrqConsumer), 16u);
}

TEST(verbs_a_full_shared_queue_polls_what_its_queue_pairs_have_consumed) {
  World w;
  TestCq first, second;
  TestSrq srq;
  TestQp one, two;
  CHECK(w.make(&first) == Status::kSuccess && w.make(&second) == Status::kSuccess);
  CHECK(w.make(&srq, 4) == Status::kSuccess);
  CHECK(w.make(&one, first, first, &srq) == Status::kSuccess);
  CHECK(w.make(&two, first, second, &srq) == Status::kSuccess);
  CHECK(w.run(one) == Status::kSuccess && w.run(two) == Status::kSuccess);
  for (int i = 0; i < 4; ++i) writeReceive(srq);
  ringReceives(kSharedBit | srq.handle);
  CHECK(w.rdma.completeReceive(one.qpn, ibv_wc{}));
  CHECK(w.rdma.completeReceive(two.qpn, ibv_wc{}));
  CHECK_EQ(loadWord(srq.words() + kSrqConsumer), 0u);  // the queue was not polled
  nd::verbs::progress(kSharedBit | srq.handle);
  CHECK_EQ(loadWord(srq.words() + kSrqConsumer), 2u);
  CHECK_EQ(take(first).size(), 1u);
  CHECK_EQ(take(second).size(), 1u);
  nd::verbs::progress(kSharedBit | (srq.handle + 1));
}

TEST(verbs_a_device_without_atomics_or_immediate_data) {
  World w(false);
  w.rdma.iwarp = true;
  w.rdma.attributes.atomic_cap = 0;
  w.open();
  CHECK(w.device->iwarp);
  TestCq cq;
  CHECK(w.make(&cq) == Status::kSuccess);
  for (const uint32_t flags : {kSendFlagSignaled, kSendFlagSignaled | kSendFlagImmediate}) {
    TestQp qp;
    CHECK(w.make(&qp, cq, cq) == Status::kSuccess);
    CHECK(w.run(qp) == Status::kSuccess);
    Wqe wqe;
    wqe.flags = flags;
    if ((flags & kSendFlagImmediate) == 0) wqe.opcode = kOpFetchAdd;
    wqe.sges = {{0, {8, 1}}};
    write(qp, wqe);
    ringSends(qp.handle);
    const std::vector<Cqe> cqes = poll(cq);
    CHECK_EQ(cqes.size(), 1u);
    if (!cqes.empty()) CHECK_EQ(cqes[0].status(), kWcLocalOp);
  }
  TestQp ud;
  CHECK(w.make(&ud, cq, cq, nullptr, kQptUd) == Status::kNotSupported);
  Path path;
  path.source = path.destination = World::localGid();
  Handle ah = 0;
  CHECK(w.host->createAh(w.pd, path, 1024, &ah) == Status::kNotSupported);
}
