// Tests of asynchronous events of devices, events of connections, and overrunning queues, on their way to the kernel.
#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

TEST(verbs_events_of_queue_pairs) {
  const std::pair<int, QpEvent> pairs[] = {{kEventCommEst, QpEvent::kCommunicationEstablished},
                                           {kEventSqDrained, QpEvent::kSendQueueDrained},
                                           {kEventLastWqe, QpEvent::kLastWqe},
                                           {kEventQpAccessErr, QpEvent::kFatal},
                                           {kEventQpReqErr, QpEvent::kFatal},
                                           {kEventQpFatal, QpEvent::kFatal}};
  for (const auto& [theirs, ours] : pairs) {
    Ready r;
    r.world.rdma.qpEvent(r.qp.qpn, theirs);
    const Seen event = r.world.await(Event::Kind::kQp);
    CHECK_EQ(event.handle, r.qp.handle);
    CHECK_EQ(event.token, r.qp.token);
    CHECK_EQ(event.event, static_cast<uint32_t>(ours));
    CHECK_EQ(r.qp.state(), ours == QpEvent::kFatal ? kQpsError : kQpsRts);
    CHECK_EQ(r.world.rdma.state(r.qp.qpn), ours == QpEvent::kFatal ? 6 : 3);
  }
}

TEST(verbs_events_of_shared_queues_ports_and_devices) {
  World w;
  TestSrq srq;
  CHECK(w.make(&srq) == Status::kSuccess);
  for (const auto& [theirs, ours] :
       {std::pair{kEventSrqLimit, SrqEvent::kLimit}, std::pair{kEventSrqErr, SrqEvent::kFatal}}) {
    w.rdma.srqEvent(srq.handle, theirs);
    const Seen event = w.await(Event::Kind::kSrq);
    CHECK_EQ(event.handle, srq.handle);
    CHECK_EQ(event.event, static_cast<uint32_t>(ours));
  }
  for (const int type : {kEventPortActive, kEventPortErr, kEventGidChange, kEventPkeyChange}) {
    w.rdma.portEvent(type);
    CHECK_EQ(w.await(Event::Kind::kPort).device, w.device->number);
  }
  w.rdma.portEvent(kEventDeviceFatal);
  CHECK_EQ(w.await(Event::Kind::kGone).device, w.device->number);
}

TEST(verbs_limit_of_a_shared_queue) {
  World w;
  TestSrq srq;
  CHECK(w.make(&srq) == Status::kSuccess);
  for (int i = 0; i < 5; ++i) writeReceive(srq);
  ringReceives(kSharedBit | srq.handle);
  SrqAttributes wanted, now;
  wanted.limit = 5;
  CHECK(w.host->modifySrq(srq.handle, srqmask::kLimit, wanted) == Status::kSuccess);
  CHECK(w.host->querySrq(srq.handle, &now) == Status::kSuccess);
  CHECK_EQ(now.limit, 5u);
  CHECK(w.events().empty());
  // Fewer receives than that are posted, so the event is reported immediately, and the limit is not armed.
  wanted.limit = 6;
  CHECK(w.host->modifySrq(srq.handle, srqmask::kLimit, wanted) == Status::kSuccess);
  const Seen event = w.await(Event::Kind::kSrq);
  CHECK_EQ(event.handle, srq.handle);
  CHECK_EQ(event.event, static_cast<uint32_t>(SrqEvent::kLimit));
  CHECK(w.host->querySrq(srq.handle, &now) == Status::kSuccess);
  CHECK_EQ(now.limit, 0u);
}

// Whether or not the device also reports the last request, its owner is notified once, and again after RESET.
TEST(verbs_last_request_of_a_shared_queue) {
  for (const bool tells : {false, true}) {
    World w;
    TestCq cq;
    TestSrq srq;
    TestQp qp;
    CHECK(w.make(&cq) == Status::kSuccess && w.make(&srq) == Status::kSuccess);
    CHECK(w.make(&qp, cq, cq, &srq) == Status::kSuccess);
    for (int round = 0; round < 2; ++round) {
      CHECK(w.run(qp) == Status::kSuccess);
      if (tells) w.rdma.qpEvent(qp.qpn, kEventLastWqe);
      if (tells) CHECK_EQ(w.await(Event::Kind::kQp).event, static_cast<uint32_t>(QpEvent::kLastWqe));
      CHECK(w.step(qp, kQpsError) == Status::kSuccess);
      if (!tells) CHECK_EQ(w.await(Event::Kind::kQp).event, static_cast<uint32_t>(QpEvent::kLastWqe));
      if (!tells) w.rdma.qpEvent(qp.qpn, kEventLastWqe);
      w.rdma.qpEvent(qp.qpn, kEventCommEst);
      CHECK_EQ(w.await(Event::Kind::kQp).event, static_cast<uint32_t>(QpEvent::kCommunicationEstablished));
      CHECK(w.step(qp, kQpsReset) == Status::kSuccess);
    }
  }
}

