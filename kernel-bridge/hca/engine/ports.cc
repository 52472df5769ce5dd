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
  std::string text;
  char byte[4];
  for (uint8_t b : address->raw) {
    std::snprintf(byte, sizeof byte, "%02x", b);
    text += byte;
  }
  return text;
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
    const int found = probeLocal(prefix + kAnyAddress);
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

void Ports::releaseKernel(KernelId kernel) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (auto i = claims_.begin(); i != claims_.end();) i = i->second.kernel == kernel ? drop(i) : std::next(i);
}

void Ports::releaseAll() {
  std::lock_guard<std::mutex> guard(mutex_);
  claims_.clear();
  byPort_.clear();
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
  for (const Gid* form : {&address, static_cast<const Gid*>(nullptr)}) {
    UniqueFd fd;
    pid_t pid = 0;
    if (connectLocal(prefix + addressName(form), &fd, &pid) != 0) continue;
    // Closed right after: what was sent stays readable for the owner.
    uint8_t header[Frame::kHeaderBytes];
    frame.encodeHeader(header);
    iovec pieces[2] = {{header, sizeof header}, {const_cast<uint8_t*>(frame.body), frame.bodyLength}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    return sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }
  return false;
}

void Ports::acceptOn(uint32_t claim, Inbound& inbound) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = claims_.find(claim);
  if (found != claims_.end()) inbound.acceptFrom(found->second.listener.get());
}

}  // namespace nd
