// The network in memory between the HCAs of world.h: a clock moved by hand, frames under way, seeded faults, groups.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "base/wire.h"
#include "check.h"
#include "engine/engine.h"
#include "local/direct_board.h"
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
  std::function<void()> hook;  // called when somebody looks
  uint64_t now() const override {
    if (const std::function<void()> now = hook) now();
    return time.load(std::memory_order_relaxed);
  }
};

struct Frame {
  Gid source, destination;
  std::vector<uint8_t> bytes;
  Gid port{};  // where it arrives
  uint8_t trafficClass = 0;
  wire::Bth bth() const { return wire::parseBth(bytes.data()); }
  uint8_t syndrome() const { return bytes[12]; }
};

struct Faults {
  double drop = 0, duplicate = 0, reorder = 0;
};

// All frames under way, in order. `filter` sees each frame sent and may change or drop (false) it.
struct Net {
  std::mutex mutex;
  std::deque<Frame> frames;
  std::deque<Frame> held;
  Faults faults;
  Random random{1};
  std::function<bool(Frame&)> filter;
  std::vector<Frame> log;
  bool logging = false;
  uint8_t ecn = 0;  // as what arrives is marked
  std::set<std::pair<std::array<uint8_t, 16>, std::array<uint8_t, 16>>> members;  // group, address

  void send(Frame f) {
    std::lock_guard<std::mutex> lock(mutex);
    if (f.destination.isMulticast()) {
      if (logging) log.push_back(f);
      for (const auto& m : members) {
        if (m.first != f.destination.raw) continue;
        f.port.raw = m.second;
        frames.push_back(f);
      }
      return;
    }
    f.port = f.destination;
    if (logging) log.push_back(f);
    if (filter && !filter(f)) return;
    if (random.chance(faults.drop)) return;
    if (random.chance(faults.reorder)) {
      held.push_back(std::move(f));
      return;
    }
    if (random.chance(faults.duplicate)) frames.push_back(f);
    frames.push_back(std::move(f));
    if (!held.empty() && random.chance(0.4)) release();
  }
  void release() {
    frames.push_back(std::move(held.front()));
    held.pop_front();
  }
  bool take(const Gid& gid, Frame* f) {
    std::lock_guard<std::mutex> lock(mutex);
    if (frames.empty() && !held.empty()) release();
    for (auto it = frames.begin(); it != frames.end(); ++it) {
      if (it->port != gid && it->destination != gid) continue;
      *f = std::move(*it);
      frames.erase(it);
      return true;
    }
    return false;
  }
};

// Whether links begin with the fast path of single small packets.
inline bool linksTakeAlone = false;

