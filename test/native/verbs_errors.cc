// Every call into libibverbs and librdmacm fails once. The caller is notified, nothing is left behind, and nothing
// crashes.
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "verbs_world.h"

using namespace verbstest;
using namespace nd::verbs;

namespace {

bool ends(const std::string& call) {
  for (const char* const part : {"destroy", "dealloc", "dereg", "close_device", "detach"})
    if (call.find(part) != std::string::npos) return true;
  return false;
}

// A program that uses every call, and after a failure continues with the objects that it has.
class Program {
 public:
  explicit Program(World& world) : w(world) {}
  bool told = false;  // whether it was notified of a failure

  void everything() {
    make();
    move();
    transfer();
    change();
    connect();
    end();
    CHECK(!Ranges::all().used(range_));
    Ranges::all().remove(range_);
  }
  void make() {
    range_ = Ranges::all().add(address(), sizeof memory_);
    good(host().registerMr(w.pd, address(), sizeof memory_, kAccessMwBind | kAccessLocalWrite, &lkey_, &rkey_));
    good(host().allocateMw(w.pd, &mw_, &windowKey_));
    for (TestCq* cq : {&sendCq_, &receiveCq_}) good(w.make(cq));
    good(w.make(&srq_));
    if (sendCq_.handle == 0 || receiveCq_.handle == 0) return;
    good(w.make(&rc_, sendCq_, receiveCq_));
    if (srq_.handle != 0) good(w.make(&shared_, sendCq_, receiveCq_, &srq_));
    good(w.make(&ud_, sendCq_, receiveCq_, nullptr, kQptUd));
    good(w.make(&connected_, sendCq_, receiveCq_));
    Path path;
    path.source = path.destination = World::localGid();
    good(host().createAh(w.pd, path, 1024, &ah_));
  }
  void close() { Ranges::all().remove(range_); }

 private:
  World& w;
  alignas(64) uint8_t memory_[4096] = {};
  uint64_t range_ = 0;
  uint32_t lkey_ = 0, rkey_ = 0, windowKey_ = 0;
  Handle mw_ = 0, ah_ = 0;
  TestCq sendCq_, receiveCq_;
  TestSrq srq_;
  TestQp rc_, shared_, ud_, connected_;