TEST(verbs_a_queue_that_overruns_takes_its_queue_pairs_with_it) {
  for (const int how : {0, 1, 2}) {
    check::noteNumber = static_cast<uint64_t>(how);
    check::note = "overrun";
    World w;
    TestCq small, other;
    TestQp qp;
    CHECK(w.make(&small, 4) == Status::kSuccess);
    CHECK(w.make(&other, 64) == Status::kSuccess);
    CHECK(w.make(&qp, small, other) == Status::kSuccess);
    CHECK(w.run(qp) == Status::kSuccess);
    if (how == 0) {
      // There are more completions than the ring holds.
      for (int i = 0; i < 5; ++i) write(qp, Wqe());
      ringSends(qp.handle);
      w.rdma.completeSends(qp.qpn, 5);
      nd::verbs::progress(small.handle);
    } else if (how == 1) {
      w.rdma.overrun(small.handle);
    } else {
      w.rdma.failName = "poll_cq";
      w.rdma.failAt = w.rdma.calls();
      nd::verbs::progress(small.handle);
      w.rdma.neverFail();
    }
    const Seen event = w.await(Event::Kind::kCq);
    CHECK_EQ(event.handle, small.handle);
    CHECK_EQ(event.event, 2u);
    CHECK(small.dead());
    CHECK(armCq(small.handle, false) == Status::kBufferOverflow);
    // The event and the state come from different threads.
    const auto until = std::chrono::steady_clock::now() + kTimeout;
    while (qp.state() != kQpsError && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    CHECK_EQ(qp.state(), kQpsError);
    for (const Seen& more : w.events()) CHECK(more.kind != Event::Kind::kCq);  // the event is reported once
  }
  check::note = "";
}

TEST(verbs_a_resize_keeps_what_is_there) {
  World w;
  TestCq cq;
  TestQp qp;
  CHECK(w.make(&cq, 8) == Status::kSuccess);
  CHECK(w.make(&qp, cq, cq, nullptr, kQptRc, 512) == Status::kSuccess);
  CHECK(w.run(qp) == Status::kSuccess);
  for (int i = 0; i < 300; ++i) write(qp, Wqe());
  ringSends(qp.handle);
  w.rdma.completeSends(qp.qpn, 6);
  const auto resize = [&](uint32_t entries) {
    const uint64_t bytes = kCqHeaderBytes + uint64_t{entries} * kCqeBytes;
    const auto memory = w.ring(bytes);
    const Status status = w.host->resizeCq(cq.handle, reinterpret_cast<uintptr_t>(memory->base), bytes, entries);
    if (status == Status::kSuccess) {
      cq.memory = memory;
      cq.entries = entries;
    }
    return status;
  };
  CHECK(resize(4) == Status::kBufferOverflow);
  CHECK(resize(5) == Status::kInvalidParameter);
  CHECK(resize(512) == Status::kSuccess);
  w.rdma.completeSends(qp.qpn, 294);
  const std::vector<Cqe> cqes = poll(cq);
  CHECK_EQ(cqes.size(), 300u);
  for (size_t i = 0; i < cqes.size(); ++i) CHECK_EQ(cqes[i].wqe(), i);
  CHECK(resize(8) == Status::kSuccess);
  CHECK(!cq.dead());
}

TEST(verbs_attributes_of_a_queue_pair_that_sends) {
  Ready r;
  QpAttributes out;
  CHECK(r.world.host->queryQp(r.qp.handle, &out) == Status::kSuccess);
  const QpAttributes a = r.world.attributes(kQpsRts);
  CHECK_EQ(out.state, kQpsRts);
  CHECK_EQ(out.qpn, r.qp.qpn);
  CHECK_EQ(out.pathMtu, a.pathMtu);
  CHECK_EQ(out.destinationQpn, a.destinationQpn);
  CHECK_EQ(out.sendPsn, a.sendPsn);
  CHECK_EQ(out.receivePsn, a.receivePsn);
  CHECK_EQ(out.initiatorDepth, a.initiatorDepth);
  CHECK_EQ(out.responderResources, a.responderResources);
  CHECK_EQ(out.rnrRetry, a.rnrRetry);
  // The device reports the same, in its own terms.
  const ibv_qp_attr last = r.world.rdma.attributesOf(r.qp.qpn);
  CHECK_EQ(last.qp_state, 3);
  CHECK_EQ(last.timeout, 14);
  CHECK_EQ(last.retry_cnt, 6);
  CHECK_EQ(last.rnr_retry, 5);
  CHECK_EQ(last.max_rd_atomic, 2);
  CHECK_EQ(last.sq_psn, 9u);
}

TEST(verbs_attributes_on_the_way_to_rts) {
  Ready rtr;
  CHECK(rtr.world.step(rtr.qp, kQpsReset) == Status::kSuccess);
  CHECK(rtr.world.step(rtr.qp, kQpsRtr) == Status::kInvalidDeviceState);
  CHECK(rtr.world.step(rtr.qp, kQpsInit) == Status::kSuccess);
  CHECK(rtr.world.step(rtr.qp, kQpsRtr) == Status::kSuccess);
  const ibv_qp_attr path = rtr.world.rdma.attributesOf(rtr.qp.qpn);
  CHECK_EQ(path.path_mtu, 3);
  CHECK_EQ(path.ah_attr.sgid_index, 3);
  CHECK_EQ(path.ah_attr.is_global, 1);
  CHECK_EQ(path.dest_qp_num, 0x77u);
  CHECK_EQ(path.max_dest_rd_atomic, 3);
  QpAttributes strange = rtr.world.attributes(kQpsRts);
  strange.path.source.raw[15] = 99;  // an address that the device does not have
  CHECK(rtr.world.step(rtr.qp, kQpsReset) == Status::kSuccess);
  CHECK(rtr.world.step(rtr.qp, kQpsInit) == Status::kSuccess);
  strange.state = kQpsRtr;
  using namespace nd::qpmask;
  CHECK(rtr.world.host->modifyQp(
            rtr.qp.handle,
            kState | kPath | kPathMtu | kDestinationQpn | kReceivePsn | kResponderResources | kMinRnrTimer,
            strange) == Status::kInvalidAddress);
  CHECK_EQ(rtr.qp.state(), kQpsInit);
}

// ── Connections

TEST(verbs_events_of_connections) {
  World w;
  VerbsHca& host = *w.host;
  const CmAddress local{World::localGid(), 0, 0};
  Handle listener = 0;
  uint16_t port = 0;
  CHECK(host.cmCreate(false, &listener) == Status::kSuccess);
  CHECK(host.cmBind(listener, local, false, &port) == Status::kSuccess);
  CHECK(port != 0);
  CHECK(host.cmListen(listener, 3) == Status::kSuccess);
  const uint8_t data[3] = {9, 8, 7};
  rdma_conn_param param{};
  param.private_data = data;
  param.private_data_len = sizeof data;
  param.responder_resources = 4;
  param.initiator_depth = 5;
  param.retry_count = 6;
  param.rnr_retry_count = 7;
  param.srq = 1;
  param.qp_num = 0x123;
  w.rdma.cmEvent(listener, kCmConnectRequest, 0, param);
  const Seen request = w.await(Event::Kind::kCm);
  CHECK_EQ(request.event, static_cast<uint32_t>(kCmConnectRequest));
  CHECK_EQ(request.listener, listener);
  CHECK(request.handle != 0 && request.handle != listener);
  CHECK_EQ(request.responderResources, 4u);
  CHECK_EQ(request.initiatorDepth, 5u);
  CHECK_EQ(request.retryCount, 6u);
  CHECK_EQ(request.rnrRetryCount, 7u);
  CHECK_EQ(request.srq, 1u);
  CHECK_EQ(request.length, 3u);
  CHECK((request.data == std::vector<uint8_t>{9, 8, 7}));
  CmAddress from, to;
  uint32_t at = 0;
  CHECK(host.cmAddresses(request.handle, &from, &to, &at) == Status::kSuccess);
  CHECK_EQ(at, w.device->number);
  CHECK_EQ(from.port, port);
  CmParameters parameters;
  parameters.qpn = 0x55;
  parameters.responderResources = 2;
  parameters.initiatorDepth = 1;
  parameters.data = data;
  parameters.length = 2;
  CHECK(host.cmAccept(request.handle, parameters) == Status::kSuccess);
  CHECK_EQ(w.rdma.lastParam().qp_num, 0x55u);
  CHECK_EQ(w.rdma.lastParam().responder_resources, 2);
  CHECK((w.rdma.lastData() == std::vector<uint8_t>{9, 8}));
  for (const int type : {9, 10, 15}) {  // established, disconnected, the end of time-wait
    w.rdma.cmEvent(request.handle, type, type, rdma_conn_param{});
    const Seen event = w.await(Event::Kind::kCm);
    CHECK_EQ(event.event, static_cast<uint32_t>(type));
    CHECK_EQ(event.status, type);
    CHECK_EQ(event.handle, request.handle);
    CHECK(event.data.empty());
  }
  // An errno becomes the NTSTATUS; reasons of the peer are unchanged.
  const std::pair<int, Status> failures[] = {{ETIMEDOUT, Status::kIoTimeout},
                                             {ENETUNREACH, Status::kNetworkUnreachable},
                                             {EHOSTUNREACH, Status::kHostUnreachable},
                                             {ENOMEM, Status::kInsufficientResources},
                                             {EADDRINUSE, Status::kAddressAlreadyExists},
                                             {EIO, Status::kConnectionAborted},
                                             {EPROTO, Status::kConnectionAborted},
                                             {ECONNRESET, Status::kConnectionAborted},
                                             {ENOTCONN, Status::kUnsuccessful}};
  for (const auto& [error, status] : failures) {
    w.rdma.cmEvent(request.handle, 6, -error, rdma_conn_param{});  // an error while connecting
    CHECK(static_cast<Status>(w.await(Event::Kind::kCm).status) == status);
  }
  host.cmDestroy(request.handle);
  CHECK(host.cmAccept(request.handle, parameters) == Status::kInvalidHandle);
  // Connection requests that were not accepted end with their listener.
  w.rdma.cmEvent(listener, kCmConnectRequest, 0, param);
  CHECK_EQ(w.await(Event::Kind::kCm).listener, listener);
  host.cmDestroy(listener);
}

TEST(verbs_files_of_a_removed_device_are_closed) {
  World w;
  VerbsHca& host = *w.host;
  const auto isClosed = [](int fd) {
    char file[64] = {};
    return readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), file, sizeof file - 1) > 0 &&
           std::string(file) == "/dev/null";
  };
  // The fake binds ids to the context that the host has open.
  const auto& context = *w.device->context;
  Handle id = 0;
  uint16_t port = 0;
  CHECK(host.cmCreate(false, &id) == Status::kSuccess);
  CHECK(host.cmCloseRemoved(id) == Status::kSuccess);  // the id is bound to no device
  CHECK(host.cmBind(id, {World::localGid(), 0, 0}, false, &port) == Status::kSuccess);
  CHECK(!isClosed(context.cmd_fd) && !isClosed(context.async_fd));
  CHECK(host.cmCloseRemoved(id) == Status::kSuccess);
  CHECK(isClosed(context.cmd_fd) && isClosed(context.async_fd));
  CHECK(host.cmCloseRemoved(id) == Status::kSuccess);
  host.cmDestroy(id);
  CHECK(host.cmCloseRemoved(id) == Status::kInvalidHandle);
}