struct FakeLink final : Link {
  Net& net;
  Gid gid;
  bool takesSingle = linksTakeAlone;
  bool local = false, peerAlive = true;
  std::set<uint32_t> watched;
  std::vector<uint32_t> gone, ended;  // without and with a goodbye
  std::vector<uint32_t> madsSent;
  FakeLink(Net& n, const Gid& g) : net(n), gid(g) {}
  bool send(const Path& path, const OutPacket& p) override {
    Frame f;
    f.source = path.source;
    f.destination = path.destination;
    f.trafficClass = path.trafficClass;
    f.bytes.assign(p.header, p.header + p.headerLength);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p.pieceCount; i++) {
      const uint8_t* data = static_cast<const uint8_t*>(p.pieces[i].data);
      f.bytes.insert(f.bytes.end(), data, data + p.pieces[i].length);
      n += uint32_t(p.pieces[i].length);
    }
    CHECK_EQ(n, p.payloadLength);
    f.bytes.insert(f.bytes.end(), p.padLength, 0);
    net.send(std::move(f));
    return true;
  }
  bool sendSingle(const Path& path, uint8_t* bth, uint32_t length) override {
    if (!takesSingle) return false;
    CHECK(length >= wire::kBthBytes && length <= kSingleMostBytes && length % 4 == 0);
    Frame f;
    f.source = path.source;
    f.destination = path.destination;
    f.trafficClass = path.trafficClass;
    f.bytes.assign(bth, bth + length);
    net.send(std::move(f));
    std::memset(bth - kSingleRoom, 0xA5, kSingleRoom + length + 4);
    return true;
  }
  // The local link, where a test has made one.
  std::shared_ptr<LocalPair> pair;
  bool pairAsked = false;
  std::shared_ptr<LocalPair> localPair(uint32_t) override {
    pairAsked = true;
    return pair;
  }
  void revoke(uint64_t epoch) override {
    if (pair) pair->setEpoch(epoch);
    settleDirect();
  }
  // Direct access, where a test has begun it.
  HostCounters directCounters;
  std::unique_ptr<DirectBoard> board;
  bool publish() {
    board = std::make_unique<DirectBoard>(directCounters);
    return board->create();
  }
  DirectBoard* directBoard() override { return board.get(); }
  void settleDirect() override {
    LocalPair* const pairs[] = {pair.get()};
    if (board && pair) board->settle(pairs, 1);
  }
  bool directOccupied(const std::vector<DirectWithdrawn>& withdrawn) override {
    LocalPair* const pairs[] = {pair.get()};
    return board && pair && board->occupied(pairs, 1, withdrawn);
  }
  bool selfPending() const override { return pair && pair->self && pair->pending(); }
  void pollPair(PacketSink& sink, uint32_t budget) {
    pair->receive(sink, budget);
    if (pair->stalled && pair->hasSpace()) sink.onLocalSpace(*pair);
    if (!pair->broken() || !pair->up()) return;
    pair->close();
    sink.onPeerProcessGone(pair->slot, false);
  }
  void flush() override {
    if (pair) pair->flush();
  }
  // A poller is told that only the local link has anything.
  bool localOnly = false;
  bool quiet(uint64_t) const override { return localOnly && pair && pair->up(); }
  void pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>*) override { pollPair(sink, budget); }
  bool poll(PacketSink& sink, uint32_t budget) override {
    if (pair) pollPair(sink, budget);
    for (uint32_t slot : gone) sink.onPeerProcessGone(slot, false);
    for (uint32_t slot : ended) sink.onPeerProcessGone(slot, true);
    gone.clear();
    ended.clear();
    Frame f;
    for (uint32_t i = 0; i < budget; i++) {
      if (!net.take(gid, &f)) return false;
      PacketMeta meta;
      meta.source = f.source;
      meta.destination = f.destination;
      meta.trafficClass = uint8_t(f.trafficClass | net.ecn);
      if (f.destination.isMulticast()) meta.scopeId = f.port.raw[15];
      // A copy of exactly this size, so that ASan sees reads beyond it.
      std::vector<uint8_t> exact(f.bytes);
      exact.shrink_to_fit();
      const bool small = exact.size() >= wire::kBthBytes && exact.size() <= kSingleMostBytes && exact.size() % 4 == 0;
      if (takesSingle && small && sink.onSinglePacket(meta, exact.data(), uint32_t(exact.size()))) continue;
      sink.onPacket(meta, exact.data(), uint32_t(exact.size()));
    }
    return true;
  }
  bool isLocal(const Gid&) override { return local; }
  bool watchPeer(uint32_t slot) override {
    watched.insert(slot);
    return peerAlive;
  }
  // The interface of node n is number n.
  uint32_t interfaceOf(const Gid& address) override { return address == gid ? gid.raw[15] : 0; }
  Status joinGroup(const Gid& group, uint32_t interface) override {
    if (interface != gid.raw[15]) return Status::kNetworkUnreachable;
    std::lock_guard<std::mutex> lock(net.mutex);
    CHECK(net.members.insert({group.raw, gid.raw}).second);
    return Status::kSuccess;
  }
  void leaveGroup(const Gid& group, uint32_t interface) override {
    std::lock_guard<std::mutex> lock(net.mutex);
    CHECK_EQ(interface, gid.raw[15]);
    CHECK_EQ(net.members.erase({group.raw, gid.raw}), 1u);
  }
};

}  // namespace world