  VerbsHca& host() { return *w.host; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory_); }
  bool good(Status status) {
    if (status == Status::kSuccess) return true;
    told = true;
    return false;
  }
  // Only one call fails, so the next attempt succeeds.
  void ended(Handle handle, const std::function<Status()>& call) {
    if (handle == 0 || good(call())) return;
    CHECK(call() == Status::kSuccess);
  }
  void move() {
    for (TestQp* qp : {&rc_, &shared_, &ud_})
      if (qp->handle != 0) good(w.run(*qp));
    Gid group;
    group.raw[0] = 0xFF;
    if (ud_.handle != 0 && good(host().attachMulticast(ud_.handle, group, 1)))
      ended(ud_.handle, [&] { return host().detachMulticast(ud_.handle, group, 1); });
    PortInfo port;
    // The entries of a table are read until its end.
    if (!host().queryPort(*w.device, 1, &port) || port.gids.empty() || port.pkeys.empty()) told = true;
  }
  void transfer() {
    Wqe bind;
    bind.opcode = kOpBindWindow;
    bind.rkey = lkey_;
    bind.swap = uint64_t{windowKey_ + 1} << 32 | windowKey_;
    Wqe datagram;
    datagram.ah = ah_;
    if (rc_.handle != 0 && rc_.state() == kQpsRts) {
      write(rc_, Wqe());
      if (mw_ != 0 && lkey_ != 0) write(rc_, bind);
      writeReceive(rc_);
      ringSends(rc_.handle);
      ringReceives(rc_.handle);
      w.rdma.completeReceive(rc_.qpn, ibv_wc{});
      w.rdma.completeSends(rc_.qpn, 2);
    }
    if (ud_.handle != 0 && ah_ != 0 && ud_.state() == kQpsRts) {
      write(ud_, datagram);
      ringSends(ud_.handle);
      w.rdma.completeSends(ud_.qpn, 1);
    }
    if (srq_.handle != 0) {
      writeReceive(srq_);
      ringReceives(kSharedBit | srq_.handle);
      if (shared_.handle != 0) w.rdma.completeReceive(shared_.qpn, ibv_wc{});
    }
    collect();
  }
  // Records the reports of completions and events.
  void collect() {
    for (TestCq* cq : {&sendCq_, &receiveCq_}) {
      if (cq->handle == 0) continue;
      for (const Cqe& cqe : poll(*cq)) told = told || cqe.status() != kWcSuccess;
      told = told || cq->dead();
    }
    for (const Seen& event : w.events())
      if (event.kind == Event::Kind::kQp || event.kind == Event::Kind::kSrq || event.kind == Event::Kind::kCq)
        told = true;
  }
  void change() {
    if (sendCq_.handle != 0 && !sendCq_.dead()) {
      good(armCq(sendCq_.handle, false));
      good(armCqBatch(sendCq_.handle, 2));
      const uint64_t bytes = kCqHeaderBytes + 1024 * uint64_t{kCqeBytes};
      const auto memory = w.ring(bytes);
      if (!sendCq_.dead() &&
          good(host().resizeCq(sendCq_.handle, reinterpret_cast<uintptr_t>(memory->base), bytes, 1024))) {
        sendCq_.memory = memory;
        sendCq_.entries = 1024;
      }
    }
    if (srq_.handle == 0) return;
    SrqAttributes srq;
    srq.entries = 32;
    srq.limit = 0;
    srq.ringBytes = kSrqHeaderBytes + 32 * uint64_t{srq_.create.stride};
    srq.ringAddress = reinterpret_cast<uintptr_t>(w.ring(srq.ringBytes)->base);
    good(host().modifySrq(srq_.handle, srqmask::kEntries | srqmask::kLimit, srq));
    good(host().querySrq(srq_.handle, &srq));
  }
  void connect() {
    CmAddress local{World::localGid(), 0, 0}, peer{World::localGid(), 7, 0};
    uint8_t data[4] = {1, 2, 3, 4};
    CmParameters parameters;
    parameters.data = data;
    parameters.length = sizeof data;
    Handle listener = 0, id = 0, lookup = 0;
    good(host().cmCreate(false, &listener));
    good(host().cmCreate(false, &id));
    good(host().cmCreate(true, &lookup));
    uint16_t port = 0;
    if (listener != 0) {
      good(host().cmBind(listener, local, true, &port));
      good(host().cmListen(listener, 5));
    }
    if (id != 0) {
      good(host().cmResolve(id, local, peer, 1000));
      good(host().cmResolveRoute(id, 1000));
      good(host().cmSetOptions(id, 14, 8));
      good(host().cmConnect(id, parameters));
      good(host().cmEstablish(id));
      good(host().cmAccept(id, parameters));
      good(host().cmReject(id, {data, sizeof data}));
      good(host().cmNotify(id));
      CmAttributes attributes;
      good(host().cmAttributes(id, &attributes));
      using namespace nd::qpmask;
      if (connected_.handle != 0)
        good(host().connectQp(connected_.handle,
                              {kState | kAccess | kPort | kPkeyIndex, kState | kPath, kState | kSendPsn},
                              w.attributes(0), id));
      good(host().cmDisconnect(id));
    }
    if (lookup != 0) {
      good(host().cmBind(lookup, local, true, &port));
      good(host().cmJoin(lookup, peer));
    }
    for (const Handle one : {lookup, id, listener})
      if (one != 0) host().cmDestroy(one);
  }
  void end() {
    collect();
    // Requests that a failure has left in flight are flushed.
    for (TestQp* qp : {&rc_, &shared_, &ud_, &connected_})
      ended(qp->handle, [&] { return host().destroyQp(qp->handle); });
    ended(srq_.handle, [&] { return host().destroySrq(srq_.handle); });
    for (TestCq* cq : {&sendCq_, &receiveCq_}) ended(cq->handle, [&] { return host().destroyCq(cq->handle); });
    ended(ah_, [&] { return host().destroyAh(ah_); });
    ended(mw_, [&] { return host().deallocateMw(mw_); });
    ended(lkey_, [&] { return host().deregisterMr(w.pd, lkey_); });
    ended(w.pd, [&] { return host().deallocatePd(w.pd); });
  }
};

}  // namespace

