// The network: hosts, switches and the links between them. Each end of a link has a queue with a rate, a capacity and a
// marking threshold. A fault depends on the seed, the queue and the packet's number in it, so removing one fault does
// not change the others.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "base/packet_headers.h"
#include "seeded.h"

namespace simulation {

using nd::Gid;

struct Frame {
  static constexpr uint32_t kMostBytes = 64 + nd::extensions::kPacketBytesLongest + 4;
  Gid source, destination;
  uint8_t trafficClass = 0;
  uint32_t length = 0;  // from the BTH to the last pad byte
  uint32_t port = 0;    // the port at which it arrives
  Frame* next = nullptr;
  uint8_t bytes[kMostBytes];
  bool isMad() const { return bytes[0] == nd::wire::kOpUdSendOnly; }
};

enum class EventKind : uint8_t { kArrival, kStep, kPost, kReceive, kTimer, kWatch };

struct Event {
  uint64_t at, order;
  EventKind kind;
  uint32_t index;
  uint64_t detail;
  Frame* frame;
  bool operator>(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
};

// Pending events, ordered by time.
class Agenda {
 public:
  uint64_t now = 0;
  void add(uint64_t at, EventKind kind, uint32_t index, uint64_t detail = 0, Frame* frame = nullptr);
  bool empty() const { return heap_.empty(); }
  uint64_t earliest() const { return heap_.empty() ? UINT64_MAX : heap_[0].at; }
  Event take();
  template <typename F>
  void forEachFrame(F f) {
    for (Event& e : heap_)
      if (e.frame) f(e.frame);
  }

 private:
  std::vector<Event> heap_;
  uint64_t order_ = 0;
};

enum class Fault : uint8_t { kNone, kLoss, kDuplicate, kDelay, kAncient };

// Fault probabilities of a packet.
struct FaultRates {
  double loss = 0, duplicate = 0, delay = 0, ancient = 0;
};

struct AppliedFault {
  uint32_t port;
  uint64_t number;
  Fault fault;
};

struct Port {
  uint32_t from = 0, to = 0;
  double nsPerByte = 0.8;
  uint64_t delayNs = 1000, capacity = 1 << 20, mark = 0;  // bytes; mark 0: none
  uint32_t mtu = 0;  // longer packets are dropped silently (IP header to ICRC); 0: none
  bool up = true;
  FaultRates data, mads;
  uint64_t longestDelayNs = 100'000, longestAncientNs = 60'000'000'000;
  // Queue
  uint64_t freeAt = 0, queued = 0, count = 0;
  std::deque<std::pair<uint64_t, uint32_t>> waiting;  // departure time and length
  // Figures since the last reset
  static constexpr uint32_t kBuckets = 256;
  std::array<uint32_t, kBuckets> seen{};  // histogram of the queue lengths that packets found
  uint64_t samples = 0, longest = 0, dropped = 0, tooLong = 0, marked = 0, sent = 0, sentBytes = 0;
};

class Network {
 public:
  // Headers of Ethernet (with preamble, gap and check sequence), IPv4 and UDP, and the ICRC.
  static constexpr uint32_t kOverhead = 70;
  static constexpr uint32_t kIpOverhead = 32;  // the part that counts towards an MTU

  Network(uint64_t seed, Agenda& agenda) : seed_(seed), agenda_(agenda) {}
  ~Network();
  uint32_t addHost(const Gid& gid);
  uint32_t addSwitch();
  // Returns the number n of the link. Its queues are 2n from a to b, and 2n + 1 back.
  uint32_t addLink(uint32_t a, uint32_t b);
  void findRoutes();
  bool isHost(uint32_t vertex) const { return vertexes_[vertex].host; }

  Frame* allocate();
  void release(Frame* frame);
  void send(uint32_t host, Frame* frame);
  // Called when a frame has reached the end of its link. Returns true if the destination host now owns it.
  bool arrive(Frame* frame, uint32_t vertex);

  std::vector<Port> ports;
  // Replaces random faults by these.
  void prescribe(const std::vector<AppliedFault>& faults);
  std::vector<AppliedFault> applied;
  uint64_t packets = 0, lost = 0, digest = 0, live = 0;

 private:
  struct Vertex {
    bool host = false;
    std::vector<uint32_t> out;                  // ports
    std::vector<std::vector<uint32_t>> routes;  // routes of a switch, by host
  };
  static constexpr size_t kMostApplied = 100'000;
  void enqueue(uint32_t number, Frame* frame);
  Fault faultOf(uint32_t port, uint64_t number, bool mad) const;
  Frame* copyOf(const Frame& frame);

  const uint64_t seed_;
  Agenda& agenda_;
  std::vector<Vertex> vertexes_;
  std::unordered_map<uint64_t, uint32_t> hosts_;  // by a hash of the GID
  bool prescribed_ = false;
  std::unordered_map<uint64_t, Fault> only_;
  std::vector<std::unique_ptr<Frame>> frames_;
  Frame* free_ = nullptr;
};

}  // namespace simulation
