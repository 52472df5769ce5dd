#include "world_net.h"

namespace world {

uint64_t ManualClock::now() const {
  if (const std::function<void()> now = hook) now();
  return time.load(std::memory_order_relaxed);
}

Net::Net() = default;

Net::~Net() = default;

void Net::send(Frame f) {
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

void Net::release() {
  frames.push_back(std::move(held.front()));
  held.pop_front();
}

bool Net::take(const Gid& gid, Frame* f) {
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

FakeLink::FakeLink(Net& n, const Gid& g) : net(n), gid(g) {}

FakeLink::~FakeLink() = default;

bool FakeLink::send(const Path& path, const OutPacket& p) {
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

bool FakeLink::sendSingle(const Path& path, uint8_t* bth, uint32_t length) {
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

std::shared_ptr<LocalPair> FakeLink::localPair(uint32_t) {
  pairAsked = true;
  return pair;
}

void FakeLink::revoke(uint64_t epoch) {
  if (pair) pair->setEpoch(epoch);
  settleDirect();
}

bool FakeLink::publish() {
  keyTable = std::make_unique<DirectOwner>(directCounters);
  return keyTable->create();
}

void FakeLink::settleDirect() {
  LocalPair* const pairs[] = {pair.get()};
  if (keyTable && pair) keyTable->settle(pairs, 1);
}

bool FakeLink::directOccupied(const std::vector<DirectWithdrawn>& withdrawn) {
  LocalPair* const pairs[] = {pair.get()};
  return keyTable && pair && keyTable->occupied(pairs, 1, withdrawn);
}

bool FakeLink::selfPending() const { return pair && pair->self && pair->pending(); }

void FakeLink::pollPair(PacketSink& sink, uint32_t budget) {
  pair->receive(sink, budget);
  if (pair->stalled && pair->hasSpace()) sink.onLocalSpace(*pair);
  if (!pair->broken() || !pair->up()) return;
  pair->close();
  sink.onPeerProcessGone(pair->slot, false);
}

void FakeLink::flush() {
  if (pair) pair->flush();
}

bool FakeLink::quiet(uint64_t) const { return localOnly && pair && pair->up(); }

void FakeLink::pollLocal(PacketSink& sink, uint32_t budget, const std::atomic<uint32_t>*) { pollPair(sink, budget); }

bool FakeLink::poll(PacketSink& sink, uint32_t budget) {
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

Status FakeLink::watchPeer(uint32_t slot) {
  watched.insert(slot);
  return peerAlive ? Status::kSuccess : Status::kHostUnreachable;
}

Status FakeLink::joinGroup(const Gid& group, uint32_t interface) {
  if (interface != gid.raw[15]) return Status::kNetworkUnreachable;
  std::lock_guard<std::mutex> lock(net.mutex);
  CHECK(net.members.insert({group.raw, gid.raw}).second);
  return Status::kSuccess;
}

void FakeLink::leaveGroup(const Gid& group, uint32_t interface) {
  std::lock_guard<std::mutex> lock(net.mutex);
  CHECK_EQ(interface, gid.raw[15]);
  CHECK_EQ(net.members.erase({group.raw, gid.raw}), 1u);
}

}  // namespace world