TEST(verbs_what_librdmacm_has_negotiated) {
  World w;
  TestCq cq;
  TestQp qp;
  CHECK(w.make(&cq) == Status::kSuccess);
  CHECK(w.make(&qp, cq, cq) == Status::kSuccess);
  Handle id = 0;
  CHECK(w.host->cmCreate(false, &id) == Status::kSuccess);
  CmAttributes attributes;
  CHECK(w.host->cmAttributes(id, &attributes) == Status::kSuccess);
  CHECK_EQ(attributes.pathMtu, 3u);
  CHECK_EQ(attributes.destinationQpn, 0x77u);
  CHECK_EQ(attributes.receivePsn, 0x1234u);
  CHECK_EQ(attributes.sendPsn, 0x4321u);
  CHECK_EQ(attributes.ackTimeout, 14u);
  using namespace nd::qpmask;
  CHECK(w.host->connectQp(qp.handle, {kState | kAccess, kState | kMinRnrTimer, kState | kRetryCount}, w.attributes(0),
                          id) == Status::kSuccess);
  CHECK_EQ(qp.state(), kQpsRts);
  CHECK_EQ(w.rdma.state(qp.qpn), 3);
  CHECK_EQ(w.rdma.attributesOf(qp.qpn).sq_psn, 0x4321u);
  CHECK_EQ(w.rdma.attributesOf(qp.qpn).retry_cnt, 6);  // the value that the program has set
  CHECK(w.host->connectQp(qp.handle, {}, w.attributes(0), id) == Status::kInvalidDeviceState);
  w.host->cmDestroy(id);
  CHECK(w.host->connectQp(qp.handle, {}, w.attributes(0), id) == Status::kInvalidHandle);
}
