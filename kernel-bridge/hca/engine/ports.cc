#include "ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "host_events.h"
#include "local_socket.h"

namespace nd {
namespace {

const char kAnyAddress[] = "*";

std::string portPrefix(uint32_t service, uint16_t port) {
  char text[64];
  std::snprintf(text, sizeof text, "networkdirect/port/%04x/%u/", service, static_cast<unsigned>(port));
  return text;
}

std::string addressName(const Gid* address) {
  if (address == nullptr) return kAnyAddress;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * address->raw.size());
  for (uint8_t b : address->raw) {
    text += kDigits[b >> 4];
    text += kDigits[b & 15];
  }
  return text;
}

bool sendTo(int connection, const Frame& frame) {
  uint8_t header[Frame::kHeaderBytes];
  frame.encodeHeader(header);
  iovec pieces[2] = {{header, sizeof header}, {const_cast<uint8_t*>(frame.body), frame.bodyLength}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

}  // namespace

Status Ports::tryClaim(uint32_t service, const Gid* address, uint16_t port, UniqueFd* listener) {
  const std::string prefix = portPrefix(service, port);
  UniqueFd fd;
  const int error = listenLocal(prefix + addressName(address), &fd);
  if (error == EADDRINUSE) return Status::kAddressAlreadyExists;
  if (error != 0) return Status::kInsufficientResources;
  // The name is ours; a claim of the other form (all addresses against one) has another name. Each side looks
  // after it has bound, so of two that come at the same time at least one gives way.
  if (address != nullptr) {
    const int found = probeLocal(prefix + kAnyAddress, &probe_);
    if (found == 0) return Status::kAddressAlreadyExists;
    if (found != ECONNREFUSED) return Status::kInsufficientResources;
  } else {
    for (const std::string& other : listLocalListeners(prefix))
      if (other != kAnyAddress) return Status::kAddressAlreadyExists;
  }
  *listener = std::move(fd);
  return Status::kSuccess;
}

Status Ports::claim(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
  if (kernel == 0 || service > 0xffff) return Status::kInvalidParameter;
  std::lock_guard<std::mutex> guard(mutex_);
  UniqueFd listener;
  uint16_t granted = *port;
  if (granted != 0) {
    const Status status = tryClaim(service, address, granted, &listener);
    if (status != Status::kSuccess) return status;
  } else {
    constexpr uint32_t kCount = 65536 - kFirstEphemeral;
    const uint32_t start = random_() % kCount;
    for (uint32_t i = 0; i < kCount; i++) {
      const auto candidate = static_cast<uint16_t>(kFirstEphemeral + (start + i) % kCount);
      const Status status = tryClaim(service, address, candidate, &listener);
      if (status == Status::kAddressAlreadyExists) continue;
      if (status != Status::kSuccess) return status;
      granted = candidate;
      break;
    }
    if (!listener.valid()) return Status::kTooManyAddresses;
  }
  const uint32_t id = nextId_++;
  if (!watchFd(epoll_, listener.get(), EPOLLIN, EventKind::kClaim, id)) return Status::kInsufficientResources;
  Claim& entry = claims_[id];
  entry.kernel = kernel;
  entry.service = service;
  entry.port = granted;
  entry.any = address == nullptr;
  if (address != nullptr) entry.address = *address;
  entry.listener = std::move(listener);
  byPort_.emplace(keyOf(service, granted), id);
  *port = granted;
  *claim = id;
  return Status::kSuccess;
}

void Ports::release(uint32_t claim) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = claims_.find(claim);
  if (found != claims_.end()) drop(found);
}

std::map<uint32_t, Ports::Claim>::iterator Ports::drop(std::map<uint32_t, Claim>::iterator claim) {
  const auto [first, last] = byPort_.equal_range(keyOf(claim->second.service, claim->second.port));
  for (auto i = first; i != last; ++i) {
    if (i->second != claim->first) continue;
    byPort_.erase(i);
    break;
  }
  return claims_.erase(claim);
}

std::vector<uint32_t> Ports::releaseKernel(KernelId kernel) {
  std::lock_guard<std::mutex> guard(mutex_);
  std::vector<uint32_t> released;
  for (auto i = claims_.begin(); i != claims_.end();) {
    if (i->second.kernel != kernel) {
      ++i;
      continue;
    }
    released.push_back(i->first);
    i = drop(i);
  }
  return released;
}

void Ports::releaseAll() {
  std::lock_guard<std::mutex> guard(mutex_);
  claims_.clear();
  byPort_.clear();
  owners_.clear();
  probe_.reset();
}

KernelId Ports::find(uint32_t service, uint16_t port, const Gid& address) {
  std::lock_guard<std::mutex> guard(mutex_);
  KernelId any = 0;
  const auto [first, last] = byPort_.equal_range(keyOf(service, port));
  for (auto i = first; i != last; ++i) {
    const Claim& c = claims_.at(i->second);
    if (!c.any && c.address == address) return c.kernel;
    if (c.any) any = c.kernel;
  }
  return any;
}

bool Ports::handOver(uint32_t service, uint16_t port, const Gid& address, const Frame& frame) {
  const std::string prefix = portPrefix(service, port);
  const std::string names[] = {prefix + addressName(&address), prefix + addressName(nullptr)};
  for (const std::string& name : names)
    if (sendToKnown(name, frame)) return true;
  for (const std::string& name : names) {
    UniqueFd fd;
    pid_t pid = 0;
    if (connectLocal(name, &fd, &pid) != 0) continue;
    if (!sendTo(fd.get(), frame)) return false;
    // If it is closed instead, what was sent stays readable for the owner.
    keepOwner(name, std::move(fd));
    return true;
  }
  return false;
}

// False: there is no connection, it has ended, or its owner is behind with reading (then another one waits in line).
bool Ports::sendToKnown(const std::string& name, const Frame& frame) {
  const auto owner = std::find_if(owners_.begin(), owners_.end(), [&](const Owner& o) { return o.name == name; });
  if (owner == owners_.end()) return false;
  owner->used = ++uses_;
  if (sendTo(owner->connection.get(), frame)) return true;
  if (errno != EAGAIN && errno != ENOBUFS) owners_.erase(owner);
  return false;
}

void Ports::keepOwner(std::string name, UniqueFd connection) {
  const auto known = [&](const Owner& o) { return o.name == name; };
  if (std::any_of(owners_.begin(), owners_.end(), known)) return;
  const auto lessUsed = [](const Owner& a, const Owner& b) { return a.used < b.used; };
  if (owners_.size() >= kMaxOwners) owners_.erase(std::min_element(owners_.begin(), owners_.end(), lessUsed));
  Owner owner;
  owner.name = std::move(name);
  owner.connection = std::move(connection);
  owner.used = ++uses_;
  owners_.push_back(std::move(owner));
}

void Ports::acceptOn(uint32_t claim, Inbound& inbound) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = claims_.find(claim);
  if (found != claims_.end()) inbound.acceptFrom(found->second.listener.get(), claim);
}

}  // namespace nd