TEST(verbs_each_call_of_a_program_fails_once) {
  long all = 0;
  std::set<std::string> names, heard, silent;
  for (long at = -1; at < all; ++at) {
    World w;
    w.rdma.neverFail();
    w.rdma.failAt = at;
    Program program(w);
    program.everything();
    const std::string failed = w.rdma.failed();
    if (at < 0) all = w.rdma.calls();
    CHECK_EQ(failed.empty(), at < 0);
    w.rdma.neverFail();
    check::note = failed.empty() ? "none" : names.insert(failed).first->c_str();
    check::noteNumber = static_cast<uint64_t>(at);
    if (at < 0) CHECK(!program.told);
    else (program.told ? heard : silent).insert(failed);
    w.close();
    // An id that librdmacm fails to destroy belongs to the library. Everything else is gone, whichever call failed.
    if (failed == "rdma_destroy_id") w.rdma.reset();
    CHECK(w.rdma.left().empty());
  }
  check::note = "";
  CHECK(all > 80);
  CHECK(names.size() > 35);
  // Options of connections are best effort, because old kernels do not support them. P_Keys are also read where only
  // addresses matter, and CQs are polled once more for a queue pair that ends.
  for (const std::string& name : silent) {
    const bool expected =
        name == "rdma_destroy_id" || name == "rdma_set_option" || name == "ibv_query_pkey" || name == "poll_cq";
    CHECK(expected);
    if (!expected) std::fprintf(stderr, "%s was not reported\n", name.c_str());
  }
  CHECK(heard.count("poll_cq") == 1 && heard.count("ibv_query_pkey") == 1 && heard.count("req_notify_cq") == 1);
}

TEST(verbs_each_call_of_opening_fails_once) {
  long all = 1;
  for (long at = 0; at < all; ++at) {
    World w(false);
    w.rdma.neverFail();
    w.rdma.failAt = at;
    std::string why;
    w.host = VerbsHca::open(&w.sleeper, &why);
    if (w.host != nullptr) w.device = w.host->openDevice("fake0", &why);
    const std::string failed = w.rdma.failed();
    if (at + 1 == all && !failed.empty()) ++all;  // there may be one more call
    // Queue pairs are tried until the device creates one, to find out its limits and whether queues can grow.
    const bool needed = !failed.empty() && failed != "ibv_create_qp" && failed != "ibv_resize_cq" && !ends(failed);
    check::note = failed.c_str();
    CHECK_EQ(w.device == nullptr, needed);
    CHECK_EQ(why.empty(), !needed);
    if (needed)
      CHECK(why.find(std::strerror(ENOMEM)) != std::string::npos || why.find("libibverbs") != std::string::npos);
    w.rdma.neverFail();
    w.close();
    check::note = "";
    // Objects that libibverbs fails to destroy are destroyed with the device.
    if (ends(failed)) w.rdma.reset();
  }
  CHECK(all > 10);
}

TEST(verbs_each_call_of_closing_fails_once) {
  long all = 1;
  for (long at = 0; at < all; ++at) {
    World w;
    Program program(w);
    program.make();
    CHECK(!program.told);
    w.rdma.neverFail();
    w.rdma.failAt = at;
    w.close();
    const std::string failed = w.rdma.failed();
    if (at + 1 == all && !failed.empty()) ++all;
    program.close();
    CHECK(failed.empty() ? w.rdma.left().empty() : ends(failed) || failed == "poll_cq" || failed == "ibv_modify_qp");
    w.rdma.reset();
  }
  CHECK(all > 12);
}

