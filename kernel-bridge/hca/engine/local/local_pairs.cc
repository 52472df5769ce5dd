#include "local/local_pairs.h"

#include <algorithm>
#include <cstdio>

#include "base/fence.h"
#include "platform/event.h"
#include "progress/spin_and_sleep_times.h"
#include "slots/host_events.h"

namespace nd {
namespace {

HostCounter counterOf(LocalHello::Reason reason) {
  switch (reason) {
    case LocalHello::kOption: return HostCounter::kLocalRefusedOption;
    case LocalHello::kUser: return HostCounter::kLocalRefusedUser;
    default: return HostCounter::kLocalRefusedSystem;
  }
}

}  // namespace

void LocalPairs::start(bool enabled, bool direct) {
  enabled_ = enabled;
  if (enabled && direct && !owner_.create()) counters_.add(HostCounter::kDirectImpossible);
  freedFd_ = makeEvent();
  if (!freedFd_.valid() ||
      !readiness_.add(freedFd_.get(), Readiness::kReadable, eventTag(EventKind::kPair, slots_.slot())))
    return;
  onOfferedRangeFreed([](void* self) { raiseEvent(static_cast<LocalPairs*>(self)->freedFd_.get()); }, this);
}

void LocalPairs::stop() {
  enabled_ = false;
  endOnOfferedRangeFreed(this);
  freedFd_.reset();
  for (Entry& e : entries_) {
    if (e.pair) close(*e.pair);
    e = {};
  }
  if (self_) self_->close();
  self_.reset();
  up_.clear();
  rang_.clear();
  deadline_ = UINT64_MAX;
}

// ── Set-up ────────────────────────────────────────────────────────────────────────────────────────

std::shared_ptr<LocalPair> LocalPairs::pairWith(uint32_t slot, uint64_t now) {
  if (!enabled_ || slot >= Slots::kMax) return nullptr;
  if (slot == slots_.slot()) {
    if (self_ || refuses_) return self_;
    auto pair = std::make_shared<LocalPair>(slot, counters_);
    if (!pair->startSelf()) return nullptr;
    pair->setEpoch(epoch_);
    self_ = std::move(pair);
    up_.push_back(self_.get());
    return self_;
  }
  Entry& e = entries_[slot];
  if (!e.pair && !refuses_) begin(slot, now);
  return e.pair && (e.pair->state == LocalPair::State::kRequested || e.pair->up()) ? e.pair : nullptr;
}

// Requests or makes an offer. Returns the pair, which may be refused, or null if no process owns the slot.
std::shared_ptr<LocalPair> LocalPairs::begin(uint32_t slot, uint64_t now) {
  Entry& e = entries_[slot];
  PeerIdentity peer;
  if (!slots_.identify(slot, &peer) || slots_.watch(slot) != 0) return nullptr;
  e.pair = std::make_shared<LocalPair>(slot, counters_);
  LocalPair& pair = *e.pair;
  if (!peer.ownUser || peer.process == 0) {
    refuse(pair, LocalHello::kUser, nullptr);
  } else if (slots_.slot() < slot) {
    if (!offer(pair, now)) refuse(pair, LocalHello::kSystem, nullptr);
  } else {
    LocalHello hello;
    if (!send(slot, FrameKind::kPairRequest, hello)) refuse(pair, LocalHello::kSystem, nullptr);
    await(pair, now + 2 * kSetupTimeoutNs);  // the other side's wait ends first
  }
  return e.pair;
}

bool LocalPairs::send(uint32_t slot, FrameKind kind, const LocalHello& hello, const Descriptor* fds, uint32_t fdCount) {
  LocalHello own = hello;
  own.slot = slots_.slot();
  Frame frame;
  frame.kind = kind;
  frame.body = reinterpret_cast<const uint8_t*>(&own);
  frame.bodyLength = sizeof own;
  return slots_.send(slot, frame, fds, fdCount) == 0;
}

bool LocalPairs::offer(LocalPair& pair, uint64_t now) {
  UniqueFd memory;
  UniqueFd own = makeEvent(), theirs = makeEvent();
  PeerIdentity peer;
  if (!own.valid() || !theirs.valid() || !pair.mapping.create(&memory)) return false;
  if (!slots_.identify(pair.slot, &peer)) return false;
  if (!readiness_.add(own.get(), Readiness::kReadable, eventTag(EventKind::kPair, pair.slot))) return false;
  const Descriptor fds[] = {memory.get(), own.get(), theirs.get()};
  pair.wakeFd = std::move(own);
  pair.peerWakeFd = std::move(theirs);
  pair.attach(0, peer.process, owner_.created());
  if (!send(pair.slot, FrameKind::kPairOffer, {}, fds, 3)) return false;
  await(pair, now + kSetupTimeoutNs);
  return true;
}

void LocalPairs::onFrame(const Frame& frame, FrameOrigin& origin, uint64_t now, PacketSink& sink) {
  if (frame.kind >= FrameKind::kMemoryOffer) return onMemory(frame, origin, sink);
  LocalHello hello;
  if (frame.bodyLength != sizeof hello) return counters_.add(HostCounter::kSlotBadFrames);
  std::memcpy(&hello, frame.body, sizeof hello);
  const uint32_t slot = hello.slot;
  PeerIdentity sender;
  if (!slots_.isOwner(slot, origin.connection, &sender)) return counters_.add(HostCounter::kSlotBadFrames);
  const bool lower = slots_.slot() < slot;
  if (frame.kind != FrameKind::kPairReply) {
    LocalHello::Reason no = LocalHello::kYes;
    if (!enabled_ || (refuses_ && !entries_[slot].pair)) no = LocalHello::kOption;
    if (!sender.ownUser || sender.process == 0) no = LocalHello::kUser;
    if (entries_[slot].refusal != LocalHello::kYes) no = entries_[slot].refusal;
    if (no != LocalHello::kYes) {
      if (!entries_[slot].pair && slots_.watch(slot) == 0) {
        entries_[slot].pair = std::make_shared<LocalPair>(slot, counters_);
        refuse(*entries_[slot].pair, no, nullptr);
      }
      return replyRefusal(slot, no);
    }
  }
  switch (frame.kind) {
    case FrameKind::kPairRequest:
      if (!lower) return counters_.add(HostCounter::kSlotBadFrames);
      if (entries_[slot].pair) return;  // this side's own offer is under way
      begin(slot, now);
      if (entries_[slot].refusal != LocalHello::kYes) replyRefusal(slot, entries_[slot].refusal);
      return;
    case FrameKind::kPairOffer:
      if (lower || (entries_[slot].pair && entries_[slot].pair->state != LocalPair::State::kRequested))
        return counters_.add(HostCounter::kSlotBadFrames);
      return onOffer(slot, origin, sender.process, sink);
    default:
      // A refusal may be the reply to an offer or a request, an acceptance only to an offer.
      if (!lower && hello.reason == LocalHello::kYes) return counters_.add(HostCounter::kSlotBadFrames);
      return onReply(slot, hello, sender.process, sink);
  }
}

void LocalPairs::onOffer(uint32_t slot, FrameOrigin& origin, ProcessId process, PacketSink& sink) {
  Entry& e = entries_[slot];
  if (!e.pair) {
    if (slots_.watch(slot) != 0) return;
    e.pair = std::make_shared<LocalPair>(slot, counters_);
  }
  LocalPair& pair = *e.pair;
  const bool good = origin.fdCount == 3 && isEvent(origin.fds[1].get()) && isEvent(origin.fds[2].get()) &&
                    pair.mapping.open(origin.fds[0].get()) &&
                    readiness_.add(origin.fds[2].get(), Readiness::kReadable, eventTag(EventKind::kPair, slot));
  pair.peerWakeFd = std::move(origin.fds[1]);
  pair.wakeFd = std::move(origin.fds[2]);
  if (!good) {
    refuse(pair, LocalHello::kSystem, &sink);
    return replyRefusal(slot, LocalHello::kSystem);
  }
  uint32_t offered = LocalSegment::kOffered;
  const bool taken = __atomic_compare_exchange_n(&pair.mapping.get()->state, &offered, LocalSegment::kAccepted, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (!taken) return refuse(pair, LocalHello::kSystem, &sink);  // the offer has been withdrawn
  pair.attach(1, process, owner_.created());
  pair.setEpoch(epoch_);
  send(slot, FrameKind::kPairReply, {});  // if it is lost, the process is gone
  goUp(pair, sink);
}

void LocalPairs::onReply(uint32_t slot, const LocalHello& hello, ProcessId, PacketSink& sink) {
  const std::shared_ptr<LocalPair> pair = entries_[slot].pair;
  if (!pair || pair->state != LocalPair::State::kRequested) return;
  if (hello.reason != LocalHello::kYes) return refuse(*pair, LocalHello::Reason(hello.reason), &sink);
  if (__atomic_load_n(&pair->mapping.get()->state, __ATOMIC_ACQUIRE) != LocalSegment::kAccepted)
    return refuse(*pair, LocalHello::kSystem, &sink);
  goUp(*pair, sink);
}

void LocalPairs::replyRefusal(uint32_t slot, LocalHello::Reason reason) {
  LocalHello no;
  no.reason = reason;
  send(slot, FrameKind::kPairReply, no);
}

void LocalPairs::goUp(LocalPair& pair, PacketSink& sink) {
  pair.state = LocalPair::State::kUp;
  pair.deadline = UINT64_MAX;
  pair.setEpoch(epoch_);
  counters_.add(HostCounter::kLocalPairsUp);
  up_.push_back(&pair);
  grown_ = true;
  if (pair.direct())
    sendMemory(pair.slot, FrameKind::kDirectTable, {}, owner_.fd());  // if it is lost, all payload goes through the
                                                                      // ring
  sink.onLocalPair(pair);
}

void LocalPairs::close(LocalPair& pair) {
  if (pair.wakeFd.valid()) readiness_.remove(pair.wakeFd.get());
  pair.close();
}

void LocalPairs::refuse(LocalPair& pair, LocalHello::Reason reason, PacketSink* sink) {
  close(pair);
  pair.state = LocalPair::State::kRefused;
  pair.deadline = UINT64_MAX;
  entries_[pair.slot].refusal = reason;
  counters_.add(counterOf(reason));
  if (sink != nullptr) sink->onLocalPair(pair);
}

void LocalPairs::await(LocalPair& pair, uint64_t due) {
  if (pair.state != LocalPair::State::kRequested) return;
  pair.deadline = due;
  deadline_ = std::min(deadline_, due);
}

void LocalPairs::onTime(uint64_t now, PacketSink& sink) {
  deadline_ = UINT64_MAX;
  for (Entry& e : entries_) {
    if (!e.pair) continue;
    LocalPair& pair = *e.pair;
    if (pair.deadline == UINT64_MAX) continue;
    if (pair.deadline > now) {
      deadline_ = std::min(deadline_, pair.deadline);
      continue;
    }
    uint32_t offered = LocalSegment::kOffered;
    if (pair.mapping.get() != nullptr &&
        !__atomic_compare_exchange_n(&pair.mapping.get()->state, &offered, LocalSegment::kWithdrawn, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      await(pair, now + kSetupTimeoutNs);  // accepted: the reply is under way
      continue;
    }
    counters_.add(HostCounter::kLocalRefusedSilent);
    refuse(pair, LocalHello::kSystem, &sink);
  }
}

// ── The end of a pair ─────────────────────────────────────────────────────────────────────────────

void LocalPairs::remove(LocalPair& pair) {
  up_.erase(std::remove(up_.begin(), up_.end(), &pair), up_.end());
  if (pair.up()) counters_.add(HostCounter::kLocalPairsEnded);
  close(pair);
}

void LocalPairs::forget(uint32_t slot) {
  if (slot >= Slots::kMax || !entries_[slot].pair) return;
  const std::shared_ptr<LocalPair> pair = entries_[slot].pair;
  entries_[slot].pair = nullptr;
  entries_[slot].refusal = LocalHello::kYes;
  remove(*pair);
}

// ── Memory from allocate() ──────────────────────────────────────────────────────────────────────────

void LocalPairs::onMemory(const Frame& frame, FrameOrigin& origin, PacketSink& sink) {
  LocalMemory memory;
  PeerIdentity sender;
  if (frame.bodyLength == sizeof memory) std::memcpy(&memory, frame.body, sizeof memory);
  if (frame.bodyLength != sizeof memory || !slots_.isOwner(memory.slot, origin.connection, &sender))
    return counters_.add(HostCounter::kSlotBadFrames);
  const uint32_t slot = memory.slot;
  LocalPair* const pair = entries_[slot].pair.get();
  if (pair == nullptr || !pair->up()) return;  // it has ended in the meantime
  switch (frame.kind) {
    case FrameKind::kMemoryOffer: {
      if (origin.fdCount != 1) return counters_.add(HostCounter::kSlotBadFrames);
      memory.mapped = pair->maps.add(memory, origin.fds[0].get(), pair->direct());
      if (memory.mapped && pair->peer.wantsDescriptor(memory.file))
        pair->maps.keep(memory.number, std::move(origin.fds[0]));
      counters_.add(memory.mapped ? HostCounter::kLocalMaps : HostCounter::kLocalMapsRefused);
      sendMemory(slot, FrameKind::kMemoryReply, memory, kNoDescriptor);  // if it is lost, ordinary copies are used
      return;
    }
    case FrameKind::kMemoryReply: return pair->offers.onReply(memory.number, memory.mapped == 1);
    case FrameKind::kDirectTable:
      if (origin.fdCount != 1 || !pair->direct() || !pair->peer.open(origin.fds[0].get()))
        return counters_.add(HostCounter::kSlotBadFrames);
      return sink.onLocalPair(*pair);
    case FrameKind::kMemoryRequest: return onMemoryRequest(*pair, memory);
    default:
      pair->peer.forgetWish(memory.file);
      if (pair->maps.remove(memory.number)) counters_.add(HostCounter::kLocalMapsEnded);
  }
}

void LocalPairs::onMemoryRequest(LocalPair& pair, const LocalMemory& memory) {
  bool writable;
  const SharedRange* const range = pair.direct() ? owner_.rangeOf(memory.file, &writable) : nullptr;
  if (range != nullptr && pair.offers.offer(*range, writable)) return;
  LocalMemory none;
  none.file = memory.file;
  sendMemory(pair.slot, FrameKind::kMemoryGone, none, kNoDescriptor);
}

bool LocalPairs::sendMemory(uint32_t slot, FrameKind kind, LocalMemory memory, Descriptor fd) {
  memory.slot = slots_.slot();
  Frame frame;
  frame.kind = kind;
  frame.body = reinterpret_cast<const uint8_t*>(&memory);
  frame.bodyLength = sizeof memory;
  return slots_.send(slot, frame, &fd, fd == kNoDescriptor ? 0 : 1) == 0;
}

void LocalPairs::sendMemories(LocalPair& pair) {
  pair.offers.sendAll(pair.direct(), [&](const LocalMemory& memory, Descriptor fd) {
    return sendMemory(pair.slot, fd == kNoDescriptor ? FrameKind::kMemoryGone : FrameKind::kMemoryOffer, memory, fd);
  });
  pair.peer.sendAll([&](const DirectPeer::Wish& wish) {
    return sendMemory(pair.slot, FrameKind::kMemoryRequest, {0, 0, 0, 0, wish.writable, wish.file}, kNoDescriptor);
  });
}

// ── Traffic ───────────────────────────────────────────────────────────────────────────────────────

bool LocalPairs::pending() const {
  for (LocalPair* pair : up_)
    if (pair->pending() || pair->broken() || (pair->stalled && pair->hasSpace())) return true;
  return false;
}

bool LocalPairs::spin(const std::atomic<uint32_t>& wanted) {
  for (LocalPair* pair : up_) pair->flush();
  for (uint32_t polls = 0; polls < progress::kRingPolls; polls += static_cast<uint32_t>(up_.size()) + 1) {
    for (const LocalPair* pair : up_)
      if (pair->pending()) return true;
    if (wanted.load(std::memory_order_relaxed) != 0) return false;
  }
  return false;
}

uint32_t LocalPairs::receive(PacketSink& sink, uint32_t budget) {
  uint32_t n = 0;
  const auto count = static_cast<uint32_t>(up_.size());
  if (next_ >= count) next_ = 0;
  for (uint32_t i = 0, at = next_; i < count && n < budget; i++, at = at + 1 < count ? at + 1 : 0) {
    LocalPair& pair = *up_[at];
    n += pair.receive(sink, budget - n);
    if (pair.stalled && pair.hasSpace()) sink.onLocalSpace(pair);
    if (!pair.broken()) continue;
    // Its connections fail. The process may continue, but is refused from now on.
    counters_.add(HostCounter::kLocalBroken);
    const uint32_t slot = pair.slot;
    remove(pair);
    entries_[slot].refusal = LocalHello::kSystem;
    sink.onPeerProcessGone(slot, false);
    return n;
  }
  next_++;
  return n;
}

uint32_t LocalPairs::receiveSelf(PacketSink& sink, uint32_t budget) { return self_ ? self_->receive(sink, budget) : 0; }

void LocalPairs::flush() {
  const uint32_t freed = offeredRangesFreed();
  for (LocalPair* pair : up_) {
    pair->flush(false);
    if (freed != freed_) pair->offers.sweep();
    if (pair->offers.news() || pair->peer.news()) sendMemories(*pair);
  }
  freed_ = freed;
}

void LocalPairs::revoke(uint64_t epoch) {
  epoch_ = epoch;
  for (LocalPair* pair : up_) pair->setEpoch(epoch);
  fullFence();  // a peer that sees later writes to the memory also sees this
  settle();
}

void LocalPairs::settle() {
  if (owner_.settle(up_.data(), up_.size()) == DirectOwner::Settled::kQuiet) return;
  for (LocalPair* pair : up_) pair->offers.sweep();
}

void LocalPairs::rang(uint32_t slot) {
  if (slot >= Slots::kMax || entries_[slot].rang) return;
  entries_[slot].rang = true;
  rang_.push_back(slot);
}

void LocalPairs::stopRinging() {
  for (const uint32_t slot : rang_) {
    Entry& e = entries_[slot];
    e.rang = false;
    const Descriptor fd = slot == slots_.slot() ? freedFd_.get() : e.pair ? e.pair->wakeFd.get() : kNoDescriptor;
    if (fd != kNoDescriptor) clearEvent(fd);
  }
  rang_.clear();
}

bool LocalPairs::fallAsleep(bool others) {
  stopRinging();
  for (LocalPair* pair : up_) {
    pair->flush();
    pair->sleeping(true);
  }
  fullFence();  // pairs with the fence in LocalPair::flush()
  if (!pending()) return true;
  if (!others)
    for (LocalPair* pair : up_) pair->sleeping(false);
  return false;
}

}  // namespace nd
