// A stand-in for libibverbs and librdmacm, in one shared object that verbs/rdma_core_library.cc loads in tests. It has
// no network: a test examines the posted requests, and decides what completes, and how. Tests access it through
// `fake_rdma()`.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "verbs/rdma_core.h"

namespace fake {

using namespace nd::verbs;

// Kinds of objects that a program can forget to destroy.
enum Kind {
  kList,
  kContext,
  kPd,
  kMr,
  kMw,
  kCq,
  kSrq,
  kQp,
  kAh,
  kCompletionChannel,
  kCmChannel,
  kCmId,
  kGroup,
  kCqEvent,
  kAsyncEvent,
  kCmEvent,
  kKinds
};

// Moments when another thread or the device may intervene. Called without locks, on the calling thread.
enum class Moment { kBeforePoll, kAfterEmptyPoll, kBeforeArm, kAfterArm, kBeforeEvent, kAfterEvent };

// A copy of a posted request, with its SGEs and inline bytes.
struct Send {
  ibv_send_wr wr;
  std::vector<ibv_sge> sges;
  std::vector<uint8_t> inlined;
};
struct Receive {
  uint64_t id;
  std::vector<ibv_sge> sges;
};

class Fake {
 public:
  virtual ~Fake() = default;

  // ── The device. To be changed before it is opened.
  ibv_device_attr attributes{};
  bool iwarp = false;
  bool hasWindows = true, canResize = true;
  uint32_t mostInline = 256;
  std::vector<ibv_gid_entry> gids;
  std::vector<uint16_t> pkeys;

  // ── Its behaviour
  // Signaled sends complete successfully when they are posted, and nothing of them is kept. The variable FAKE_RDMA_ECHO
  // sets it as well.
  bool echo = false;
  // The number of polls after the move to ERROR that flush what was posted; -1: never.
  std::atomic<int> flushAfterPolls{0};
  // Messages consume the newest shared receive, as devices may if several queue pairs share one queue.
  bool takesNewest = false;
  std::function<void(Moment, ibv_cq*)> onMoment;
  std::atomic<bool> hasMoment{false};  // set after onMoment
  void at(Moment moment, ibv_cq* cq) {
    if (hasMoment.load(std::memory_order_acquire)) onMoment(moment, cq);
  }

  // Failures: the call with that number from now on, counted from 0, returns `failWith`. If a name is set, only calls
  // of that function count.
  std::atomic<long> failAt{-1};
  int failWith = 12;  // ENOMEM
  std::string failName;
  virtual long calls() const = 0;          // number of calls that count so far
  virtual std::string failed() const = 0;  // the name of the call that failed; empty: none
  virtual void neverFail() = 0;

  // ── What there is
  virtual int alive(Kind kind) const = 0;
  // All live objects, and those that a device had when it was closed; empty: none.
  virtual std::string left() const = 0;
  virtual void reset() = 0;  // restores the initial state; no object may be alive

  // ── Queue pairs by number; SRQs and CQs by their context, the handle
  virtual ibv_qp* qp(uint32_t qpn) = 0;
  virtual std::vector<Send> takeSends(uint32_t qpn) = 0;  // those posted since the last call; they remain outstanding
  virtual std::vector<Receive> takeReceives(uint32_t qpn) = 0;
  virtual std::vector<Receive> takeShared(uint32_t srqContext) = 0;
  virtual std::vector<int> takePostSizes() = 0;  // for each call that has posted requests, their number
  virtual int state(uint32_t qpn) = 0;
  virtual ibv_qp_attr attributesOf(uint32_t qpn) = 0;
  // Completes the oldest sends. An error status moves the queue pair to ERROR and flushes the rest.
  virtual void completeSends(uint32_t qpn, int count, int status = 0) = 0;
  virtual bool completeReceive(uint32_t qpn,
                               ibv_wc like) = 0;  // the oldest receive; of the SRQ, if it has one. False: none
  // Returns the number of entries of a CQ that can be polled.
  virtual int queued(uint32_t cqContext) = 0;
  virtual void overrun(uint32_t cqContext) = 0;  // raises the asynchronous event

  // ── Events
  virtual void async(ibv_context* context, const ibv_async_event& event) = 0;
  virtual ibv_context* context() = 0;  // the most recently opened device
  virtual void qpEvent(uint32_t qpn, int type) = 0;
  virtual void srqEvent(uint32_t srqContext, int type) = 0;
  virtual void portEvent(int type) = 0;
  // Raises the event for the id with this context. For kCmConnectRequest, `id` is the listener, and a new id is
  // created.
  virtual void cmEvent(uint32_t id, int type, int status, const rdma_conn_param& param) = 0;
  virtual rdma_conn_param lastParam() const = 0;  // that of rdma_connect or rdma_accept; its data is in lastData()
  virtual std::vector<uint8_t> lastData() const = 0;
};

}  // namespace fake

extern "C" fake::Fake* fake_rdma();
