// Traffic of connections, and its invariants. Each byte arrives once and in order, requests complete in order, and
// outstanding work ends in bounded time.
//
// A flow is a connection's traffic. Each direction is a half, which contains the requests of one side. The bytes of a
// message are derived from its number, so a receiver can check them without the sender's data.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "host.h"

namespace simulation {

enum RequestKind : uint32_t {
  kSendKind,
  kWriteKind,
  kWriteImmediateKind,
  kReadKind,
  kFetchAddKind,
  kSwapKind,
  kRequestKinds
};

struct Traffic {
  std::array<double, kRequestKinds> weights{1, 0, 0, 0, 0, 0};
  uint32_t minBytes = 1, maxBytes = 4096;
  uint32_t depth = 8, receives = 16;  // powers of two
  uint64_t messages = 0;              // 0: until the flow is stopped
  uint64_t thinkNs = 0;               // maximum pause between messages
  double late = 0;                    // share of receives that are posted late
  uint64_t lateNs = 2'000'000;        // maximum delay of late receives
  double inlined = 0, unsignaled = 0;
};

struct Half;

struct Endpoint {
  uint32_t id = 0, side = 0;
  struct Flow* flow = nullptr;
  Host* host = nullptr;  // null: the host has crashed
  Handle qp = 0;
  uint32_t qpn = 0;
  uint64_t ring = 0, range = 0;
  std::vector<uint64_t> memory;
  uint32_t lkey = 0, rkey = 0;
  uint32_t sendEntries = 0, sendStride = 0, receiveEntries = 0, receiveStride = 0;
  uint32_t sendProducer = 0, receiveProducer = 0, received = 0;
  uint32_t requestsAt = 0, receivesAt = 0, writesAt = 0, readAt = 0, atomicsAt = 0;  // offsets in the memory
  uint32_t requestBytes = 0, responseBytes = 0;                                      // size of a slot
  Half* out = nullptr;                                                               // its requests
  Half* in = nullptr;                                                                // requests that it serves
  bool ending = false;  // its queue pair is in ERROR or about to be
  uint8_t* at(uint32_t offset) { return reinterpret_cast<uint8_t*>(memory.data()) + offset; }
  uint32_t* header() { return reinterpret_cast<uint32_t*>(ring); }
};

struct Request {
  RequestKind kind;
  uint64_t number;
  uint32_t wqe, bytes, place, remote;  // offsets in the memory of its own side and of the peer
  uint64_t key;
};

struct Expected {
  RequestKind kind;
  uint64_t number;
  uint32_t bytes;
  uint64_t key;
};

struct Half {
  bool active = false;
  Traffic traffic;
  Endpoint *from = nullptr, *to = nullptr;
  Random random{0};
  uint64_t key = 0;
  std::deque<Request> outstanding;
  std::deque<Expected> expected;
  std::vector<std::pair<uint64_t, uint32_t>> written;  // key and length of the last WRITE to each slot of the peer
  uint64_t posted = 0, completed = 0, arrived = 0, writes = 0, adds = 0, swaps = 0, silent = 0;
  uint64_t bytes = 0;  // in requests completed since the last reset
  uint64_t progressAt = 0, postAt = 0, startedAt = 0, doneAt = 0;
  uint32_t failure = 0;  // the status of the first request that failed
  bool failed = false, stopped = false;
  bool done() const {
    const bool all = stopped || (traffic.messages != 0 && posted == traffic.messages);
    return !active || failed || (all && outstanding.empty() && expected.empty());
  }
};

struct Flow {
  uint32_t id = 0;
  std::array<Half, 2> halves;  // from side 0 to side 1, and back
  std::array<Endpoint*, 2> ends{};
  bool mayFail = false, started = false, reported = false;
  uint64_t stuckNs = 0;
};

class Flows {
 public:
  explicit Flows(class Simulation& simulation) : s_(simulation) {}

  uint32_t add(const Traffic* forth, const Traffic* back, bool mayFail, uint64_t stuckNs);
  Endpoint& makeEndpoint(Host& host, uint32_t flow, uint32_t side);
  Endpoint* endpoint(uint32_t id) { return id < endpoints_.size() ? endpoints_[id].get() : nullptr; }
  Endpoint* byQpn(const Host& host, uint32_t qpn);
  Flow& flow(uint32_t id) { return *flows_[id]; }
  size_t count() const { return flows_.size(); }
  Status bring(Endpoint& end, QpAttributes attributes);
  // Starts the requests of both sides, which are connected.
  void start(Flow& flow, Endpoint& client, Endpoint& server);
  void stop(Flow& flow);
  void end(Endpoint& end);       // moves to ERROR, takes the flushed completions and destroys the objects
  void crash(const Host& host);  // removes its endpoints; their peers may fail
  void complete(const uint32_t* cqe);
  void post(Flow& flow, uint32_t half);
  void receive(Endpoint& end);  // posts one receive
  void watch();
  void resetFigures();

 private:
  void request(Half& half);
  void writeRequest(Half& half, const Request& r, bool signaled);
  void onSendCompletion(Endpoint& end, const uint32_t* cqe);
  void onReceiveCompletion(Endpoint& end, const uint32_t* cqe);
  void check(Half& half, const Request& r);
  void report(Flow& flow);
  bool equal(const Half& half, const char* what, const uint8_t* from, uint32_t bytes, uint64_t key, uint64_t number);
  std::string name(const Half& half) const;
  void wrong(const Half& half, const std::string& what);

  Simulation& s_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<Flow>> flows_;
};

}  // namespace simulation
