// The in-memory network between the HCAs of world.h: a manually advanced clock, frames in flight, seeded faults,
// groups.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/packet_headers.h"
#include "check.h"
#include "engine/engine.h"
#include "local/direct_owner.h"
#include "local/local_pair.h"
#include "platform/os.h"

namespace world {

using namespace nd;
using namespace nd::abi;

struct Random {
  uint64_t s;
  explicit Random(uint64_t seed) : s(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint32_t next() {
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return uint32_t(s >> 16);
  }
  uint32_t below(uint32_t n) { return next() % n; }
  bool chance(double p) { return next() < p * 4294967296.0; }
};

struct ManualClock final : Clock {
  std::atomic<uint64_t> time{1'000'000'000};
  std::function<void()> hook;  // called when the queue is polled
  uint64_t now() const override;
};

struct Frame {
  Gid source, destination;
  std::vector<uint8_t> bytes;
  Gid port{};  // the address at which it arrives
  uint8_t trafficClass = 0;
  wire::Bth bth() const { return wire::parseBth(bytes.data()); }
  uint8_t syndrome() const { return bytes[12]; }
};

struct Faults {
  double drop = 0, duplicate = 0, reorder = 0;
};

// All frames in flight, in order. `filter` sees each frame sent and may change or drop (false) it.
struct Net {
  std::mutex mutex;
  std::deque<Frame> frames;
  std::deque<Frame> held;
  Faults faults;
  Random random{1};
  std::function<bool(Frame&)> filter;
  std::vector<Frame> log;
  bool logging = false;
  uint8_t ecn = 0;                                                                // the ECN mark of arriving packets
  std::set<std::pair<std::array<uint8_t, 16>, std::array<uint8_t, 16>>> members;  // group, address

  Net();
  ~Net();
  void send(Frame f);
  void release();
  bool take(const Gid& gid, Frame* f);
};

// Whether links start with the fast path of single small packets.
inline bool linksTakeAlone = false;

struct FakeLink final : Link {
  Net& net;
  Gid gid;
  bool takesSingle = linksTakeAlone;
  bool local = false, peerAlive = true;
  std::set<uint32_t> watched;
  std::vector<uint32_t> gone, ended;  // peers that ended without and with a goodbye
  std::vector<uint32_t> madsSent;
  FakeLink(Net& n, const Gid& g);
  ~FakeLink() override;
  bool send(const Path& path, const OutPacket& p) override;
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length) override;
  // The local link, if a test has created one.
  std::shared_ptr<LocalPair> pair;
  bool pairAsked = false;
  std::shared_ptr<LocalPair> localPair(uint32_t) override;
  void revoke(uint64_t epoch) override;
  // Direct access, if a test has started it.
  HostCounters directCounters;
  std::unique_ptr<DirectOwner> keyTable;
  bool publish();
  DirectOwner* directOwner() override { return keyTable.get(); }
  void settleDirect() override;
  bool directOccupied(const std::vector<DirectWithdrawn>& withdrawn) override;
  bool selfPending() const override;
  void pollPair(PacketSink& sink, uint32_t budget);
  void flush() override;
  // Reports to a poller that only the local link has something to poll.
  bool localOnly = false;
  bool quiet(uint64_t) const override;
  void pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>*) override;
  bool poll(PacketSink& sink, uint32_t budget) override;
  bool isLocal(const Gid&) override { return local; }
  Status watchPeer(uint32_t slot) override;
  // The interface of node n is number n.
  uint32_t interfaceOf(const Gid& address) override { return address == gid ? gid.raw[15] : 0; }
  Status joinGroup(const Gid& group, uint32_t interface) override;
  void leaveGroup(const Gid& group, uint32_t interface) override;
};

}  // namespace world
