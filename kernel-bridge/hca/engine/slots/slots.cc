#include "slots/slots.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "base/copy.h"
#include "platform/local_socket.h"
#include "slots/host_events.h"

namespace nd {
std::string slotName(uint32_t slot) { return kSlotPrefix + std::to_string(slot); }

// ── Inbound ─────────────────────────────────────────────────────────────────────────────────────────────────

bool Inbound::accept(Descriptor listener, uint32_t budget, uint32_t claim) {
  for (uint32_t i = 0; i < budget; i++) {
    UniqueFd fd;
    const int error = acceptLocal(listener, &fd);
    if (error == EACCES) counters_.add(HostCounter::kSlotRefused);
    if (error == EACCES || error == ECONNABORTED || error == EINTR) continue;
    if (error == EAGAIN || error == EINVAL) return true;  // none is waiting; EINVAL: after refuseLocal()
    if (error != 0) {
      counters_.add(HostCounter::kSlotNoDescriptor);
      return false;
    }
    if (connections_.size() >= kMaxConnections) {
      counters_.add(HostCounter::kSlotRefused);
      continue;
    }
    names_.forget();
    const uint32_t id = nextId_++;
    if (!readiness_.add(fd.get(), Readiness::kReadable | Readiness::kEnded, eventTag(EventKind::kInbound, id)))
      continue;
    Connection& connection = connections_[id];
    connection.fd = std::move(fd);
    connection.claim = claim;
  }
  return true;
}

void Inbound::acceptAll(Descriptor listener) { accept(listener, kMaxConnections, 0); }

void Inbound::closeClaim(uint32_t claim) {
  for (auto i = connections_.begin(); i != connections_.end();)
    i = i->second.claim == claim ? connections_.erase(i) : std::next(i);
}

void Inbound::sayGoodbye() {
  Frame goodbye;
  goodbye.kind = FrameKind::kGoodbye;
  for (const auto& connection : connections_)
    sendFrame(connection.second.fd.get(), goodbye);  // fails if the process has ended
}

uint32_t Inbound::read(uint32_t id, uint32_t budget, Handler handler, void* argument) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return 0;
  const Descriptor fd = found->second.fd.get();
  uint32_t count = 0;
  while (count < budget) {
    FrameOrigin origin;
    origin.connection = fd;
    origin.id = id;
    const int64_t n = receiveLocal(fd, buffer_, sizeof buffer_, origin.fds, &origin.fdCount);
    if (n == -EAGAIN) return count;
    Frame frame;
    if (n <= 0 || !frame.decode(buffer_, static_cast<uint32_t>(n))) {
      if (n > 0) counters_.add(HostCounter::kSlotBadFrames);
      connections_.erase(found);
      return count;
    }
    count++;
    handler(argument, frame, origin);
  }
  return count;
}

// Returns whether the last frame on a closed connection is a goodbye.
static bool hasGoodbye(Descriptor connection) {
  uint8_t bytes[Frame::kHeaderBytes + 1];
  Frame frame;
  bool found = false;
  // If unread packets were lost with the connection, an error is reported first.
  for (int attempt = 0; attempt < 2; attempt++) {
    int64_t n;
    while ((n = receiveLocal(connection, bytes, sizeof bytes)) > 0)
      found = frame.decode(bytes, static_cast<uint32_t>(n)) && frame.kind == FrameKind::kGoodbye;
    if (n != -ECONNRESET) break;
  }
  return found;
}

// ── Slots ───────────────────────────────────────────────────────────────────────────────────────────────────

int Slots::claim() {
  std::vector<uint32_t> taken = live();
  for (uint32_t n = 0; n < kMax; n++) {
    if (std::binary_search(taken.begin(), taken.end(), n)) continue;
    const int error = names_.claim(slotName(n), &listener_);
    if (error == EADDRINUSE) continue;
    if (error != 0) return error;
    if (!readiness_.add(listener_.get(), Readiness::kReadable, eventTag(EventKind::kSlotListener, 0))) return ENOMEM;
    slot_ = n;
    return 0;
  }
  return EADDRINUSE;
}