TEST(verbs_a_device_file_that_cannot_be_opened_says_what_helps) {
  const std::pair<int, const char*> pairs[] = {{EACCES, "this user needs read and write access"},
                                               {ENOENT, "the kernel module"}};
  for (const char* const call : {"rdma_create_event_channel", "ibv_open_device"})
    for (const auto& [error, sentence] : pairs) {
      World w(false);
      w.rdma.failWith = error;
      w.rdma.failName = call;
      w.rdma.failAt = 0;
      std::string why;
      w.host = VerbsHca::open(&w.sleeper, &why);
      if (w.host != nullptr) CHECK(w.host->openDevice("fake0", &why) == nullptr);
      CHECK(why.find("/dev/infiniband/") == 0);
      CHECK(why.find(sentence) != std::string::npos);
      CHECK(why.find("docker run --device=/dev/infiniband") != std::string::npos);
    }
}

TEST(verbs_status_of_an_errno) {
  const std::pair<int, Status> pairs[] = {{EINVAL, Status::kInvalidParameter},
                                          {ENOMEM, Status::kInsufficientResources},
                                          {EAGAIN, Status::kInsufficientResources},
                                          {EBUSY, Status::kDeviceBusy},
                                          {EPERM, Status::kAccessDenied},
                                          {EOPNOTSUPP, Status::kNotSupported},
                                          {ENOSYS, Status::kNotSupported},
                                          {EIO, Status::kDeviceRemoved},
                                          {ENODEV, Status::kDeviceRemoved},
                                          {EFAULT, Status::kAccessViolation},
                                          {EDOM, Status::kUnsuccessful}};
  World w;
  for (const auto& [error, status] : pairs) {
    w.rdma.neverFail();
    w.rdma.failWith = error;
    w.rdma.failAt = 0;
    Handle pd = 0;
    CHECK_EQ(static_cast<uint32_t>(w.host->allocatePd(w.device->number, &pd)), static_cast<uint32_t>(status));
  }
  w.rdma.failWith = ENOMEM;
}

TEST(verbs_a_device_reports_what_it_lacks_before) {
  World w(false);
  w.rdma.attributes.max_srq = 0;
  w.rdma.attributes.device_cap_flags = 0;
  w.rdma.canResize = false;
  w.rdma.attributes.max_qp_wr = 100;
  w.rdma.attributes.max_sge = 3;
  w.rdma.attributes.max_sge_rd = 1;
  w.rdma.mostInline = 40;
  w.rdma.attributes.max_cqe = 300;
  w.open();
  const HcaLimits& limits = w.device->limits;
  CHECK_EQ(limits.maxMw, 0u);
  CHECK_EQ(limits.maxSrq, 0u);
  CHECK_EQ(limits.maxQpWr, 64u);  // this package reserves one more
  CHECK_EQ(limits.maxSge, 3u);
  CHECK_EQ(limits.maxReadSge, 1u);
  CHECK_EQ(limits.maxInline, 32u);
  CHECK_EQ(limits.maxCqEntries, 128u);
  CHECK(!w.device->resizes);
  TestSrq srq;
  CHECK(w.make(&srq) == Status::kNotSupported);
  Handle mw = 0;
  uint32_t rkey = 0;
  CHECK(w.host->allocateMw(w.pd, &mw, &rkey) == Status::kNotSupported);
  TestCq cq, beyond;
  CHECK(w.make(&cq, 64) == Status::kSuccess);
  CHECK(w.make(&beyond, 256) == Status::kInvalidParameter);
  // The device's queue is created as large as the ring may become, so that it never has to grow.
  const uint64_t bytes = kCqHeaderBytes + 128 * uint64_t{kCqeBytes};
  CHECK(w.host->resizeCq(cq.handle, reinterpret_cast<uintptr_t>(w.ring(bytes)->base), bytes, 128) == Status::kSuccess);
  CHECK(w.rdma.failed().empty());
}
