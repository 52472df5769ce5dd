#include "slots/rdma_ports.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "platform/local_socket.h"
#include "slots/host_events.h"

namespace nd {
namespace {

const char kAnyAddress[] = "*";

std::string portPrefix(uint32_t service, uint16_t port) {
  char text[64];
  std::snprintf(text, sizeof text, "port/%04x/%u/", service, static_cast<unsigned>(port));
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

}  // namespace

std::string portName(uint32_t service, uint16_t port, const Gid* address) {
  return portPrefix(service, port) + addressName(address);
}

Status RdmaPorts::bindName(uint32_t service, const Gid* address, uint16_t port, UniqueFd* listener) {
  const std::string prefix = portPrefix(service, port);
  UniqueFd fd;
  // A claim of the other form (all addresses or one) has another name. Each side checks after binding, so at least one
  // of two concurrent claims gives way.
  std::vector<std::string> others;
  const int error = names_.claim(prefix + addressName(address), prefix, &fd, &others);
  if (error == EADDRINUSE) return Status::kAddressAlreadyExists;
  if (error != 0) return statusOfLack(error);
  for (const std::string& other : others)
    if (address == nullptr || other == kAnyAddress) return Status::kAddressAlreadyExists;
  *listener = std::move(fd);
  return Status::kSuccess;
}

// Returns whether a claim of this process holds the port. Ports of blocks have no names.
bool RdmaPorts::isTaken(uint32_t service, const Gid* address, uint16_t port) const {
  const auto [first, last] = byPort_.equal_range(keyOf(service, port));
  return std::any_of(first, last, [&](const auto& entry) {
    const Claim& c = claims_.at(entry.second);
    return c.any || address == nullptr || c.address == *address;
  });
}

bool RdmaPorts::hasBlock(uint32_t service, uint16_t port) {
  std::lock_guard<std::mutex> guard(mutex_);
  return blocks_.has(service, port);
}

uint32_t RdmaPorts::add(KernelId kernel, uint32_t service, const Gid* address, uint16_t port, UniqueFd listener) {
  const uint32_t id = nextId_++;
  if (listener.valid() && !readiness_.add(listener.get(), Readiness::kReadable, eventTag(EventKind::kClaim, id)))
    return 0;
  Claim& entry = claims_[id];
  entry.kernel = kernel;
  entry.service = service;
  entry.port = port;
  entry.any = address == nullptr;
  if (address != nullptr) entry.address = *address;
  entry.listener = std::move(listener);
  byPort_.emplace(keyOf(service, port), id);
  blocks_.use(service, port);
  return id;
}

Status RdmaPorts::claim(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
  if (kernel == 0 || service > 0xffff) return Status::kInvalidParameter;
  if (*port == 0) return claimFree(kernel, service, address, port, claim);
  return claimNumber(kernel, service, address, *port, monotonicMs() + kReplyMs, claim);
}

Status RdmaPorts::claimFree(KernelId kernel, uint32_t service, const Gid* address, uint16_t* port, uint32_t* claim) {
  uint32_t start;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    const Status status = blocks_.take(service, nextId_++, port);
    if (status == Status::kSuccess) *claim = add(kernel, service, address, *port, UniqueFd());
    if (status != Status::kTooManyAddresses) return status;
    start = blocks_.randomStart();
  }
  // Other processes have all blocks.
  const int64_t deadline = monotonicMs() + kReplyMs;
  for (uint32_t n = 0; n < RdmaPortBlocks::kBlocks; n++) {
    const PortRequest request{service, 0, RdmaPortBlocks::nth(start, n), address == nullptr};
    if (hasBlock(service, request.first)) continue;
    int error = 0;
    const PortReply granted = requestPort(names_, request, address, deadline, &error);
    if (error != 0) return statusOfLack(error);
    if (granted.verdict != PortVerdict::kYours ||
        RdmaPortBlocks::firstOf(static_cast<uint16_t>(granted.port)) != request.first)
      continue;
    *port = static_cast<uint16_t>(granted.port);
    const Status status = claimNumber(kernel, service, address, *port, deadline, claim);
    if (status != Status::kAddressAlreadyExists) return status;
  }
  return Status::kTooManyAddresses;
}

Status RdmaPorts::claimNumber(KernelId kernel, uint32_t service, const Gid* address, uint16_t port, int64_t deadline,
                              uint32_t* claim) {
  // Returns kSuccess if no other process has the port from a block.
  const auto requestFromOwner = [&] {
    if (!RdmaPortBlocks::covers(port) || hasBlock(service, port)) return Status::kSuccess;
    const PortRequest request{service, port, RdmaPortBlocks::firstOf(port), address == nullptr};
    int error = 0;
    const PortVerdict verdict = requestPort(names_, request, address, deadline, &error).verdict;
    if (error != 0) return statusOfLack(error);
    return verdict == PortVerdict::kTaken ? Status::kAddressAlreadyExists : Status::kSuccess;
  };
  // Done before binding, so that the name is never bound while the owner may hand the port out, and again afterwards,
  // in case the block has gained an owner in the meantime.
  if (const Status before = requestFromOwner(); before != Status::kSuccess) return before;
  UniqueFd listener;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (isTaken(service, address, port)) return Status::kAddressAlreadyExists;
    const Status status = bindName(service, address, port, &listener);
    if (status != Status::kSuccess) return status;
  }
  if (const Status after = requestFromOwner(); after != Status::kSuccess) return after;
  std::lock_guard<std::mutex> guard(mutex_);
  if (isTaken(service, address, port)) return Status::kAddressAlreadyExists;
  *claim = add(kernel, service, address, port, std::move(listener));
  return *claim != 0 ? Status::kSuccess : Status::kInsufficientResources;
}

