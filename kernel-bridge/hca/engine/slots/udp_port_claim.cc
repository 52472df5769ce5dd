#include "slots/udp_port_claim.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "platform/datagram_socket.h"
#include "platform/os.h"
#include "slots/host_events.h"
#include "slots/other_dialects.h"

namespace nd {
namespace {

const char kName[] = "wire";

// Another process, of any user, has the port and may release it. Other errors are permanent.
bool mayPass(int error) { return error == EADDRINUSE; }

}  // namespace

bool UdpPortClaim::bind(uint32_t receiveBufferBytes, bool last, Bound* bound) {
  UniqueFd turn;
  const int error = names_.claim(kName, &turn);
  if (error == EADDRINUSE && !last) return false;
  bound->receiveBufferBytes = receiveBufferBytes;
  for (size_t i = 0; i < 2; i++) {
    bound->errors[i] = error;
    if (error == 0) share(families_[i], bound, i);
  }
  return true;
}

void UdpPortClaim::open(Bound bound) {
  for (size_t i = 0; i < 2; i++) {
    Family& family = families_[i];
    family.error = bound.errors[i];
    if (family.error == 0) family.error = family.socket.open(std::move(bound.sockets[i]), bound.receiveBufferBytes);
    if (family.error == 0) family.name = std::move(bound.names[i]);
  }
}

void UdpPortClaim::open(uint32_t receiveBufferBytes) {
  receiveBufferBytes_ = receiveBufferBytes;
  take();
}

// The holder of the name accepts no connections, and those that wait end with its claim.
void UdpPortClaim::awaitTurn(uint64_t deadline) {
  UniqueFd turn;
  if (names_.connect(kName, &turn, nullptr) != 0) return yieldThread();
  const Descriptor waited = turn.get();
  const uint64_t now = clock_.now();
  waitReadable(&waited, 1, deadline > now ? deadline - now : 0);
}

// The caller holds the name `wire`, so that no process of this dialect joins or leaves unnoticed between the steps.
void UdpPortClaim::share(const Family& family, Bound* bound, size_t index) {
  int& error = bound->errors[index];
  DatagramSocket& socket = bound->sockets[index];
  UniqueFd& name = bound->names[index];
  const auto sharers = names_.list(family.names);
  if (!sharers) {
    error = EMFILE;
    return;
  }
  // A process that joins cannot distinguish its own group from one that a process of an old dialect has joined in the
  // meantime.
  error = sharers->empty()     ? family.socket.bind(bound->receiveBufferBytes, true, &socket)
          : otherDialectsRun() ? EADDRINUSE
                               : family.socket.bind(bound->receiveBufferBytes, false, &socket);
  if (error != 0) return;
  uint64_t random = 0;
  fillRandom(&random, sizeof random);
  error = names_.listenAt(family.names + std::to_string(random), &name);
  if (error != 0) return socket.close();
  refuseLocal(name.get());  // it only has to be visible
}

bool UdpPortClaim::leaveToOther() {
  bool probed = false;
  for (Family& family : families_) probed |= family.socket.wasProbedByOther();
  if (!probed || !otherDialectsRun()) return false;
  bool left = false;
  for (Family& family : families_) {
    if (!family.socket.hears()) continue;
    family.name.reset();
    family.socket.close();
    family.error = EADDRINUSE;
    left = true;
  }
  return left;
}

void UdpPortClaim::close() {
  for (Family& family : families_) {
    family.name.reset();  // before the socket: any process that sees the name may join
    family.socket.close();
  }
  listener_.reset();  // after the sockets: whoever gets the name gets the port
  owner_.reset();
  due_ = UINT64_MAX;
  pause_ = kFirstPauseNs;
}

void UdpPortClaim::take() {
  due_ = UINT64_MAX;
  if (!listener_.valid() && !claimName()) return followOwner();
  const bool had = heardAny();
  bool more = false;
  for (Family& family : families_) {
    if (family.socket.hears()) continue;
    DatagramSocket bound;
    family.error = family.socket.bind(receiveBufferBytes_, true, &bound);
    if (family.error == 0) family.error = family.socket.open(std::move(bound), receiveBufferBytes_);
    if (!mayPass(family.error)) continue;
    more = true;
    if (!family.socket.sends()) family.socket.openBeside();
  }
  if (!heardAny()) listener_.reset();  // so that no process relies on this one
  else if (!had) counters_.add(HostCounter::kPortTaken);
  if (more) later();
}

bool UdpPortClaim::heardAny() const { return families_[0].socket.hears() || families_[1].socket.hears(); }

bool UdpPortClaim::claimName() {
  if (names_.listenAt(kName, &listener_) != 0) return false;
  if (!readiness_.add(listener_.get(), Readiness::kReadable, eventTag(EventKind::kPortName, 0))) {
    listener_.reset();
    return false;
  }
  return true;
}

void UdpPortClaim::followOwner() {
  for (Family& family : families_) {
    family.error = 0;
    if (!family.socket.sends()) family.socket.openBeside();
  }
  const bool found = names_.connect(kName, &owner_, nullptr) == 0 &&
                     readiness_.add(owner_.get(), Readiness::kEnded, eventTag(EventKind::kPortOwner, 0));
  if (!found) {  // the owner has just claimed the name, or just ended
    owner_.reset();
    return later();
  }
  followedAt_ = clock_.now();
  for (Family& family : families_) family.socket.announceGroups(owner_.get());
}

void UdpPortClaim::later() {
  due_ = clock_.now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPauseNs);
}

void UdpPortClaim::onOwnerEnded() {
  owner_.reset();
  // A process that had the name for a moment did not get the port. Without a pause, all processes would retry in
  // lockstep.
  if (clock_.now() - followedAt_ < kLongestPauseNs) return later();
  pause_ = kFirstPauseNs;
  take();
}

void UdpPortClaim::listen(bool on) {
  if (!listener_.valid()) return;
  readiness_.change(listener_.get(), on ? Readiness::kReadable : Readiness::kNothing,
                    eventTag(EventKind::kPortName, 0));
}

}  // namespace nd
