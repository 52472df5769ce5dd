// The objects of the fake, for its own files.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <set>
#include <utility>

#include "fake.h"

namespace nd::verbs {
struct ibv_pd {
  ibv_context* context;
};
struct ibv_ah {
  ibv_context* context;
};
}  // namespace nd::verbs

namespace fake {

// A descriptor that can be read as often as add() was called.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) {}
  ~Bell() { ::close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  int fd() const { return fd_; }
  void add() {
    const uint64_t one = 1;
    if (write(fd_, &one, sizeof one) < 0) std::abort();
  }
  // Blocks, unless the program has made the descriptor non-blocking.
  bool take() {
    uint64_t one;
    return read(fd_, &one, sizeof one) == sizeof one;
  }

 private:
  int fd_;
};

class SpinLock {
 public:
  SpinLock() { pthread_spin_init(&lock_, PTHREAD_PROCESS_PRIVATE); }
  ~SpinLock() { pthread_spin_destroy(&lock_); }
  void lock() { pthread_spin_lock(&lock_); }
  void unlock() { pthread_spin_unlock(&lock_); }

 private:
  pthread_spinlock_t lock_;
};

// Fetched events that are not acknowledged keep their object alive: its destruction waits for them.
struct Acknowledged {
  uint32_t taken = 0, acknowledged = 0;
};

struct Context;

struct Channel : ibv_comp_channel {
  Bell bell;
  std::deque<struct CompletionQueue*> events;
};

struct CompletionQueue : ibv_cq {
  SpinLock lock;
  std::vector<ibv_wc> ring;
  uint32_t mask = 0, head = 0, tail = 0;
  enum class Arm { kNone, kSolicited, kAny } arm = Arm::kNone;
  Acknowledged events, asyncs;
};

struct SharedQueue : ibv_srq {
  SpinLock lock;
  std::deque<uint64_t> receives;
  std::vector<Receive> log;
  uint32_t mostRequests = 0, limit = 0;
  Acknowledged asyncs;
};

struct Outstanding {
  uint64_t id;
  bool signaled;
  int opcode;
};

struct QueuePair : ibv_qp {
  SpinLock lock;
  std::deque<Outstanding> sends;
  std::deque<uint64_t> receives;
  std::vector<Send> sendLog;
  std::vector<Receive> receiveLog;
  int state = 0, type = 0, flushIn = -1;
  bool signalAll = false;
  ibv_qp_cap cap{};
  ibv_qp_attr attributes{};
  std::multiset<std::string> groups;
  Acknowledged asyncs;
};

struct Context : ibv_context {
  Bell bell, commands;
  std::deque<ibv_async_event> events;
  uint32_t nextKey = 1, nextQpn = 0x11;
  // The objects of this context, which are destroyed at its end.
  std::set<ibv_pd*> pds;
  std::set<ibv_mr*> mrs;
  std::set<ibv_mw*> mws;
  std::set<Channel*> channels;
  std::set<CompletionQueue*> cqs;
  std::set<SharedQueue*> srqs;
  std::set<QueuePair*> qps;
  std::set<ibv_ah*> ahs;
};

struct CmEvent : rdma_cm_event {
  std::vector<uint8_t> data;
};

struct CmId : rdma_cm_id {
  char rest[416 - sizeof(rdma_cm_id)];
  int portSpace = 0;
  Acknowledged events;
};

struct CmChannel : rdma_event_channel {
  Bell bell;
  std::deque<CmEvent*> events;
};

class State final : public Fake {
 public:
  static State& get();

  long calls() const override { return calls_.load(); }
  std::string failed() const override;
  void neverFail() override;
  int alive(Kind kind) const override { return alive_[kind].load(); }
  std::string left() const override;
  void reset() override;
  ibv_qp* qp(uint32_t qpn) override { return find(qpn); }
  std::vector<Send> takeSends(uint32_t qpn) override;
  std::vector<Receive> takeReceives(uint32_t qpn) override;
  std::vector<Receive> takeShared(uint32_t srqContext) override;
  std::vector<int> takePostSizes() override;
  int state(uint32_t qpn) override;
  ibv_qp_attr attributesOf(uint32_t qpn) override;
  void completeSends(uint32_t qpn, int count, int status) override;
  bool completeReceive(uint32_t qpn, ibv_wc like) override;
  int queued(uint32_t cqContext) override;
  void overrun(uint32_t cqContext) override;
  void async(ibv_context* context, const ibv_async_event& event) override;
  ibv_context* context() override { return last_; }
  void qpEvent(uint32_t qpn, int type) override;
  void srqEvent(uint32_t srqContext, int type) override;
  void portEvent(int type) override;
  void cmEvent(uint32_t id, int type, int status, const rdma_conn_param& param) override;
  rdma_conn_param lastParam() const override { return lastParam_; }
  std::vector<uint8_t> lastData() const override { return lastData_; }

  // Whether this call is the one that fails; errno is set.
  bool fails(const char* name);
  void count(Kind kind, int change) { alive_[kind] += change; }
  void orphan(const char* what) { orphans_ += std::string(orphans_.empty() ? "" : ", ") + what; }
  void keepParam(const rdma_conn_param* param);
  void noteSize(int size);
  void opened(Context* context) { last_ = context; }

  void push(CompletionQueue& cq, const ibv_wc& wc, bool solicited);
  void flush(QueuePair& qp);  // its lock must be held
  // Waits until another thread has acknowledged all fetched events of an object.
  void await(Acknowledged& events);
  QueuePair* find(uint32_t qpn);
  CmId* idOf(uint32_t context);

  std::shared_mutex ends;  // ends of queue pairs; shared while a list of them is in use; taken before `mutex`
  std::mutex mutex;        // protects all below, and the sets and queues of events of contexts and channels
  std::condition_variable acknowledged;
  std::set<Context*> contexts;
  std::set<CmId*> ids;
  uint16_t nextPort = 40000;
  ibv_device device{};

 private:
  State();
  void setDefaults();
  CompletionQueue* cqOf(uint32_t context);
  SharedQueue* srqOf(uint32_t context);
  std::atomic<int> alive_[kKinds] = {};
  std::atomic<long> calls_{0};
  std::string failed_, orphans_;
  std::vector<int> sizes_;
  rdma_conn_param lastParam_{};
  std::vector<uint8_t> lastData_;
  Context* last_ = nullptr;
};

// Destroys the remaining objects of a context, and counts them as forgotten. The state is locked.
void endAll(Context& context);
// The data path functions of a context.
void fillOps(ibv_context_ops* ops);

}  // namespace fake