Status RdmaPorts::open(uint32_t claim) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return Status::kInvalidParameter;
  Claim& c = found->second;
  if (c.listener.valid()) return Status::kSuccess;
  UniqueFd listener;
  const int error = names_.listenAt(portName(c.service, c.port, c.any ? nullptr : &c.address), &listener);
  if (error == EADDRINUSE) return Status::kAddressAlreadyExists;
  if (error != 0) return statusOfLack(error);
  if (!readiness_.add(listener.get(), Readiness::kReadable, eventTag(EventKind::kClaim, claim)))
    return Status::kInsufficientResources;
  c.listener = std::move(listener);
  return Status::kSuccess;
}

void RdmaPorts::onRequest(const Frame& frame, Descriptor connection) {
  PortRequest request;
  std::memcpy(&request, frame.body, sizeof request);
  PortReply granted;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    const Gid* address = request.any != 0 ? nullptr : &frame.meta.destination;
    if (!blocks_.has(request.service, request.first)) {
      granted = {PortVerdict::kNoOwner, request.port};
    } else if (request.port == 0) {
      granted.port = blocks_.lendAny(request.service, request.first);
      if (granted.port != 0) granted.verdict = PortVerdict::kYours;
    } else if (RdmaPortBlocks::firstOf(request.port) == request.first &&
               !isTaken(request.service, address, request.port)) {
      blocks_.lend(request.service, request.port);
      granted = {PortVerdict::kYours, request.port};
    }
  }
  Frame reply;
  reply.kind = FrameKind::kPortReply;
  reply.body = reinterpret_cast<const uint8_t*>(&granted);
  reply.bodyLength = sizeof granted;
  sendFrame(connection, reply);
}

void RdmaPorts::release(uint32_t claim) {
  std::lock_guard<std::mutex> guard(mutex_);
  const auto found = claims_.find(claim);
  if (found != claims_.end()) drop(found);
}

std::map<uint32_t, RdmaPorts::Claim>::iterator RdmaPorts::drop(std::map<uint32_t, Claim>::iterator claim) {
  const auto [first, last] = byPort_.equal_range(keyOf(claim->second.service, claim->second.port));
  for (auto i = first; i != last; ++i) {
    if (i->second != claim->first) continue;
    byPort_.erase(i);
    break;
  }
  const Claim& c = claim->second;
  if (byPort_.count(keyOf(c.service, c.port)) == 0) blocks_.giveBack(c.service, c.port);
  return claims_.erase(claim);
}

std::vector<uint32_t> RdmaPorts::releaseKernel(KernelId kernel) {
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

void RdmaPorts::releaseAll() {
  std::lock_guard<std::mutex> guard(mutex_);
  claims_.clear();
  byPort_.clear();
  blocks_.clear();
  owners_.clear();
}

KernelId RdmaPorts::find(uint32_t service, uint16_t port, const Gid& address) {
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

bool RdmaPorts::LookupRate::take(uint64_t now) {
  const uint64_t used = std::max(used_, now);
  if (used - now >= kAtOnce * kEachNs) return false;
  used_ = used + kEachNs;
  return true;
}

RdmaPorts::HandOver RdmaPorts::handOver(uint32_t service, uint16_t port, const Gid& address, const Frame& frame,
                                        uint64_t now) {
  const std::string names[] = {portName(service, port, &address), portName(service, port, nullptr)};
  for (const std::string& name : names)
    if (sendToKnown(name, frame)) return HandOver::kDone;
  const bool sure = lookupRate_.take(now);
  const auto lookup = sure ? LocalNames::Lookup::kUsual : LocalNames::Lookup::kRecent;
  for (const std::string& name : names) {
    UniqueFd fd;
    ProcessId process = 0;
    const int error = names_.connect(name, &fd, &process, lookup);
    if (isDescriptorLack(error)) return HandOver::kLacking;
    if (error != 0) continue;
    if (sendFrame(fd.get(), frame) != 0) return HandOver::kNoOwner;
    // If the connection were closed instead, the owner could still read frames that have been sent.
    keepOwner(name, std::move(fd));
    return HandOver::kDone;
  }
  return sure ? HandOver::kNoOwner : HandOver::kUnsure;
}

// Returns false if there is no connection, it has ended, or its owner reads too slowly (another connection then queues
// the frame).
bool RdmaPorts::sendToKnown(const std::string& name, const Frame& frame) {
  const auto owner = std::find_if(owners_.begin(), owners_.end(), [&](const Owner& o) { return o.name == name; });
  if (owner == owners_.end()) return false;
  owner->used = ++uses_;
  const int error = sendFrame(owner->connection.get(), frame);
  if (error != 0 && error != EAGAIN && error != ENOBUFS) owners_.erase(owner);
  return error == 0;
}

void RdmaPorts::keepOwner(std::string name, UniqueFd connection) {
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

Descriptor RdmaPorts::listenerOf(uint32_t claim) const {
  const auto found = claims_.find(claim);
  return found != claims_.end() ? found->second.listener.get() : blocks_.listenerOf(claim);
}

bool RdmaPorts::acceptOn(uint32_t claim, Inbound& inbound) {
  std::lock_guard<std::mutex> guard(mutex_);
  const Descriptor listener = listenerOf(claim);
  return listener == kNoDescriptor || inbound.acceptFrom(listener, claim);
}

void RdmaPorts::hear(uint32_t claim, bool on) {
  std::lock_guard<std::mutex> guard(mutex_);
  const Descriptor listener = listenerOf(claim);
  if (listener == kNoDescriptor) return;
  readiness_.change(listener, on ? Readiness::kReadable : Readiness::kNothing, eventTag(EventKind::kClaim, claim));
}

}  // namespace nd