void Slots::release() {
  // The name is released last, so that frames from the slot's next owner come after the end of these connections.
  for (auto& p : peers_) p.reset();
  listener_.reset();
}

std::vector<uint32_t> Slots::live() {
  std::vector<uint32_t> slots;
  for (const std::string& name : names_.list(kSlotPrefix).value_or(std::vector<std::string>())) {
    char* end = nullptr;
    const unsigned long n = std::strtoul(name.c_str(), &end, 10);
    if (!name.empty() && *end == 0 && n < kMax) slots.push_back(static_cast<uint32_t>(n));
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

const std::vector<uint32_t>& Slots::liveNow(uint64_t now) {
  if (now >= liveUntil_) {
    live_ = live();
    liveUntil_ = now + kLiveNs;
  }
  return live_;
}

int Slots::connectTo(uint32_t slot, UniqueFd* fd, ProcessId* process, LocalNames::Lookup lookup) {
  const int error = names_.connect(slotName(slot), fd, process, lookup);
  if (error != 0) {
    if (error == EACCES) counters_.add(HostCounter::kSlotRefused);
    return error;
  }
  // With privileges the buffer may exceed the OS limit. The queue below holds the rest.
  widenLocal(fd->get(), kMaxQueuedBytes);
  if (!readiness_.add(fd->get(), Readiness::kEnded, eventTag(EventKind::kOutbound, slot))) return ENOMEM;
  return 0;
}

Slots::Peer* Slots::peer(uint32_t slot, int* error, LocalNames::Lookup lookup) {
  *error = 0;
  if (slot >= kMax) {
    *error = ECONNREFUSED;
    return nullptr;
  }
  if (peers_[slot]) return peers_[slot].get();
  auto fresh = std::make_unique<Peer>();
  *error = connectTo(slot, &fresh->fd, &fresh->process, lookup);
  if (*error != 0) return nullptr;
  peers_[slot] = std::move(fresh);
  return peers_[slot].get();
}

int Slots::send(uint32_t slot, const Frame& frame, const Descriptor* fds, uint32_t fdCount) {
  int error = 0;
  Peer* p = peer(slot, &error, LocalNames::Lookup::kRecent);
  if (p == nullptr) {
    counters_.add(error == EAGAIN           ? HostCounter::kSlotQueueFull
                  : isDescriptorLack(error) ? HostCounter::kSlotNoDescriptor
                                            : HostCounter::kUnknownSlot);
    return error;
  }
  if (p->queue.empty()) {
    error = sendFrame(p->fd.get(), frame, fds, fdCount);
    if (error == 0) {
      counters_.add(HostCounter::kForwardedOut);
      return 0;
    }
    if (error != EAGAIN && error != ENOBUFS) {
      counters_.add(HostCounter::kUnknownSlot);  // it has just ended; its event follows
      return error;
    }
  }
  const size_t bytes = Frame::kHeaderBytes + frame.bodyLength;
  if (p->queue.size() >= kMaxQueuedFrames || p->queuedBytes + bytes > kMaxQueuedBytes) {
    counters_.add(HostCounter::kSlotQueueFull);
    return EAGAIN;
  }
  Queued copy;
  copy.bytes.resize(bytes);
  frame.encodeHeader(copy.bytes.data());
  copyBytes(copy.bytes.data() + Frame::kHeaderBytes, frame.body, frame.bodyLength);
  for (uint32_t i = 0; i < fdCount; i++) {
    copy.fds[i] = duplicateDescriptor(fds[i]);
    if (!copy.fds[i].valid()) return EMFILE;
  }
  copy.fdCount = fdCount;
  p->queue.push_back(std::move(copy));
  p->queuedBytes += bytes;
  setWantsOut(slot, *p, true);
  return 0;
}

void Slots::sendToOthers(const Frame& frame, uint64_t now) {
  for (const uint32_t other : liveNow(now))
    if (other != slot_) send(other, frame);
}

void Slots::setWantsOut(uint32_t slot, Peer& p, bool wanted) {
  if (p.wantsOut == wanted) return;
  p.wantsOut = wanted;
  readiness_.change(p.fd.get(), Readiness::kEnded | (wanted ? Readiness::kWritable : 0u),
                    eventTag(EventKind::kOutbound, slot));
}

void Slots::drain(uint32_t slot, Peer& p) {
  while (!p.queue.empty()) {
    Queued& next = p.queue.front();
    Descriptor fds[kMostPassed];
    for (uint32_t i = 0; i < next.fdCount; i++) fds[i] = next.fds[i].get();
    const Piece piece = {next.bytes.data(), next.bytes.size()};
    if (sendLocal(p.fd.get(), &piece, 1, fds, next.fdCount) != 0) return;
    counters_.add(HostCounter::kForwardedOut);
    p.queuedBytes -= next.bytes.size();
    p.queue.pop_front();
  }
  setWantsOut(slot, p, false);
}

bool Slots::identify(uint32_t slot, PeerIdentity* identity) {
  int error = 0;
  Peer* p = peer(slot, &error);
  return p != nullptr && identifyPeer(p->fd.get(), identity);
}

bool Slots::isOwner(uint32_t slot, Descriptor connection, PeerIdentity* sender) {
  PeerIdentity owner;
  return isOther(slot) && identify(slot, &owner) && isSame(connection, owner, sender) && !hasEndedLocal(connection);
}

bool Slots::mayComeFrom(uint32_t slot, Descriptor connection) {
  PeerIdentity sender, owner;
  return isOther(slot) && (!identify(slot, &owner) || isSame(connection, owner, &sender));
}

bool Slots::isSame(Descriptor connection, const PeerIdentity& owner, PeerIdentity* sender) {
  return identifyPeer(connection, sender) && sender->process == owner.process && sender->user == owner.user;
}

int Slots::watch(uint32_t slot) {
  if (slot == slot_) return 0;
  // An older connection may lead to a process that has ended unnoticed. Its end would be reported as that of the slot's
  // present owner.
  if (slot < kMax && peers_[slot] && !peers_[slot]->watched && hasEndedLocal(peers_[slot]->fd.get()))
    peers_[slot].reset();
  int error = 0;
  Peer* p = peer(slot, &error);
  if (p == nullptr) return error == EAGAIN ? 0 : error;  // alive but too busy to accept
  p->watched = true;
  return 0;
}

bool Slots::endedUnseen(uint32_t slot) const {
  return slot < kMax && peers_[slot] && peers_[slot]->watched && hasEndedLocal(peers_[slot]->fd.get());
}

Departure Slots::onOutbound(uint32_t slot, uint32_t kinds, uint64_t now) {
  if (slot >= kMax || !peers_[slot]) return Departure::kNone;
  Peer& p = *peers_[slot];
  if ((kinds & Readiness::kEnded) == 0) {
    if ((kinds & Readiness::kWritable) != 0) drain(slot, p);
    return Departure::kNone;
  }
  p.saidGoodbye |= hasGoodbye(p.fd.get());
  // The connection has ended. Only the name shows whether the process has ended too. The process may have closed just
  // this connection. Or it is ending and its listener is not closed yet; then the next connection ends as well.
  if (now - p.firstReconnect > kReconnectWindowNs) p.firstReconnect = now, p.reconnects = 0;
  UniqueFd fd;
  ProcessId process = 0;
  const int error = p.reconnects++ < kMaxReconnects ? connectTo(slot, &fd, &process) : ECONNREFUSED;
  // After a goodbye the owner is another context, perhaps of the same process.
  if (error == 0 && process == p.process && !p.saidGoodbye) {
    p.fd = std::move(fd);
    p.wantsOut = false;
    setWantsOut(slot, p, !p.queue.empty());
    return Departure::kNone;
  }
  const Departure departure = !p.watched ? Departure::kNone : p.saidGoodbye ? Departure::kOrderly : Departure::kLost;
  if (p.watched) counters_.add(HostCounter::kSlotPeersGone);
  peers_[slot].reset();
  if (error == 0) {
    auto next = std::make_unique<Peer>();  // the slot already has a new owner
    next->fd = std::move(fd);
    next->process = process;
    peers_[slot] = std::move(next);
  }
  return departure;
}

}  // namespace nd
